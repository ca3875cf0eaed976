"""`statepool keys`: who may decide, report, or all; until when, and for which pools."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from time import time_ns
from typing import TYPE_CHECKING, TypeVar

from statepool.commands.store import needing_live, open_store

if TYPE_CHECKING:
    from statepool.live.stores.store import Store

T = TypeVar("T")


def add_key(url: str, name: str, role: str, expires: str | None = None, pools: Sequence[str] = ()) -> str:
    with needing_live():
        from statepool.live.service import keys
        from statepool.live.spans import seconds_of

        lasts = None if expires is None else seconds_of(expires, "expires")
        return _noted(url, True, f"keys add {name}", lambda store: keys.add_key(store, name, role, lasts, pools))


def renew_key(url: str, name: str, expires: str | None = None, overlap: str = "1d") -> str:
    with needing_live():
        from statepool.live.service import keys
        from statepool.live.spans import seconds_of

        lasts = None if expires is None else seconds_of(expires, "expires")
        longer = seconds_of(overlap, "overlap")
        return _noted(url, False, f"keys renew {name}", lambda store: keys.renew_key(store, name, lasts, longer))


def list_keys(url: str) -> list[str]:
    """A line of each: name, role, until when, for which pools."""
    with needing_live():
        kept = _with(url, False, lambda store: store.keys())
    return [f"{key.name}\t{key.role}\t{_time(key.until)}\t{' '.join(key.pools) or 'all pools'}" for key in kept]


def _time(until: int | None) -> str:
    return "for ever" if until is None else datetime.fromtimestamp(until, UTC).isoformat()


def drop_key(url: str, name: str) -> None:
    def drop(store: "Store") -> None:
        if not store.drop_key(name):
            raise ValueError(f"key: there is none named {name!r}")

    with needing_live():
        _noted(url, False, f"keys drop {name}", drop)


def list_calls(url: str, limit: int) -> list[str]:
    """A line of each call of an administrator, the latest last."""
    if limit < 1:
        raise ValueError(f"limit: is {limit}, expected at least 1")
    with needing_live():
        kept = _with(url, False, lambda store: store.calls(limit))
    stamps = [datetime.fromtimestamp(call.at / 1e6, UTC).isoformat(timespec="seconds") for call in kept]
    return [
        "\t".join((stamp, call.who or "-", call.address, str(call.status), call.did, call.said)).rstrip()
        for stamp, call in zip(stamps, kept, strict=True)
    ]


def _with(url: str, create: bool, work: "Callable[[Store], T]") -> T:
    store = open_store(url, create)
    try:
        return work(store)
    finally:
        store.close()


def _noted(url: str, create: bool, did: str, work: "Callable[[Store], T]") -> T:
    """What a command did to the keys is noted beside what administrators did over HTTP."""
    from statepool.live.stores.store import Call

    def do(store: "Store") -> T:
        answer = work(store)
        store.add_call(Call(time_ns() // 1000, "(command)", "", did, 200))
        return answer

    return _with(url, create, do)
