"""The problem: actions lead to states, states to late losses.

    A_t ─P─▶ S_t ─theta_t─▶ X_t        c_t = P theta_t        regret = sum_t c_t(A_t) - min_a sum_t c_t(a)

`effects` (one number per action and state, added to theta) is a direct effect of the action on the outcome: the
paper assumes there is none, and an `Instance` with some is how that assumption is broken on purpose.

With `contexts`, round t is a request of context k_t: it has rows P[k_t] of its own, and may be answered with the
actions that `available` says. The comparator is then the best policy, one action for each context:

    regret = sum_t c_t(A_t | k_t) - c_t(pi(k_t) | k_t)        pi(k) = argmin_a P_k sum_t theta_t

pi is chosen by all rounds and judged by the requests that came: the best policy for the requests as they happened to
fall would fit their noise.

Source: paper, Section 2 and Appendix C; contexts are ours. Nothing of size rounds × actions is ever held.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from statepool.checks import (
    Bools,
    Floats,
    Ints,
    check_contexts,
    check_count,
    check_effects,
    check_gains,
    check_given_map,
    check_map,
    check_maps,
    check_means,
    has_contexts,
    read_only,
)

_CHUNK_ENTRIES = 1 << 20
_NO_CONTEXTS: Ints = read_only(np.empty(0, dtype=np.int64))


class Sized:
    """Whatever has a map `P`: its sizes."""

    P: Floats

    @property
    def n_contexts(self) -> int:
        return self.P.shape[0] if self.P.ndim == 3 else 1

    @property
    def n_actions(self) -> int:
        return self.P.shape[-2]

    @property
    def n_states(self) -> int:
        return self.P.shape[-1]


class Instance(Sized):
    """A map from actions to states, and the mean loss of every state in every round: a value, which never changes.

    Parameters
    ----------
    P : array_like
        A row for each action that sums to 1; with contexts, such a map for each context.
    theta : array_like
        The mean loss of each state (columns) in each round (rows), in [0, 1].
    effects : array_like, optional
        Direct effects, one number for each action and state (and context), which are added to theta.
    contexts : array_like of int, optional
        The context of each round.
    available : array_like of bool, optional
        Which actions (columns) each context (rows) may be answered with; all by default.
    given_map : array_like, optional
        For maps that change unseen: learners get this one map and know of no contexts.
    gains : array_like, optional
        For revenue, one number for each action and state: a loss is 1 (nothing was bought), or 1 less a revenue that is
        `gains` on average, between half and one and a half times that, as often as makes the mean loss theta.

    Raises
    ------
    ValueError
        Says which row or entry is wrong.

    Examples
    --------
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
    contexts: Ints | None = None
    available: Bools | None = None
    given_map: Floats | None = None
    gains: Floats | None

    def __init__(
        self, P: ArrayLike, theta: ArrayLike, effects: ArrayLike | None = None, contexts: ArrayLike | None = None,
        available: ArrayLike | None = None, *, given_map: ArrayLike | None = None, gains: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        if contexts is None:
            _refuse_without_contexts(P, available, given_map)
            fields = _without_contexts(P, theta, effects)
        else:
            fields = _with_contexts(P, theta, effects, contexts, available, given_map)
        fields["gains"] = None if gains is None else check_gains(gains, fields["P"], fields["theta"], fields["effects"])
        # What is computed once and kept, total_losses among it, holds only as long as these cannot change.
        vars(self).update({name: None if table is None else read_only(table) for name, table in fields.items()})

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name}: an Instance does not change, expected a new Instance")

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Instance, **self._arguments), ()  # arrays would otherwise come back writable

    @property
    def _arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in Instance.__annotations__}

    def replaced(self, **changes: Any) -> Instance:
        """The same instance but for these arguments."""
        return Instance(**(self._arguments | changes))

    @property
    def horizon(self) -> int:
        return self.theta.shape[0]

    def __repr__(self) -> str:
        contexts = "" if self.contexts is None else f"{self.n_contexts} contexts, "
        direct = "" if self.effects is None else ", with direct effects"
        return f"Instance({contexts}{self.n_actions} actions, {self.n_states} states, {self.horizon} rounds{direct})"

    @property
    def rows(self) -> Floats:
        """The rows of all contexts, one context after the other."""
        return self.P.reshape(-1, self.n_states)

    @property
    def requests(self) -> Ints:
        """The context of each round; empty where there are none."""
        return _NO_CONTEXTS if self.contexts is None else self.contexts

    @cached_property
    def shares(self) -> Floats:
        """How often each context came, as a share of the rounds."""
        if self.contexts is None:
            return read_only(np.ones(1))
        return read_only(np.bincount(self.contexts, minlength=self.n_contexts) / self.horizon)

    @cached_property
    def direct(self) -> Floats:
        """The mean direct effect of each action (in each context), added to its loss in every round."""
        if self.effects is None:
            return read_only(np.zeros(self.P.shape[:-1]))
        return read_only((self.P * self.effects).sum(axis=-1))

    @cached_property
    def total_losses(self) -> Floats:
        """The summed mean loss of each action over the horizon.

        With contexts a row for each: what it would be if every round were of that context, infinite for actions
        that it does not have.
        """
        totals = self.P @ self.theta.sum(axis=0) + self.horizon * self.direct
        return read_only(totals if self.available is None else np.where(self.available, totals, np.inf))

    @property
    def best_action(self) -> int:
        """The best fixed action in hindsight, the comparator; the first of equals."""
        if self.contexts is not None:
            raise ValueError(f"best_action: there are {self.n_contexts} contexts, expected best_policy, one for each")
        return int(self.total_losses.argmin())

    @property
    def best_policy(self) -> Ints:
        """The best action for each context, by the means of all rounds: the comparator; the first of equals."""
        return np.atleast_1d(self.total_losses.argmin(axis=-1))

    @cached_property
    def best_loss(self) -> float:
        """The summed mean loss of the comparator, on the requests that came."""
        if self.contexts is None:
            return float(self.total_losses.min())
        return self.pseudo_loss(self.best_policy[self.contexts])

    def pseudo_loss(self, actions: ArrayLike) -> float:
        """The summed mean loss of the actions taken, one per round."""
        return float(self._mean_losses(self._checked(actions)).sum())

    def regret(self, actions: ArrayLike) -> float:
        """Pseudo-regret of the actions taken: their summed mean loss less the comparator's."""
        return self.pseudo_loss(actions) - self.best_loss

    def regret_path(self, actions: ArrayLike) -> Floats:
        """Pseudo-regret against the comparator of the whole horizon, after each round."""
        best = self.best_policy[0 if self.contexts is None else self.contexts]
        return np.cumsum(self._mean_losses(self._checked(actions)) - self._mean_losses(best))

    def _mean_losses(self, actions: Any) -> Floats:
        """The mean loss of an action in each round."""
        rows = actions if self.contexts is None else self.contexts * self.n_actions + actions
        return np.asarray((self.rows[rows] * self.theta).sum(axis=1) + self.direct.ravel()[rows])

    def _checked(self, actions: ArrayLike) -> Ints:
        taken = np.asarray(actions)
        if taken.shape != (self.horizon,) or taken.dtype.kind not in "iu":
            raise ValueError(
                f"actions: has shape {taken.shape} of {taken.dtype}, expected ({self.horizon},) whole numbers"
            )
        allowed = (taken >= 0) & (taken < self.n_actions)
        if self.available is not None:
            allowed &= self.available[self.contexts, taken * allowed]
        if not allowed.all():
            t = int(allowed.argmin())
            of = f"0 to {self.n_actions - 1}" + ("" if self.available is None else ", and available in its context")
            raise ValueError(f"actions: entry {t} is {taken[t]}, expected {of}")
        return taken.astype(np.int64, copy=False)

    def e2(self, delay: int) -> float:
        """E2, how far the losses move in a delay: sum_t max_a (c_t(a) - m_t(a))²."""
        check_count(delay, "delay", lowest=0)
        entries = self.n_actions if self.contexts is None else self.n_actions * self.n_states
        total = 0.0
        for rounds in np.array_split(np.arange(self.horizon), -(-self.horizon * entries // _CHUNK_ENTRIES)):
            change = self.theta[rounds] - self.theta[np.maximum(rounds - delay, 0)]
            rows = self.P if self.contexts is None else self.P[self.contexts[rounds]]
            moved = change @ rows.T if self.contexts is None else np.einsum("tas,ts->ta", rows, change)
            total += float((moved**2).max(axis=1).sum())
        return total


def _refuse_without_contexts(P: ArrayLike, available: ArrayLike | None, given_map: ArrayLike | None) -> None:
    for name, given in (("available", available), ("given_map", given_map)):
        if given is not None:
            raise ValueError(f"{name}: is given without contexts, expected contexts too, one per round")
    if has_contexts(P):
        raise ValueError(
            f"P: has shape {np.shape(P)} and contexts is None, expected one map, or the context of each round"
        )


def _without_contexts(P: ArrayLike, theta: ArrayLike, effects: ArrayLike | None) -> dict[str, Any]:
    table = check_map(P)
    means = check_means(theta, table.shape[1])
    direct = None if effects is None else check_effects(effects, means, table.shape)
    return {"P": table, "theta": means, "effects": direct}


def _with_contexts(
    P: ArrayLike, theta: ArrayLike, effects: ArrayLike | None, contexts: ArrayLike, available: ArrayLike | None,
    given_map: ArrayLike | None,
) -> dict[str, Any]:  # fmt: skip
    table, offered = check_maps(P, available)
    means = check_means(theta, table.shape[2])
    requests = check_contexts(contexts, table.shape[0], means.shape[0])
    direct = None if effects is None else check_effects(effects, means, table.shape, offered)
    if given_map is not None:
        given_map = check_given_map(given_map, table, offered)
    elif table.shape[0] == 1 and offered.all():
        direct = None if direct is None else direct[0]
        return {"P": table[0], "theta": means, "effects": direct}
    fields = {"P": table, "theta": means, "effects": direct, "contexts": requests, "available": offered}
    return fields | {"given_map": given_map}
