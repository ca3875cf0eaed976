"""A log of any kind as one relation `log` of flat rows.

action, state, grouping, ticket     VARCHAR   any column, as text
outcome                             DOUBLE    numbers, or true and false, in the log's own unit
decided, observed, resolved         DOUBLE    numbers as they are, dates and times as seconds since 1970
propensity                          DOUBLE
held                                DOUBLE    1 for rows of a holdout
context                             VARCHAR   who is asking: several columns joined by `JOINT`, missing if any is blank
"""

from dataclasses import dataclass

from statepool.audit.columns import Columns
from statepool.audit.engines import Engine

JOINT = "\x1f"
"""Between the values of several context columns: a character that no value is likely to have."""


def joint_label(values: list[str]) -> str:
    """SQL for one label of several expressions, missing where one of them is missing or blank."""
    parts = [f"nullif(trim({value}), '')" for value in values]
    return f" || '{JOINT}' || ".join(parts) if parts else "CAST(NULL AS VARCHAR)"


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
