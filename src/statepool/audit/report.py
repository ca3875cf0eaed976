"""The report: one HTML file with its figures inside, made from the same summary and sections as the terminal's."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from statepool.audit.advice import ALWAYS, BLIND
from statepool.audit.document import amount, sections_of, summary_of
from statepool.report.page import figures_of, render
from statepool.report.palette import AMBER, BLUE, GREEN, MUTED, PURPLE, SURFACE, VERMILLION
from statepool.report.sheet import Drawing, Sheet, draw_cell, drawing_of, frame_cells, label, leave_room, styled

if TYPE_CHECKING:
    from statepool.audit.audit import Audit

CLASSES = {"pool": "digit", "pool with corrections": "near", "do not pool": "off", "cannot tell": "near"}
LINES = (BLUE, VERMILLION, GREEN, PURPLE, AMBER, MUTED)
MOST_DOTS, MOST_ROWS, MOST_LINES, MOST_STATES, LETTERS = 300, 12, 6, 20, 22


def write_report(audit: Audit, out: Path) -> Path:
    """Write the report into the folder `out`, or as that .html file, and AUDIT.json beside it; return its path."""
    path = out if out.suffix.lower() == ".html" else out / "report.html"
    page = render(
        "statepool.audit", "audit.html", name=audit.log.name, summary=summary_of(audit), sections=sections_of(audit),
        kind=CLASSES[audit.advice.verdict], figures=figures_of(draw_figures(audit), linked=False),
    )  # fmt: skip
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
        (path.parent / "AUDIT.json").write_text(json.dumps(audit.document, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise ValueError(f"out: cannot write {path} ({error.strerror or error})") from None
    return path


class Plan(NamedTuple):
    """A figure, the section it stands in, and whether the log has what it shows."""

    name: str
    title: str
    caption: str
    home: str
    draw: Callable[[Sheet, Audit], None]
    possible: Callable[[Audit], bool]


def draw_figures(audit: Audit) -> list[Drawing]:
    drawings = []
    for plan in PLANS:
        if not plan.possible(audit):
            continue
        # Letters that the font lacks are drawn as boxes; tables and tips have them.
        with styled(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph")
            wide, narrow = Sheet(), Sheet(narrow=True)
            plan.draw(wide, audit)
            plan.draw(narrow, audit)
            drawings.append(drawing_of(wide, narrow, plan.name, plan.title, plan.caption, plan.home))
    return drawings


def _short(name: str) -> str:
    return name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…"


def _draw_regrets(sheet: Sheet, audit: Audit) -> None:
    unit, expected = audit.unit, audit.advice.expected
    first = audit.counts.actions[audit.advice.ranking.order[0]]
    names = [_short(f"always {first}") if one.name == ALWAYS else one.name for one in expected]
    (ax,) = sheet.panels(1, 0.5 + 0.26 * len(expected))
    widest = max(max(unit.amount(one.regret) for one in expected), 1e-9)
    for row, (one, name) in enumerate(zip(expected, names, strict=True)):
        colour = BLUE if one.name == audit.advice.learner else MUTED if one.name == BLIND else VERMILLION
        regret, error = unit.amount(one.regret), unit.amount(one.error)
        ax.barh(row, regret, height=0.62, color=colour)
        ax.errorbar(regret, row, xerr=error, color=MUTED, elinewidth=0.9)
        text = f"{name}: regret {amount(regret)} ± {amount(error)}{unit.suffix}"
        sheet.target_box(ax, 0, row - 0.4, max(regret, 0.05 * widest), 0.8, text)
        label(ax, max(regret, 0) + error, row, amount(regret), colour, (5, 0))
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlim(0, 1.3 * widest)
    ax.tick_params(axis="y", length=0)
    ax.grid(False)
    ax.grid(axis="x")
    ax.set_xlabel(f"regret{unit.suffix and f',{unit.suffix}'}")


def _draw_prediction(sheet: Sheet, audit: Audit) -> None:
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
        text = f"{audit.counts.actions[a]}: {predicted[a]:.3g} through the states, {own[a]:.3g} with direct effects"
        sheet.target(ax, predicted[a], own[a], f"{text} ({visits[a]:.0f} rows)", 7)
    name = audit.unit.name
    ax.set(xlabel=f"mean {name}, through the states", ylabel=f"mean {name}, with direct effects")
    ax.grid(axis="x")


def _draw_map(sheet: Sheet, audit: Audit) -> None:
    counts, top = audit.counts, audit.advice.ranking.order[:MOST_ROWS]
    (ax,) = sheet.panels(1, 0.75 + 0.2 * len(top))
    for row, a in enumerate(top):
        for s in range(counts.n_states):
            share = float(audit.map.P[a, s])
            ends = f"({audit.map.lower[a, s]:.3f} to {audit.map.upper[a, s]:.3f})"
            text = f"{counts.actions[a]} → {counts.states[s]}: {share:.3f} {ends}"
            draw_cell(sheet, ax, s, row, share**0.5, f"{100 * share:.0f}", text)
    frame_cells(ax, [_short(name) for name in counts.states], [_short(counts.actions[a]) for a in top])
    ax.xaxis.tick_top()
    ax.tick_params(axis="x", rotation=60 if sheet.narrow else 40)
    for tick in ax.get_xticklabels():
        tick.set_horizontalalignment("left")


def _draw_delays(sheet: Sheet, audit: Audit) -> None:
    (ax,) = sheet.panels(1, 2.1)
    waits = audit.maturity.waits.waits if audit.maturity.waits is not None else _waits(audit)
    shares = np.linspace(0, 0.995, 101)[1:]
    quantiles = np.quantile(waits, shares)
    size, unit = (86_400.0, "days") if audit.seconds and quantiles[-1] > 172_800 else (1.0, "as given")
    if audit.seconds and size == 1.0:
        size, unit = (3_600.0, "hours") if quantiles[-1] > 7_200 else (1.0, "seconds")
    ax.plot(quantiles / size, 100 * shares, color=BLUE)
    for x, share in zip(quantiles[4::10], shares[4::10], strict=True):
        sheet.target(ax, x / size, 100 * share, f"{share:.0%} have come within {x / size:.3g} {unit}")
    ax.set_ylim(0, 103)
    ax.set_xlim(left=0)
    ax.set(xlabel=f"delay, {unit}", ylabel="come, %")


def _waits(audit: Audit) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.asarray((audit.rows.resolved - audit.rows.decided)[audit.rows.dated])


def _draw_drift(sheet: Sheet, audit: Audit) -> None:
    (ax,) = sheet.panels(1, 2.4)
    drift, unit = audit.drift, audit.unit
    observed, means, x = unit.outcome(drift.observed), unit.outcome(drift.means), 100 * drift.times
    for s, colour in zip(np.argsort(-drift.spread, kind="stable")[:MOST_LINES], LINES, strict=False):
        ax.plot(x, observed[:, s], linestyle="", marker=".", markersize=2.5, color=colour, alpha=0.4)
        ax.plot(x, means[:, s], color=colour)
        name = audit.counts.states[s]
        for b in range(0, x.size, max(x.size // 20, 1)):
            sheet.target(ax, x[b], means[b, s], f"{name}, {x[b]:.0f} % into the log: {means[b, s]:.3g}", 8)
        label(ax, 100, float(means[-1, s]), _short(name), colour, (4, 0))
    leave_room(ax, 0, 100, 150 if sheet.narrow else 132)
    ax.set_xticks([0, 25, 50, 75, 100])
    ax.set(xlabel="share of the log's decisions, %", ylabel=f"mean {unit.name}")


PLANS = (
    Plan("regrets", "Regret to expect", "In simulations of the log. Blue: advised. Whiskers: one standard error.",
         "advice", _draw_regrets, lambda audit: bool(audit.advice.expected)),
    Plan("prediction", "Through the states, and with direct effects",
         "Each dot an action, larger with more rows. On the line, the state is all that matters.", "evidence",
         _draw_prediction, lambda audit: audit.counts.n_actions > 1 and audit.counts.has_outcomes),
    Plan("map", "The map", "How often, in per cent, each of the best actions leads to each state.", "actions",
         _draw_map, lambda audit: audit.counts.n_states <= MOST_STATES),
    Plan("delays", "How late outcomes come", "What the end of the log hides is allowed for.", "time",
         _draw_delays, lambda audit: audit.lateness.known and bool(_waits(audit).size)),
    Plan("drift", "How the state means move", "Dots are means of a stretch of the log, lines are smoothed.", "time",
         _draw_drift, lambda audit: audit.drift.known),
)  # fmt: skip
