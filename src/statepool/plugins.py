"""Learners and families of other packages, found through their entry points.

A package that has, in its pyproject.toml,

    [project.entry-points."statepool.learners"]
    mine = "my_package:Mine"

adds `mine` to `learners.find` and to the command. Nothing is imported before its name is asked for, and a name of
the package's own is never replaced.
"""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

GROUPS = {"learner": "statepool.learners", "family": "statepool.families"}


def installed(kind: str) -> dict[str, EntryPoint]:
    """The entry points of a kind, by name."""
    return {each.name: each for each in entry_points(group=GROUPS[kind])}


def load(kind: str, name: str) -> Any:
    """What an installed package offers under a name; None if none does."""
    found = installed(kind).get(name)
    if found is None:
        return None
    try:
        return found.load()
    except Exception as error:
        raise ValueError(f"{kind}: {name!r} is {found.value}, which cannot be imported ({error})") from None
