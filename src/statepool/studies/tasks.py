"""The task functions that several studies share: plain data in, named numbers out."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from statepool import delays, families, learners
from statepool.dimension import estimate
from statepool.engine import simulate
from statepool.learners import Learner
from statepool.model import Instance


def make_instance(family: str, settings: Mapping[str, Any], seed: int) -> Instance:
    """An instance from plain data."""
    return families.find(family)(seed=seed, **settings)


def make_learner(name: str, settings: Mapping[str, Any]) -> Learner:
    """A learner from plain data."""
    return learners.find(name)(**settings)


def paired(
    family: str, settings: Mapping[str, Any], seed: int, stream: int, delay: int, arms: Mapping[str, Any],
    dimension: list[str] | tuple[str, ...] = (), draws: int = 3, kind: str | None = None,
) -> dict[str, float]:  # fmt: skip
    """Every arm's regret on one instance and one stream, and the mean dimension of the arms asked for.

    `kind` is of random delays, one a round, of the mean `delay`.
    """
    instance = make_instance(family, settings, seed)
    waits = delays.KINDS[kind](seed, instance.horizon, delay) if kind else delay
    numbers = {}
    for label, (name, chosen) in arms.items():
        run = simulate(instance, make_learner(name, chosen), waits, stream, draws)
        numbers[label] = run.regret
        if label in dimension:
            numbers[f"{label} dimension"] = run.dimension
    return numbers


def estimated_dimension(
    family: str, settings: Mapping[str, Any], seed: int, stream: int, draws: int, **_: Any
) -> dict[str, float]:
    """The Monte Carlo dimension of an instance's map, its random plays drawn from `stream`."""
    map_settings = {name: value for name, value in settings.items() if name != "horizon"}
    return {"vhat": _estimate(family, tuple(sorted(map_settings.items())), seed, stream, draws)}


@cache
def _estimate(family: str, settings: tuple[tuple[str, Any], ...], seed: int, stream: int, draws: int) -> float:
    # One map serves many cells: the map does not depend on the horizon.
    instance = make_instance(family, {**dict(settings), "horizon": 1}, seed)
    return estimate(instance.P, np.random.default_rng(stream), draws)
