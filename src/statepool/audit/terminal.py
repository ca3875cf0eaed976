"""The audit on the terminal: the advice first, then what it rests on."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from statepool.audit import words
from statepool.audit.judging import UNCLEAR

if TYPE_CHECKING:
    from statepool.audit.auditing import Audit

WIDTH = 100
COLOURS = {"pool": "green", "pool with corrections": "yellow", "do not pool": "red", "cannot tell": "magenta"}


def print_audit(audit: "Audit", console: Console | None = None) -> None:
    console = console or Console(width=WIDTH)
    advice = audit.advice
    for sentence in (*words.about_reading(audit), *words.about_window(audit)):
        console.print(escape(sentence), highlight=False)
    told = "learner meanwhile" if advice.verdict == UNCLEAR else "learner"
    learner = advice.learner + (f" (as good: {', '.join(advice.ties)})" if advice.ties else "")
    console.print(
        Panel(
            escape("\n".join(words.reasons(audit))), title=f"[bold {COLOURS[advice.verdict]}]{advice.verdict}[/]",
            title_align="left", subtitle=f"{told}: {learner}", subtitle_align="left", width=WIDTH,
        )
    )  # fmt: skip
    for title, sentences in (
        ("What would change it: ", words.what_would_change_it(audit)), ("On Monday: ", words.what_to_do(audit)),
    ):  # fmt: skip
        console.print(f"[bold]{title}[/]" + escape(" ".join(sentences)), highlight=False)
    console.print(_states(audit))
    console.print(_learners(audit))
    for say in SAID:
        for sentence in say(audit):
            console.print(escape(sentence), highlight=False)


SAID = (
    words.about_rows, words.about_map, words.about_pooling, words.about_delays, words.about_drift, words.about_states,
    words.about_propensities,
)  # fmt: skip


def _states(audit: "Audit") -> Table:
    table = Table(title="States: does anything but the state matter?", title_justify="left")
    for heading in (
        "state",
        "rows",
        f"mean {audit.unit.name}",
        "direct effects",
        "±",
        "p (corrected)",
        "drift",
        "tells",
    ):
        table.add_column(heading, justify="left" if heading == "state" else "right", overflow="fold")
    means, found, unit = audit.counts.state_means, audit.sufficiency, audit.unit
    for s, name in enumerate(audit.counts.states):
        test = found.states[s]
        table.add_row(
            escape(name), f"{int(audit.counts.n[:, s].sum())}", f"{unit.outcome(means[s]):.3g}",
            f"{unit.amount(test.size):.3g}", f"{unit.amount(test.size_error):.2g}", f"{found.corrected[s]:.2g}",
            f"{unit.amount(audit.drift.spread[s]):.3g}",
            f"{audit.states.telling[s]:.0%}",
        )  # fmt: skip
    return table


def _learners(audit: "Audit") -> Table:
    unit = audit.unit
    title = f"Regret to expect in {audit.advice.horizon} decisions like the log's, in {unit.name}"
    table = Table(title=title, title_justify="left", caption=words.about_regret_itself(audit), caption_justify="left")
    for heading in ("learner", "kind", "regret", "±", "behind", "±", "a decision"):
        table.add_column(heading, justify="left" if heading in ("learner", "kind") else "right")
    for one in audit.advice.expected:
        numbers = (unit.amount(value) for value in (one.regret, one.error, one.behind, one.behind_error))
        table.add_row(one.learner, one.kind, *map(words.amount, numbers), f"{unit.amount(one.per_decision):.2g}")
    return table
