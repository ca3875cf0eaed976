"""`statepool audit`: answer from a log, on the terminal the advice first, then what it rests on."""

import json
import shlex
import textwrap
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from statepool.audit import Audit, audit_log, sentences
from statepool.audit.context_sentences import about_contexts
from statepool.audit.verdict import UNCLEAR
from statepool.commands.ahead import DIMENSION, compiling_ahead
from statepool.commands.progress import working
from statepool.commands.tables import make_table
from statepool.frames import terminal_width

COLOURS = {"pool": "green", "pool with corrections": "yellow", "do not pool": "red", "cannot tell": "magenta"}

AHEAD = ("corrected-pool", DIMENSION, "state-exp3", "zimmert-seldin", "action-exp3")
"""What an audit needs beside the learner that it plays first."""

FRAME = 4
"""Columns that the frame around the reasons takes."""


def run(log: str, out: Path | None, as_json: bool, **settings: Any) -> None:
    """Audit the log with the settings of `audit_log`; write the report if asked, and print."""
    with working(f"auditing {log}"), compiling_ahead(AHEAD):
        found = audit_log(log, **settings)
    report = found.write(out) if out else None
    if as_json:
        print(json.dumps(found.document, indent=1))
        return
    written = report.parent / "AUDIT.json" if report else None
    print_audit(found, written=written)
    if report:
        print(f"Report: {report}\nMap, learner and settings: {written}")


def print_audit(audit: Audit, console: Console | None = None, written: Path | None = None) -> None:
    """Print the answer, which says how to start the pool that was `written`."""
    console = console or Console(width=terminal_width())
    advice = audit.advice
    for sentence in (*sentences.about_reading(audit), *sentences.about_window(audit)):
        print_sentence(console, sentence)
    told = "learner meanwhile" if advice.verdict == UNCLEAR else "learner"
    told_apart = audit.counts.has_outcomes
    learner = advice.learner + (f" (as good: {', '.join(advice.ties)})" if advice.ties and told_apart else "")
    reasons = "\n".join(_lines(reason, console.width - FRAME) for reason in sentences.reasons(audit))
    console.print(
        Panel(
            Text(reasons), title=f"[bold {COLOURS[advice.verdict]}]{advice.verdict}[/]",
            title_align="left", subtitle=f"{told}: {learner}", subtitle_align="left", width=console.width,
        )
    )  # fmt: skip
    for title, lines in (
        ("What would change it: ", sentences.what_would_change_it(audit)),
        ("On Monday: ", sentences.what_to_do(audit, _how_to_serve(written))),
    ):  # fmt: skip
        print_sentence(console, " ".join(lines), title)
    for sentence in about_contexts(audit):
        print_sentence(console, sentence)
    if audit.counts.has_outcomes:
        console.print(_states(audit))
        console.print(_learners(audit))
    for say in SAID if audit.counts.has_outcomes else SAID_OF_ACTIONS:
        for sentence in say(audit):
            print_sentence(console, sentence)


def _how_to_serve(written: Path | None) -> str:
    if written is None:
        return "audit again with --out audit, then statepool serve --map audit/AUDIT.json"
    return f"statepool serve --map {shlex.quote(str(written))}"


def print_sentence(console: Console, sentence: str, title: str = "") -> None:
    """A sentence over as many lines as it takes, after its title in bold."""
    text = Text(_lines(title + sentence, console.width))
    text.stylize("bold", 0, len(title))
    console.print(text)


def _lines(sentence: str, width: int) -> str:
    """Broken into lines here: rich would also break at the no-break spaces within a number."""
    return textwrap.fill(sentence, width, break_on_hyphens=False)


SAID = (
    sentences.about_rows, sentences.about_map, sentences.about_pooling, sentences.about_delays,
    sentences.about_drift, sentences.about_states, sentences.about_propensities,
)  # fmt: skip
SAID_OF_ACTIONS = (sentences.about_rows, sentences.about_map)
"""What can be said where no outcome is old enough."""


def _states(audit: Audit) -> Table:
    mean = f"mean {audit.unit.name}"
    headings = ("state", "rows", mean, "direct effects", "±", "p", "drift", "tells")
    caption = (
        f"rows: immature ones included. {sentences.ERRORS} p: corrected for the number of states. drift: how far the "
        f"mean moves over time (standard deviation). {sentences.TELLS}"
    )
    table = make_table("States: does anything but the state matter?", headings, caption=caption)
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


def _learners(audit: Audit) -> Table:
    unit = audit.unit
    counted_in = f", in {unit.name}" if unit.of_unit else ""
    title = f"Regret to expect in {audit.advice.horizon} decisions like the log's{counted_in}"
    headings = ("learner", "kind", "regret", "±", "behind", "±", "a decision")
    table = make_table(title, headings, n_names=2, caption=sentences.about_regret_itself(audit))
    for one in audit.advice.expected:
        numbers = (unit.amount(value) for value in (one.regret, one.error, one.behind, one.behind_error))
        table.add_row(one.learner, one.kind, *map(sentences.amount, numbers), f"{unit.amount(one.per_decision):.2g}")
    return table
