"""`statepool compact`: old events leave the database for sealed segments."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from statepool.commands.store import opened, tidying_up

if TYPE_CHECKING:
    from statepool.live.compaction import Compacted


def run(url: str, pools: Sequence[str], older_than: str, place: str | None, least: int, as_json: bool) -> None:
    from statepool.live.compaction import compact
    from statepool.live.spans import seconds_of
    from statepool.live.stores.folders import check_place

    seconds, where = seconds_of(older_than, "older-than"), check_place(place or _beside(url))
    with tidying_up(), opened(url, to_read=False) as store:
        known = store.standings().pools
        for name in pools:
            if name not in known:
                raise ValueError(f"pool: {name!r} is not in this store, expected one of {', '.join(known)[:200]}")
        _prepare(url, where)
        wanted = pools or [name for name, standing in known.items() if standing.head.seq]
        done = [compact(store, name, seconds, where, least) for name in wanted]
    if as_json:
        print(json.dumps({"place": where, "pools": [each.as_json() for each in done]}, indent=1))
        return
    for each in done:
        print(f"{each.pool}: {_said(each, older_than, least)}")


def _said(done: "Compacted", older_than: str, least: int) -> str:
    if done.segments:
        segments = f"{done.segments} segment{'' if done.segments == 1 else 's'}"
        return f"{done.events} events sealed in {segments}, {done.size} bytes"
    old, fewer = f"{done.left} event{'' if done.left == 1 else 's'}", f"{least:_}".replace("_", " ")
    return f"nothing sealed, {old} older than {older_than}: fewer than {fewer} (--least) are left where they are"


def _prepare(url: str, place: str) -> None:
    """A folder of this machine must be one that whoever uses the store can read."""
    from statepool.live.stores import sqlite_path
    from statepool.live.stores.owners import make_folder

    scheme, _, rest = url.partition("://")
    if "://" in place:
        return
    if scheme == "sqlite":
        make_folder(Path(place), sqlite_path(rest))
    else:
        said = f"{place} is a folder of this machine: every process that uses this store must find the segments there"
        print(f"statepool: {said}", file=sys.stderr)


def _beside(url: str) -> str:
    scheme, _, rest = url.partition("://")
    if scheme != "sqlite":
        raise ValueError("place: is not given, expected --place with a folder or an object store for the segments")
    return f"{rest.removeprefix('/')}.segments"
