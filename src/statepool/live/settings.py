"""The settings of a pool, stored with every revision of it, and the scale of its losses."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Annotated, Any

import msgspec

from statepool.checks import check_count, check_number, shown
from statepool.live.catalogue import check_label

LARGEST = 1e12


def _about(description: str, **schema: float) -> msgspec.Meta:
    """What a setting does, and its range in JSON schema; the checks below enforce it."""
    return msgspec.Meta(description=description, extra_json_schema=dict(schema) or None)


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keyword arguments of `Pool.open` and `Pool.change`; every one has a default."""

    window: Annotated[
        float | None,
        _about(
            "Seconds after which a decision without an outcome counts as the default; None: it waits for ever.",
            exclusiveMinimum=0, maximum=LARGEST,
        ),
    ] = None  # fmt: skip
    default_reward: Annotated[
        float | None, _about("The reward of a decision whose window is over; None: the lower bound.")
    ] = None
    default_loss: Annotated[
        float | None, _about("The loss of a decision whose window is over; None: the upper bound.")
    ] = None
    loss_bounds: Annotated[tuple[float, float], _about("The lowest and the highest loss.")] = (0.0, 1.0)
    reward_bounds: Annotated[
        tuple[float, float] | None, _about("The lowest and the highest reward; None: outcomes are losses.")
    ] = None
    probability_bounds: Annotated[
        tuple[tuple[Any, float, float], ...], _about("(action, lowest, highest) probability among all decisions.")
    ] = ()
    holdout: Annotated[
        float,
        _about("The share of decisions kept from the learner, to measure what it is worth.", minimum=0, maximum=0.9),
    ] = 0.0
    holdout_action: Annotated[Any, _about("The action of the holdout; None: every action alike.")] = None
    fixed_action: Annotated[
        Any, _about("An action to play with probability 1 instead of the learner's policy; the holdout goes on.")
    ] = None
    update_every: Annotated[
        int | None,
        _about(
            "Reports after which a new version of the policy is made; None: as often as costs little.",
            minimum=1, maximum=int(LARGEST),
        ),
    ] = None  # fmt: skip
    keep_candidates: Annotated[
        bool, _about("Whether the rows of candidates are stored, so that replay can draw their decisions again.")
    ] = False
    prior: Annotated[
        dict[str, Any] | None, _about("What is known before the first decision, in reported units, as in AUDIT.json.")
    ] = None


def check_settings(given: Mapping[str, Any]) -> Settings:
    """The settings of keyword arguments or of stored JSON; None is the default."""
    unknown = sorted(set(given) - set(Settings.__struct_fields__))
    if unknown:
        known = ", ".join(Settings.__struct_fields__)
        raise ValueError(f"settings: {unknown[0]!r} is not known, expected one of {known}")
    settings = Settings(**{name: CHECKS[name](value) for name, value in given.items() if value is not None})
    if settings.default_loss is not None and settings.default_reward is not None:
        raise ValueError("settings: expected default_loss or default_reward, and one of them only")
    if settings.default_reward is not None and settings.reward_bounds is None:
        raise ValueError("default_reward: this pool has no reward_bounds, expected them, or a default_loss")
    for name, bounds in (("default_loss", settings.loss_bounds), ("default_reward", settings.reward_bounds)):
        if (value := getattr(settings, name)) is not None:
            assert bounds is not None
            check_number(value, name, *bounds)
    return settings


def _check_bounds(name: str) -> Any:
    def check(value: Any) -> tuple[float, float]:
        if not isinstance(value, list | tuple) or len(value) != 2:
            raise ValueError(f"{name}: is {shown(value)}, expected two numbers, the lowest and the highest")
        low, high = (check_number(each, name, -LARGEST, LARGEST) for each in value)
        if low >= high:
            raise ValueError(f"{name}: is {shown(value)}, expected the lowest before the highest")
        return low, high

    return check


def _check_probability_bounds(value: Any) -> tuple[tuple[Any, float, float], ...]:
    name = "probability_bounds"
    if isinstance(value, Mapping):
        value = [(action, *bounds) if isinstance(bounds, list | tuple) else bounds for action, bounds in value.items()]
    if not isinstance(value, list | tuple):
        raise ValueError(f"{name}: is {shown(value)}, expected {{action: (lowest, highest)}}")
    checked: dict[Any, tuple[float, float]] = {}
    for entry in value:
        if not isinstance(entry, list | tuple) or len(entry) != 3:
            raise ValueError(f"{name}: has {shown(entry)}, expected an action, its lowest and its highest probability")
        label = check_label(entry[0], name)
        low, high = (check_number(each, name, 0, 1) for each in entry[1:])
        if low > high:
            raise ValueError(f"{name}: of {label!r} run from {low} to {high}, expected the lowest before the highest")
        if label in checked:
            raise ValueError(f"{name}: {label!r} is there twice, expected different actions")
        checked[label] = low, high
    return tuple((label, *bounds) for label, bounds in checked.items())


def _check_prior(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not set(value) <= {"states", "curve", "cells"}:
        raise ValueError(f"prior: is {shown(value)}, expected a dict with states, curve or cells")
    for part in ("states", "curve"):
        if not isinstance(value.get(part, {}), Mapping):
            raise ValueError(f"prior: has {part} {shown(value[part])}, expected a dict")
    for label, pair in value.get("states", {}).items():
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(_is_number(each) for each in pair):
            raise ValueError(f"prior: of state {label!r} is {shown(pair)}, expected its mean and a count")
        check_number(pair[1], f"prior of state {label!r}", 0, LARGEST)
    curve = value.get("curve", {})
    if curve and (set(curve) != {"tau", "weight"} or len(curve["tau"]) != len(curve["weight"])):
        raise ValueError(f"prior: has curve {shown(curve)}, expected tau and weight, two lists of one length")
    return dict(msgspec.json.decode(msgspec.json.encode(value)))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _check_update_every(value: Any) -> int:
    return int(check_number(check_count(value, "update_every"), "update_every", 1, LARGEST))


def _check_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"keep_candidates: is {shown(value)}, expected True or False")
    return value


CHECKS: dict[str, Any] = {
    "window": lambda value: check_number(value, "window", 0, LARGEST, open_low=True),
    "default_reward": lambda value: check_number(value, "default_reward", -LARGEST, LARGEST),
    "default_loss": lambda value: check_number(value, "default_loss", -LARGEST, LARGEST),
    "loss_bounds": _check_bounds("loss_bounds"),
    "reward_bounds": _check_bounds("reward_bounds"),
    "probability_bounds": _check_probability_bounds,
    "holdout": lambda value: check_number(value, "holdout", 0, 0.9),
    "holdout_action": lambda value: check_label(value, "holdout_action"),
    "fixed_action": lambda value: check_label(value, "fixed_action"),
    "update_every": _check_update_every,
    "keep_candidates": _check_flag,
    "prior": _check_prior,
}


class Outcome(msgspec.Struct, frozen=True):
    """An outcome as it was reported, and on the pool's scale."""

    reported: float
    is_reward: bool
    loss: float
    """0 at the best and 1 at the worst of the bounds that the pool was made with."""
    is_clipped: bool
    """Whether it was outside today's bounds: then `loss` is that of the nearest bound."""


class Scale:
    """Losses and rewards on one scale, which stays that of the bounds that the pool was made with.

    Parameters
    ----------
    first : Settings
        The pool's settings at the beginning.
    scale_free : bool
        Whether the learner takes losses in reported units; others take [0, 1].
    """

    def __init__(self, first: Settings, scale_free: bool) -> None:
        self.scale_free = scale_free
        self._loss, self._reward = first.loss_bounds, first.reward_bounds

    def outcome(self, settings: Settings, loss: Any, reward: Any) -> Outcome:
        """What was reported, exactly one of a loss and a reward."""
        if (loss is None) == (reward is None):
            raise ValueError("outcome: expected a loss or a reward, and one of them only")
        name, value = ("loss", loss) if reward is None else ("reward", reward)
        reported = check_number(value, name, -LARGEST, LARGEST)
        bounds = settings.loss_bounds if reward is None else settings.reward_bounds
        if bounds is None:
            raise ValueError(
                "reward: this pool has no reward_bounds, expected a loss, or reward_bounds=(low, high) in its settings"
            )
        inside = min(max(reported, bounds[0]), bounds[1])
        return Outcome(reported, reward is not None, self._scaled(inside, reward is not None), inside != reported)

    def default(self, settings: Settings) -> Outcome:
        """The outcome of a decision whose window is over."""
        if settings.default_loss is None and settings.reward_bounds is not None:
            low = settings.reward_bounds[0] if settings.default_reward is None else settings.default_reward
            return self.outcome(settings, None, low)
        high = settings.loss_bounds[1] if settings.default_loss is None else settings.default_loss
        return self.outcome(settings, high, None)

    def _scaled(self, value: float, is_reward: bool) -> float:
        if is_reward:
            low, high = self._reward or (0.0, 1.0)
            return (high - value) / (high - low)
        low, high = self._loss
        return (value - low) / (high - low)

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the largest loss that the learner is handed."""
        if not self.scale_free:
            return 0.0, 1.0
        return self._loss if self._reward is None else (-self._reward[1], -self._reward[0])

    def learned(self, loss: float) -> float:
        """The number that the learner is handed: in reported units, or in [0, 1]."""
        if not self.scale_free:
            return min(max(loss, 0.0), 1.0)
        low, high = self.bounds
        return low + loss * (high - low)

    def learned_mean(self, mean: float) -> float:
        """The same for a mean in reported units."""
        return self.learned(self._scaled(mean, is_reward=self._reward is not None))
