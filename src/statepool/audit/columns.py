"""Which column of a log plays which part: named by the caller, or found by its name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from statepool.checks import unknown_name

NAMES: dict[str, tuple[str, ...]] = {
    "action": ("action", "arm", "item", "choice", "treatment"),
    "state": ("state", "intermediate", "signal", "engagement"),
    "outcome": ("loss", "outcome", "reward", "cost"),
    "decided": ("decided_at", "decided", "decision_time", "time", "timestamp"),
    "observed": ("observed_at", "observed", "state_time"),
    "resolved": ("resolved_at", "resolved", "outcome_time"),
    "propensity": ("propensity", "probability", "p_action"),
    "group": ("group", "category", "segment"),
    "ticket": ("ticket", "ticket_id", "decision_id"),
}
"""Names that are looked for when none is given, the first that is there wins (upper or lower case alike)."""

NEEDED = ("action", "state", "outcome")


@dataclass(frozen=True)
class Columns:
    """The column of each part, None where the log has none."""

    action: str
    state: str
    outcome: str
    decided: str | None
    observed: str | None
    resolved: str | None
    propensity: str | None
    group: str | None
    ticket: str | None
    is_reward: bool


def find_columns(present: Sequence[str], given: Mapping[str, str | None], reward: bool) -> Columns:
    """The columns named, and for the others those found by name; an outcome called `reward` counts as one."""
    found: dict[str, str | None] = {}
    for part, names in NAMES.items():
        named = given.get(part)
        if named is not None and named not in present:
            raise ValueError(unknown_name(f"{part} column", named, present))
        found[part] = named if named is not None else _look_for(names, present)
        if found[part] is None and part in NEEDED:
            raise ValueError(
                f"{part}: no column is called {' or '.join(names)}, expected one of {', '.join(present)} to be named "
                f"with --{part}"
            )
    _refuse_double_use(found)
    outcome = str(found["outcome"])
    is_reward = reward or (given.get("outcome") is None and outcome.lower() == "reward")
    return Columns(**found, is_reward=is_reward)  # type: ignore[arg-type]


def _look_for(names: Sequence[str], present: Sequence[str]) -> str | None:
    by_lower = {column.lower(): column for column in present}
    return next((by_lower[name] for name in names if name in by_lower), None)


def _refuse_double_use(found: Mapping[str, str | None]) -> None:
    parts: dict[str, str] = {}
    for part in NEEDED:
        column = str(found[part])
        if column in parts:
            raise ValueError(f"{part}: is column {column!r}, which is the {parts[column]} too, expected another")
        parts[column] = part
