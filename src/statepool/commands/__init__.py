"""The commands, and what several of them share: options, progress, tables, and opening a database.

Imports of the library stand inside functions: `statepool --help` needs none of it.
"""

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

from typer import Option

DEFAULT_STORE = "sqlite:///statepool.db"
JsonOption = Annotated[bool, Option("--json", help="Print the result as JSON and nothing else.")]


def working(what: str, console: Any = None) -> Any:
    """For a `with`: shows what is done for as long as it takes, if standard error is a terminal."""
    from rich.console import Console

    console = console or Console(stderr=True)
    say_compiling()
    return console.status(what) if console.is_terminal else nullcontext()


def say_compiling() -> None:
    """Say on standard error that the first run compiles, if nothing is compiled yet."""
    from statepool.compiling import cache_folder

    if not any(Path(cache_folder()).rglob("*.nbi")):  # Numba makes empty folders before it compiles
        print("The first run on this machine compiles the learners: a minute or two.", file=sys.stderr)


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


def opened(url: str, read_only: bool = True, create: bool = False) -> Any:
    """The database, for a `with` that closes it; one that is not there is refused unless `create`."""
    from statepool.live.database import Database

    if not (read_only or create):
        Database(url, read_only=True).close()
    return Database(url, read_only=read_only)
