"""Opening the store a command was told of: one that does not answer is said in one sentence."""

import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from threading import current_thread, main_thread
from time import time_ns
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from statepool.live.stores.store import Store


@contextmanager
def answering() -> Iterator[None]:
    """For as long as the store is needed."""
    from statepool.live.errors import AnchorsUnavailable, StoreUnavailable

    try:
        yield
    except AnchorsUnavailable as error:  # it says itself what it is
        raise ValueError(str(error)) from None
    except StoreUnavailable as error:
        raise ValueError(f"store: {error}") from None


@contextmanager
def tidying_up() -> Iterator[None]:
    """SIGTERM ends what is done here as Ctrl-C does: nothing half made is left behind."""
    if current_thread() is not main_thread():  # which alone may say so
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def opened(url: str, create: bool = False, to_read: bool = True) -> "Iterator[Store]":
    """The store, closed at the end; as it is, unless whoever asks says that it writes."""
    from statepool.live.stores import open_store

    with answering(), closing(open_store(url, create, to_read and not create)) as store:
        yield store


@contextmanager
def noted(url: str, did: str, create: bool = False) -> "Iterator[Store]":
    """The same, and what a command did is noted there, beside what administrators did over HTTP; also if it failed,
    since a part of it may have been done."""
    from statepool.live.errors import StoreUnavailable
    from statepool.live.stores.store import Call

    def note(status: int) -> None:
        store.add_call(Call(time_ns() // 1000, "(command)", "", did, status))

    with opened(url, create, to_read=False) as store:
        try:
            yield store
        except (ValueError, StoreUnavailable) as error:
            with suppress(StoreUnavailable):
                note(422 if isinstance(error, ValueError) else 503)
            raise
        note(200)
