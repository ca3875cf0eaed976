"""The report: one HTML file with its figures inside, made from the same summary and sections as the terminal's."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from statepool.audit.advice import ALWAYS, BLIND
from statepool.audit.document import amount, sections_of, summary_of
from statepool.report.page import figures_of, render
from statepool.report.palette import BLUE, MUTED, SURFACE, VERMILLION
from statepool.report.sheet import Drawing, Sheet, drawing_of, label, styled

if TYPE_CHECKING:
    from statepool.audit.audit import Audit

CLASSES = {"pool": "digit", "pool with corrections": "near", "do not pool": "off", "cannot tell": "near"}
MOST_DOTS, LETTERS = 300, 22


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


def draw_figures(audit: Audit) -> list[Drawing]:
    """Figures of what the log can show; each is drawn for a wide and for a narrow page."""
    counts, plans = audit.counts, []
    if audit.advice.expected:
        caption = "In simulations of the log. Blue: advised. Whiskers: one standard error."
        plans.append((_draw_regrets, "regrets", "Regret to expect", caption, "advice"))
    if counts.n_actions > 1 and counts.has_outcomes:
        title = "Through the states, and with direct effects"
        caption = "Each dot an action, larger with more rows. On the line, the state is all that matters."
        plans.append((_draw_prediction, "prediction", title, caption, "evidence"))
    drawings = []
    for draw, *texts in plans:
        # Letters that the font lacks are drawn as boxes; tables and tips have them.
        with styled(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph")
            wide, narrow = Sheet(), Sheet(narrow=True)
            draw(wide, audit)
            draw(narrow, audit)
            drawings.append(drawing_of(wide, narrow, *texts))
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
