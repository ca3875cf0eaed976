"""`statepool audit`: print the answer, write the report."""

import json
import shlex
import textwrap
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from statepool.audit import Audit, audit_log
from statepool.audit.document import Section, sections_of, summary_of
from statepool.commands.progress import working
from statepool.commands.tables import make_table
from statepool.frames import terminal_width

COLOURS = {"pool": "green", "pool with corrections": "yellow", "do not pool": "red", "cannot tell": "magenta"}


def run(log: str, out: Path | None, as_json: bool, details: bool, **settings: Any) -> None:
    """Audit the log with the settings of `audit_log`; write the report if asked, and print."""
    with working(f"auditing {log}"):
        found = audit_log(log, **settings)
    report = found.write(out) if out else None
    if as_json:
        print(json.dumps(found.document, indent=1))
        return
    print_audit(found, details=details, report=report)


def print_audit(
    audit: Audit, console: Console | None = None, details: bool = False, report: Path | None = None
) -> None:
    """Print the verdict, its reasons and what to do; with `details` everything behind it."""
    console, summary = console or Console(width=terminal_width()), summary_of(audit)
    title = Text(summary.verdict, style=f"bold {COLOURS[summary.verdict]}")
    console.print(title.append(f" (learner {summary.learner})" if summary.learner else "", style="default"))
    for line in (*summary.reading, *audit.log.notes[:1]):
        _print(console, line)
    for line in summary.reasons:
        _print(console, line, "• ")
    for line in summary.todo:
        _print(console, _with_file(line, report), "→ ")
    for section in sections_of(audit) if details else ():
        _print_section(console, section)
    if report is not None:
        console.print(Text(f"Report: {report}"))
    elif not details:
        console.print(Text("--details shows what it rests on; --out FOLDER writes the report and AUDIT.json."))


def _with_file(line: str, report: Path | None) -> str:
    """The command with the file that was written."""
    written = "audit/AUDIT.json" if report is None else shlex.quote(str(report.parent / "AUDIT.json"))
    return line.replace("--map AUDIT.json", f"--map {written}")


def _print(console: Console, sentence: str, mark: str = "") -> None:
    # Broken into lines here: rich would also break at the no-break spaces within a number.
    lines = textwrap.fill(mark + sentence, console.width, break_on_hyphens=False, subsequent_indent=" " * len(mark))
    console.print(Text(lines))


def _print_section(console: Console, section: Section) -> None:
    console.print(Text(f"\n{section.title}", style="bold"))
    for line in section.lines:
        _print(console, line)
    for table in section.tables:
        made = make_table(escape(table.title), ("", *table.headings), caption=escape(table.note))
        for row in table.rows:
            made.add_row(*map(escape, row))
        console.print(made)
