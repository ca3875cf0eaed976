"""Study 14 (Experiment 2): a catalogue of two hundred items and six depths of engagement."""

from collections.abc import Mapping
from typing import Any

from statepool.guarantees import drift_lemma, interleaving_pays
from statepool.rates import default_rate, largest_covered_rate
from statepool.report.values import Value
from statepool.studies.statistics import mean_of, means, saved_share
from statepool.studies.study import Arms, Cell, Results, Study, Sweep, Table
from statepool.studies.tasks import make_instance

DELAYS, CATALOGUES, HORIZON = (10, 50, 200), (25, 50, 100, 200, 400, 800), 20_000
ARMS: Arms = {"action": ("action-exp3", {}), "state": ("state-exp3", {}), "plug-in": ("plug-in", {}),
        "pooled greedy": ("pooled-greedy", {}), "pooled Thompson": ("pooled-thompson", {})}  # fmt: skip
SEARCHED = (
    "vhat: the largest dimension of 4 000 random plays, from below. The largest of all is proved to lie between 2.24 "
    "and 2.27 (dimension.bracket); a run, which settles on few actions, has less (run.dimension)"
)


def step_ratio(
    family: str, settings: Mapping[str, Any], seed: int, stream: int, delay: int, **_: Any
) -> dict[str, float]:
    """The largest one-step growth of any action's probability, which the drift lemma holds below 1 + 1/d."""
    return {"ratio": drift_lemma(make_instance(family, settings, seed), delay, stream).measured}


def shares(family: str, settings: Mapping[str, Any], seed: int, **_: Any) -> dict[str, float]:
    """The mean share of each depth over the catalogue, in per cent."""
    P = make_instance(family, {**settings, "horizon": 1}, seed).P
    return {"no engagement %": 100 * float(P[:, 0].mean()), "deepest %": 100 * float(P[:, -1].mean())}


def tables(results: Results) -> list[Table]:
    seed_0 = {
        "vhat": Value(results.mean("vhat", "seed 0", "vhat"), None, 2),
        "no engagement %": Value(results.mean("shares", "seed 0", "no engagement %"), None, 0),
        "deepest %": Value(results.mean("shares", "seed 0", "deepest %")),
    }
    regret, lemma = {}, {}
    for d in DELAYS:
        cell = f"d={d}"
        row = means(results, "funnel", cell, ("action", "state"))
        row["action"] = mean_of(results.of("funnel", cell, "action"), digits=0)
        row["cut vs action %"] = saved_share(results, "funnel", cell, "state", "action")
        gap = mean_of(results.of("funnel", cell, "plug-in") - results.of("funnel", cell, "state"))
        row["plug-in"] = mean_of(results.of("funnel", cell, "plug-in"))
        if gap.se:
            row["plug-in off state, in se"] = Value(abs(gap.number) / gap.se)
        regret[cell] = row
        lemma[cell] = {
            "largest step": Value(float(results.of("lemma", cell, "ratio").max()), None, 3),
            "allowed": Value(1 + 1 / d, None, 3),
            "rate": Value(default_rate(200, 6, HORIZON, d), None, 4),
            "largest covered rate": Value(largest_covered_rate(d), None, 4),
            "d+1 copies pay": Value(float(interleaving_pays(seed_0["vhat"].number, 200, d)), answer=True),
        }
    simple = {f"d={d}": means(results, "funnel", f"d={d}", ("pooled greedy", "pooled Thompson")) for d in DELAYS}
    catalogue = {f"K={k}": {"vhat": mean_of(results.of("catalogue", f"K={k}", "vhat"), digits=2)} for k in CATALOGUES}
    numbers = [row["vhat"].number for row in catalogue.values()]
    catalogue["all"] = {"smallest": Value(min(numbers), None, 2), "largest": Value(max(numbers), None, 2)}
    return [
        Table("Regret on the funnel", regret),
        Table("The same with two simple pooled rules", simple, ours=True),
        Table("The map of seed 0", {"seed 0": seed_0}, SEARCHED),
        Table("Estimated dimension by catalogue size", catalogue, "vhat: mean over seeds"),
        Table("The drift lemma", lemma, "d+1 copies pay: yes where vhat (d+1) log K <= K + d"),
    ]


def _cells(arms: Mapping[str, Any]) -> tuple[Cell, ...]:
    return tuple(Cell(f"d={d}", "funnel", {"horizon": HORIZON}, d, arms) for d in DELAYS)


STUDY = Study(
    name="funnel",
    number="14",
    title="Funnel",
    source="paper, Section 4, Table 2 and Appendix E, Experiment 2",
    asks="On a catalogue with categories and a funnel of engagement, is the cost of learning set by the "
    "catalogue's size or by how many behaviours it holds?",
    seen="By the behaviours: pooling cuts regret by 79, 64 and 39 per cent at delays of 10, 50 and 200, with "
    "the map known or estimated, and the estimated dimension stays below two from 25 items to 800. Two "
    "simple pooled rules do far better still on this family, where nothing resists them.",
    limits="The structure is imposed by hand, and the dimension is a random search, hence a value from below.",
    sweeps=(
        Sweep("funnel", _cells(ARMS), 8, (1, 80_000)),
        Sweep("lemma", _cells({}), 3, (1, 80_000), function="statepool.studies.paper.funnel:step_ratio"),
        Sweep("vhat", (Cell("seed 0", "funnel", extra={"draws": 4_000}),), 1, (1, 0),
              function="statepool.studies.tasks:estimated_dimension"),
        Sweep("shares", (Cell("seed 0", "funnel"),), 1, (1, 0), function="statepool.studies.paper.funnel:shares"),
        Sweep("catalogue",
              tuple(Cell(f"K={k}", "funnel", {"n_actions": k}, extra={"draws": 4_000}) for k in CATALOGUES),
              5, (1, 1), function="statepool.studies.tasks:estimated_dimension"),
    ),
    tables=tables,
)  # fmt: skip
