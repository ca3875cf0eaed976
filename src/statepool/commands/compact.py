"""`statepool compact`: old events leave the database for sealed segments."""

import json
from collections.abc import Sequence

from statepool.commands.store import opened


def run(url: str, pools: Sequence[str], older_than: str, place: str | None, least: int, as_json: bool) -> None:
    from statepool.live.compaction import compact
    from statepool.live.spans import seconds_of

    seconds, where = seconds_of(older_than, "older-than"), place or _beside(url)
    with opened(url) as store:
        known = store.standings().pools
        for name in pools:
            if name not in known:
                raise ValueError(f"pool: {name!r} is not in this store, expected one of {', '.join(known)[:200]}")
        wanted = pools or [name for name, standing in known.items() if standing.head.seq]
        done = [compact(store, name, seconds, where, least) for name in wanted]
    if as_json:
        print(json.dumps({"place": where, "pools": [each.as_json() for each in done]}, indent=1))
        return
    for each in done:
        print(f"{each.pool}: {each.events} events sealed in {each.segments} segments, {each.size} bytes")


def _beside(url: str) -> str:
    scheme, _, rest = url.partition("://")
    if scheme != "sqlite":
        raise ValueError("place: is not given, expected --place with a folder or an object store for the segments")
    return f"{rest.removeprefix('/')}.segments"
