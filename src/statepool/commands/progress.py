"""What a command says while it works: a line, with "compiling, once" as long as that is what takes the time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from statepool.compiling import told_of_compiling

COMPILING = "compiling, once"


@contextmanager
def working(what: str, console: Console | None = None) -> Iterator[None]:
    """Show what is done for as long as it takes; where standard error is no terminal, only that it compiles."""
    console = console or Console(stderr=True)
    if not console.is_terminal:
        with told_of_compiling(said_once(console)):
            yield
        return
    with (
        console.status(what) as status,
        told_of_compiling(lambda busy: status.update(f"{what} ({COMPILING})" if busy else what)),
    ):
        yield


def said_once(console: Console) -> Callable[[bool], None]:
    """Say one line when the first kernel begins to be compiled, for those who see no progress."""
    said = False

    def tell(busy: bool) -> None:
        nonlocal said
        if busy and not said:
            console.print(f"{COMPILING}: about half a minute", highlight=False)
        said = said or busy

    return tell
