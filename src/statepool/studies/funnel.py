"""Study 14 (Experiment 2): a catalogue of two hundred items and six depths of engagement."""

from math import log

from statepool.guarantees import drift_lemma, interleaving_pays
from statepool.rates import default_rate, largest_covered_rate
from statepool.report.palette import ACTION, GREEDY, MUTED, PLUG_IN, STATE, THOMPSON, Look
from statepool.report.sheet import Sheet, Value
from statepool.studies.study import (
    Arms,
    Cell,
    Figure,
    Results,
    Rows,
    Sweep,
    Table,
    Task,
    add_study,
    estimated_dimension,
)

DELAYS, CATALOGUES, HORIZON, N_ITEMS = (10, 50, 200), (25, 50, 100, 200, 400, 800), 20_000, 200
PLACES = [f"d={d}" for d in DELAYS]
ARMS: Arms = {"action": ("action-exp3", {}), "state": ("state-exp3", {}), "plug-in": ("plug-in", {}),
              "pooled greedy": ("pooled-greedy", {}), "pooled Thompson": ("pooled-thompson", {})}  # fmt: skip
SEARCHED = (
    "vhat: the largest dimension among 4 000 random policies, a value from below. The largest of all is proved to lie "
    "between 2.24 and 2.27 (dimension.bracket)"
)


def step_ratio(task: Task) -> dict[str, float]:
    """The largest one-step growth of any action's probability, which the drift lemma bounds by 1 + 1/d."""
    return {"ratio": drift_lemma(task.instance(), task.cell.delay, task.stream).measured}


def shares(task: Task) -> dict[str, float]:
    """The mean share of the first and the last depth over the catalogue, in per cent."""
    P = task.instance(horizon=1).P
    return {"no engagement %": 100 * float(P[:, 0].mean()), "deepest %": 100 * float(P[:, -1].mean())}


def _regret_row(results: Results, cell: str) -> dict[str, Value]:
    row = {"action": results.value("funnel", cell, "action", digits=0), "state": results.value("funnel", cell, "state")}
    row["cut vs action %"] = results.saved_share("funnel", cell, "state", "action")
    row |= results.means("funnel", cell, ("plug-in", "pooled greedy", "pooled Thompson"))
    gap = results.saved("funnel", cell, "state", "plug-in")
    return row | ({"plug-in off state, in se": Value(abs(gap.number) / gap.se)} if gap.se else {})


def _lemma_row(results: Results, delay: int) -> dict[str, Value]:
    vhat = results.mean("vhat", "seed 0", "vhat")
    return {
        "largest step": Value(float(results.of("lemma", f"d={delay}", "ratio").max()), None, 3),
        "allowed": Value(1 + 1 / delay, None, 3),
        "rate": Value(default_rate(N_ITEMS, 6, HORIZON, delay), None, 4),
        "largest covered rate": Value(largest_covered_rate(delay), None, 4),
        "d+1 copies pay": Value(float(interleaving_pays(vhat, N_ITEMS, delay)), answer=True),
    }


def _catalogue_rows(results: Results) -> Rows:
    return results.rows("catalogue", [f"K={k}" for k in CATALOGUES], ["vhat"], digits=2)


def _tables(results: Results) -> list[Table]:
    seed_0 = {"vhat": Value(results.mean("vhat", "seed 0", "vhat"), None, 2)}
    for name, digits in (("no engagement %", 0), ("deepest %", 1)):
        seed_0[name] = Value(results.mean("shares", "seed 0", name), None, digits)
    catalogue = _catalogue_rows(results)
    numbers = [row["vhat"].number for row in catalogue.values()]
    catalogue["all"] = {"smallest": Value(min(numbers), None, 2), "largest": Value(max(numbers), None, 2)}
    regret = {cell: _regret_row(results, cell) for cell in PLACES}
    return [
        Table("Regret on the funnel", regret, "pooled greedy and pooled Thompson are ours"),
        Table("The map of seed 0", {"seed 0": seed_0}, SEARCHED),
        Table("Estimated dimension by catalogue size", catalogue, "vhat: mean over seeds"),
        Table("The drift lemma", {f"d={d}": _lemma_row(results, d) for d in DELAYS},
              "d+1 copies pay: yes where vhat (d+1) log K <= K + d"),
    ]  # fmt: skip


def _draw_funnel(sheet: Sheet, results: Results) -> None:
    left, right = sheet.panels(2, 2.3, widths=(1, 1.7))
    rows = _catalogue_rows(results)
    sheet.lines(left, CATALOGUES, rows, {"vhat": STATE}, "xy", xlabel="items in the catalogue, $K$")
    left.plot(CATALOGUES, CATALOGUES, color=MUTED, linestyle="--", linewidth=0.9, label="number of items")
    left.set(title="Items and dimension", ylim=(0.9, 1500))
    left.legend()
    looks = {"action": ACTION, "state": STATE, "plug-in": PLUG_IN, "pooled greedy": GREEDY, "pooled Thompson": THOMPSON}
    regrets = {cell: _regret_row(results, cell) for cell in PLACES}
    sheet.lines(right, range(3), regrets, looks, "y", legend=False, title=r"Regret, $T=20\,000$", ylim=(3, 400_000))
    vhat = results.mean("vhat", "seed 0", "vhat")
    holds = ["holds" if vhat * (d + 1) * log(N_ITEMS) <= N_ITEMS + d else "fails" for d in DELAYS]
    right.set_xticks(range(3), [f"$d={d}$\n{word}" for d, word in zip(DELAYS, holds, strict=True)])
    right.set_xlabel(r"whether $\hat v(d+1)\log K\leq K+d$")
    right.legend(ncols=2, loc="upper left")


def _draw_dimension_not_count(sheet: Sheet, results: Results, matched: Results) -> None:
    left, right = sheet.panels(2, 2.15)
    points = {"first": ("K=40, |S|=8, d=50", "o"), "second": ("K=20, |S|=12, d=20", "D")}
    for point, (name, marker) in points.items():
        places = [f"overlap {o:g}" for o in (0, 0.35, 0.65, 0.85, 0.95)]
        dimensions = [matched.first(point, place, "vhat") for place in places]
        rows = {place: {name: matched.percent_saved(point, place, "state", "action")} for place in places}
        sheet.lines(left, dimensions, rows, {name: Look(STATE.colour, marker)})
    dimension = r"effective dimension $\hat v$"
    left.set(ylim=(0, None), xlabel=dimension, ylabel="regret saved, %", title="Gain at fixed difficulty")
    sheet.lines(right, CATALOGUES, _catalogue_rows(results), {"vhat": STATE}, "x", legend=False)
    right.set(ylim=(1, 2.2), xlabel="items in the catalogue, $K$", ylabel=dimension,
              title="The catalogue grows, the dimension does not")  # fmt: skip


add_study(
    "funnel",
    [
        Sweep("funnel", [Cell(f"d={d}", "funnel", {"horizon": HORIZON}, d, ARMS) for d in DELAYS], 8, 80_000),
        Sweep("lemma", [Cell(f"d={d}", "funnel", {"horizon": HORIZON}, d) for d in DELAYS], 3, 80_000, step_ratio),
        Sweep("vhat", [Cell("seed 0", "funnel")], 1, 0, estimated_dimension),
        Sweep("shares", [Cell("seed 0", "funnel")], 1, 0, shares),
        Sweep("catalogue", [Cell(f"K={k}", "funnel", {"n_actions": k}) for k in CATALOGUES], 5, 1, estimated_dimension),
    ],
    _tables,
    [
        Figure("figure-2", _draw_dimension_not_count, ("matched-difficulty",), up_front=True),
        Figure("funnel", _draw_funnel),
    ],
)  # fmt: skip
