"""The phase diagram: where pooling pays, over overlap and delay."""

from statepool.report.values import Value
from statepool.studies.statistics import mean_of
from statepool.studies.study import Cell, Results, Study, Sweep, Table

OVERLAPS, DELAYS = (0, 0.2, 0.4, 0.6, 0.8, 0.95), (5, 10, 25, 50, 100, 200)
PAIRS = [s // 2 for s in range(8)]
ARMS = {"action": ("action-exp3", {}), "known": ("state-exp3", {}), "plug-in": ("plug-in", {}),
        "grouped": ("state-exp3", {"groups": PAIRS})}  # fmt: skip


def tables(results: Results) -> list[Table]:
    return [
        Table(
            f"Gain of {arm} over action-level play",
            {f"overlap {o:g}": _row(results, o, arm) for o in OVERLAPS},
            ours=True,
        )
        for arm in ("known", "plug-in", "grouped")
    ]


def _row(results: Results, overlap: float, arm: str) -> dict[str, Value]:
    cells = {d: f"overlap {overlap:g} d={d}" for d in DELAYS}
    return {
        f"d={d}": mean_of(results.of("grid", cell, "action") - results.of("grid", cell, arm))
        for d, cell in cells.items()
    }


STUDY = Study(
    name="phase-diagram",
    number="A",
    title="Phase diagram",
    source="ours: the paper gives no figures for it",
    asks="Over overlap and delay at once, where does pooling pay, with the map known, estimated, or states "
    "merged in pairs?",
    seen="With the map known or estimated the gain is largest where rows differ and delays are short, and it "
    "fades as either grows without turning into a loss. Merging states in pairs, blindly, pays at short "
    "delays only: from a delay of 25 on it loses to action-level play wherever rows differ.",
    limits="Difficulty is not held fixed (study 10 does that).",
    sweeps=(
        Sweep(
            "grid",
            tuple(
                Cell(f"overlap {o:g} d={d}", "overlap", {"overlap": float(o), "horizon": 5_000}, d, ARMS)
                for o in OVERLAPS for d in DELAYS
            ),
            12, (1, 10_000),
        ),
    ),
    tables=tables,
)  # fmt: skip
