"""The paper's two figures: the claim and its boundary; effective dimension, not action count."""

from collections.abc import Mapping

from matplotlib.axes import Axes

from statepool.families import overlap
from statepool.report.palette import BLUE, FAINT, INK, MUTED, STATE, SURFACE, VERMILLION
from statepool.report.sheet import Sheet, label, log_axis
from statepool.report.values import Value
from statepool.studies.paper import funnel, matched_difficulty
from statepool.studies.statistics import mean_of, percent_saved
from statepool.studies.study import Results

HORIZON, DELAY, ROUND = 1_000, 200, 680
"""An example for the eye: one state of an overlap instance, and the round that is explained."""
DIMENSION = r"effective dimension $\hat v$"


def draw_claim_and_boundary(sheet: Sheet, results: Mapping[str, Results]) -> None:
    left, right = sheet.panels(2, 2.15)
    _draw_staleness(sheet, left)
    _draw_gain(sheet, right, results["matched-difficulty"])


def _draw_staleness(sheet: Sheet, ax: Axes) -> None:
    theta = overlap(seed=3, horizon=HORIZON).theta
    state = int((theta[ROUND] - theta[ROUND - DELAY]).argmax())
    rounds = range(HORIZON)
    for other in range(theta.shape[1]):
        if other != state:
            ax.plot(rounds, theta[:, other], color=FAINT, linewidth=0.9, zorder=1)
    truth = theta[:, state]
    ax.plot(rounds, truth, color=BLUE)
    old, new = truth[ROUND - DELAY], truth[ROUND]
    ax.plot([ROUND - DELAY, ROUND], [old, old], color=INK, linewidth=1)
    ax.plot([ROUND, ROUND], [old, new], color=VERMILLION, linewidth=1.6, solid_capstyle="butt")
    ax.plot([ROUND - DELAY], [old], "o", color=BLUE, zorder=3)
    ax.plot([ROUND], [old], "o", markerfacecolor=SURFACE, markeredgecolor=INK, zorder=3)
    ax.plot([ROUND], [new], "o", color=BLUE, zorder=3)
    sheet.target(ax, ROUND - DELAY, old, f"true mean loss of the state at t - d: {old:.3f}")
    sheet.target(ax, ROUND, old, f"handed to the learner at t: {old:.3f}, which is {DELAY} rounds old")
    sheet.target(ax, ROUND, new, f"true mean loss of the state at t: {new:.3f}")
    label(ax, ROUND, (old + new) / 2, "error", VERMILLION)
    label(ax, ROUND - DELAY / 2, old, "$d$ rounds", INK, (0, -7), ha="center")
    label(ax, ROUND, old, "handed over", INK, (6, -3))
    ax.set_xticks([ROUND - DELAY, ROUND], ["$t-d$", "$t$"])
    ax.set(xlim=(0, HORIZON), xlabel="round", ylabel="mean loss of a state", title="What was true is handed over late")


def _draw_gain(sheet: Sheet, ax: Axes, results: Results) -> None:
    dimensions, gains, _, places = _matched(results, "first")
    sheet.series(ax, dimensions, gains, STATE, "regret saved", places)
    ax.set(xlabel=DIMENSION, ylabel="regret saved by pooling", ylim=(0, None), title="More overlap, more to share")
    ax.annotate(
        "more overlap", (0.04, 0.1), xytext=(0.4, 0.1), xycoords="axes fraction", textcoords="axes fraction",
        color=MUTED, fontsize=7.5, va="center", arrowprops={"arrowstyle": "->", "color": MUTED, "linewidth": 0.7},
    )  # fmt: skip


def draw_dimension_not_count(sheet: Sheet, results: Mapping[str, Results]) -> None:
    left, right = sheet.panels(2, 2.15)
    points = (("first", "o", "-", "K=40, |S|=8, d=50"), ("second", "D", "--", "K=20, |S|=12, d=20"))
    for point, marker, line, name in points:
        dimensions, _, shares, places = _matched(results["matched-difficulty"], point)
        look = STATE._replace(marker=marker)
        sheet.series(left, dimensions, shares, look, f"{name}, regret saved %", places, linestyle=line, label=name)
    left.legend(loc="upper right", fontsize=7.5, borderpad=0)
    left.set(ylim=(0, None), xlabel=DIMENSION, ylabel="regret saved, %", title="Gain at fixed difficulty")
    draw_catalogue(sheet, right, results["funnel"])
    right.set(ylim=(1, 2.2), title="The catalogue grows, the dimension does not")


def draw_catalogue(sheet: Sheet, ax: Axes, results: Results) -> None:
    """The estimated dimension of funnel maps by number of items."""
    sizes = funnel.CATALOGUES
    values = [mean_of(results.of("catalogue", f"K={k}", "vhat"), digits=2) for k in sizes]
    log_axis(ax.xaxis, sizes)
    sheet.series(ax, sizes, values, STATE, "estimated dimension", [f"{k} items" for k in sizes])
    ax.set(xlabel="items in the catalogue, $K$", ylabel=DIMENSION)


def _matched(results: Results, point: str) -> tuple[list[float], list[Value], list[Value], list[str]]:
    """By overlap: the dimension, the regret saved, the same in per cent of action-level regret, and what they are."""
    dimensions, gains, shares, places = [], [], [], []
    for overlap_ in matched_difficulty.OVERLAPS:
        cell = f"overlap {overlap_:g}"
        dimensions.append(results.first(point, cell, "vhat"))
        gains.append(mean_of(results.of(point, cell, "action") - results.of(point, cell, "state")))
        shares.append(percent_saved(results, point, cell, "state", "action"))
        places.append(f"{cell}, dimension {dimensions[-1]:.2f}")
    return dimensions, gains, shares, places
