"""Study 1: does pooling pay, and does every run stay below the interleaved bound?"""

from dataclasses import replace

from statepool.guarantees import theorem_3
from statepool.report.values import Value
from statepool.studies.statistics import gain, means
from statepool.studies.study import Arms, Cell, Results, Study, Sweep, Table

ACTIONS, DELAYS = (8, 20, 40, 80), (10, 50, 200)
BAND = {"n_states": 4, "horizon": 10_000, "drift": 0.05}
ARMS: Arms = {"state": ("state-exp3", {}), "action": ("action-exp3", {})}
INTERLEAVED: Arms = {"interleaved": ("state-exp3", {"copies": "d+1"})}


def tables(results: Results) -> list[Table]:
    return [
        Table("Regret by number of actions", {f"K={k}": _row(results, k) for k in ACTIONS}),
        Table(
            "Regret by delay, K=40",
            {f"d={d}": _delay_row(results, d) for d in DELAYS},
            "whole numbers as the paper prints them: rounded to one decimal, then again (698.49, 698.5, 699)",
        ),
    ]


def _delay_row(results: Results, delay: int) -> dict[str, Value]:
    row = means(results, "delay", f"d={delay}", ("state", "action"), digits=0)
    return {name: replace(value, rounded_again=True) for name, value in row.items()}


def _row(results: Results, n_actions: int) -> dict[str, Value]:
    cell = f"K={n_actions}"
    row = means(results, "actions", cell, ("interleaved", "state", "action"))
    row |= gain(results, "actions", cell, "state", "action")
    saved = results.of("actions", cell, "action") - results.of("actions", cell, "state")
    bound = theorem_3(n_actions, delay=50, budget=4 * 10_000).value
    row["seeds better"] = Value(float((saved > 0).sum()), None, 0)
    row["bound"] = Value(bound, None, 0)
    row["seeds above bound"] = Value(float((results.of("actions", cell, "interleaved") > bound).sum()), None, 0)
    return row


STUDY = Study(
    name="bound-and-gain",
    number="1",
    title="Bound and gain",
    source="paper, Theorem 3 and Section 4",
    asks="With four states and up to eighty actions, how much regret does pooling through the state save, and "
    "does the interleaved variant respect its bound?",
    seen="The saving grows with the number of actions, as a cost set by states rather than actions should. "
    "Every interleaved run lies below its bound, and the single-copy learner is better still.",
    limits="Maps are drawn from one Dirichlet and drift is mild.",
    sweeps=(
        Sweep(
            "actions",
            tuple(
                Cell(f"K={k}", "band", BAND | {"n_actions": k}, 50, {**INTERLEAVED, **ARMS}) for k in ACTIONS
            ),
            seeds=100, stream=(1, 10_000),
        ),
        Sweep(
            "delay",
            tuple(
                Cell(f"d={d}", "band", BAND | {"n_actions": 40}, d, ARMS) for d in DELAYS
            ),
            seeds=40, stream=(1, 10_000),
        ),
    ),
    tables=tables,
)  # fmt: skip
