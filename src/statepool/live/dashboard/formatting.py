"""Numbers as text; an unknown value is a dash."""

from math import isfinite
from typing import Any

DASH = "–"
UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def number(value: float | None) -> str:
    """A count: 1 234 567 with thin spaces."""
    return DASH if value is None or not isfinite(value) else f"{value:,.0f}".replace(",", "\u202f")


def outcome(value: float | None, is_rate: bool = False, signed: bool = False) -> str:
    """A reward or a loss in the user's unit, or in percent if it is a rate; `signed`: a difference of two."""
    if value is None or not isfinite(value):
        return DASH
    if is_rate:
        text = f"{100 * value:.2f} points" if signed else share(value)
    else:
        text = number(value) if abs(value) >= 1000 else f"{value:.3f}" if 0 < abs(value) < 1 else f"{value:.2f}"
    return ("+" if signed and value >= 0 else "") + text.replace("-", "−")


def share(value: float | None) -> str:
    """A part of one, in percent."""
    if value is None or not isfinite(value):
        return DASH
    if 0 < value < 0.001:
        return "<0.1 %"
    return f"{100 * value:.1f} %" if value < 0.9995 else f"{100 * value:.0f} %"


def span(seconds: float | None) -> str:
    """A length of time: 350 ms, 4.1 s, 1.2 min, 14 d."""
    if seconds is None or not isfinite(seconds):
        return DASH
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    size, unit = next(each for each in UNITS if seconds >= each[0])
    return f"{seconds / size:.2g} {unit}" if seconds / size < 100 else f"{seconds / size:.0f} {unit}"


def label(value: Any) -> str:
    """An action's or a state's label as text."""
    return " / ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


FILTERS = {"number": number, "outcome": outcome, "share": share, "span": span, "label": label}
