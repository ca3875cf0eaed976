"""`statepool audit` and `statepool whatif`: should you pool, and what would another policy have been worth?"""

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from statepool.commands import JsonOption, make_console, make_table, working
from statepool.frames import counted

COLOURS = {"pool": "green", "pool with corrections": "yellow", "do not pool": "red", "cannot tell": "magenta"}
LOG_HELP = "Files (CSV, Parquet, JSON lines), a database with --table, or a pool: sqlite:///pool.db#home."
POLICY_HELP = "An action, a pool (sqlite:///pool.db#home), best, uniform or logged; by default these three. Repeatable."
HORIZON_HELP = "Decisions to simulate; by default two windows of them (all rows without a window), 500 to 10 000."
Log = Annotated[str, Argument(help=LOG_HELP)]
Policy = Annotated[list[str] | None, Option(help=POLICY_HELP)]
Table = Annotated[str | None, Option(help='In a database: a table, or a query: "(SELECT ...)".')]
Action = Annotated[str | None, Option(help="Column of the action; found by name if not given.")]
State = Annotated[str | None, Option(help="Column of the state, which is seen before the outcome.")]
Outcome = Annotated[str | None, Option(help="Column of the outcome.")]
Decided = Annotated[str | None, Option(help="Column of the decision time.")]
Resolved = Annotated[str | None, Option(help="Column of the time the outcome came.")]
Propensity = Annotated[str | None, Option(help="Column of the probability that the action had.")]
Ticket = Annotated[str | None, Option(help="Column that identifies a decision; repeated ones are dropped.")]
Holdout = Annotated[str | None, Option(help="Column that marks rows of a holdout.")]
Context = Annotated[list[str] | None, Option(help="Column that describes the visitor; may be repeated.")]
Reward = Annotated[bool | None, Option("--reward/--loss", help="Whether larger outcomes are better or worse.")]
Window = Annotated[str | None, Option(help="Time after which an outcome is final: 30d, 12h; 0: at once.")]
Missing = Annotated[str | None, Option(help="What a blank outcome means: a number such as 0, or drop.")]
Level = Annotated[float, Option(help="Confidence level of intervals.")]


def audit(
    log: Log, table: Table = None, action: Action = None, state: State = None, outcome: Outcome = None,
    decided: Decided = None, resolved: Resolved = None, propensity: Propensity = None, ticket: Ticket = None,
    holdout: Holdout = None, context: Context = None, reward: Reward = None, window: Window = None,
    missing: Missing = None,
    delay: Annotated[int | None, Option(help="Delay of outcomes in decisions, for logs without times.")] = None,
    horizon: Annotated[int | None, Option(help=HORIZON_HELP)] = None,
    level: Level = 0.95,
    seed: Annotated[int, Option(help="Random seed.")] = 0,
    out: Annotated[Path | None, Option(help="Folder or .html file for the report and AUDIT.json.")] = None,
    details: Annotated[bool, Option("--details", help="Print everything the answer rests on.")] = False,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Find out from your log whether a pool would help, and what to start it with."""
    settings = dict(locals())
    for name in ("log", "out", "details", "as_json"):
        del settings[name]
    from statepool.audit import audit_log

    with working(f"auditing {log}"):
        found = audit_log(log, **settings)
    report = found.write(out) if out else None
    if as_json:
        print(json.dumps(found.document, indent=1))
    else:
        print_audit(found, details=details, report=report)


def print_audit(audit: Any, console: Any = None, details: bool = False, report: Path | None = None) -> None:
    """Print the verdict, its reasons and what to do; with `details` everything behind it."""
    from rich.markup import escape
    from rich.text import Text

    from statepool.audit.document import sections_of, summary_of

    console, advice = console or make_console(), audit.advice
    # The command that works: nothing was written without a report.
    first = "" if report else "audit again with --out audit, then "
    summary = summary_of(audit, first, (report.parent if report else Path("audit")) / "AUDIT.json")
    title = Text(advice.verdict, style=f"bold {COLOURS[advice.verdict]}")
    console.print(title.append(f" (learner {advice.learner})" if advice.learner else "", style="default"))
    for line in summary.reading:
        _print(console, line)
    for line in summary.reasons:
        _print(console, line, "• ")
    for line in summary.todo:
        _print(console, line, "→ ")
    for section in sections_of(audit) if details else ():
        console.print(Text(f"\n{section.title}", style="bold"))
        for line in section.lines:
            _print(console, line)
        for table in section.tables:
            made = make_table(escape(table.title), ("", *table.headings), caption=escape(table.note))
            for row in table.rows:
                made.add_row(*map(escape, row))
            console.print(made)
    if report is not None:
        console.print(Text(f"Report: {report}"))
    elif not details:
        console.print(Text("--details shows what it rests on; --out FOLDER writes the report and AUDIT.json."))


def _print(console: Any, sentence: str, mark: str = "") -> None:
    from rich.text import Text

    # Broken into lines here: rich would also break at the no-break spaces within a number.
    text = mark + sentence.replace(" %", "\N{NO-BREAK SPACE}%")
    lines = textwrap.fill(text, console.width, break_on_hyphens=False, subsequent_indent=" " * len(mark))
    console.print(Text(lines))


def whatif(
    log: Log, policy: Policy = None, table: Table = None, action: Action = None, state: State = None,
    outcome: Outcome = None, decided: Decided = None, resolved: Resolved = None, propensity: Propensity = None,
    ticket: Ticket = None, holdout: Holdout = None, context: Context = None, reward: Reward = None,
    window: Window = None, missing: Missing = None, level: Level = 0.95, as_json: JsonOption = False,
) -> None:  # fmt: skip
    """What would the log have been worth under another policy?"""
    given = dict(locals())
    from statepool.audit import what_if

    names = ("action", "state", "outcome", "decided", "resolved", "propensity", "ticket", "holdout", "context")
    settings = {name: given[name] for name in ("table", "reward", "window", "missing", "level")}
    with working(f"evaluating policies on {log}"):
        columns = {name: given[name] for name in names}
        found = what_if(log, policy or ["best", "uniform", "logged"], columns=columns, **settings)
    if as_json:
        plain = [{name: getattr(value, "__dict__", value) for name, value in vars(one).items()} for one in found]
        print(json.dumps(plain, indent=1))
    else:
        print_what_if(found)


def print_what_if(found: Sequence[Any], console: Any = None) -> None:
    """Print a table of estimates, and what to be cautious about."""
    from rich.markup import escape

    console = console or make_console()
    logged = f"logged: {found[0].logged:.4g} over {counted(found[0].outcomes)} final outcomes"
    title = f"Worth per decision, in {found[0].unit}; {logged}"
    headings = ("policy", "through the states", "doubly robust", "inverse propensity", "bias at most")
    table = make_table(escape(title), headings)
    for one in found:
        shown = [f"{e.value:.4g} ({e.lower:.4g} to {e.upper:.4g})" for e in (one.pooled, one.robust, one.plain)]
        table.add_row(escape(one.policy), *shown, f"{one.bias:.2g}" + (" !" if one.biased else ""))
    console.print(table)
    if not found[0].exact:
        _print(console, "No propensities (--propensity): the actions' shares stand in, right if choices were blind.")
    if any(one.biased for one in found):
        _print(console, "!: direct effects may bias the value through the states; read doubly robust instead.")
