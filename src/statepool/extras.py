"""Other packages: which extra installs one that is missing, and which learners and families an installed one adds.

A package that has, in its pyproject.toml,

    [project.entry-points."statepool.learners"]
    mine = "my_package:Mine"

adds `mine` to `learners.find` and to the command. It is imported when its name is asked for, and never replaces a name
of this package.
"""

from typing import Any

GROUPS = {"learner": "statepool.learners", "family": "statepool.families"}
OURS = "statepool"
EXTRAS = {
    "distributed": "cluster", "duckdb": "audit", "httptools": "live", "httpx": "client", "ibis": "audit",
    "itsdangerous": "live", "matplotlib": "figures", "msgspec": "live", "prometheus_client": "live",
    "psycopg": "live", "pyarrow": "audit", "sqlalchemy": "live", "sqlglot": "audit", "starlette": "live",
    "uvicorn": "live", "uvloop": "live",
}  # fmt: skip
"""The smallest extra that installs a package, by the name that the package is imported by."""


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
    asked = f'"{OURS}[{EXTRAS[package]}]"' if package in EXTRAS else OURS
    return f"{package} is not installed, expected pip install {asked}"
