"""Numbers as text; an unknown value is a dash."""

from itertools import pairwise
from math import isfinite
from typing import Any

DASH = "–"
UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def number(value: float | None) -> str:
    """A count, or a rounded quantity: 1 234 567 with thin spaces, 12.3 below a hundred if it has a fraction."""
    if value is None or not isfinite(value):
        return DASH
    if value != int(value) and abs(value) < 100:
        return f"{value:.1f}"
    return f"{value:,.0f}".replace(",", "\u202f")


def amount(value: float | None) -> str:
    """A reward or a loss in the user's unit, with three significant digits or two decimals."""
    if value is None or not isfinite(value):
        return DASH
    if abs(value) >= 1000:
        return number(value).replace("-", "−")
    return (f"{value:.2f}" if abs(value) >= 1 else f"{value:.3f}").replace("-", "−")


def signed(value: float | None) -> str:
    """A difference of amounts, with its sign."""
    text = amount(value)
    return f"+{text}" if value is not None and isfinite(value) and value >= 0 else text


def share(value: float | None) -> str:
    """A part of one, in percent."""
    if value is None or not isfinite(value):
        return DASH
    if 0 < value < 0.001:
        return "<0.1 %"
    return f"{100 * value:.1f} %" if value < 0.9995 else f"{100 * value:.0f} %"


def points(value: float | None) -> str:
    """A difference of parts of one, in percentage points."""
    if value is None or not isfinite(value):
        return DASH
    return f"{100 * value:+.2f} points".replace("-", "−")


def span(seconds: float | None) -> str:
    """A length of time: 350 ms, 4.1 s, 16 s, 1 min 12 s, 3 h 5 min."""
    if seconds is None or not isfinite(seconds):
        return DASH
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.2g} s"
    whole = round(seconds)
    for (size, unit), (part, smaller) in pairwise(UNITS):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size} {unit} {rest} {smaller}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"


def pace_unit(per_second: float) -> tuple[int, str]:
    """The unit of time in which a pace is at least one: its seconds, and its name."""
    units = ((1, "second"), (60, "minute"), (3_600, "hour"), (86_400, "day"))
    return next((unit for unit in units if per_second * unit[0] >= 1), units[-1 if per_second else 0])


def pace(per_second: float) -> str:
    """Decisions over time: 12.3 per minute."""
    seconds, unit = pace_unit(per_second)
    return f"{number(per_second * seconds)} per {unit}"


def counted(count: int, noun: str) -> str:
    """A number of things that are: 1 outcome is, 2 outcomes are."""
    return f"{number(count)} {noun} is" if count == 1 else f"{number(count)} {noun}s are"


def label(value: Any) -> str:
    """An action's or a state's label as text."""
    return " / ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


FILTERS = {
    "number": number,
    "amount": amount,
    "signed": signed,
    "share": share,
    "points": points,
    "span": span,
    "label": label,
}
