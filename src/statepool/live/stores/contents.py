"""All that a store holds, table by table, as it is carried from one store into another.

Sessions are left behind: whoever has signed in does so again. So is what a probe wrote, and which files are to be
removed: that is for the store that they were of.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

TABLES: dict[str, tuple[str, ...]] = {
    "pools": ("id", "name", "seq", "hash", "plays", "pending", "epoch", "sealed"),
    "events": ("pool", "seq", "kind", "play", "ticket", "body", "hash"),
    "pending": ("pool", "play", "ticket", "at"),
    "lanes": ("pool", "lane", "place", "ticket", "at", "body", "hash"),
    "segments": ("pool", "first", "last", "hash", "digest", "place", "size"),
    "snapshots": ("pool", "seq", "body"),
    "keys": ("name", "hash", "role", "until", "pools"),
    "calls": ("at", "who", "address", "did", "status", "said"),
}
ORDERS = {"events": "pool, seq", "calls": "id"}
LEFT_BEHIND = ("sessions", "probes", "loose")

Rows = Iterator[tuple[Any, ...]]


class Contents(NamedTuple):
    """One consistent reading: `rows` gives a table's rows, in the order of its columns above."""

    rows: Callable[[str], Rows]


def select(table: str, prefix: str = "") -> str:
    """The rows of a table, those of a journal in their order."""
    order = ORDERS.get(table)
    return f"SELECT {', '.join(TABLES[table])} FROM {prefix}{table}" + (f" ORDER BY {order}" if order else "")


def refuse_unless_empty(held: int) -> None:
    """Two stores are never mixed."""
    if held:
        raise ValueError("store: holds pools or keys already, expected an empty one to restore into")
