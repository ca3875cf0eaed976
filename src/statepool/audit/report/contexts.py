"""Contexts in the report: what each gains by an answer of its own, as a figure and as rows of a table."""

from typing import TYPE_CHECKING

import numpy as np

from statepool.audit.sentences import counted
from statepool.checks import Ints
from statepool.report.palette import BLUE, MUTED
from statepool.report.sheet import Sheet, label

if TYPE_CHECKING:
    from statepool.audit.audit import Audit

MOST_CONTEXTS, SHORT = 12, 18


def has_worth(audit: "Audit") -> bool:
    return audit.personal is not None and audit.personal.worth is not None


def largest(audit: "Audit") -> Ints:
    """The contexts with the most rows, in order of what they gain."""
    assert audit.personal is not None
    rows, worth = audit.personal.contexts.rows, audit.personal.worth
    top = np.argsort(-rows, kind="stable")[:MOST_CONTEXTS]
    return top if worth is None else top[np.argsort(-worth.by_context[top], kind="stable")]


def draw_contexts(sheet: Sheet, audit: "Audit") -> None:
    personal, unit = audit.personal, audit.unit
    assert personal is not None
    assert personal.worth is not None
    worth, shown = personal.worth, largest(audit)
    (ax,) = sheet.panels(1, 0.7 + 0.24 * (shown.size + 1))
    names = [short_name(personal.contexts.names[c]) for c in shown]
    for row, c in enumerate(shown):
        gain, error = unit.amount(worth.by_context[c]), unit.amount(worth.errors[c])
        own = audit.counts.actions[personal.best[c]]
        same = personal.best[c] == personal.one
        colour = MUTED if same else BLUE
        ax.errorbar(gain, row, xerr=1.96 * error, color=colour, marker="o", elinewidth=1.1)
        text = f"{personal.contexts.names[c]} ({counted(personal.contexts.rows[c])} rows): {own}"
        sheet.target(ax, gain, row, f"{text}, {gain:.3g} ± {error:.2g} {unit.name} a decision over the one for all")
        label(ax, gain + 1.96 * error, row, short_name(own), colour, (5, 0))
    value, low, high = (unit.amount(number) for number in (worth.value, worth.lower, worth.upper))
    last = shown.size
    ax.plot([low, high], [last, last], color=BLUE, linewidth=2.2, solid_capstyle="butt")
    ax.plot([value], [last], marker="D", color=BLUE)
    sheet.target(ax, value, last, f"all contexts: {value:.3g} ({low:.3g} to {high:.3g}) {unit.name} a decision")
    ax.axvline(0, color=MUTED, linewidth=0.9, linestyle="--")
    ax.set_yticks(range(last + 1), [*names, "all contexts"])
    ax.set_ylim(last + 0.5, -0.5)
    # Room for the names of actions to the right of their whiskers.
    left, right = ax.get_xlim()
    ax.set_xlim(left, right + (0.5 if sheet.narrow else 0.3) * (right - left))
    ax.tick_params(axis="y", length=0)
    ax.grid(False)
    ax.grid(axis="x")
    ax.set_xlabel(f"gained by an answer of its own, {unit.name} a decision")


def context_rows(audit: "Audit") -> list[tuple[str, ...]]:
    """Of the largest contexts: rows, best action, what it gains over the one for all."""
    personal, unit = audit.personal, audit.unit
    assert personal is not None
    worth = personal.worth
    return [
        (
            personal.contexts.names[c], counted(personal.contexts.rows[c]), audit.counts.actions[personal.best[c]],
            "" if worth is None or not worth.errors[c]
            else f"{unit.amount(worth.by_context[c]):.2g} ± {unit.amount(worth.errors[c]):.2g}".replace("-", "−"),
        )
        for c in largest(audit)
    ]  # fmt: skip


def short_name(name: str) -> str:
    """A label that fits beside a chart."""
    # A dollar sign would start a formula.
    name = name.replace("$", r"\$")
    return name if len(name) <= SHORT else name[: SHORT - 1] + "…"
