"""Which extra brings a package that is not installed, by the package's own metadata."""

import re
from importlib.metadata import PackageNotFoundError, requires

REQUIREMENT = re.compile(r"""([\w.-]+).*;.*extra == ['"](\w+)['"]""")
OURS = "statepool"


def how_to_install(error: ImportError) -> str | None:
    """One sentence for a missing package; None if it is not a package of others that is missing."""
    package = (error.name or OURS).partition(".")[0]
    if package == OURS:
        return None
    extra = _extras().get(package)
    asked = f'"{OURS}[{extra}]"' if extra else OURS
    return f"{package} is not installed, expected pip install {asked}"


def _extras() -> dict[str, str]:
    """The first extra that asks for a package, by the name it is imported by."""
    try:
        lines = requires(OURS) or []
    except PackageNotFoundError:  # run from its sources
        lines = []
    found: dict[str, str] = {}
    for line in lines:
        if match := REQUIREMENT.match(line):
            found.setdefault(match[1].replace("-", "_"), match[2])
    return found
