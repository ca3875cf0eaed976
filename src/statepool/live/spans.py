"""Spans of time as people write them: 90d, 12h, 30m, 10s, or plain seconds."""

import re

UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
LONGEST = 1e10


def seconds_of(text: str, what: str) -> float:
    """The seconds of a span; `what` names it where it is refused."""
    found = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,9})?)\s*([smhdw]?)\s*", text)
    seconds = float(found[1]) * UNITS[found[2] or "s"] if found else LONGEST + 1
    if seconds > LONGEST:
        raise ValueError(f"{what}: is {text[:40]!r}, expected a span of time such as 90d, 12h, 30m or 10s")
    return seconds
