"""`statepool keys`: create, renew, list and drop API keys."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from statepool.commands.store import opened, seconds_of


def add_key(url: str, name: str, role: str, expires: str | None = None, pools: Sequence[str] = ()) -> str:
    """Create a key and return it."""
    from statepool.live.service import keys

    lasts = _lasts(expires)
    with opened(url, read_only=False) as database:
        made = keys.add_key(database, name, role, lasts, pools)
        known = database.pool_names()
    for pool in pools:
        if pool not in known:
            print(
                f"statepool: there is no pool {pool!r} in this store yet, the key is valid for it later",
                file=sys.stderr,
            )
    return made


def renew_key(url: str, name: str, expires: str | None = None, overlap: str = "1d") -> str:
    """Create a successor of a key and return it."""
    from statepool.live.service import keys

    lasts, longer = _lasts(expires), seconds_of(overlap, "overlap")
    with opened(url, read_only=False) as database:
        kept = {key.name: key for key in keys.list_keys(database)}
        if expires is None and name in kept and kept[name].expires_at is not None:
            raise ValueError(f"expires: is not given, and {name!r} has an end, expected a span such as 90d, or never")
        return keys.renew_key(database, name, lasts, longer)


def _lasts(expires: str | None) -> float | None:
    if expires is None or expires == "never":
        return None
    lasts = seconds_of(expires, "expires")
    if lasts == 0:
        raise ValueError(f"expires: is {expires!r}, expected a time span such as 90d, or never")
    return lasts


def list_keys(url: str) -> list[str]:
    """A line for each key: name, role, expiry, pools."""
    from statepool.live.service import keys

    with opened(url) as database:
        kept = keys.list_keys(database)
    return [f"{key.name}\t{key.role}\t{_time(key.expires_at)}\t{' '.join(key.pools) or 'all pools'}" for key in kept]


def _time(expires_at: float | None) -> str:
    return "never expires" if expires_at is None else datetime.fromtimestamp(int(expires_at), UTC).isoformat()


def drop_key(url: str, name: str) -> None:
    """Delete a key."""
    from statepool.live.service import keys

    with opened(url, read_only=False) as database:
        keys.drop_key(database, name)
