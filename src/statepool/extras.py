"""Which extra brings a package that is not installed, by the package's own metadata."""

import re

REQUIREMENT = re.compile(r"""([\w.-]+).*;.*extra == ['"](\w+)['"]""")
OURS = "statepool"
NOT_FOR_USERS = {"bench", "dev", "docs"}


def explained(what: str, error: ImportError) -> ImportError:
    """The error to raise where `what` cannot be had: one sentence for a missing package, any other as it is."""
    sentence = how_to_install(error)
    return error if sentence is None else ImportError(f"{what}: {sentence}", name=error.name)


def how_to_install(error: ImportError) -> str | None:
    """One sentence for a missing package; None if it is not a package of others that is missing."""
    package = (error.name or OURS).partition(".")[0]
    if package == OURS:
        return None
    extra = _smallest_extra(package)
    asked = f'"{OURS}[{extra}]"' if extra else OURS
    return f"{package} is not installed, expected pip install {asked}"


def _smallest_extra(package: str) -> str | None:
    """Of the extras that bring a package, by the name it is imported by, the one that brings the fewest."""
    # Imported here: most of what it takes to say `--help` would be spent on it.
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
