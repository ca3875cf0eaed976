"""Which rows are old enough to have an outcome.

An outcome is the state of affairs a window after the decision. A row that is younger than the window has none yet,
whatever the log says of it: a conversion may be in and everything else still open. Such rows are *immature*: they
enter the map, and no mean, drift, effect or fit. Whether a row is in depends on its decision time alone, so what is
left is as good as a log that ended a window earlier; no model of delays is needed, and none can be wrong.
"""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from statepool.checks import Floats

SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_WORDS = {"sec": "s", "second": "s", "minute": "min", "hour": "h", "day": "d", "week": "w"}
NONE, GIVEN, FOUND, SETTLING = "none", "given", "found", "settling"


@dataclass(frozen=True)
class Maturity:
    """`window` is None where every recorded outcome counts."""

    window: float | None
    how: str
    """How the window is known: `given`, `found` in the log, `settling` (no window, but early outcomes mislead)."""
    latest: float = float("nan")
    """The end of the log."""
    default: float | None = None
    """The loss of whatever had not happened within the window, where the log dates only what happened."""
    closing: float | None = None
    """The loss that is known at the end of the window only: all others may come earlier."""
    why: str = ""
    """What in the log shows the window, as the end of a sentence."""

    @property
    def cut(self) -> float:
        """Decisions up to this moment are mature."""
        return float("inf") if self.window is None else self.latest - self.window

    def loss_expression(self, loss: str) -> str:
        """SQL for the loss of a row, missing where it is immature."""
        if self.window is None:
            return loss
        if self.default is not None:
            # What happened later than the window had not happened by its end.
            loss = f"CASE WHEN resolved - decided > {self.window!r} THEN {self.default!r} ELSE {loss} END"
        return f"CASE WHEN decided <= {self.cut!r} THEN {loss} END"

    def losses(self, loss: Floats, decided: Floats, resolved: Floats) -> Floats:
        """The same of arrays."""
        if self.window is None:
            return loss
        if self.default is not None:
            loss = np.where(resolved - decided > self.window, self.default, loss)
        return np.where(decided <= self.cut, loss, np.nan)


def read_window(given: Any, dated: bool) -> float | None:
    """A length of time in seconds (without a unit, in the numbers of a log not `dated`); 0: there is no window."""
    told = f"window: is {given!r}, expected a length of time such as 30d, 12h, 90min or 0 for none"
    if given is None:
        return None
    if isinstance(given, timedelta):
        return _not_negative(given.total_seconds(), told)
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise ValueError(told)
    if isinstance(given, str) and given.strip().lower() in ("none", "no"):
        return 0.0
    found = re.fullmatch(r"\s*([-+]?[0-9]*\.?[0-9]+(?:e[0-9]+)?)\s*([a-z]*)\s*", str(given).lower())
    if found is None:
        raise ValueError(told)
    number, unit = float(found[1]), found[2]
    unit = _WORDS.get(unit.removesuffix("s"), unit) if len(unit) > 1 and unit != "min" else unit
    if unit and unit not in SECONDS:
        raise ValueError(told)
    if dated and not unit and number > 0:
        raise ValueError(f"window: is {given!r}, expected a unit, such as 30d, 12h or 30s, since times are dates")
    return _not_negative(number * SECONDS.get(unit, 1.0), told)


def _not_negative(seconds: float, told: str) -> float:
    if not 0 <= seconds < 1e15:
        raise ValueError(told)
    return seconds


def read_missing(given: Any) -> float | str | None:
    """What a blank outcome means: a number, "drop", or None if nothing was said."""
    if given is None:
        return None
    if isinstance(given, str) and given.strip().lower() == "drop":
        return "drop"
    try:
        number = float(given)
    except (TypeError, ValueError):
        number = float("nan")
    if isinstance(given, bool) or not np.isfinite(number):
        raise ValueError(f"missing: is {given!r}, expected a number that a blank outcome means, or drop")
    return number
