"""Study 11: how much does the plug-in's smoothing matter when a state is scarce?"""

from statepool.report.values import Value
from statepool.studies.statistics import mean_of
from statepool.studies.study import Cell, Results, Study, Sweep, Table

SHARES, SMOOTHINGS = (0.115, 0.05, 0.02, 0.008, 0.003), (1, 0.3, 0.1, 0.03, 0.01, 0.003)
ARMS = {
    "action": ("action-exp3", {}),
    **{f"plug-in {alpha:g}": ("plug-in", {"smoothing": float(alpha)}) for alpha in SMOOTHINGS},
}


def tables(results: Results) -> list[Table]:
    gains, worst_over_best = {}, []
    for label in (f"share {share:g}" for share in SHARES):
        row = {"kappa": mean_of(results.of("shares", label, "kappa"))}
        action = results.of("shares", label, "action")
        for alpha in SMOOTHINGS:
            row[f"gain at {alpha:g}"] = mean_of(action - results.of("shares", label, f"plug-in {alpha:g}"))
        plugged = [results.mean("shares", label, f"plug-in {alpha:g}") for alpha in SMOOTHINGS]
        worst_over_best.append(max(plugged) / min(plugged))
        gains[label] = row
    every = [value.number for row in gains.values() for name, value in row.items() if name != "kappa"]
    kappas = [row["kappa"].number for row in gains.values()]
    summary = {
        "kappa": {"smallest": Value(min(kappas)), "largest": Value(max(kappas), None, 0)},
        "gain over action": {"smallest": Value(min(every)), "largest": Value(max(every))},
        "cells with a loss": {"largest": Value(float(sum(g < 0 for g in every)), None, 0)},
        "worst / best smoothing": {"largest": Value(max(worst_over_best), None, 2)},
    }
    return [Table("Summary over thirty cells", summary), Table("Gain of the plug-in over action-level play", gains)]


STUDY = Study(
    name="smoothing",
    number="11",
    title="Smoothing and coverage",
    source="paper's released studies, 11",
    asks="If one state is scarce, can the wrong smoothing of the estimated map undo the gain?",
    seen="No: over thirty cells the gain is always there, and the worst smoothing costs seven per cent of "
    "regret against the best.",
    limits="Ten seeds a cell.",
    sweeps=(
        Sweep(
            "shares",
            tuple(Cell(f"share {share:g}", "scarce", {"share": share, "horizon": 8_000}, 50, ARMS) for share in SHARES),
            10, (1, 7), function="statepool.studies.paper.hostile_maps:paired_with_coverage",
        ),
    ),
    tables=tables,
)  # fmt: skip
