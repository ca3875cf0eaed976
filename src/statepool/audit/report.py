"""The report: one HTML file with its figure inside, made from the same summary and sections as the terminal's."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from statepool.audit.document import sections_of, summary_of
from statepool.report.page import figures_of, render
from statepool.report.palette import BLUE, MUTED, SURFACE
from statepool.report.sheet import Drawing, Sheet, drawing_of, styled

if TYPE_CHECKING:
    from statepool.audit.audit import Audit

CLASSES = {"pool": "digit", "pool with corrections": "near", "do not pool": "off", "cannot tell": "near"}
MOST_DOTS = 300


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
    """Predictions beside estimates, drawn for a wide and for a narrow page; nothing where there is one action."""
    if audit.counts.n_actions < 2 or not audit.counts.has_outcomes:
        return []
    title = "Through the states, and with direct effects"
    caption = "Each dot an action, larger with more rows. On the line, the state is all that matters."
    # Letters that the font lacks are drawn as boxes; tables and tips have them.
    with styled(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        wide, narrow = Sheet(), Sheet(narrow=True)
        _draw_prediction(wide, audit)
        _draw_prediction(narrow, audit)
        return [drawing_of(wide, narrow, "prediction", title, caption, "evidence")]


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
    name = audit.unit.column
    ax.set(xlabel=f"mean {name}, through the states", ylabel=f"mean {name}, with direct effects")
    ax.grid(axis="x")
