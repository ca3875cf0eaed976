"""Which column of a log plays which part, and which way its outcomes point: named by the caller, or found by name."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from statepool.checks import unknown_name

NAMES: dict[str, tuple[str, ...]] = {
    "action": (
        "action", "arm", "item", "item_id", "sku", "product", "product_id", "variant", "variant_id", "choice",
        "treatment", "creative", "offer", "campaign",
    ),
    "state": (
        "state", "intermediate", "signal", "engagement", "funnel_stage", "funnel_step", "stage", "step", "depth",
        "funnel",
    ),
    "outcome": (
        "loss", "outcome", "reward", "cost", "converted", "conversion", "is_converted", "purchase", "purchased",
        "bought", "revenue", "sales", "profit", "margin", "clicked", "returned", "churned", "refunded", "success", "y",
    ),
    "decided": (
        "decided_at", "decided", "decision_time", "time", "timestamp", "ts", "event_time", "shown_at", "served_at",
        "created_at", "datetime", "date",
    ),
    "observed": ("observed_at", "observed", "state_time"),
    "resolved": (
        "resolved_at", "resolved", "outcome_time", "converted_at", "conversion_time", "purchased_at", "purchase_time",
        "outcome_at",
    ),
    "propensity": ("propensity", "probability", "p_action", "pscore", "prob"),
    "group": ("group", "category", "segment"),
    "ticket": ("ticket", "ticket_id", "decision_id", "impression_id", "event_id"),
    "holdout": ("is_holdout", "held", "holdout", "held_out"),
}  # fmt: skip
"""Names that are looked for when none is given, the first that is there wins (upper or lower case alike)."""

NEEDED = ("action", "state", "outcome")

REWARDS = frozenset((
    "reward", "converted", "conversion", "conversions", "purchase", "purchases", "purchased", "bought", "order",
    "orders", "ordered", "revenue", "sales", "sale", "sold", "profit", "margin", "income", "gmv", "clicked", "click",
    "clicks", "signup", "subscribed", "retained", "success", "won", "value", "spend",
))  # fmt: skip
LOSSES = frozenset((
    "loss", "losses", "cost", "costs", "returned", "return", "returns", "refunded", "refund", "churned", "churn",
    "bounced", "bounce", "cancelled", "canceled", "failed", "failure", "complaint", "complaints", "late", "error",
    "unsubscribed", "regret",
))  # fmt: skip
"""Words of an outcome's name from which it is plain whether more of it is better."""


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
    holdout: str | None
    context: tuple[str, ...]
    """Columns that together say who is asking; only where they were named."""
    is_reward: bool
    direction: str
    """How the direction is known: "told", "by its name", or "assumed"."""


Given = Mapping[str, str | Sequence[str] | None]
"""What the caller names: a column for each part, and as many as there are for the `context`."""


def find_columns(present: Sequence[str], given: Given, reward: bool | None) -> Columns:
    """The columns named, and for the others those found by name; `reward` None: the outcome's name decides."""
    found: dict[str, str | None] = {}
    context = _read_context(given.get("context"), present)
    for part, names in NAMES.items():
        named = given.get(part)
        if named is not None and (not isinstance(named, str) or named not in present):
            raise ValueError(unknown_name(f"{part} column", str(named), present))
        # A context that is the action, the state or the outcome is refused below, not passed over.
        taken = {column for column in found.values() if column} | (set() if part in NEEDED else set(context))
        free = [column for column in present if column not in taken]
        found[part] = named if named is not None else _look_for(names, free)
    _refuse_missing([part for part in NEEDED if found[part] is None], present)
    _refuse_double_use(found, context)
    is_reward, direction = read_direction(str(found["outcome"]), reward)
    return Columns(**found, context=context, is_reward=is_reward, direction=direction)  # type: ignore[arg-type]


def _read_context(given: str | Sequence[str] | None, present: Sequence[str]) -> tuple[str, ...]:
    names = () if given is None else (given,) if isinstance(given, str) else tuple(given)
    for i, name in enumerate(names):
        if name not in present:
            raise ValueError(unknown_name("context column", str(name), present))
        if name in names[:i]:
            raise ValueError(f"context: column {name!r} is named twice, expected each once")
    return names


def read_direction(outcome: str, reward: bool | None) -> tuple[bool, str]:
    """Whether larger outcomes are better, and how that is known."""
    if reward is not None:
        return reward, "told"
    words = set(re.split(r"[^a-z]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", outcome).lower()))
    good, bad = bool(words & REWARDS), bool(words & LOSSES)
    return (good, "by its name") if good != bad else (False, "assumed")


def _look_for(names: Sequence[str], present: Sequence[str]) -> str | None:
    by_lower = {column.lower(): column for column in present}
    return next((by_lower[name] for name in names if name in by_lower), None)


def _refuse_missing(parts: Sequence[str], present: Sequence[str]) -> None:
    """Everything that is missing in one sentence."""
    if not parts:
        return
    looked = "; ".join(f"{part}: no column is called {' or '.join(NAMES[part])}" for part in parts)
    options = ", ".join(f"--{part}" for part in parts)
    raise ValueError(f"{looked}; expected one of {', '.join(present)} to be named with {options}")


def _refuse_double_use(found: Mapping[str, str | None], context: tuple[str, ...]) -> None:
    parts: dict[str, str] = {}
    for part in NEEDED:
        column = str(found[part])
        if column in parts:
            raise ValueError(f"{part}: is column {column!r}, which is the {parts[column]} too, expected another")
        parts[column] = part
    for part, used in found.items():
        if used in context:
            raise ValueError(f"context: is column {used!r}, which is the {part} too, expected another")
