"""Families beyond the paper's: simple rules fail on them, requests have contexts, or purchases come before the rest.

*Shop*: products shown to visitors, stages of a visit as states, revenue as the outcome. A purchase is reported when it
happens, and that nothing was bought only when the window closes: run these with `sp.Conversions(window, waits)`. The
loss is 1 where nothing is bought and 1 less the revenue otherwise, as a share of the largest revenue.

*Contexts*: each context has rows of its own, while the mean loss of a state is the same for all.
"""

import inspect
from typing import Any

import numpy as np

from statepool.checks import Floats, Ints, check_count, check_name, check_number
from statepool.families.shapes import REGISTRY, draw_means, family, normalise, phases, progress, season
from statepool.model import Instance
from statepool.stream import Seed, generator_of


@family
def locked(seed: Seed, kind: str = "private-states", horizon: int = 10_000) -> Instance:
    """Maps (`kind`) on which a greedy rule never explores the best state, which is seldom or never reached at random.

    >>> import statepool as sp
    >>> sp.families.locked(seed=0, horizon=100)
    Instance(60 actions, 24 states, 100 rounds)
    """
    check_name("kind", kind, LOCKED)
    return Instance(*LOCKED[kind](generator_of(seed), horizon))


def _private_states(rng: np.random.Generator, horizon: int) -> tuple[Floats, Floats]:
    """Sixty deterministic rows over twenty-four states."""
    K, S = 60, 24
    P = np.zeros((K, S))
    P[np.arange(K), rng.integers(0, S, K)] = 1
    P[:S] = np.eye(S)
    return P, season(rng.uniform(0.15, 0.85, S), 0.12, phases(rng, S), horizon)


def _decoys(rng: np.random.Generator, horizon: int) -> tuple[Floats, Floats]:
    """Most actions share one steady state; of ten with a private state, one is better."""
    P = np.zeros((30, 11))
    P[:, 0] = 1
    P[:10] = np.eye(11)[1:]
    means = np.r_[0.5, rng.uniform(0.55, 0.9, 10)]
    means[1 + rng.integers(10)] = 0.38
    return P, np.tile(means, (horizon, 1))


def _narrow_gate(rng: np.random.Generator, horizon: int) -> tuple[Floats, Floats]:
    """One action alone reaches the best state, and otherwise the worst."""
    K, S, key = 40, 8, 7
    P = np.c_[rng.dirichlet(np.ones(S - 1), size=K), np.zeros(K)]
    means = np.r_[rng.uniform(0.4, 0.9, S - 1), 0.05]
    P[key] = 0
    P[key, S - 1] = 0.7
    P[key, int(means[:-1].argmax())] = 0.3
    return P, np.tile(means, (horizon, 1))


LOCKED = {"private-states": _private_states, "decoys": _decoys, "narrow-gate": _narrow_gate}


@family
def shifting(
    seed: Seed, kind: str = "early-late", n_actions: int = 40, n_states: int = 8, horizon: int = 10_000
) -> Instance:
    """Non-stationary means (`kind`): an adaptive policy can beat every fixed action, so regret can be negative.

    >>> import statepool as sp
    >>> sp.families.shifting(seed=0, horizon=100)
    Instance(40 actions, 8 states, 100 rounds)
    """
    check_name("kind", kind, SHIFTING)
    check_count(n_states, "n_states", lowest=2)
    rng = generator_of(seed)
    concentration, means = SHIFTING[kind]
    P = rng.dirichlet(concentration * np.ones(n_states), size=n_actions)
    return Instance(P, means(rng, n_states, horizon))


def _early_late(rng: np.random.Generator, n_states: int, horizon: int) -> Floats:
    """One state is good early and bad late, another the other way round."""
    theta = np.tile(rng.uniform(0.45, 0.6, n_states), (horizon, 1))
    cut = int(horizon * rng.uniform(0.3, 0.6))
    first, second = rng.permutation(n_states)[:2]
    theta[:cut, first], theta[cut:, first] = 0.15, 0.85
    theta[:cut, second], theta[cut:, second] = 0.7, 0.2
    return theta


def _random_walk(rng: np.random.Generator, n_states: int, horizon: int) -> Floats:
    """Each mean is a random walk, reflected at 0 and 1."""
    walk = rng.uniform(0.2, 0.8, n_states) + np.cumsum(rng.normal(0, 0.008, (horizon, n_states)), axis=0)
    walk = np.abs(walk) % 2
    return np.clip(np.where(walk > 1, 2 - walk, walk), 0.02, 0.98)


def _seasons(rng: np.random.Generator, n_states: int, horizon: int) -> Floats:
    """Four wide seasons, each state in its own phase."""
    return season(rng.uniform(0.35, 0.65, n_states), 0.3, phases(rng, n_states), horizon, turns=4)


SHIFTING = {"early-late": (0.4, _early_late), "random-walk": (0.6, _random_walk), "seasons": (0.6, _seasons)}


@family
def resonance(
    seed: Seed, half_period: int = 100, n_actions: int = 40, n_states: int = 8, horizon: int = 8_000
) -> Instance:
    """State means swing as square waves, even states against odd ones.

    With a half-period of a few delays, a learner that follows the swing is late. Random offsets make one action best on
    average.

    >>> import statepool as sp
    >>> sp.families.resonance(seed=0, horizon=100)
    Instance(40 actions, 8 states, 100 rounds)
    """
    rng = generator_of(seed)
    P = rng.dirichlet(0.6 * np.ones(n_states), size=n_actions)
    sign = np.where(np.arange(n_states) % 2 == 0, 1, -1)
    wave = np.where(np.arange(horizon) // half_period % 2 == 0, 1, -1)[:, None]
    return Instance(P, np.clip(0.5 + rng.uniform(-0.05, 0.05, n_states) + 0.3 * sign * wave, 0, 1))


@family
def direct(seed: Seed, family: str = "spread", size: float = 0.05, horizon: int = 10_000, **settings: Any) -> Instance:
    """Another family with direct effects of actions on outcomes, which break the assumption of pooling.

    The mean loss is theta_t(s) + effect(a, s). Effects are normal with standard deviation `size`, clipped so that means
    stay in [0, 1]. One seed gives the same base instance and the same directions at every size. `settings` are those of
    the base family.

    >>> import statepool as sp
    >>> sp.families.direct(seed=0, horizon=100)
    Instance(40 actions, 6 states, 100 rounds, with direct effects)
    """
    bases = {name: make for name, make in REGISTRY.items() if name != "direct"}
    check_name("family", family, bases)
    known = list(inspect.signature(bases[family]).parameters)[1:]
    for name in settings:
        check_name(f"setting of {family}", name, known)
    base = bases[family](seed, horizon=horizon, **settings)
    # A generator of its own: the base stays the family's instance of that seed.
    rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng((seed, 1))
    effects = size * rng.standard_normal(base.P.shape)
    return base.replaced(effects=np.clip(effects, -base.theta.min(axis=0), 1 - base.theta.max(axis=0)))


STAGES = np.array([0.55, 0.25, 0.12, 0.05, 0.03])
"""How often a visit ends in each of five stages, on average."""
PURCHASES = np.array([0.0, 0.01, 0.05, 0.25, 0.6])
"""How often a visit that ends there is followed by a purchase."""
CONCENTRATION = 12.0
"""How alike products are: rows are Dirichlet with this many times STAGES."""


@family
def shop(seed: Seed, n_actions: int = 30, n_states: int = 5, horizon: int = 20_000, revenue: float = 0.5) -> Instance:
    """A shop in which all products cost about the same.

    `revenue` is at most 2/3 and varies by half of itself. 1 is for purchases that are only counted: losses are 0 or 1.

    >>> import statepool as sp
    >>> sp.families.shop(seed=0, horizon=100)
    Instance(30 actions, 5 states, 100 rounds)
    """
    P, buying, _ = _visits(seed, n_actions, n_states)
    return Instance(
        P, np.tile(1 - revenue * buying, (horizon, 1)), gains=None if revenue == 1 else np.full(P.shape, revenue)
    )


@family
def shop_with_prices(
    seed: Seed, n_actions: int = 30, n_states: int = 5, horizon: int = 20_000, revenue: float = 0.25,
    spread: float = 0.5,
) -> Instance:  # fmt: skip
    """A shop whose products have prices: what a purchase brings depends on the product, beyond the stage.

    `revenue` is the median price, at most 2/3; what a purchase brings varies by half of the price.

    >>> import statepool as sp
    >>> sp.families.shop_with_prices(seed=0, horizon=100)
    Instance(30 actions, 5 states, 100 rounds, with direct effects)
    """
    check_number(revenue, "revenue", 0, 2 / 3, open_low=True)
    P, buying, rng = _visits(seed, n_actions, n_states)
    prices = np.minimum(revenue * np.exp(spread * rng.standard_normal(n_actions)), 2 / 3)
    effects = -(prices[:, None] - revenue) * buying
    theta = np.tile(1 - revenue * buying, (horizon, 1))
    return Instance(P, theta, effects, gains=np.broadcast_to(prices[:, None], P.shape))


def _visits(seed: Seed, n_actions: int, n_states: int) -> tuple[Floats, Floats, np.random.Generator]:
    """Rows of the products, and how often each stage is followed by a purchase."""
    rng = generator_of(seed)
    place = np.linspace(0, STAGES.size - 1, n_states)
    stages = np.exp(np.interp(place, np.arange(STAGES.size), np.log(STAGES)))
    P = rng.dirichlet(CONCENTRATION * stages / stages.sum(), n_actions)
    buying = np.interp(place, np.arange(STAGES.size), PURCHASES) * rng.uniform(0.7, 1.3, n_states)
    rng.random()  # not used: the prices that follow keep the random numbers that they have had
    return P, buying, rng


def _requests(
    seed: Seed, n_contexts: int, n_states: int, horizon: int, means: str
) -> tuple[np.random.Generator, Floats, Ints]:
    """The mean losses, and the context of each round; the generator goes on to draw the rows."""
    rng = generator_of(seed)
    theta = draw_means(rng, n_states, horizon, means)
    return rng, theta, rng.choice(n_contexts, size=horizon, p=np.full(n_contexts, 1 / n_contexts))


@family
def crowds(
    seed: Seed, n_contexts: int = 10, n_actions: int = 40, n_states: int = 6, horizon: int = 10_000,
    means: str = "steady",
) -> Instance:  # fmt: skip
    """Every context has independent rows; only the means of the states are common. One context is a plain instance.

    >>> import statepool as sp
    >>> sp.families.crowds(seed=0, horizon=100)
    Instance(10 contexts, 40 actions, 6 states, 100 rounds)
    """
    rng, theta, contexts = _requests(seed, n_contexts, n_states, horizon, means)
    return Instance(rng.dirichlet(np.ones(n_states), size=(n_contexts, n_actions)), theta, contexts=contexts)


@family
def segments(
    seed: Seed, n_contexts: int = 20, n_actions: int = 30, n_states: int = 6, horizon: int = 10_000,
    of_context: float = 1.0, means: str = "steady",
) -> Instance:  # fmt: skip
    """Rows P_k(s|a) ∝ exp(action(a, s) + context(k, s)), so that contexts are similar.

    A map that is not known can be learnt from all contexts where the effect of the context is small.

    >>> import statepool as sp
    >>> sp.families.segments(seed=0, horizon=100)
    Instance(20 contexts, 30 actions, 6 states, 100 rounds)
    """
    rng, theta, contexts = _requests(seed, n_contexts, n_states, horizon, means)
    effects = rng.standard_normal((1, n_actions, n_states))
    effects = effects + of_context * rng.standard_normal((n_contexts, 1, n_states))
    return Instance(normalise(np.exp(effects - effects.max(axis=2, keepdims=True))), theta, contexts=contexts)


@family
def routes(
    seed: Seed, n_contexts: int = 60, n_actions: int = 120, n_states: int = 5, horizon: int = 10_000,
    n_candidates: int = 4, means: str = "steady",
) -> Instance:  # fmt: skip
    """Many contexts, each of which may be answered with `n_candidates` of the actions only: lines that serve a route.

    >>> import statepool as sp
    >>> sp.families.routes(seed=0, horizon=100)
    Instance(60 contexts, 120 actions, 5 states, 100 rounds)
    """
    if n_candidates > n_actions:
        raise ValueError(f"n_candidates: is {n_candidates}, expected at most the {n_actions} actions")
    rng, theta, contexts = _requests(seed, n_contexts, n_states, horizon, means)
    available = np.zeros((n_contexts, n_actions), dtype=bool)
    P = np.zeros((n_contexts, n_actions, n_states))
    for rows, offered in zip(P, available, strict=True):
        candidates = rng.permutation(n_actions)[:n_candidates]
        offered[candidates] = True
        rows[candidates] = rng.dirichlet(np.ones(n_states), size=n_candidates)
    return Instance(P, theta, contexts=contexts, available=available)


@family
def moving_map(
    seed: Seed, n_actions: int = 20, n_states: int = 5, horizon: int = 10_000, n_epochs: int = 20, moves: str = "drift",
    means: str = "steady",
) -> Instance:  # fmt: skip
    """The map changes from epoch to epoch without the learner's knowledge, the case that NSD-UCRL2 is made for.

    Epochs are the contexts of the instance, so that the comparator knows each epoch's best action. Learners see no
    contexts, and one map: the average over all rounds, as if it were fitted to a long log.

    >>> import statepool as sp
    >>> sp.families.moving_map(seed=0, horizon=100)
    Instance(20 contexts, 20 actions, 5 states, 100 rounds)
    """
    check_name("moves", moves, ("drift", "jumps"))
    rng = generator_of(seed)
    theta = draw_means(rng, n_states, horizon, means)
    maps = rng.dirichlet(np.ones(n_states), size=(2 if moves == "drift" else n_epochs, n_actions))
    if moves == "drift":
        share = np.linspace(0, 1, n_epochs)[:, None, None]
        maps = (1 - share) * maps[0] + share * maps[1]
    epochs = (progress(horizon)[:, 0] * n_epochs).astype(np.int64)
    average = np.einsum("e,eas->as", np.bincount(epochs, minlength=n_epochs) / horizon, maps)
    return Instance(maps, theta, contexts=epochs, given_map=normalise(average))
