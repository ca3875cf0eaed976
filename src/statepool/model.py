"""The problem: actions lead to states, states to late losses.

    A_t ─P─▶ S_t ─theta_t─▶ X_t        c_t = P theta_t        regret = sum_t c_t(A_t) - min_a sum_t c_t(a)

`effects` (one number an action and state, added to theta) is a direct effect of the action on the outcome: the
paper assumes there is none, and an `Instance` with some is how that assumption is broken on purpose.

Source: paper, Section 2 and Appendix C. Nothing of size rounds × actions is ever held.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from statepool.checks import Floats, Ints, check_count, check_effects, check_map, check_means, read_only
from statepool.compiling import compiled

_CHUNK_ENTRIES = 1 << 20


class Instance:
    """A map from actions to states, and the mean loss of every state in every round: a value, which never changes.

    `P` has a row for each action that sums to 1, `theta` a row for each round with entries in [0, 1]; `effects`, one
    number an action and state, is added to theta and breaks the assumption of pooling on purpose. Lists, arrays and
    frames will do. Raises ValueError and says which row or entry is wrong.

    >>> import statepool as sp
    >>> mine = sp.Instance(P=[[0.8, 0.2], [0.1, 0.9]], theta=[[0.9, 0.3]] * 100)
    >>> mine
    Instance(2 actions, 2 states, 100 rounds)
    >>> mine.best_action
    1
    """

    P: Floats
    theta: Floats
    effects: Floats | None

    def __init__(self, P: ArrayLike, theta: ArrayLike, effects: ArrayLike | None = None) -> None:
        table = check_map(P)
        means = check_means(theta, table.shape[1])
        direct = None if effects is None else read_only(check_effects(effects, means, table.shape[0]))
        # What is computed once and kept, total_losses among it, holds only as long as nobody can change these.
        vars(self).update(P=read_only(table), theta=read_only(means), effects=direct)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name}: an Instance does not change, expected a new Instance")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.P, self.theta, self.effects)  # a pickled array would come back writable

    @property
    def n_actions(self) -> int:
        return self.P.shape[0]

    @property
    def n_states(self) -> int:
        return self.P.shape[1]

    @property
    def horizon(self) -> int:
        return self.theta.shape[0]

    def __repr__(self) -> str:
        direct = "" if self.effects is None else ", with direct effects"
        return f"Instance({self.n_actions} actions, {self.n_states} states, {self.horizon} rounds{direct})"

    @cached_property
    def direct(self) -> Floats:
        """The mean direct effect of each action, added to its loss in every round."""
        if self.effects is None:
            return read_only(np.zeros(self.n_actions))
        return read_only((self.P * self.effects).sum(axis=1))

    def losses(self, t: int) -> Floats:
        """The mean loss of every action in round t, c_t."""
        if check_count(t, "t", lowest=0) >= self.horizon:
            raise ValueError(f"t: is {t}, expected 0 to {self.horizon - 1}")
        return np.asarray(self.P @ self.theta[t] + self.direct)

    def stale_losses(self, t: int, delay: int) -> Floats:
        """The loss vector of `delay` rounds ago, m_t; that of round 0 before there is one."""
        return self.losses(max(check_count(t, "t", lowest=0) - check_count(delay, "delay", lowest=0), 0))

    @cached_property
    def total_losses(self) -> Floats:
        """The summed mean loss of each action over the horizon."""
        return read_only(self.P @ self.theta.sum(axis=0) + self.horizon * self.direct)

    @property
    def best_action(self) -> int:
        """The best fixed action in hindsight, the comparator; the first of equals."""
        return int(self.total_losses.argmin())

    def pseudo_loss(self, actions: ArrayLike) -> float:
        """The summed mean loss of the actions played, one a round."""
        return float(_pseudo_loss(self.P, self.theta, self.direct, self._checked(actions)))

    def regret(self, actions: ArrayLike) -> float:
        """Pseudo-regret of the actions played: their summed mean loss less the comparator's."""
        return self.pseudo_loss(actions) - float(self.total_losses.min())

    def regret_path(self, actions: ArrayLike) -> Floats:
        """Pseudo-regret against the comparator of the whole horizon, after each round."""
        path = np.empty(self.horizon)
        _regret_path(self.P, self.theta, self.direct, self._checked(actions), self.best_action, path)
        return path

    def _checked(self, actions: ArrayLike) -> Ints:
        played = np.asarray(actions)
        if played.shape != (self.horizon,) or played.dtype.kind not in "iu":
            raise ValueError(
                f"actions: has shape {played.shape} of {played.dtype}, expected ({self.horizon},) whole numbers"
            )
        wrong = np.flatnonzero((played < 0) | (played >= self.n_actions))
        if wrong.size:
            raise ValueError(f"actions: entry {wrong[0]} is {played[wrong[0]]}, expected 0 to {self.n_actions - 1}")
        return played.astype(np.int64, copy=False)

    def e2(self, delay: int) -> float:
        """E2, how far the losses move in a delay: sum_t max_a (c_t(a) - m_t(a))²."""
        return float(sum((moved**2).max(axis=1).sum() for moved in self._movement(delay)))

    def lambda2(self, delay: int) -> float:
        """Lambda2, the same with every action counted: sum_t min(1, |c_t - m_t|²)."""
        return float(sum(np.minimum(1, (moved**2).sum(axis=1)).sum() for moved in self._movement(delay)))

    def variation(self) -> float:
        """W, the state means' own movement: sum_t max_s (theta_t(s) - theta_{t-1}(s))²."""
        return float((np.diff(self.theta, axis=0) ** 2).max(axis=1, initial=0).sum())

    def _movement(self, delay: int) -> Iterator[Floats]:
        check_count(delay, "delay", lowest=0)
        step = max(1, _CHUNK_ENTRIES // self.n_actions)
        for start in range(0, self.horizon, step):
            rounds = np.arange(start, min(start + step, self.horizon))
            moved = self.theta[rounds] - self.theta[np.maximum(rounds - delay, 0)]
            yield moved @ self.P.T


@compiled
def _mean_loss(P: Any, theta: Any, direct: Any, t: int, action: int) -> float:
    mean = direct[action]
    for s in range(P.shape[1]):
        mean += P[action, s] * theta[t, s]
    return mean


@compiled
def _pseudo_loss(P: Any, theta: Any, direct: Any, actions: Any) -> float:
    total = 0.0
    for t in range(actions.size):
        total += _mean_loss(P, theta, direct, t, actions[t])
    return total


@compiled
def _regret_path(P: Any, theta: Any, direct: Any, actions: Any, comparator: int, path: Any) -> None:
    regret = 0.0
    for t in range(actions.size):
        regret += _mean_loss(P, theta, direct, t, actions[t]) - _mean_loss(P, theta, direct, t, comparator)
        path[t] = regret
