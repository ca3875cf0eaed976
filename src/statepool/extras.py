"""Other packages: which extra installs one that is missing, and which learners and families an installed one adds.

A package that has, in its pyproject.toml,

    [project.entry-points."statepool.learners"]
    mine = "my_package:Mine"

adds `mine` to `learners.find` and to the command. It is imported when its name is asked for, and never replaces a name
of this package.
"""

import re
from typing import Any

GROUPS = {"learner": "statepool.learners", "family": "statepool.families"}
REQUIREMENT = re.compile(r"""([\w.-]+).*;.*extra == ['"](\w+)['"]""")
OURS = "statepool"
NOT_FOR_USERS = {"bench", "dev", "docs"}


def installed(kind: str) -> dict[str, Any]:
    """The entry points of a kind, by name."""
    from importlib.metadata import entry_points  # not at the top: it takes most of the time of `--help`

    return {each.name: each for each in entry_points(group=GROUPS[kind])}


def load(kind: str, name: str) -> Any:
    """What an installed package offers under a name; None if there is no such name."""
    found = installed(kind).get(name)
    if found is None:
        return None
    try:
        return found.load()
    except Exception as error:
        raise ValueError(f"{kind}: {name!r} is {found.value}, which cannot be imported ({error})") from None


def explained(what: str, error: ImportError) -> ImportError:
    """The error to raise if `what` needs a missing package: one sentence; any other error as it is."""
    sentence = how_to_install(error)
    return error if sentence is None else ImportError(f"{what}: {sentence}", name=error.name)


def how_to_install(error: ImportError) -> str | None:
    """One sentence for a missing package; None if the error has another cause."""
    package = (error.name or OURS).partition(".")[0]
    if package == OURS:
        return None
    extra = _smallest_extra(package)
    asked = f'"{OURS}[{extra}]"' if extra else OURS
    return f"{package} is not installed, expected pip install {asked}"


def _smallest_extra(package: str) -> str | None:
    """Of the extras that install a package, by the name it is imported by, the one with the fewest packages."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        lines = requires(OURS) or []
    except PackageNotFoundError:  # run from its sources
        lines = []
    brings: dict[str, set[str]] = {}
    for line in lines:
        if match := REQUIREMENT.match(line):
            brings.setdefault(match[2], set()).add(match[1].replace("-", "_"))
    fit = [extra for extra, packages in brings.items() if package in packages]
    return min(fit, key=lambda extra: (extra in NOT_FOR_USERS, len(brings[extra]), extra), default=None)
