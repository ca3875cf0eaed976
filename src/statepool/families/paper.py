"""The families of the paper's studies."""

from collections.abc import Callable

import numpy as np

from statepool.checks import Floats, check_count, check_name, check_number, check_whole
from statepool.families.shapes import family, normalise, phases, progress, ramp, season, shuffled
from statepool.model import Instance
from statepool.stream import Seed, generator_of


@family
def band(seed: Seed, n_actions: int = 40, n_states: int = 8, horizon: int = 10_000, drift: float = 0.05) -> Instance:
    """Rows from a Dirichlet, state means that drift in straight lines by at most `drift`.

    >>> import statepool as sp
    >>> sp.families.band(seed=0, horizon=100)
    Instance(40 actions, 8 states, 100 rounds)
    """
    rng = generator_of(seed)
    P = rng.dirichlet(1.5 * np.ones(n_states), size=n_actions)
    base = rng.uniform(0.25, 0.75, n_states)
    slope = rng.uniform(-1, 1, n_states)
    return Instance(P, ramp(base, drift * slope, horizon))


@family
def overlap(seed: Seed, n_actions: int = 40, n_states: int = 8, horizon: int = 5_000, overlap: float = 0.0) -> Instance:
    """Rows that are partly common to all actions, partly their own: `overlap` is the common share.

    >>> import statepool as sp
    >>> sp.families.overlap(seed=0, horizon=100)
    Instance(40 actions, 8 states, 100 rounds)
    """
    rng = generator_of(seed)
    common = rng.dirichlet(2.0 * np.ones(n_states))
    own = rng.dirichlet(0.25 * np.ones(n_states), size=n_actions)
    base = rng.uniform(0.15, 0.85, n_states)
    return Instance(overlap * common + (1 - overlap) * own, season(base, 0.12, phases(rng, n_states), horizon))


@family
def matched(
    seed: int, n_actions: int = 40, n_states: int = 8, horizon: int = 10_000, overlap: float = 0.0,
    target: float = 900.0,
) -> Instance:  # fmt: skip
    """Overlap varies while the task stays equally hard; `target` is the regret of uniformly random actions.

    More overlap alone makes the losses of all actions alike, and every learner looks good. Here a contrast between two
    states stays at every overlap, and its amplitude is found by bisection. The seed is a whole number: two generators
    are made of it.

    >>> import statepool as sp
    >>> sp.families.matched(seed=0, horizon=100)
    Instance(40 actions, 8 states, 100 rounds)
    """
    check_count(n_states, "n_states", lowest=2)
    rng = np.random.default_rng(check_whole(seed, "seed"))
    base = rng.dirichlet(2.0 * np.ones(n_states))
    own = rng.dirichlet(0.25 * np.ones(n_states), size=n_actions)
    spread = np.linspace(-1, 1, n_actions)
    rng.shuffle(spread)
    contrast = np.zeros(n_states)
    contrast[:2] = 1, -1
    P = overlap * base + (1 - overlap) * own + 0.12 * spread[:, None] * contrast
    P = normalise(np.maximum(P, 1e-4))
    phase = np.random.default_rng(seed + 555).uniform(0, 2 * np.pi)
    wave = 0.6 + 0.4 * np.sin(2 * np.pi * progress(horizon) + phase)
    return Instance(P, _means_at(target, P, wave * contrast))


def _means_at(target: float, P: Floats, direction: Floats) -> Floats:
    """State means around 1/2 along a direction, so far that uniformly random actions have the regret `target`."""
    low, high = 1e-4, 0.8
    # Only the two contrasted states move; the others stay at 1/2 and need not be summed again.
    moving, totals = direction[:, :2], np.full(P.shape[1], direction.shape[0] / 2)
    for _ in range(60):
        middle = (low + high) / 2
        totals[:2] = np.clip(0.5 + middle * moving, 0, 1).sum(axis=0)
        losses = P @ totals
        if losses.mean() - losses.min() < target:
            low = middle
        else:
            high = middle
    return np.clip(0.5 + (low + high) / 2 * direction, 0, 1)


@family
def clustered(seed: Seed, n_actions: int = 40, horizon: int = 6_000, heterogeneity: float = 0.0) -> Instance:
    """Sixteen states from four hidden groups, whose mean losses differ by `heterogeneity` inside a group.

    >>> import statepool as sp
    >>> sp.families.clustered(seed=0, horizon=100)
    Instance(40 actions, 16 states, 100 rounds)
    """
    rng = generator_of(seed)
    levels, size = np.array([0.15, 0.38, 0.62, 0.85]), 4
    mass = rng.dirichlet(0.7 * np.ones(levels.size), size=n_actions)
    P = np.empty((n_actions, levels.size * size))
    for a in range(n_actions):
        for c in range(levels.size):
            P[a, c * size : (c + 1) * size] = mass[a, c] * rng.dirichlet(1.2 * np.ones(size))
    phase = phases(rng, levels.size)
    offset = rng.uniform(-1, 1, levels.size * size)
    wave = levels + 0.08 * np.sin(2 * np.pi * progress(horizon) + phase)
    return Instance(P, np.clip(np.repeat(wave, size, axis=1) + heterogeneity * offset, 0, 1))


@family
def funnel(seed: Seed, n_actions: int = 200, n_states: int = 6, horizon: int = 20_000) -> Instance:
    """A catalogue of items in a dozen categories, depths of engagement as states, a late conversion.

    >>> import statepool as sp
    >>> sp.families.funnel(seed=0, horizon=100)
    Instance(200 actions, 6 states, 100 rounds)
    """
    rng = generator_of(seed)
    depth, n_categories = np.arange(n_states), 12
    tilt = rng.uniform(0.5, 2.6, n_categories)
    profile = normalise(np.exp(-tilt[:, None] * depth))
    category = rng.integers(n_categories, size=n_actions)
    quality = rng.lognormal(0, 0.6, n_actions)
    quality /= quality.mean()
    P = np.empty((n_actions, n_states))
    for a in range(n_actions):
        row = profile[category[a]] * np.exp(0.45 * (quality[a] - 1) * depth)
        row *= rng.dirichlet(40.0 * np.ones(n_states))
        P[a] = row / row.sum()
    return Instance(P, season(np.linspace(0.92, 0.28, n_states), 0.06, phases(rng, n_states), horizon))


@family
def spread(seed: Seed, n_actions: int = 40, horizon: int = 10_000) -> Instance:
    """The best action mixes several good states, while a decoy is most likely to reach the single best one.

    >>> import statepool as sp
    >>> sp.families.spread(seed=0, horizon=100)
    Instance(40 actions, 6 states, 100 rounds)
    """
    rng = generator_of(seed)
    base = np.array([0.10, 0.16, 0.22, 0.30, 0.60, 0.95])
    decoy, mixer = (0.62, 0, 0, 0, 0, 0.38), (0.30, 0.28, 0.24, 0.18, 0, 0)
    rows = [decoy, mixer, *(rng.dirichlet(0.7 * np.ones(base.size)) for _ in range(n_actions - 2))]
    return Instance(np.array(rows[:n_actions]), season(base, 0.03, phases(rng, base.size), horizon))


@family
def switching(seed: Seed, n_actions: int = 40, n_states: int = 8, horizon: int = 10_000) -> Instance:
    """The mean losses of the states are shuffled at the start of each of five blocks.

    >>> import statepool as sp
    >>> sp.families.switching(seed=0, horizon=100)
    Instance(40 actions, 8 states, 100 rounds)
    """
    rng = generator_of(seed)
    P = rng.dirichlet(0.6 * np.ones(n_states), size=n_actions)
    return Instance(P, shuffled(rng, n_states, horizon))


@family
def scarce(seed: Seed, n_actions: int = 40, n_states: int = 8, horizon: int = 8_000, share: float = 0.05) -> Instance:
    """One state is rare under every action, with mean probability `share`.

    >>> import statepool as sp
    >>> sp.families.scarce(seed=0, horizon=100)
    Instance(40 actions, 8 states, 100 rounds)
    """
    check_number(share, "share", 1e-9, 1 if n_states == 1 else 1 - 1e-9)
    rng = generator_of(seed)
    mean = np.full(n_states, (1 - share) / max(n_states - 1, 1))
    mean[0] = share
    P = normalise(np.maximum(rng.dirichlet(3 * n_states * mean, size=n_actions), 1e-9))
    base = rng.uniform(0.2, 0.8, n_states)
    slope = rng.uniform(-1, 1, n_states)
    return Instance(P, ramp(base, 0.25 * slope, horizon))


@family
def hard(
    seed: Seed, n_actions: int = 40, n_drifting: int = 4, horizon: int = 8_000, block: int = 50, amplitude: float = 0.1,
    n_states: int | None = None,
) -> Instance:  # fmt: skip
    """The construction of Theorem 2.

    Each drifting action has a private state whose mean is drawn again for every block, so that nothing known at
    decision time predicts the current block. All other actions share one steady state. `n_states` beyond
    `n_drifting` + 1 adds states that no action reaches.

    >>> import statepool as sp
    >>> sp.families.hard(seed=0, horizon=100)
    Instance(40 actions, 5 states, 100 rounds)
    """
    J, S = n_drifting, n_drifting + 1 if n_states is None else n_states
    if n_actions <= J or J >= S:
        raise ValueError(f"n_drifting: is {J}, expected fewer than the {n_actions} actions and the {S} states")
    P = np.zeros((n_actions, S))
    P[np.arange(n_actions), np.minimum(np.arange(n_actions), J)] = 1
    sign = generator_of(seed).choice([-1, 1], size=(-(-horizon // block), J))
    sign[0] = 0
    theta = np.full((horizon, S), 0.5)
    theta[:, :J] -= amplitude * sign[np.arange(horizon) // block]
    return Instance(P, theta)


Waves = Callable[[], Floats]


@family
def hostile(
    seed: Seed, kind: str = "rare-optimal", n_actions: int = 40, n_states: int = 8, horizon: int = 8_000
) -> Instance:
    """Five maps (`kind`) on which an estimated map could be expected to fail.

    >>> import statepool as sp
    >>> sp.families.hostile(seed=0, horizon=100)
    Instance(40 actions, 8 states, 100 rounds)
    """
    check_name("kind", kind, HOSTILE)
    rng = generator_of(seed)

    def waves() -> Floats:
        base = rng.uniform(0.15, 0.85, n_states)
        return season(base, 0.12, phases(rng, n_states), horizon)

    return Instance(*HOSTILE[kind](rng, n_actions, n_states, waves))


def _rare_optimal(rng: np.random.Generator, n_actions: int, n_states: int, waves: Waves) -> tuple[Floats, Floats]:
    check_count(n_states, "n_states", lowest=2)
    P = np.full((n_actions, n_states), 1e-3)
    P[:, 0] = 1
    P[0] = 1e-3
    P[0, 1] = 1
    theta = waves()
    theta[:, 1] = 0.05
    return normalise(P), theta


def _unbalanced(rng: np.random.Generator, n_actions: int, n_states: int, waves: Waves) -> tuple[Floats, Floats]:
    concentration = np.full(n_states, 0.01)
    concentration[0] = 1
    return rng.dirichlet(4 * concentration, size=n_actions), waves()


def _near_unreachable(rng: np.random.Generator, n_actions: int, n_states: int, waves: Waves) -> tuple[Floats, Floats]:
    P = rng.dirichlet(1.5 * np.ones(n_states), size=n_actions)
    P[:, -1] = 1e-3
    return normalise(P), waves()


def _deterministic(rng: np.random.Generator, n_actions: int, n_states: int, waves: Waves) -> tuple[Floats, Floats]:
    check_count(n_actions, "n_actions", lowest=n_states)
    P = np.zeros((n_actions, n_states))
    P[np.arange(n_actions), rng.integers(0, n_states, size=n_actions)] = 1
    P[np.arange(n_states), np.arange(n_states)] = 1
    return normalise(P), waves()


def _misleading(rng: np.random.Generator, n_actions: int, n_states: int, waves: Waves) -> tuple[Floats, Floats]:
    P = rng.dirichlet(0.3 * np.ones(n_states), size=n_actions)
    theta = waves()
    best = int((P @ theta.mean(axis=0)).argmin())
    P[best] = 0.85 * P[best] + 0.15 * rng.dirichlet(0.2 * np.ones(n_states))
    return normalise(P), theta


HOSTILE = {
    "rare-optimal": _rare_optimal,
    "unbalanced": _unbalanced,
    "near-unreachable": _near_unreachable,
    "deterministic": _deterministic,
    "misleading": _misleading,
}
