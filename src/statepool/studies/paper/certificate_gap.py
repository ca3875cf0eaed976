"""Study 12: how far the certificates lie above what is measured."""

from statepool.guarantees import theorem_3
from statepool.report.values import Value
from statepool.studies.statistics import mean_of, means
from statepool.studies.study import Arms, Cell, Results, Study, Sweep, Table

ACTIONS, S, T, DELAY = (8, 20, 40, 80, 160), 8, 5_000, 50
ARMS: Arms = {"known": ("state-exp3", {}), "plug-in": ("plug-in", {}), "action": ("action-exp3", {})}


def _row(results: Results, n_actions: int) -> dict[str, Value]:
    cell = f"K={n_actions}"
    row = means(results, "actions", cell, tuple(ARMS))
    known, plug_in, action = (row[name].number for name in ARMS)
    kappa = mean_of(results.of("actions", cell, "kappa"), digits=2)
    theorem = theorem_3(n_actions, DELAY, budget=S * T).value
    warm_start = (kappa.number * S) ** 0.4 * n_actions**0.2 * T**0.8
    return row | {
        "plug-in off known %": Value(100 * abs(plug_in / known - 1)),
        "action above plug-in %": Value(100 * (action / plug_in - 1)),
        "kappa": kappa,
        "Theorem 3 / plug-in": Value(theorem / plug_in),
        "warm start / plug-in": Value(warm_start / plug_in),
    }


def tables(results: Results) -> list[Table]:
    rows = {f"K={k}": _row(results, k) for k in ACTIONS}
    summary = {}
    for name in ("plug-in off known %", "action above plug-in %", "Theorem 3 / plug-in", "warm start / plug-in"):
        numbers = [row[name].number for row in rows.values()]
        summary[name] = {"smallest": Value(min(numbers)), "largest": Value(max(numbers))}
    return [Table("Summary over K", summary), Table("Certificates and measurements", rows)]


STUDY = Study(
    name="certificate-gap",
    number="12",
    title="Certificate gap",
    source="paper's released studies, 12",
    asks="How loose are the bounds: Theorem 3 for a known map, and the best rate that can be certified for an "
    "unknown one?",
    seen="Ten to nineteen times above what the plug-in does, at every number of actions; the plug-in itself is "
    "as good as knowing the map.",
    limits="A measured regret is no certificate: the gap says how much theory leaves open.",
    sweeps=(
        Sweep(
            "actions",
            tuple(
                Cell(f"K={k}", "band", {"n_actions": k, "n_states": S, "horizon": T, "drift": 0.05}, DELAY, ARMS)
                for k in ACTIONS
            ),
            12, (1, 60_000), (1, 5), "statepool.studies.paper.hostile_maps:paired_with_coverage",
        ),
    ),
    tables=tables,
)  # fmt: skip
