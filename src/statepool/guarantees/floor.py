"""SelfTuned's floor: what its expected regret never exceeds, whatever its leader does.

    sum over epochs s = 0, 1, 2, 4, … of the least of n and
        log(K s)/rate + rate (k1(rate/w) n (m - 1)/w + D) + 3 sqrt(s/w) + most in flight + 1

An epoch has n rounds, from s on; the rate is the one that safe starts it with; w is safe's share of the rounds; D
counts every outstanding outcome of the epoch in every round of it; m = min(K, S); k1 as in Theorem A. The map is
known, losses and delays were fixed ahead, and outcomes come in the order of their rounds: one delay for all, for
example.
Proof: docs/self-tuned.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import e, log, log2, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from statepool.checks import Ints, check_delay
from statepool.guarantees.arguments import checked
from statepool.guarantees.theorem_a import first_cost, wait_of_one
from statepool.learners.safe import GUARD, SHARE, rate_of


class Wait(NamedTuple):
    """What an epoch has to wait for, and what was known of it when the epoch began."""

    mean_delay: float
    """Of the outcomes that had come before that round, and 1; 0 without any."""
    total: float
    """Every outstanding outcome of the epoch, in every round of it."""
    most: int


@checked
def self_tuned_floor(n_actions: int, n_states: int, horizon: int, delay: int | ArrayLike) -> float:
    """What SelfTuned's expected regret never exceeds with the map known.

    `delay` is one number, or one for each round, such that outcomes come in the order of their rounds.

    >>> import statepool as sp
    >>> round(sp.guarantees.self_tuned_floor(n_actions=200, n_states=6, horizon=10**6, delay=50))
    256565
    """
    delays = check_delay(delay, horizon)
    if isinstance(delays, np.ndarray):
        _check_order(delays)
    floor = 0.0
    for start, length in _epochs(horizon):
        wait = _wait_of_one(delays, start, length) if isinstance(delays, int) else _wait_of(delays, start, length)
        floor += min(float(length), _epoch_bound(n_actions, n_states, start, length, wait))
    return floor


def _epochs(horizon: int) -> Iterator[tuple[int, int]]:
    """(first round, how many) of each stretch between two starts of the safe part."""
    yield 0, 1
    start = 1
    while start < horizon:
        yield start, min(start, horizon - start)
        start *= 2


def _epoch_bound(n_actions: int, n_states: int, start: int, length: int, wait: Wait) -> float:
    since = max(start, 1)
    rate = float(rate_of(float(since), wait.mean_delay, n_states, n_actions))
    spread = (min(n_actions, n_states) - 1) / SHARE * length
    learning = log(n_actions * since) / rate if rate > 0 else 0.0  # one action in the first round: nothing to learn
    safe = learning + rate * (first_cost(rate / SHARE) * spread + wait.total)
    return safe + GUARD * sqrt(start / SHARE) + wait.most + 1


def _wait_of_one(delay: int, start: int, length: int) -> Wait:
    """Where every outcome takes as long."""
    return Wait(delay + 1.0 if start > delay + 1 else 0.0, wait_of_one(delay, length), min(delay, length - 1))


def _wait_of(delays: Ints, start: int, length: int) -> Wait:
    come = np.arange(delays.size) + delays + 1
    earlier = delays[:start][come[:start] < start]
    rounds = np.arange(start, start + length)
    waiting = rounds - np.minimum(start + np.searchsorted(come[start:], rounds, side="right"), rounds)
    return Wait(float(earlier.mean()) + 1 if earlier.size else 0.0, float(waiting.sum()), int(waiting.max()))


def _check_order(delays: Ints) -> None:
    late = np.flatnonzero(np.diff(delays) < -1)
    if late.size:
        t = int(late[0])
        raise ValueError(
            f"delay: round {t}'s outcome ({delays[t]} late) comes after that of round {t + 1} ({delays[t + 1]} late), "
            "expected outcomes in the order of their rounds"
        )


@checked
def drift_lemma_floor(n_actions: int, n_states: int, horizon: int, delay: int) -> float:
    """The floor as the paper's drift lemma gives it, one delay for all: never below `self_tuned_floor`.

    >>> import statepool as sp
    >>> round(sp.guarantees.drift_lemma_floor(n_actions=200, n_states=6, horizon=10**7, delay=50))
    4265543
    """
    size, width = log(n_actions * horizon), 3.3 * (n_states - 1) / SHARE + 2 * delay + 1
    epochs = 3.42 * (sqrt(2 * width * horizon * size) + GUARD * sqrt(horizon / SHARE))
    return epochs + (1 + log2(horizon)) * (e * (delay + 1) * size / SHARE + 2 * delay + 1) + 2 * delay + 5
