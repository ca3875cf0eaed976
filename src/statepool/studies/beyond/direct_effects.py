"""Study D (ours): direct effects of actions on outcomes, and from which size on pooling loses."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from statepool.report.values import Value
from statepool.studies.paper.baselines import FAMILIES
from statepool.studies.statistics import growth_exponent, mean_of, means
from statepool.studies.study import Arms, Cell, Results, Study, Sweep, Table

ARMS: Arms = {
    "state": ("state-exp3", {}),
    "self-tuned": ("self-tuned", {}),
    "action": ("action-exp3", {}),
    "action Thompson": ("action-thompson", {}),
}
BASES = ("spread", "dirichlet", "funnel")
SIZES = (0.0, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2)
GROWN, GROWING, HORIZONS = ("spread", "dirichlet"), 0.1, (2_500, 10_000, 40_000, 160_000)
DUELS = tuple((first, second) for first in ("action", "action Thompson") for second in ("self-tuned", "state"))
"""Who comes to lead whom as effects grow."""


def place(base: str, size: float) -> str:
    """The label of a cell."""
    return f"{base}, size {size:g}"


def crossing(at: Sequence[float], challenger: Sequence[float], leader: Sequence[float]) -> float | None:
    """The place, interpolated, from which on the challenger has less regret; None if it has more at the last."""
    behind = np.subtract(challenger, leader)
    if behind[-1] >= 0:
        return None
    last = int(np.flatnonzero(behind >= 0).max(initial=-1))
    if last < 0:
        return float(at[0])
    part = behind[last] / (behind[last] - behind[last + 1])
    return float(at[last] + part * (at[last + 1] - at[last]))


def _crossings(at: Sequence[float], regrets: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Where the first of a duel comes to lead the second, of those in which it does."""
    places = {f"{first} below {second}": crossing(at, regrets[first], regrets[second]) for first, second in DUELS}
    return {duel: found for duel, found in places.items() if found is not None}


def _in_the_size(results: Results, base: str) -> dict[str, Value]:
    regrets = {arm: [results.mean("sizes", place(base, size), arm) for size in SIZES] for arm in ARMS}
    return {duel: Value(size, None, 3) for duel, size in _crossings(SIZES, regrets).items()}


def _in_the_horizon(results: Results, base: str) -> dict[str, Value]:
    regrets = {arm: _by_horizon(results, base, arm) for arm in ARMS}
    crossings = _crossings(np.log(HORIZONS).tolist(), regrets)
    return {duel: Value(float(np.exp(log_t)), None, 0) for duel, log_t in crossings.items()}


def _by_horizon(results: Results, base: str, name: str) -> list[float]:
    return [results.mean("growth", f"{base} T={t}", name) for t in HORIZONS]


def _growth_row(results: Results, base: str, name: str) -> dict[str, Value]:
    row = {f"T={t}": mean_of(results.of("growth", f"{base} T={t}", name), 0) for t in HORIZONS}
    return row | {"exponent": Value(growth_exponent(list(HORIZONS), _by_horizon(results, base, name)), None, 2)}


def tables(results: Results) -> list[Table]:
    sizes = {
        place(base, size): means(results, "sizes", place(base, size), tuple(ARMS)) for base in BASES for size in SIZES
    }
    growth = {f"{base}, {name}": _growth_row(results, base, name) for base in GROWN for name in ARMS}
    crossings = {base: _in_the_size(results, base) for base in BASES}
    overtakings = {base: _in_the_horizon(results, base) for base in GROWN}
    first = (
        "the standard deviation of effects from which on the first has less regret, interpolated; none: not up to .2"
    )
    later = "the horizon from which on the first has less regret, interpolated; none: not up to 160000"
    return [
        Table("Crossing points in the size, T=10000, d=50", crossings, first, ours=True),
        Table(f"Crossing points in the horizon, effects of {GROWING:g}, d=10", overtakings, later, ours=True),
        Table("Regret by the size of direct effects, T=10000, d=50", sizes, ours=True),
        Table(f"Growth with the horizon, effects of {GROWING:g}, d=10", growth, ours=True),
    ]


def _cell(label: str, base: str, size: float, delay: int, **changed: Any) -> Cell:
    family, settings = FAMILIES[base]
    return Cell(label, "direct", {"family": family, **settings, "size": size, **changed}, delay, ARMS)


STUDY = Study(
    name="direct-effects",
    number="D",
    title="Direct effects",
    source="ours",
    asks="What if actions move the outcome past what the state says? From which size of such effects on does "
    "pooling lose to learners that look at actions alone?",
    seen="SelfTuned is far below State-EXP3 and action-level EXP3 at every size. With forty actions, action-level "
    "Thompson sampling comes to lead it at effects of about .17, or, at effects of .1, on runs of more than about "
    "50 000 rounds; with two hundred actions it does not. State-EXP3 falls behind action-level EXP3 as effects grow.",
    limits="Effects are independent between states and clipped where means would leave [0, 1], which weakens them in "
    "states that nearly always or never lose.",
    sweeps=(
        Sweep("sizes", tuple(_cell(place(b, size), b, size, 50) for b in BASES for size in SIZES), 20, (1, 90_000)),
        Sweep(
            "growth", tuple(_cell(f"{b} T={t}", b, GROWING, 10, horizon=t) for b in GROWN for t in HORIZONS), 20,
            (1, 90_000),
        ),
    ),
    tables=tables,
    beyond=True,
)  # fmt: skip
