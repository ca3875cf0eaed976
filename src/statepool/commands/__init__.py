"""The commands, and what several of them share: options, progress, tables, and opening a database.

Imports of the library stand inside functions: `statepool --help` needs none of it.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

DEFAULT_STORE = "sqlite:///statepool.db"
JsonOption = Annotated[bool, Option("--json", help="Print the result as JSON and nothing else.")]
StoreArgument = Annotated[str, Argument(help="The database: sqlite:///pool.db or postgresql://…")]
PoolArgument = Annotated[str, Argument(help="The name of the pool.")]
UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
LONGEST = 1e10


def working(what: str, console: Any = None) -> Any:
    """For a `with`: shows what is done for as long as it takes, if standard error is a terminal."""
    from rich.console import Console

    console = console or Console(stderr=True)
    say_compiling(console)
    return console.status(what) if console.is_terminal else nullcontext()


def say_compiling(console: Any) -> None:
    """Say that the first run compiles, if nothing is compiled yet."""
    from statepool.compiling import cache_folder

    if not any(Path(cache_folder()).rglob("*.nbi")):  # Numba makes empty folders before it compiles
        console.print("The first run on this machine compiles the learners: a minute or two.", highlight=False)


def make_table(title: str, headings: Sequence[str], **more: Any) -> Any:
    """A table without rows: names in the first column, numbers to the right; nothing is cut off."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", caption_justify="left", **more)
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if i else "left", overflow="fold")
    return table


def make_console() -> Any:
    """For results, at the terminal's width."""
    from rich.console import Console

    from statepool.frames import terminal_width

    return Console(width=terminal_width())


def opened(url: str, read_only: bool = True) -> Any:
    """The database, for a `with` that closes it."""
    from statepool.live.database import Database

    return Database(url, read_only=read_only)


def say(as_json: bool, record: dict[str, Any], *lines: str) -> None:
    """Print a result: as JSON, or the lines."""
    print(json.dumps(record) if as_json else "\n".join(lines))


@contextmanager
def opened_pool(url: str, name: str, read_only: bool = True) -> Iterator[Any]:
    """A pool of a database, closed at the end."""
    from statepool.live.pool import Pool

    with opened(url, read_only) as database:
        if name not in database.pool_names():
            known = ", ".join(database.pool_names()) or "none"
            raise ValueError(f"pool: {name!r} is not in this database (pools: {known})")
        with Pool.open(database, name) as pool:
            yield pool


def seconds_of(text: str, what: str) -> float:
    """The seconds of a time span such as 90d, 12h, 30m or 10s; `what` names it in the error."""
    found = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,9})?)\s*([smhdw]?)\s*", text)
    seconds = float(found[1]) * UNITS[found[2] or "s"] if found else LONGEST + 1
    if seconds > LONGEST:
        raise ValueError(f"{what}: is {text[:40]!r}, expected a time span such as 90d, 12h, 30m or 10s")
    return seconds


def count_of(number: int, noun: str) -> str:
    """A number and a noun in the right form."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
