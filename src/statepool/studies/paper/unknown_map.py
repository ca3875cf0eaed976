"""Study 2: what does it cost not to know the map?"""

from statepool.studies.statistics import means
from statepool.studies.study import Cell, Results, Study, Sweep, Table

CELLS = {"K=8": (8, 0.0), "K=20": (20, 0.0), "K=40": (40, 0.0), "K=80": (80, 0.0), "K=40 mixing .02": (40, 0.02),
         "K=40 mixing .10": (40, 0.1)}  # fmt: skip
ARMS = ("known", "plug-in", "action")


def tables(results: Results) -> list[Table]:
    rows = {label: means(results, "maps", label, ARMS) for label in CELLS}
    return [Table("Regret with the map known and estimated", rows)]


def _cell(label: str, n_actions: int, mixing: float) -> Cell:
    arms = {
        "known": ("state-exp3", {"mixing": mixing}),
        "plug-in": ("plug-in", {"mixing": mixing}),
        "action": ("action-exp3", {"mixing": mixing}),
    }
    settings = {"n_actions": n_actions, "n_states": 4, "horizon": 10_000, "drift": 0.05}
    return Cell(label, "band", settings, 50, arms)


STUDY = Study(
    name="unknown-map",
    number="2",
    title="Unknown map",
    source="paper's released studies, 2",
    asks="If the action-to-state map is estimated while playing, how much of the gain is left?",
    seen="Nearly all of it: the plug-in stays within one per cent of the learner that knows the map. Forced "
    "mixing with uniform play only costs.",
    limits="Benign Dirichlet maps; study 3 looks for maps that resist.",
    sweeps=(Sweep("maps", tuple(_cell(label, *cell) for label, cell in CELLS.items()), 60, (1, 10_000)),),
    tables=tables,
)
