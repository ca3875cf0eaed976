"""The audit's figures, each drawn wide and narrow by the same function."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from statepool.audit.report.contexts import draw_contexts, has_worth, short_name
from statepool.audit.sentences import duration, unit_of_time
from statepool.audit.verdict import ALONE, CORRECT, POOL
from statepool.checks import Floats
from statepool.report.drawings import Drawing, drawing_of
from statepool.report.heat_map import draw_cell, frame_cells
from statepool.report.palette import AMBER, BLUE, GREEN, MUTED, PURPLE, SURFACE, VERMILLION
from statepool.report.sheet import Sheet, label, leave_room, styled

if TYPE_CHECKING:
    from statepool.audit.audit import Audit

LINES = (BLUE, VERMILLION, GREEN, PURPLE, AMBER, MUTED)
KINDS = {POOL: BLUE, CORRECT: GREEN, ALONE: VERMILLION, "blind": MUTED}
MOST_DOTS, MOST_ROWS, MOST_LINES = 300, 12, 6


@dataclass(frozen=True)
class FigurePlan:
    """A figure of the audit, the section it stands in, and whether the log has what it shows."""

    name: str
    title: str
    caption: str
    home: str
    draw: Callable[[Sheet, "Audit"], None]
    possible: Callable[["Audit"], bool] = lambda audit: True


def draw_figures(audit: "Audit") -> list[Drawing]:
    drawings = []
    for plan in PLANS:
        if plan.possible(audit):
            # Letters that the font lacks are drawn as boxes; the tables and the values at the pointer have them.
            with styled(), warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Glyph")
                wide, narrow = Sheet(), Sheet(narrow=True)
                plan.draw(wide, audit)
                plan.draw(narrow, audit)
                drawings.append(drawing_of(wide, narrow, plan.name, plan.title, plan.caption, plan.home))
    return drawings


def _draw_regrets(sheet: Sheet, audit: "Audit") -> None:
    unit = audit.unit
    per = {one.learner: unit.amount(one.per_decision) for one in audit.advice.expected}
    (ax,) = sheet.panels(1, 0.5 + 0.26 * len(audit.advice.expected))
    for row, one in enumerate(audit.advice.expected):
        colour = KINDS[one.kind]
        ax.barh(row, per[one.learner], height=0.62, color=colour)
        error = unit.amount(one.error) / audit.advice.horizon
        ax.errorbar(per[one.learner], row, xerr=error, color=MUTED, elinewidth=0.9)
        regret = f"{unit.amount(one.regret):.3g} ± {unit.amount(one.error):.2g} {unit.name}"
        text = f"{one.learner} ({one.kind}): regret {regret}, {per[one.learner]:.3g} a decision"
        sheet.target_box(ax, 0, row - 0.4, max(per[one.learner], ax.get_xlim()[1] * 0.05), 0.8, text)
        label(ax, per[one.learner] + error, row, f"{per[one.learner]:.3g}", colour, (5, 0))
    ax.set_yticks(range(len(audit.advice.expected)), [one.learner for one in audit.advice.expected])
    ax.set_ylim(len(audit.advice.expected) - 0.5, -0.5)
    ax.set_xlim(0, 1.26 * max(max(per[one.learner] for one in audit.advice.expected), 1e-6 * unit.scale))
    ax.tick_params(axis="y", length=0)
    ax.grid(False)
    ax.grid(axis="x")
    ax.set_xlabel(f"regret a decision, {unit.name}")


def _draw_prediction(sheet: Sheet, audit: "Audit") -> None:
    (ax,) = sheet.panels(1, 3.0)
    predicted, own = (audit.unit.outcome(means) for means in (audit.effects.pooled, audit.effects.own))
    visits = audit.counts.n.sum(axis=1)
    shown = np.argsort(-visits, kind="stable")[:MOST_DOTS]
    low, high = min(predicted[shown].min(), own[shown].min()), max(predicted[shown].max(), own[shown].max())
    pad = 0.04 * max(high - low, 1e-3 * audit.unit.scale)
    ax.plot([low - pad, high + pad], [low - pad, high + pad], color=MUTED, linestyle="--", linewidth=0.9)
    ax.scatter(predicted[shown], own[shown], s=5 + 40 * np.sqrt(visits[shown] / visits.max()), color=BLUE, alpha=0.55,
               edgecolors=SURFACE, linewidths=0.4)  # fmt: skip
    for a in shown:
        text = f"{audit.counts.actions[a]}: {predicted[a]:.3g} through the states, {own[a]:.3g} by its own outcomes"
        sheet.target(ax, predicted[a], own[a], f"{text} ({visits[a]:.0f} rows)", 7)
    name = audit.unit.name
    ax.set(xlabel=f"mean {name}, predicted through the states", ylabel=f"mean {name}, direct effects included")
    ax.grid(axis="x")


def _draw_effects(sheet: Sheet, audit: "Audit") -> None:
    (ax,) = sheet.panels(1, 0.55 + 0.24 * audit.counts.n_states)
    unit = audit.unit
    for s, (name, test) in enumerate(zip(audit.counts.states, audit.sufficiency.states, strict=True)):
        size, error = unit.amount(test.size), unit.amount(min(test.size_error, 1.0))
        sure = audit.sufficiency.corrected[s] < 0.05
        colour = VERMILLION if sure else MUTED
        ax.errorbar(size, s, xerr=error, color=colour, marker="o", elinewidth=1.1)
        found = "beyond chance" if sure else "not beyond chance"
        sheet.target(ax, size, s, f"{name}: {size:.3g} ± {error:.2g} {unit.name}, p = "
                     f"{audit.sufficiency.corrected[s]:.2g}, {found}")  # fmt: skip
    ax.set_yticks(range(audit.counts.n_states), [short_name(name) for name in audit.counts.states])
    ax.set_ylim(audit.counts.n_states - 0.5, -0.5)
    ax.set_xlim(left=0)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x")
    ax.set_xlabel(f"direct effects in the state, {unit.name}, standard deviation over actions")


def _draw_map(sheet: Sheet, audit: "Audit") -> None:
    counts = audit.counts
    top = np.argsort(-counts.n.sum(axis=1), kind="stable")[:MOST_ROWS]
    top = top[np.argsort(audit.effects.pooled[top], kind="stable")]
    (ax,) = sheet.panels(1, 0.75 + 0.2 * top.size)
    for row, a in enumerate(top):
        for s in range(counts.n_states):
            share = audit.map.P[a, s]
            text = f"{counts.actions[a]} → {counts.states[s]}: {share:.3f} ({audit.map.lower[a, s]:.3f} to "
            draw_cell(
                sheet, ax, s, row, float(share) ** 0.5, f"{100 * share:.0f}", f"{text}{audit.map.upper[a, s]:.3f})"
            )
    frame_cells(ax, [short_name(name) for name in counts.states], [short_name(counts.actions[a]) for a in top])
    ax.xaxis.tick_top()
    ax.tick_params(axis="x", rotation=40 if not sheet.narrow else 60)
    for tick in ax.get_xticklabels():
        tick.set_horizontalalignment("left")


def _draw_delays(sheet: Sheet, audit: "Audit") -> None:
    left, right = sheet.panels(2, 2.1)
    times = _delays_seen(audit)
    draws = audit.lateness.draws[np.isfinite(audit.lateness.draws)]
    # The last half per cent would squeeze all others into a corner.
    shares = np.linspace(0, 0.995, 101)[1:]
    size, unit = unit_of_time(audit, float(np.quantile(times, shares[-1])))
    for ax, values, scale in ((left, times, size), (right, draws, 1.0)):
        quantiles = np.quantile(values, shares)
        ax.plot(quantiles / scale, 100 * shares, color=BLUE)
        for x, share in zip(quantiles[4::10], shares[4::10], strict=True):
            what = duration(audit, float(x)) if ax is left else f"{x:.0f} decisions"
            text = f"{share:.0%} of the outcomes that come have come within {what}"
            sheet.target(ax, x / scale, 100 * share, text)
        ax.set_ylim(0, 103)
        ax.set_xlim(left=0)
    left.set(xlabel=f"delay, {unit}", ylabel="outcomes come, %")
    right.set_xlabel("decisions made meanwhile")


def _delays_seen(audit: "Audit") -> Floats:
    waits = audit.rows.resolved - audit.rows.decided
    return np.asarray(waits[np.isfinite(audit.rows.loss) & np.isfinite(waits) & (waits >= 0)])


def _draw_drift(sheet: Sheet, audit: "Audit") -> None:
    (ax,) = sheet.panels(1, 2.4)
    drift, unit = audit.drift, audit.unit
    observed, means = unit.outcome(drift.observed), unit.outcome(drift.means)
    chosen = np.argsort(-drift.spread, kind="stable")[:MOST_LINES]
    x = 100 * drift.times
    ends = []
    for colour, s in zip(LINES, sorted(chosen), strict=False):
        ax.plot(x, observed[:, s], ".", color=colour, markersize=2.2, alpha=0.5)
        ax.plot(x, means[:, s], color=colour)
        name = audit.counts.states[s]
        for b in range(0, x.size, max(x.size // 20, 1)):
            text = f"{name}, {x[b]:.0f} % into the log: {means[b, s]:.3g} (seen {observed[b, s]:.3g})"
            sheet.target(ax, x[b], means[b, s], text, 8)
        ends.append((float(means[-1, s]), name, colour))
    ax.set_ylim(unit.low - 0.02 * unit.scale, unit.high + 0.02 * unit.scale)
    for y, (_, name, colour) in zip(
        _apart([(end[0] - unit.low) / unit.scale for end in ends], 0.075), ends, strict=True
    ):
        label(ax, 100, unit.low + y * unit.scale, short_name(name), colour, (4, 0))
    leave_room(ax, 0, 100, 132 if not sheet.narrow else 150)
    ax.set_xticks([0, 25, 50, 75, 100])
    ax.set(xlabel="share of the log's decisions, %", ylabel=f"mean {unit.name} of the state")


def _apart(values: list[float], least: float) -> list[float]:
    """The same heights, moved apart so that labels do not lie on each other, and kept inside the axes."""
    order = np.argsort(values, kind="stable")
    placed = np.array(values)
    for lower, upper in pairwise(order):
        placed[upper] = max(placed[upper], placed[lower] + least)
    over = max(placed.max(initial=0) - 1.0, 0.0)
    for upper, lower in pairwise(order[::-1]):
        placed[upper] = min(placed[upper], 1.0) if over else placed[upper]
        placed[lower] = min(placed[lower], placed[upper] - least)
    return [float(value) for value in placed]


PLANS = (
    FigurePlan(
        "regrets", "Regret to expect",
        "Learners on an instance fitted to the log: its map, its drifting means, its delays, its direct effects. Blue "
        "pools, green pools and corrects, orange learns action by action, grey chooses blindly. Whiskers are one "
        "standard error.",
        "advice", _draw_regrets,
    ),
    FigurePlan(
        "effects", "Direct effects in each state",
        "How much outcomes differ between actions in the same state at the same time, noise taken off. Orange: beyond "
        "chance, after correction for the number of states.",
        "sufficiency", _draw_effects,
    ),
    FigurePlan(
        "prediction", "What pooling predicts, and what is true",
        "Each dot an action, larger with more rows. On the line, the state is all that matters; what lies off it is "
        "the direct effect, shrunk by what is noise.",
        "sufficiency", _draw_prediction, lambda audit: audit.counts.n_actions > 1,
    ),
    FigurePlan(
        "map", "The map",
        "How often, in per cent, each of the most frequent actions leads to each state; point at a cell for its "
        "interval.",
        "map", _draw_map, lambda audit: audit.counts.n_states <= 20,
    ),
    FigurePlan(
        "contexts", "What an answer of its own gains each context",
        "Each dot a context and the action that looks best for it, beside the best action for all, judged on rows "
        "that did not choose; whiskers are intervals at 95 %. Grey: the best for all is its best. The bar "
        "below is the whole, up to what the best choices might bring.",
        "contexts", draw_contexts, has_worth,
    ),
    FigurePlan(
        "delays", "How late outcomes come",
        "First in time, second in decisions made while waiting. Only outcomes that come are counted.",
        "delays", _draw_delays, lambda audit: audit.lateness.known and _delays_seen(audit).size > 0,
    ),
    FigurePlan(
        "drift", "How the state means move",
        "Dots are means of a stretch of the log, lines are smoothed. Of many states, those that move most.",
        "drift", _draw_drift, lambda audit: audit.drift.known,
    ),
)  # fmt: skip
