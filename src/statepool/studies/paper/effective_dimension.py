"""Study 6: the gain as the actions come to overlap, difficulty left free."""

from statepool.studies.statistics import gain, mean_of, means, saved_share
from statepool.studies.study import Arms, Cell, Results, Study, Sweep, Table

OVERLAPS = (0, 0.25, 0.5, 0.75, 0.95)
ARMS: Arms = {"state": ("state-exp3", {}), "action": ("action-exp3", {})}


def tables(results: Results) -> list[Table]:
    rows = {}
    for label in (f"overlap {o:g}" for o in OVERLAPS):
        rows[label] = (
            {"mean v": mean_of(results.of("overlap", label, "state dimension"), digits=3)}
            | means(results, "overlap", label, ("state", "action"))
            | gain(results, "overlap", label, "state", "action")
            | {"saved %": saved_share(results, "overlap", label, "state", "action")}
        )
    return [Table("Regret as the actions come to overlap", rows)]


STUDY = Study(
    name="effective-dimension",
    number="6",
    title="Effective dimension",
    source="paper, Appendix E, the unmatched sweep of Experiment 1",
    asks="As all actions come to behave alike, what happens to the dimension that is played and to the gain?",
    seen="The dimension falls to one and the gain falls with it, which seems to contradict the theory. It does "
    "not: the task gets easy at the same time, for everybody. Study 10 holds difficulty fixed and the "
    "trend turns round.",
    limits="Confounded by design: overlap and difficulty move together.",
    sweeps=(
        Sweep(
            "overlap",
            tuple(
                Cell(f"overlap {o:g}", "overlap", {"overlap": float(o), "horizon": 5_000}, 20, ARMS,
                     {"dimension": ["state"]})
                for o in OVERLAPS
            ),
            24, (1, 10_000),
        ),
    ),
    tables=tables,
)  # fmt: skip
