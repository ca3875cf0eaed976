"""What a command shows while it works."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from statepool.compiling import cache_folder


@contextmanager
def working(what: str, console: Console | None = None) -> Iterator[None]:
    """Show what is done for as long as it takes, where standard error is a terminal."""
    console = console or Console(stderr=True)
    say_compiling(console)
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


def say_compiling(console: Console) -> None:
    """Say that the first run compiles, if nothing is compiled yet."""
    if not os.listdir(cache_folder()):
        console.print("The first run compiles its kernels: about half a minute.", highlight=False)
