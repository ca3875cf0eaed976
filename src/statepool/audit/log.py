"""A log of any kind as one relation `log` of flat rows.

action, state, grouping, ticket     VARCHAR   any column, as text
outcome                             DOUBLE    numbers, or true and false, in the log's own unit
decided, observed, resolved         DOUBLE    numbers as they are, dates and times as seconds since 1970
propensity                          DOUBLE
held                                DOUBLE    1 for rows of a holdout
context                             VARCHAR   who is asking: several columns joined by `JOINT`, missing if any is blank
"""

from collections.abc import Callable
from dataclasses import dataclass

from statepool.audit.columns import Columns
from statepool.audit.engines import Engine

TIMES = ("decided", "observed", "resolved")
JOINT = "\x1f"
"""Between the values of several context columns: a character that no value is likely to have."""

Read = Callable[[str, str], str]
"""SQL that reads a column (the second) as its part (the first)."""


def flat_rows(columns: Columns, label: Read, number: Read, time: Read, outcome: str, unreadable: str) -> str:
    """SQL for the columns of `log`; a part that the log does not have is missing in every row."""

    def read(part: str, reader: Read, kind: str) -> str:
        column = getattr(columns, part)
        return reader(part, column) if column else f"CAST(NULL AS {kind})"

    context = [f"nullif(trim({label('context', column)}), '')" for column in columns.context]
    parts = {
        "action": read("action", label, "VARCHAR"),
        "state": read("state", label, "VARCHAR"),
        "outcome": outcome,
        "unreadable": unreadable,
        "propensity": read("propensity", number, "DOUBLE"),
        "held": read("holdout", number, "DOUBLE"),
        "grouping": read("group", label, "VARCHAR"),
        "ticket": read("ticket", label, "VARCHAR"),
        "context": f" || '{JOINT}' || ".join(context) or "CAST(NULL AS VARCHAR)",
        **{part: read(part, time, "DOUBLE") for part in TIMES},
    }
    return ", ".join(f"{expression} AS {part}" for part, expression in parts.items())


def quoted(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def first_line(error: Exception) -> str:
    """What an engine says went wrong, in one line."""
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__


@dataclass(frozen=True)
class Log:
    """An open log: an engine that knows the flat rows by the name `log`."""

    engine: Engine
    columns: Columns
    name: str
    seconds: bool
    """Whether times are seconds, since they were given as dates; otherwise they are numbers of the caller's."""
    unread: int
    """Lines of the file that could not be read at all."""
    textual: bool
    """Whether outcomes or times are text, of which some may be no number."""
