"""Opening the database that a command was given; failures are one sentence."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from statepool.live.database import Database

UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
LONGEST = 1e10


@contextmanager
def answering() -> Iterator[None]:
    """Turn a database that does not answer into bad input: one sentence, exit code 2."""
    from statepool.live.errors import StoreUnavailable

    try:
        yield
    except StoreUnavailable as error:
        sentence = str(error)
        raise ValueError(sentence if sentence.startswith("store: ") else f"store: {sentence}") from None


@contextmanager
def opened(url: str, read_only: bool = True) -> "Iterator[Database]":
    """The database, closed at the end."""
    from statepool.live.database import Database

    with answering(), Database(url, read_only=read_only) as database:
        yield database


def seconds_of(text: str, what: str) -> float:
    """The seconds of a time span such as 90d, 12h, 30m or 10s; `what` names it in the error."""
    found = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,9})?)\s*([smhdw]?)\s*", text)
    seconds = float(found[1]) * UNITS[found[2] or "s"] if found else LONGEST + 1
    if seconds > LONGEST:
        raise ValueError(f"{what}: is {text[:40]!r}, expected a time span such as 90d, 12h, 30m or 10s")
    return seconds
