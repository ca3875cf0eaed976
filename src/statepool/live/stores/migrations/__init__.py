"""The numbered SQL files that make and change the tables; each is applied once, in order, and never edited after."""

from functools import cache
from importlib import resources


@cache
def steps(store: str) -> list[tuple[int, str]]:
    """(number, SQL) of every file of a store, in order."""
    files = [f for f in (resources.files(__name__) / store).iterdir() if f.name.endswith(".sql")]
    return sorted((int(f.name.partition("_")[0]), f.read_text(encoding="utf-8")) for f in files)
