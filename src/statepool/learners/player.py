"""A learner driven by hand: outcomes are told whenever they come."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from statepool.checks import Floats, check_count, check_number, shown, unknown_name
from statepool.learners.learner import Learner, Problem, unknown_play
from statepool.learners.outside import explained, python_of, suited
from statepool.learners.rules import step, step_act, step_observe, step_play, step_update

PLAYERS_LUCK = 2
"""Which of the stream's side generators a player draws from who is given no uniforms."""


@dataclass
class PlayedRound:
    """One round of a learner driven by hand."""

    round: int
    action: Any
    """Its name, or its number where actions have none."""
    known_probability: float | None
    """None where the learner does not tell its play."""
    number: int = field(repr=False)
    ticket: Floats = field(repr=False)
    state: Any = None
    resolved: bool = False

    @property
    def probability(self) -> float:
        """Of the action, when it was drawn."""
        if self.known_probability is None:
            raise ValueError(unknown_play("this learner"))
        return self.known_probability


class Player:
    """A learner driven by hand: `act`, then `observe` the state, and `update` when the outcome comes, in any order.

    Between an `act` and its `observe` there is no `update`: what the ticket records is the play of that act.
    """

    def __init__(
        self, learner: Learner, problem: Problem, actions: Sequence[Any] | None = None,
        states: Sequence[Any] | None = None,
    ) -> None:  # fmt: skip
        self.problem = problem
        self.learner = learner
        self.memory = learner.start(problem)
        self._actions = _names(actions, "actions", problem.n_actions)
        self._states = _names(states, "states", problem.n_states)
        self._luck = problem.stream.side_generator(PLAYERS_LUCK)
        self._width = learner.ticket_width(problem)
        self._round = 0
        self._x = np.empty(problem.n_actions)
        self._latest: PlayedRound | None = None
        self._seen: dict[int, int] = {}

    def act(self, u: float | None = None, context: int | None = None) -> PlayedRound:
        """Choose an action: from a uniform number of your own, or from the player's seed.

        Where there are contexts, `context` is that of the request.
        """
        drawn = float(self._luck.random()) if u is None else check_number(u, "u", 0, 1)
        self._note(context)
        if self.problem.instance is not None and self._round >= self.problem.instance.horizon:
            raise ValueError(f"act: round {self._round} is past the instance's {self.problem.instance.horizon} rounds")
        number = self._step(step_act, self._round, drawn)
        if not 0 <= number < self.problem.n_actions:
            played = f"{type(self.learner).__name__} plays action {number}"
            raise ValueError(f"learner: {played}, expected 0 to {self.problem.n_actions - 1}")
        name = number if self._actions is None else self._actions[number]
        self._latest = PlayedRound(self._round, name, self._probability(number), number, np.empty(self._width))
        self._round += 1
        return self._latest

    def _note(self, context: int | None) -> None:
        contexts = self.problem.contexts
        if (context is None) != (contexts is None):
            expected = "none, as P is one map" if contexts is None else f"one of {self.problem.n_contexts}"
            raise ValueError(f"context: is {shown(context)}, expected {expected}")
        if contexts is None or context is None:
            return
        if check_count(context, "context", 0) >= self.problem.n_contexts:
            raise ValueError(f"context: is {context}, expected 0 to {self.problem.n_contexts - 1}")
        if self._round >= contexts.size:
            raise ValueError(f"act: round {self._round} is past the horizon, {contexts.size} rounds")
        contexts[self._round] = context

    def _step(self, function: Any, *arguments: Any) -> Any:
        def call(step: Any) -> Any:
            return function(self.memory, *arguments, step=step)

        with explained(self.learner, self.memory, lambda: call(python_of(step))):
            return call(suited(step, self.memory))

    def _probability(self, number: int) -> float | None:
        if not self.learner.tells_play:
            return None
        self._step(step_play, self._round, self._x)
        return float(self._x[number])

    def play(self) -> Floats:
        """The distribution that the last action was drawn from."""
        self.learner.check_tells_play()
        if self._latest is None:
            raise ValueError("play: no action was drawn yet, expected an `act` before")
        return self._x.copy()

    def observe(self, decision: PlayedRound, state: Any) -> None:
        """Tell the state that the action led to."""
        _check_decision(decision)
        if decision is not self._latest or decision.state is not None:
            raise ValueError(f"decision: of round {decision.round} cannot be observed now, only the latest can, once")
        number = self._state_number(state)
        contexts = self.problem.contexts
        rows = self.problem.P if contexts is None else self.problem.P[contexts[decision.round]]
        if rows[decision.number, number] == 0:
            raise ValueError(f"state: {state!r} cannot follow action {decision.action!r}, whose P is 0 there")
        decision.state = number if self._states is None else self._states[number]
        self._seen[decision.round] = number
        self._step(step_observe, decision.round, decision.number, number, decision.ticket)

    def _state_number(self, state: Any) -> int:
        if self._states is not None:
            if not isinstance(state, Hashable) or state not in self._states:  # an array is equal to nothing and all
                raise ValueError(unknown_name("state", state, map(str, self._states)))
            return self._states.index(state)
        if check_count(state, "state", 0) >= self.problem.n_states:
            raise ValueError(f"state: is {state}, expected 0 to {self.problem.n_states - 1}")
        return int(state)

    def update(self, decision: PlayedRound, loss: float | None = None, reward: float | None = None) -> None:
        """Tell the outcome, whenever it comes: a loss or a reward in [0, 1]."""
        _check_decision(decision)
        if decision.state is None or decision.resolved:
            raise ValueError(f"decision: of round {decision.round} has no state yet, or its outcome came already")
        if self._latest is not None and self._latest.state is None:
            raise ValueError(f"update: round {self._latest.round} has acted, expected its state to be observed before")
        if (loss is None) == (reward is None):
            raise ValueError("outcome: expected a loss or a reward, and one of them only")
        value = check_number(loss, "loss", 0, 1) if reward is None else 1.0 - check_number(reward, "reward", 0, 1)
        decision.resolved = True
        seen = self._seen.pop(decision.round)
        self._step(step_update, decision.round, decision.number, seen, value, decision.ticket)

    def __repr__(self) -> str:
        K, S = self.problem.P.shape
        return f"Player({self.learner!r}, {K} actions, {S} states, {self._round} rounds played)"


def _check_decision(decision: Any) -> None:
    if not isinstance(decision, PlayedRound):
        raise ValueError(f"decision: is {shown(decision)}, expected what `act` has returned")


def _names(names: Any, kind: str, count: int) -> list[Any] | None:
    """One name for each, all different."""
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
