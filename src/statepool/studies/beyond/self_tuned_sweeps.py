"""What study C runs: SelfTuned and eleven simple rules on settings that flatter them and on settings that resist."""

from collections.abc import Mapping
from math import log, sqrt
from typing import Any

import numpy as np

from statepool import delays
from statepool.checks import Ints
from statepool.engine import simulate
from statepool.rates import default_rate
from statepool.studies.paper import baselines, drift_scaling
from statepool.studies.study import PAIRED, Arms, Cell, Sweep
from statepool.studies.tasks import make_instance, make_learner

SELF: Arms = {"self-tuned": ("self-tuned", {})}
GREEDY: Arms = {
    f"greedy {forgetting:g}{' +1%' if exploration else ''}": (
        "pooled-greedy", {"forgetting": forgetting, "exploration": exploration},
    )
    for forgetting in (1.0, 0.999, 0.99) for exploration in (0.0, 0.01)
}  # fmt: skip
THOMPSON: Arms = {
    "Thompson 1": ("pooled-thompson", {}),
    "Thompson 0.999": ("pooled-thompson", {"forgetting": 0.999}),
}
STATE: Arms = {"state": ("state-exp3", {})}
RULES: Arms = {
    **STATE, "action": ("action-exp3", {}), "best-state": ("best-state", {}), **GREEDY, **THOMPSON,
}  # fmt: skip
ARMS: Arms = {**RULES, **SELF}
FOLLOWED: Arms = {**STATE, **GREEDY, **THOMPSON, **SELF}
"""Those whose regret is shown over time; the best of each kind is drawn."""
GROWING: Arms = {**STATE, "greedy 1": GREEDY["greedy 1"], "Thompson 1": THOMPSON["Thompson 1"], **SELF}
UNKNOWN: Arms = {**SELF, "self-tuned, map unknown": ("self-tuned", {"learn_map": True}), "plug-in": ("plug-in", {})}

KINDS = ("rare-optimal", "unbalanced", "near-unreachable", "deterministic", "misleading")
HALF_PERIODS, SWINGING = (25, 50, 75, 100, 150, 200, 400, 800, 2_000), (8_000, 80_000)
HORIZONS = (2_500, 10_000, 40_000, 160_000)
EIGHT = {label: cell for label, cell in baselines.SETTINGS.items() if label != "hard d=50"}
FUNNEL_DELAYS, BEST_MULTIPLIER = (10, 50, 200), 32
"""Study 16: the published multiplier of State-EXP3's rate that is best in hindsight, at every delay."""
CHECKPOINTS = 50
"""In how many rounds, evenly spaced, regret over time is noted."""
PATHS = {
    "dirichlet": EIGHT["dirichlet d=50"],
    "funnel": EIGHT["funnel d=50"],
    "private states": ("locked", {"kind": "private-states", "horizon": 10_000}, 50),
    "switching": EIGHT["switching d=50"],
    "early-late": ("shifting", {"kind": "early-late", "horizon": 10_000}, 50),
    "resonance": ("resonance", {"half_period": 100, "horizon": 10_000}, 50),
}
"""The settings of regret over time, all of ten thousand rounds with a delay of 50."""


def over_time(
    family: str, settings: Mapping[str, Any], seed: int, stream: int, delay: int, arms: Mapping[str, Any]
) -> dict[str, float]:
    """Paired regrets after each checkpoint, named by `at`."""
    instance = make_instance(family, settings, seed)
    numbers: dict[str, float] = {}
    for label, arm in arms.items():
        path = simulate(instance, make_learner(*arm), delay, stream).regret_path
        numbers |= {at(label, t): float(path[t - 1]) for t in checkpoints(instance.horizon)}
    return numbers


def checkpoints(horizon: int) -> Ints:
    """The rounds after which regret is noted; the last is the horizon."""
    return np.linspace(0, horizon, CHECKPOINTS + 1).astype(np.int64)[1:]


def at(arm: str, t: int) -> str:
    """The name of an arm's regret after t rounds."""
    return f"{arm}, t={t}"


def _hostile_cells(prefix: str, arms: Arms) -> tuple[Cell, ...]:
    return tuple(Cell(f"{prefix}{kind}", "hostile", {"kind": kind, "horizon": 8_000}, 50, arms) for kind in KINDS)


def _kind_cells(family: str, kinds: tuple[str, ...]) -> tuple[Cell, ...]:
    return tuple(Cell(f"{family}, {kind}", family, {"kind": kind, "horizon": 10_000}, 50, ARMS) for kind in kinds)


def _delayed_cells() -> tuple[Cell, ...]:
    return tuple(
        Cell(f"{name}, {kind} delays", *baselines.FAMILIES[name], 50, ARMS, {"kind": kind})
        for name in ("dirichlet", "spread", "switching") for kind in delays.KINDS
    )  # fmt: skip


def _swinging_cells() -> tuple[Cell, ...]:
    return tuple(
        Cell(f"half-period {half}, T={horizon}", "resonance", {"half_period": half, "horizon": horizon}, 50, ARMS)
        for horizon in SWINGING for half in HALF_PERIODS
    )  # fmt: skip


def _funnel_cells() -> tuple[Cell, ...]:
    cells = []
    for d in FUNNEL_DELAYS:
        rate = BEST_MULTIPLIER * default_rate(200, 6, 20_000, d)
        cells.append(Cell(f"d={d}", "funnel", {}, d, {**ARMS, "state, hindsight": ("state-exp3", {"rate": rate})}))
    return tuple(cells)


def _growing_cells() -> tuple[Cell, ...]:
    families = {name: baselines.FAMILIES[name] for name in ("spread", "dirichlet")}
    return tuple(
        Cell(f"{name} T={horizon}", family, {**settings, "horizon": horizon}, 10, GROWING)
        for name, (family, settings) in families.items() for horizon in HORIZONS
    )  # fmt: skip


def _drift_cells() -> tuple[Cell, ...]:
    rate = sqrt(2 * log(drift_scaling.K) / (drift_scaling.K * drift_scaling.T))
    arms: Arms = {**ARMS, "state": ("state-exp3", {"rate": rate})}
    return tuple(
        Cell(label, cell.family, cell.settings, cell.delay, arms, {"draws": 2})
        for label, (cell, _, _) in drift_scaling.GRID.items()
    )


SWEEPS = (
    Sweep("settings", tuple(Cell(label, *cell, ARMS) for label, cell in EIGHT.items()), 20, (1, 90_000)),
    Sweep("hostile", _hostile_cells("hostile, ", ARMS), 20, (1, 10_000)),
    Sweep("delays", _delayed_cells(), 20, (1, 90_000)),
    Sweep("locked", _kind_cells("locked", ("private-states", "decoys", "narrow-gate")), 20, (1, 90_000)),
    Sweep("shifting", _kind_cells("shifting", ("early-late", "random-walk", "seasons")), 20, (1, 90_000)),
    Sweep("unknown, hostile", _hostile_cells("", UNKNOWN), 20, (1, 10_000)),
    Sweep("unknown", tuple(Cell(label, *cell, UNKNOWN) for label, cell in EIGHT.items()), 20, (1, 90_000)),
    Sweep("hard", (Cell("hard d=50", *baselines.SETTINGS["hard d=50"], ARMS),), 20, (1, 90_000)),
    Sweep("cells", _drift_cells(), 20, (1000, 13), (1000, 7), PAIRED),
    Sweep("resonance", _swinging_cells(), 20, (1, 90_000)),
    Sweep("funnel", _funnel_cells(), 8, (1, 80_000)),
    Sweep("growth", _growing_cells(), 20, (1, 90_000)),
    Sweep("paths", tuple(Cell(label, *cell, FOLLOWED) for label, cell in PATHS.items()), 20, (1, 90_000), (1, 0),
          f"{__name__}:over_time"),
)  # fmt: skip
CELLS = {sweep.name: tuple(cell.label for cell in sweep.cells) for sweep in SWEEPS}
