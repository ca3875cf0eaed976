"""What a pool is told besides its catalogue and its learner; journaled, so that replay needs nothing else."""

from typing import Annotated, Any

import msgspec

from statepool.checks import check_count, check_number, shown
from statepool.live.catalogue import check_label

LONGEST = 1e12


def _told(description: str, **schema: float) -> msgspec.Meta:
    """What a setting does, and its range as a JSON schema has it; the checks below hold it to that."""
    return msgspec.Meta(description=description, extra_json_schema=dict(schema) or None)


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Given as keyword arguments to `Pool.open` and `Pool.change`; every one has a default."""

    refresh: Annotated[
        int | None,
        _told(
            "A new version of the play after so many lessons, each a state or an outcome that teaches the learner; "
            "None: as often as costs little for the catalogue's size. A version is made before the decision that needs "
            "it.",
            minimum=1, maximum=int(LONGEST),
        ),
    ] = None  # fmt: skip
    refresh_seconds: Annotated[
        float | None,
        _told(
            "Seconds: a new version of the play at most this often, as soon as anything was learnt. Where it is set, "
            "`refresh` is not looked at; None: `refresh` alone counts.",
            minimum=0, maximum=LONGEST,
        ),
    ] = None  # fmt: skip
    expire_after: Annotated[
        float | None,
        _told(
            "Seconds after which a decision without outcome gets the default loss; None: it waits for ever.",
            exclusiveMinimum=0, maximum=LONGEST,
        ),
    ] = None  # fmt: skip
    default_loss: Annotated[
        float | None,
        _told(
            "The loss, inside `loss_bounds`, of a decision whose outcome did not come in time; None: there is no such "
            "time, as `expire_after` is not set."
        ),
    ] = None
    loss_bounds: Annotated[
        tuple[float, float], _told("The lowest and the highest loss that may be reported.")
    ] = (0.0, 1.0)  # fmt: skip
    reward_bounds: Annotated[
        tuple[float, float] | None,
        _told("The lowest and the highest reward that may be reported; None: outcomes are losses."),
    ] = None
    holdout: Annotated[
        float,
        _told("The share of decisions kept from the learner, to measure what it is worth.", minimum=0, maximum=0.9),
    ] = 0.0
    holdout_action: Annotated[Any, _told("What these play; None: every action alike.")] = None
    shares: Annotated[
        tuple[tuple[Any, float, float], ...], _told("(action, smallest, largest) share of all decisions.")
    ] = ()
    request_bytes: Annotated[
        int,
        _told(
            "How many bytes of the rows that requests bring are kept, each content once, to draw their decisions "
            "again.",
            minimum=0,
        ),
    ] = 256 << 20


def check_settings(given: dict[str, Any]) -> Settings:
    """The settings of keyword arguments, or as journaled (which knows no tuples, and labels may be some)."""
    unknown = sorted(set(given) - set(Settings.__struct_fields__))
    if unknown:
        known = ", ".join(Settings.__struct_fields__)
        raise ValueError(f"settings: {unknown[0]!r} is not known, expected one of {known}")
    settings = Settings(
        **{
            name: CHECKS[name](value) if name in CHECKS else value
            for name, value in given.items()
            if value is not None  # None: the default
        }
    )
    if (settings.expire_after is None) != (settings.default_loss is None):
        raise ValueError("settings: expected expire_after and default_loss together, or neither")
    if settings.default_loss is not None:
        low, high = settings.loss_bounds
        check_number(settings.default_loss, "default_loss", low, high)
    return settings


def _check_refresh(value: Any) -> int:
    count = check_count(value, "refresh")
    check_number(count, "refresh", 1, LONGEST)  # more than a journal can hold is a slip
    return count


def _check_bounds(name: str) -> Any:
    def check(value: Any) -> tuple[float, float]:
        if not isinstance(value, list | tuple) or len(value) != 2:
            raise ValueError(f"{name}: is {shown(value)}, expected two numbers, the lowest and the highest")
        low, high = (check_number(each, name, -LONGEST, LONGEST) for each in value)
        if low >= high:
            raise ValueError(f"{name}: is {shown(value)}, expected the lowest before the highest")
        return low, high

    return check


def _check_shares(value: Any) -> tuple[tuple[Any, float, float], ...]:
    if isinstance(value, dict):
        value = [(action, *bounds) if isinstance(bounds, list | tuple) else bounds for action, bounds in value.items()]
    if not isinstance(value, list | tuple):
        raise ValueError(f"shares: is {shown(value)}, expected {{action: (smallest, largest)}}")
    checked: list[tuple[Any, float, float]] = []
    for entry in value:
        if not isinstance(entry, list | tuple) or len(entry) != 3:
            raise ValueError(f"shares: has {shown(entry)}, expected an action, its smallest and its largest share")
        action, low, high = entry
        low, high = check_number(low, "shares", 0, 1), check_number(high, "shares", 0, 1)
        if low > high:
            raise ValueError(
                f"shares: of {action!r} run from {low} to {high}, expected the smallest before the largest"
            )
        label = check_label(action, "shares")
        if label in [each for each, _, _ in checked]:
            raise ValueError(f"shares: {label!r} is there twice, expected different actions")
        checked.append((label, low, high))
    return tuple(checked)


CHECKS: dict[str, Any] = {
    "refresh": _check_refresh,
    "refresh_seconds": lambda value: check_number(value, "refresh_seconds", 0, LONGEST),
    "expire_after": lambda value: check_number(value, "expire_after", 0, LONGEST, open_low=True),
    "default_loss": lambda value: check_number(value, "default_loss", -LONGEST, LONGEST),
    "loss_bounds": _check_bounds("loss_bounds"),
    "reward_bounds": _check_bounds("reward_bounds"),
    "holdout_action": lambda value: check_label(value, "holdout_action"),
    "holdout": lambda value: check_number(value, "holdout", 0, 0.9),
    "shares": _check_shares,
    "request_bytes": lambda value: check_count(value, "request_bytes", 0),
}


def loss_of(settings: Settings, loss: Any, reward: Any) -> float:
    """The loss in [0, 1] of what was reported: exactly one of a loss and a reward, inside its declared bounds."""
    if (loss is None) == (reward is None):
        raise ValueError("outcome: expected a loss or a reward, and one of them only")
    if loss is not None:
        low, high = settings.loss_bounds
        return (check_number(loss, "loss", low, high) - low) / (high - low)
    if settings.reward_bounds is None:
        raise ValueError(
            "reward: this pool has no reward_bounds, expected a loss, or reward_bounds=(low, high) in its settings"
        )
    low, high = settings.reward_bounds
    return (high - check_number(reward, "reward", low, high)) / (high - low)
