"""The settings of a pool, stored with every revision of it, and the scale of its losses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from statepool.checks import check_number, shown
from statepool.live.catalogue import check_label

LARGEST = 1e12
Number = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Positive = Annotated[float, msgspec.Meta(gt=0, le=LARGEST)]
Bounds = tuple[Number, Number]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


def _says(description: str) -> msgspec.Meta:
    return msgspec.Meta(description=description)


class Curve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of the delays: what share (`weight`) of outcomes takes a time constant of so many seconds (`tau`)."""

    tau: list[Number] = []
    weight: list[Number] = []


class Prior(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is known before the first decision, in reported units, as in AUDIT.json."""

    states: dict[str, tuple[Number, Annotated[float, msgspec.Meta(ge=0, le=LARGEST)]]] = {}
    """By state: its mean outcome, and how many outcomes it is worth."""
    curve: Curve | None = None
    cells: Any = None


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keyword arguments of `Pool.open` and `Pool.change`; every one has a default."""

    window: Annotated[
        Positive | None,
        _says("Seconds after which a decision without an outcome counts as the default; None: it waits for ever."),
    ] = None
    default_reward: Annotated[
        Number | None, _says("The reward of a decision whose window is over; None: the lower bound.")
    ] = None
    default_loss: Annotated[
        Number | None, _says("The loss of a decision whose window is over; None: the upper bound.")
    ] = None
    loss_bounds: Annotated[Bounds, _says("The lowest and the highest loss.")] = (0.0, 1.0)
    reward_bounds: Annotated[Bounds | None, _says("The lowest and the highest reward; None: outcomes are losses.")] = (
        None
    )
    probability_bounds: Annotated[
        tuple[tuple[Any, Share, Share], ...], _says("(action, lowest, highest) probability among all decisions.")
    ] = ()
    holdout: Annotated[
        Annotated[float, msgspec.Meta(ge=0, le=0.9)],
        _says("The share of decisions kept from the learner, to measure what it is worth."),
    ] = 0.0
    holdout_action: Annotated[Any, _says("The action of the holdout; None: every action alike.")] = None
    fixed_action: Annotated[
        Any, _says("An action to take with probability 1 instead of the learner's policy; the holdout goes on.")
    ] = None
    update_every: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=int(LARGEST))] | None,
        _says("Reports after which a new version of the policy is made; None: as often as costs little."),
    ] = None
    keep_candidates: Annotated[
        bool, _says("Whether the rows of candidates are stored, so that replay can draw their decisions again.")
    ] = False
    prior: Annotated[Prior | None, _says("What is known before the first decision, as in AUDIT.json.")] = None


def check_settings(given: Mapping[str, Any]) -> Settings:
    """The settings of keyword arguments or of stored JSON; None is the default."""
    unknown = sorted(set(given) - set(Settings.__struct_fields__))
    if unknown:
        known = ", ".join(Settings.__struct_fields__)
        raise ValueError(f"settings: {unknown[0]!r} is not known, expected one of {known}")
    named = {name: value for name, value in given.items() if value is not None}
    try:
        named = msgspec.to_builtins(named, enc_hook=_plain)
    except TypeError as error:
        raise ValueError(f"settings: {error}, expected labels and numbers") from None
    bounds = named.get("probability_bounds")
    if isinstance(bounds, Mapping):
        named["probability_bounds"] = [
            (label, *pair) if isinstance(pair, list | tuple) else (label, pair) for label, pair in bounds.items()
        ]
    try:
        settings = msgspec.convert(named, Settings)
    except msgspec.ValidationError as error:
        raise ValueError(_sentence(str(error), named)) from None
    _check_together(settings)
    labels = {name: getattr(settings, name) for name in ("holdout_action", "fixed_action")}
    checked = {name: None if label is None else check_label(label, name) for name, label in labels.items()}
    bounded = tuple((check_label(label, "probability_bounds"), *pair) for label, *pair in settings.probability_bounds)
    if len({label for label, *_ in bounded}) < len(bounded):
        raise ValueError("probability_bounds: has an action twice, expected different actions")
    return msgspec.structs.replace(settings, probability_bounds=bounded, **checked)


def _plain(value: Any) -> Any:
    """NumPy's numbers are numbers."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"there is {shown(value)}")


def _sentence(error: str, given: Mapping[str, Any]) -> str:
    """What msgspec says about a value, with the name of its setting first."""
    said, _, path = error.partition(" - at `$")
    [name] = re.findall(r"\w+", path)[:1] or ["settings"]
    return f"{name}: is {shown(given.get(name))}, {said[:1].lower()}{said[1:]}"


def _check_together(settings: Settings) -> None:
    """What holds between two numbers."""
    pairs = [("loss_bounds", settings.loss_bounds), ("reward_bounds", settings.reward_bounds)]
    for name, bounds in pairs:
        if bounds is not None and bounds[0] >= bounds[1]:
            raise ValueError(f"{name}: is {shown(bounds)}, expected the lowest before the highest")
    for label, low, high in settings.probability_bounds:
        if low > high:
            raise ValueError(
                f"probability_bounds: of {label!r} run from {low} to {high}, expected the lowest before the highest"
            )
    curve = settings.prior and settings.prior.curve
    if curve and len(curve.tau) != len(curve.weight):
        raise ValueError(f"prior: has curve {shown(curve)}, expected tau and weight, two lists of one length")
    if settings.default_loss is not None:
        if settings.default_reward is not None:
            raise ValueError("settings: expected default_loss or default_reward, and one of them only")
        check_number(settings.default_loss, "default_loss", *settings.loss_bounds)
    if settings.default_reward is not None:
        if settings.reward_bounds is None:
            raise ValueError("default_reward: this pool has no reward_bounds, expected them, or a default_loss")
        check_number(settings.default_reward, "default_reward", *settings.reward_bounds)


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
