"""`statepool keys`: who may decide, report, or all; until when, and for which pools."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from statepool.commands.store import noted, opened


def add_key(url: str, name: str, role: str, expires: str | None = None, pools: Sequence[str] = ()) -> str:
    from statepool.live.service import keys

    lasts = _lasts(expires)
    with noted(url, f"keys add {name}", create=True) as store:
        made = keys.add_key(store, name, role, lasts, pools)
        for pool in pools:
            if not store.has(pool):
                said = f"there is no pool {pool!r} in this store yet: the key is for it once it is made"
                print(f"statepool: {said}", file=sys.stderr)
        return made


def renew_key(url: str, name: str, expires: str | None = None, overlap: str = "1d") -> str:
    from statepool.live.service import keys
    from statepool.live.spans import seconds_of

    lasts, longer = _lasts(expires), seconds_of(overlap, "overlap")
    with noted(url, f"keys renew {name}") as store:
        kept = {key.name: key for key in store.keys()}  # noqa: SIM118
        if expires is None and name in kept and kept[name].until is not None:
            raise ValueError(f"expires: is not given, and {name!r} has an end: say 90d for the new one, or never")
        return keys.renew_key(store, name, lasts, longer)


def _lasts(expires: str | None) -> float | None:
    from statepool.live.spans import seconds_of

    if expires in (None, "never"):
        return None
    lasts = seconds_of(expires, "expires")
    if lasts == 0:
        raise ValueError(f"expires: is {expires!r}, expected a span of time such as 90d, or never")
    return lasts


def list_keys(url: str) -> list[str]:
    """A line of each: name, role, until when, for which pools."""
    with opened(url) as store:
        kept = store.keys()
    return [f"{key.name}\t{key.role}\t{_time(key.until)}\t{' '.join(key.pools) or 'all pools'}" for key in kept]


def _time(until: int | None) -> str:
    return "for ever" if until is None else datetime.fromtimestamp(until, UTC).isoformat()


def drop_key(url: str, name: str) -> None:
    from statepool.live.service import keys

    with noted(url, f"keys drop {name}") as store:
        keys.drop_key(store, name)


def list_calls(url: str, limit: int) -> list[str]:
    """A line of each call of an administrator, the latest last."""
    if limit < 1:
        raise ValueError(f"limit: is {limit}, expected at least 1")
    with opened(url) as store:
        kept = store.calls(limit)
    stamps = [datetime.fromtimestamp(call.at / 1e6, UTC).isoformat(timespec="seconds") for call in kept]
    return [
        "\t".join((stamp, call.who or "-", call.address, str(call.status), call.did, call.said)).rstrip()
        for stamp, call in zip(stamps, kept, strict=True)
    ]
