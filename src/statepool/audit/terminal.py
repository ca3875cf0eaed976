"""The audit on the terminal: the advice first, then what it rests on."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from statepool.audit.words import (
    about_delays,
    about_drift,
    about_map,
    about_pooling,
    about_propensities,
    about_rows,
    about_states,
)

if TYPE_CHECKING:
    from statepool.audit.auditing import Audit

WIDTH = 100
COLOURS = {"pool": "green", "pool with corrections": "yellow", "do not pool": "red"}


def print_audit(audit: "Audit", console: Console | None = None) -> None:
    console = console or Console(width=WIDTH)
    advice = audit.advice
    console.print(
        Panel(
            escape("\n".join(advice.reasons)), title=f"[bold {COLOURS[advice.verdict]}]{advice.verdict}[/]",
            title_align="left", subtitle=f"learner: {advice.learner}", subtitle_align="left", width=WIDTH,
        )
    )  # fmt: skip
    console.print(_states(audit))
    console.print(_learners(audit))
    for say in (about_rows, about_map, about_pooling, about_delays, about_drift, about_states, about_propensities):
        for sentence in say(audit):
            console.print(escape(sentence), highlight=False)


def _states(audit: "Audit") -> Table:
    table = Table(title="States: does anything but the state matter?", title_justify="left")
    for heading in ("state", "rows", "mean loss", "direct effects", "±", "p (corrected)", "drift", "tells"):
        table.add_column(heading, justify="left" if heading == "state" else "right", overflow="fold")
    means, found = audit.counts.state_means, audit.sufficiency
    for s, name in enumerate(audit.counts.states):
        test = found.states[s]
        table.add_row(
            escape(name), f"{int(audit.counts.n[:, s].sum())}", f"{means[s]:.3f}", f"{test.size:.3f}",
            f"{test.size_error:.3f}", f"{found.corrected[s]:.2g}", f"{audit.drift.spread[s]:.3f}",
            f"{audit.states.telling[s]:.0%}",
        )  # fmt: skip
    return table


def _learners(audit: "Audit") -> Table:
    title = f"Regret to expect in {audit.advice.horizon} decisions like the log's"
    table = Table(title=title, title_justify="left")
    for heading in ("learner", "kind", "regret", "±", "a decision"):
        table.add_column(heading, justify="left" if heading in ("learner", "kind") else "right")
    for one in audit.advice.expected:
        table.add_row(one.learner, one.kind, f"{one.regret:.0f}", f"{one.error:.0f}", f"{one.per_decision:.4f}")
    return table
