"""Study 15: five rules on nine settings, and how their regret grows."""

from typing import Any

import numpy as np

from statepool.report.values import Value
from statepool.studies.statistics import growth_exponent, means, standard_error
from statepool.studies.study import Arms, Cell, Results, Study, Sweep, Table

FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "dirichlet": ("band", {"drift": 0.05, "horizon": 10_000}),
    "funnel": ("funnel", {"horizon": 10_000}),
    "spread": ("spread", {"horizon": 10_000}),
    "switching": ("switching", {"horizon": 10_000}),
}
HARD = ("hard", {"n_drifting": 8, "n_states": 17, "horizon": 8_000, "block": 50, "amplitude": 0.1})
SETTINGS = {f"{name} d={d}": (family, settings, d) for name, (family, settings) in FAMILIES.items() for d in (10, 50)}
SETTINGS["hard d=50"] = (*HARD, 50)
ARMS: Arms = {"action": ("action-exp3", {}), "IX": ("exp3-ix", {}), "naive": ("naive-sharing", {}),
        "best-state": ("best-state", {}), "state": ("state-exp3", {})}  # fmt: skip
SIMPLE: Arms = {"pooled greedy": ("pooled-greedy", {}), "pooled Thompson": ("pooled-thompson", {})}
HORIZONS, GROWING = (2_500, 5_000, 10_000, 20_000, 40_000), ("best-state", "state", "action")


def tables(results: Results) -> list[Table]:
    rows = {label: means(results, "settings", label, tuple(ARMS)) for label in SETTINGS}
    simple = {label: means(results, "simple", label, tuple(SIMPLE)) for label in SETTINGS}
    spreads = {}
    for label in SETTINGS:
        errors = {
            name: standard_error(results.of("settings", label, name)) or np.nan for name in ("best-state", "state")
        }
        spreads[label] = {f"{name} ±": Value(error, None, 0) for name, error in errors.items()}
    average = {name: np.mean([row[f"{name} ±"].number for row in spreads.values()]) for name in ("best-state", "state")}
    leads = [min(row, key=lambda name: row[name].number) for row in rows.values()]
    summary = {
        "best-state leads": {"settings": Value(float(leads.count("best-state")), None, 0)},
        "state leads": {"settings": Value(float(leads.count("state")), None, 0)},
        "average ±, best-state / state": {"ratio": Value(float(average["best-state"] / average["state"]))},
    }
    growth = {}
    for name in GROWING:
        regrets = [results.mean("growth", f"T={horizon}", name) for horizon in HORIZONS]
        growth[name] = {f"T={t}": Value(r, None, 0) for t, r in zip(HORIZONS, regrets, strict=True)}
        growth[name]["exponent"] = Value(growth_exponent(list(HORIZONS), regrets), None, 2)
    return [
        Table("Regret on nine settings", rows),
        Table("Two simple pooled rules on the same settings", simple, ours=True),
        Table("Standard errors over seeds", spreads),
        Table("Who leads, and how steadily", summary),
        Table("Growth on spread, d=10", growth),
    ]


def _cells(arms: Any) -> tuple[Cell, ...]:
    return tuple(Cell(label, family, settings, d, arms) for label, (family, settings, d) in SETTINGS.items())


STUDY = Study(
    name="baselines",
    number="15",
    title="Baselines",
    source="paper, Appendix E, a heuristic baseline",
    asks="Does pooling beat what one would try first: action-level weights, implicit exploration, sharing with "
    "the wrong denominator, chasing the single best state?",
    seen="The best-state rule leads seven settings of nine and fails on the family built against it, where its "
    "regret grows linearly. Pooled greedy and pooled Thompson lead almost everywhere here; where "
    "something resists them they too fail.",
    limits="Ten seeds; families without a resisting environment flatter greedy rules.",
    sweeps=(
        Sweep("settings", _cells(ARMS), 10, (1, 90_000)),
        Sweep("simple", _cells(SIMPLE), 10, (1, 90_000)),
        Sweep(
            "growth",
            tuple(Cell(f"T={t}", "spread", {"horizon": t}, 10, {n: ARMS[n] for n in GROWING}) for t in HORIZONS),
            6, (1, 90_000),
        ),
    ),
    tables=tables,
)  # fmt: skip
