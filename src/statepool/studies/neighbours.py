"""Study E (ours): every method the paper names, side by side on common random numbers, and how tight each bound is."""

from typing import Any

import numpy as np

from statepool import delays
from statepool.guarantees import theorem_1, theorem_a, theorem_a_anytime, theorem_b, zimmert_seldin
from statepool.probes import NO_PROBE
from statepool.report.sheet import Rows, Value
from statepool.studies import funnel
from statepool.studies.estimated_maps import KINDS
from statepool.studies.study import Arms, Cell, Results, Sweep, Table, Task, add_study

ZS, ANYTIME = "zimmert-seldin", "anytime"
ARMS: Arms = {
    "State-EXP3": ("state-exp3", {}),
    "Certified": ("certified", {}),
    "SelfTuned": ("self-tuned", {}),
    "Anytime": (ANYTIME, {}),
    "Anytime, skip": (ANYTIME, {"skip": True}),
    "delay-adapted": ("delay-adapted", {}),
    "evolving": ("evolving", {}),
    "coin graph": ("coin-graph", {}),
    "MetaBIO on Anytime": ("meta-bio", {"base": [ANYTIME, {}]}),
    "MetaBIO on ZS": ("meta-bio", {"base": [ZS, {"tuning": "anytime"}]}),
    "NSD-UCRL2": ("nsd-ucrl2", {}),
    "NSD-UCRL2, radius .1": ("nsd-ucrl2", {"radius": 0.1}),
    "NSD-UCRL2, window": ("nsd-ucrl2", {"radius": 0.1, "window": 1_000}),
    "NSD-UCRL2, map known": ("nsd-ucrl2", {"known_map": True}),
    "surrogate index": ("surrogate-index", {}),
    "impatient Thompson": ("impatient-thompson", {"prior": "sibling"}),
    "action EXP3": ("action-exp3", {}),
    "EXP3-IX": ("exp3-ix", {}),
    "Auer's EXP3": ("auer-exp3", {}),
    "adaptive EXP3": (ANYTIME, {"pooled": False}),
    "ZS, as released": (ZS, {}),
    "ZS, anytime": (ZS, {"tuning": "anytime"}),
}
SETTINGS: dict[str, tuple[str, dict[str, Any], int]] = {
    **funnel.SETTINGS,
    **{f"hostile, {kind}": ("hostile", {"kind": kind, "horizon": 8_000}, 50) for kind in KINDS},
    "resonance": ("resonance", {"half_period": 100, "horizon": 8_000}, 50),
    **{f"moving map, {moves}": ("moving-map", {"moves": moves, "horizon": 10_000}, 50) for moves in ("drift", "jumps")},
    **{f"funnel 20k, d={d}": ("funnel", {}, d) for d in (10, 50, 200)},
}
LATE = [Cell(f"{name}, {kind}", *funnel.FAMILIES[name], 50, ARMS, {"kind": kind})
        for name in ("dirichlet", "funnel") for kind in delays.KINDS]  # fmt: skip
BOUNDED = ("funnel 20k, d=10", "funnel 20k, d=50", "funnel 20k, d=200", "dirichlet d=50", "spread d=50", "hard d=50")
COVERED = {
    "State-EXP3": ("Theorem A", "Theorem 1", "Theorem B"), "Anytime": ("A, anytime",), "Certified": ("certificate",),
    "ZS, anytime": ("Zimmert–Seldin",),
}  # fmt: skip
"""Learner → the bounds that hold for its regret."""


def bounds(task: Task) -> dict[str, float]:
    """The regrets, and each theorem's bound with what these runs themselves spent."""
    instance, delay = task.instance(), task.cell.delay
    K, S, T = instance.n_actions, instance.n_states, instance.horizon
    runs = {label: task.run(instance, task.learner(label)) for label in task.cell.arms}
    rate, spread = runs["State-EXP3"].measure(NO_PROBE).rate, (runs["State-EXP3"].dimension - 1) * T
    anytime = runs["Anytime"].measure(NO_PROBE)
    waited = float(anytime.outstanding.tally["waited"][0])
    return {label: run.regret for label, run in runs.items()} | {
        "Theorem 1": theorem_1(K, T, delay, spread, rate).value,
        "Theorem A": theorem_a(K, T, delay, spread, rate).value,
        "Theorem B": theorem_b(K, T, delay, spread, rate).value,
        "A, anytime": theorem_a_anytime(K, S, float(anytime.pace["spread"][0]), waited),
        "certificate": runs["Certified"].certificate,
        "Zimmert–Seldin": zimmert_seldin(K, T, waited),
    }


def ratio_to_state(regret: float, state: float) -> float:
    """A ratio of regrets that is defined where either is small or negative."""
    return (max(regret, 0.0) + 50) / (max(state, 0.0) + 50)


def _regrets(results: Results) -> Rows:
    late = results.rows("late", [cell.label for cell in LATE], ARMS)
    return results.rows("settings", SETTINGS, ARMS) | late


def _summary(arm: str, regrets: Rows) -> dict[str, Value]:
    ratios = [ratio_to_state(row[arm].number, row["State-EXP3"].number) for row in regrets.values()]
    wins = sum(min(row, key=lambda name: row[name].number) == arm for row in regrets.values())
    return {
        "ratio": Value(float(np.exp(np.mean(np.log(ratios)))), None, 2),
        "largest ratio": Value(max(ratios), None, 2),
        "best on": Value(wins, None, 0),
    }


def _tables(results: Results) -> list[Table]:
    regrets, tight = _regrets(results), {}
    for cell in BOUNDED:
        tight[cell] = {
            f"{arm}: {bound}": Value(100 * results.mean("bounds", cell, arm) / results.mean("bounds", cell, bound))
            for arm, covered in COVERED.items() for bound in covered
        }  # fmt: skip
    note = "ratio: the geometric mean of (regret + 50)/(State-EXP3's + 50), regrets below 0 taken as 0"
    summary = {arm: _summary(arm, regrets) for arm in ARMS}
    return [
        Table("Who wins", summary, note, ours=True),
        Table("Mean regret", {arm: {cell: regrets[cell][arm] for cell in regrets} for arm in ARMS}, ours=True),
        Table("Regret over bound, in per cent", tight, "each bound with what the runs themselves spent", ours=True),
    ]


add_study(
    "neighbours",
    [
        Sweep("settings", [Cell(label, *cell, ARMS) for label, cell in SETTINGS.items()], 8, 90_000),
        Sweep("late", LATE, 8, 90_000),
        Sweep("bounds", [Cell(label, *SETTINGS[label], {arm: ARMS[arm] for arm in COVERED}) for label in BOUNDED], 8,
              90_000, bounds),
    ],
    _tables,
    beyond=True,
)  # fmt: skip
