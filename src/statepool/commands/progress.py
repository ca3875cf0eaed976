"""What a command says while it works: a line, with "compiling, once" as long as that is what takes the time."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from statepool.compiling import told_of_compiling

COMPILING = "compiling, once"


@contextmanager
def working(what: str, console: Console | None = None) -> Iterator[None]:
    """Show what is done for as long as it takes; nothing where standard error is no terminal."""
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with (
        console.status(what) as status,
        told_of_compiling(lambda busy: status.update(f"{what} ({COMPILING})" if busy else what)),
    ):
        yield
