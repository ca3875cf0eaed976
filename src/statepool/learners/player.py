"""A learner driven by hand: outcomes are reported whenever they come."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from statepool.checks import (
    Floats,
    check_count,
    check_map,
    check_maps,
    check_number,
    has_contexts,
    shown,
    unknown_name,
)  # fmt: skip
from statepool.kernels import draw
from statepool.learners.contract import Learner, Played, Problem, make_tables, rows_at
from statepool.learners.stepper import Stepper
from statepool.model import Instance
from statepool.stream import Seed, Stream

SIDE = 2
"""Which of the stream's side generators a player draws from that is given no uniforms."""


@dataclass
class PlayedRound:
    """One round of a learner driven by hand."""

    round: int
    action: Any
    """Its label, or its number where actions have none."""
    probability: float | None
    """Of the action, when it was drawn; None where the learner's policy is not known."""
    number: int = field(repr=False)
    choice: int = field(repr=False)
    context: int = field(repr=False)
    saved: Floats = field(repr=False)
    state: Any = None
    seen: int = field(default=-1, repr=False)
    resolved: bool = False


class Player:
    """A learner driven by hand: `act`, then `observe` the state, and `update` when the outcome comes, in any order.

    Between an `act` and its `observe` there is no `update`: what is saved with a decision is the policy of that act.
    Decisions belong to the player that made them.
    """

    def __init__(
        self, learner: Learner, P: ArrayLike, horizon: int | None, delay: int, seed: Seed, instance: Instance | None,
        actions: Sequence[Any] | None, states: Sequence[Any] | None, available: ArrayLike | None,
    ) -> None:  # fmt: skip
        if horizon is not None:
            check_count(horizon, "horizon")
        check_count(delay, "delay", 0)
        if has_contexts(P):
            table, offered = check_maps(P, available)
            learner.check_contexts(table.shape[0])
        elif available is None:
            table, offered = check_map(P), None
        else:
            raise ValueError(
                "available: is given for one map, expected a map for each context, or only the rows on offer"
            )
        problem = Problem(table, horizon, delay, Stream.from_seed(seed), instance, has_contexts=table.ndim == 3)
        if instance is not None and not np.array_equal(instance.P, problem.P):
            raise ValueError("instance: has another map, expected one whose P is the P given here")
        self.learner, self.problem = learner, problem
        self._stepper, self._tables = Stepper(learner, problem), make_tables(table, offered)
        self._actions = _labels(actions, "actions", problem.n_actions)
        self._states = _labels(states, "states", problem.n_states)
        self._generator = problem.stream.side_generator(SIDE)
        self._round = 0
        self._policy = np.empty(0)
        self._latest: PlayedRound | None = None

    @property
    def memory(self) -> Any:
        """What the learner has learnt."""
        return self._stepper.memory

    def act(self, u: float | None = None, context: int | None = None) -> PlayedRound:
        """Choose an action: from a uniform number of your own, or from the player's seed.

        With contexts, `context` is that of the request.
        """
        drawn = float(self._generator.random()) if u is None else check_number(u, "u", 0, 1)
        asked = self._checked_context(context)
        t, horizon = self._round, self.problem.horizon
        if self.problem.instance is not None and t >= self.problem.instance.horizon:
            raise ValueError(f"act: round {t} is past the instance's {self.problem.instance.horizon} rounds")
        if self.problem.has_contexts and horizon is not None and t >= horizon:
            raise ValueError(f"act: round {t} is past the horizon, {horizon} rounds")
        rows = rows_at.py_func(self._tables, asked)
        self._stepper.advance(t, float(t))
        self._policy = self._stepper.policy(rows, t)
        choice = int(draw(self._policy, drawn))
        number = int(rows.actions[choice])
        self._latest = PlayedRound(
            t, number if self._actions is None else self._actions[number],
            float(self._policy[choice]) if self.learner.known_policy else None, number, choice, asked, np.empty(0),
        )  # fmt: skip
        self._round += 1
        return self._latest

    def _checked_context(self, context: int | None) -> int:
        n = self.problem.n_contexts
        if (context is None) == self.problem.has_contexts:
            expected = f"one of {n}" if self.problem.has_contexts else "none, as P is one map"
            raise ValueError(f"context: is {shown(context)}, expected {expected}")
        if context is not None and check_count(context, "context", 0) >= n:
            raise ValueError(f"context: is {context}, expected 0 to {n - 1}")
        return int(context or 0)

    def policy(self) -> Floats:
        """The distribution that the last action was drawn from."""
        self.learner.check_policy()
        if self._latest is None:
            raise ValueError("policy: no action was drawn yet, expected an `act` before")
        rows = rows_at.py_func(self._tables, self._latest.context)
        out = np.zeros(self.problem.n_actions)
        out[rows.actions] = self._policy
        return out

    def observe(self, decision: PlayedRound, state: Any) -> None:
        """Report the state that the action led to."""
        if decision is not self._latest or decision.state is not None:
            raise ValueError(f"decision: of round {decision.round} cannot be observed now, only the latest can, once")
        number, rows = self._state_number(state), rows_at.py_func(self._tables, decision.context)
        if rows.columns[number, decision.choice] == 0:
            raise ValueError(f"state: {state!r} cannot follow action {decision.action!r}, whose P is 0 there")
        decision.state, decision.seen = (number if self._states is None else self._states[number]), number
        decision.saved = self._stepper.remember(rows, self._policy, decision.choice, number)
        self._stepper.see(_played(decision), decision.saved)

    def _state_number(self, state: Any) -> int:
        if self._states is not None:
            if not isinstance(state, Hashable) or state not in self._states:  # an array is equal to nothing and all
                raise ValueError(unknown_name("state", state, map(str, self._states)))
            return self._states.index(state)
        if check_count(state, "state", 0) >= self.problem.n_states:
            raise ValueError(f"state: is {state}, expected 0 to {self.problem.n_states - 1}")
        return int(state)

    def update(self, decision: PlayedRound, loss: float | None = None, reward: float | None = None) -> None:
        """Report the outcome, whenever it comes: a loss or a reward in [0, 1]."""
        if decision.state is None or decision.resolved:
            raise ValueError(f"decision: of round {decision.round} has no state yet, or its outcome came already")
        if self._latest is not None and self._latest.state is None:
            raise ValueError(f"update: round {self._latest.round} has acted, expected its state to be observed before")
        if (loss is None) == (reward is None):
            raise ValueError("outcome: expected a loss or a reward, and one of them only")
        value = check_number(loss, "loss", 0, 1) if reward is None else 1.0 - check_number(reward, "reward", 0, 1)
        decision.resolved = True
        wait = max(self._round - decision.round - 1, 0)
        self._stepper.advance(self._round, float(self._round))
        self._stepper.learn(_played(decision, wait), value, decision.saved)

    def __repr__(self) -> str:
        K, S = self.problem.P.shape[-2:]
        return f"Player({self.learner!r}, {K} actions, {S} states, {self._round} rounds played)"


def _played(decision: PlayedRound, wait: float = 0.0) -> Played:
    return Played(decision.round, float(decision.round), decision.number, decision.seen, decision.context, float(wait))


def _labels(names: Any, kind: str, count: int) -> list[Any] | None:
    """One label for each, all different."""
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ValueError(f"{kind}: is {shown(names)}, expected a list of {count} names")
    listed = list(names)
    if len(listed) != count:
        raise ValueError(f"{kind}: has {len(listed)} names, expected {count}, as P has")
    if len({str(name) for name in listed}) < count:
        raise ValueError(f"{kind}: has a name twice, expected {count} different ones")
    return listed
