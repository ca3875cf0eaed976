"""What families share: their arguments, how state means move, rows that sum to 1."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from statepool.arguments import Argument, Given, checked, count, number
from statepool.checks import Floats, check_name
from statepool.model import Instance

ARGUMENTS = {
    "seed": Argument("int or numpy.random.Generator", "Names the instance: its random numbers follow from it."),
    "n_actions": count("Number of actions."),
    "n_states": count("Number of states."),
    "horizon": count("Number of rounds."),
    "n_contexts": count("Number of contexts."),
    "kind": Argument("str", "Which of them."),
    "drift": number("How far a mean moves at most.", -1e9, 1e9),
    "overlap": number("The share of a row that is common to all actions.", 0, 1),
    "target": number("The regret of uniformly random actions.", 0, 1e18),
    "heterogeneity": number("How far the means of a group differ.", -1e9, 1e9),
    "share": Argument("float", "The mean probability of the rare state."),
    "n_drifting": count("Number of actions whose loss drifts."),
    "block": count("Rounds of a block."),
    "amplitude": number("How far means swing to either side.", 0, 0.5),
    "half_period": count("Rounds before the means swing back."),
    "family": Argument("str", "The family that gets direct effects."),
    "size": number("Standard deviation of the direct effects.", 0, 1),
    "settings": Argument("", "Those of that family."),
    "revenue": number("What a purchase brings in the middle, as a share of the most.", 0, 1, open_low=True),
    "spread": number("Standard deviation of the prices' logarithm.", 0, 10),
    "of_context": number("Standard deviation of the effect of a context on the logarithm of its rows.", 0, 50),
    "n_candidates": count("How many of the actions a context may be answered with."),
    "n_epochs": count("Number of epochs, between which the map changes."),
    "moves": Argument("str", '"drift" from one map to another in equal steps, or "jumps" to new rows.'),
    "means": Argument("str", 'How the mean losses move: "steady" or "switching".'),
}
REGISTRY: dict[str, Callable[..., Instance]] = {}


def family(make: Callable[Given, Instance]) -> Callable[Given, Instance]:
    """Add a family to the registry, with its arguments checked and explained."""
    REGISTRY[make.__name__.replace("_", "-")] = made = checked(ARGUMENTS)(make)
    return made


def progress(horizon: int) -> Floats:
    """How far the horizon has run in each round, as a column: 0, 1/T, 2/T, …"""
    return np.arange(horizon)[:, None] / horizon


def season(base: Floats, amplitude: float, phase: Floats, horizon: int, turns: int = 1) -> Floats:
    """base + amplitude · sin of so many turns over the horizon, clipped to [0, 1]."""
    return np.clip(base + amplitude * np.sin(turns * (2 * np.pi) * progress(horizon) + phase), 0, 1)


def phases(rng: np.random.Generator, n_states: int) -> Floats:
    """A random phase for each state."""
    return rng.uniform(0, 2 * np.pi, n_states)


def ramp(base: Floats, slope: Floats, horizon: int) -> Floats:
    """base + slope over the horizon, clipped to [0, 1]."""
    return np.clip(base + slope * progress(horizon), 0, 1)


def shuffled(rng: np.random.Generator, n_states: int, horizon: int) -> Floats:
    """Evenly spaced levels, shuffled among the states at the start of each of five blocks."""
    levels, theta = np.linspace(0.12, 0.88, n_states), np.empty((horizon, n_states))
    for start, stop in pairwise(np.linspace(0, horizon, 6).astype(int)):
        theta[start:stop] = levels[rng.permutation(n_states)]
    return theta


def normalise(rows: Floats) -> Floats:
    """Rows scaled to sum to 1."""
    return rows / rows.sum(axis=-1, keepdims=True)


def draw_means(rng: np.random.Generator, n_states: int, horizon: int, means: str) -> Floats:
    """The mean loss of each state in each round: "steady" or "switching"."""
    check_name("means", means, ("steady", "switching"))
    if means == "switching":
        return shuffled(rng, n_states, horizon)
    return np.tile(rng.uniform(0.15, 0.85, n_states), (horizon, 1))
