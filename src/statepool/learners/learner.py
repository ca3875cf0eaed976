"""What every learner is, what it is told before the first round, and how to drive one by hand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from statepool.checks import (
    Bools,
    Floats,
    Ints,
    check_count,
    check_map,
    check_maps,
    check_number,
    check_rate,
    has_contexts,
    shown,
    unknown_name,
)
from statepool.kernels import columns_of
from statepool.learners.maps import Maps, start_maps, varies
from statepool.learners.outside import explained, suited
from statepool.learners.rules import step, step_act, step_observe, step_play, step_update
from statepool.learners.sums import Newcomers, Sum
from statepool.model import Instance
from statepool.rates import default_rate
from statepool.stream import Seed, Stream

PLAYERS_LUCK = 2
"""Which of the stream's side generators a player draws from who is given no uniforms."""


@dataclass(frozen=True)
class Problem:
    """What a learner knows before the first round. Only oracles look at `instance`."""

    P: Floats
    horizon: int | None
    delay: int
    stream: Stream
    instance: Instance | None = None
    contexts: Ints | None = None
    """The context of each round, where P has a map for each; a learner looks no further than the round it plays."""
    available: Bools | None = None
    """With contexts: which actions each may be answered with."""
    newcomers: Newcomers | None = None
    """Where actions come and go: what each is charged for when it came."""
    live: bool = False
    """Whether this is a live pool: a learner of the map starts from the rows of P, each worth one play, and not from
    even ones, and any request may bring rows of its own."""

    @property
    def n_contexts(self) -> int:
        return 1 if self.contexts is None else self.P.shape[0]

    @property
    def n_actions(self) -> int:
        return self.P.shape[-2]

    @property
    def n_states(self) -> int:
        return self.P.shape[-1]

    @cached_property
    def columns(self) -> Floats:
        """The map transposed (with contexts each): one contiguous row a state, one's own to write to."""
        columns = columns_of(self.P)
        return np.asarray(columns if columns.flags.writeable else columns.copy())

    @property
    def has_requests(self) -> bool:
        """Whether requests bring rows of their own; a live pool cannot know that none will."""
        return self.live or varies(self.maps)

    @cached_property
    def maps(self) -> Maps:
        """The rows that requests bring."""
        return start_maps(self.columns, self.contexts, self.available)

    def rate(self, given: float | None, width: float, copies: int = 1) -> float:
        """The rate a learner was given, or the default for its width (states or actions)."""
        if given is not None:
            return float(given)
        return default_rate(self.n_actions, width, self.known_horizon(), self.delay, copies)

    def known_horizon(self) -> int:
        if self.horizon is None:
            raise ValueError("horizon: is None, expected a number of rounds (or, for most learners, an explicit rate)")
        return self.horizon

    def oracle(self) -> Instance:
        if self.instance is None:
            raise ValueError("instance: is None, expected an Instance: this learner reads true losses")
        return self.instance


class Learner(ABC):
    """Settings only; what a run changes lives in the memory that `start` makes."""

    tells_play: ClassVar[bool] = True
    """Whether the distribution that an action is drawn from is known."""
    reads_losses: ClassVar[bool] = False
    """Whether it is handed true losses: an oracle, for simulation only."""
    knows_contexts: ClassVar[bool] = False
    """Whether it can answer requests of several contexts, each with rows and actions of its own."""
    tells_play_for: ClassVar[bool] = False
    """Whether it tells what contexts other than the request's would be answered with (the rule has a `play_for`)."""

    carried_by_action: ClassVar[tuple[int, ...]] = ()
    """Which numbers of a ticket depend on the action drawn, and not on the state alone."""

    carried_by_request: ClassVar[tuple[int, ...]] = ()
    """Which numbers of a ticket depend on the rows that a request brings."""

    @abstractmethod
    def start(self, problem: Problem) -> Any:
        """A fresh memory, a NamedTuple whose type has a rule."""

    @property
    def learns_map(self) -> bool:
        """Whether the map is learnt from the pairs seen."""
        return False

    def sums(self, requests: bool = False) -> tuple[Sum, ...] | None:
        """What it knows, where that is additive (`requests`: also of requests that bring rows of their own).

        None: it is not, and the learner cannot run live.
        """
        return None

    def ticket_width(self, problem: Problem) -> int:
        """How many numbers a decision carries until its outcome comes."""
        return 1

    def check_tells_play(self, in_any_context: bool = False) -> None:
        """Raise if nobody can say with which probability an action was played (or would be, in any context)."""
        if not self.tells_play:
            raise ValueError(unknown_play(type(self).__name__))
        if in_any_context and not self.tells_play_for:
            raise ValueError(
                f"play: {type(self).__name__} tells it for the request at hand, expected one of any context"
            )

    def check_contexts(self, n_contexts: int) -> None:
        """Raise if there are contexts and this learner does not know of them."""
        if not self.knows_contexts:
            name = type(self).__name__
            raise ValueError(
                f"learner: {name} knows no contexts and there are {n_contexts}, expected one that does, "
                f"or Apart({name}())"
            )

    def certificate(self, memory: Any) -> float:
        """What a run's expected regret is below, by its own account, from the memory it ended with."""
        raise ValueError(f"certificate: {type(self).__name__} keeps none, expected a learner that does: Certified")

    def player(
        self,
        P: ArrayLike,
        horizon: int | None = None,
        delay: int = 0,
        seed: Seed = 0,
        instance: Instance | None = None,
        *,
        actions: Sequence[Any] | None = None,
        states: Sequence[Any] | None = None,
        available: ArrayLike | None = None,
    ) -> Player:
        """Drive this learner one round at a time, with names for actions and states if they are given.

        With a map for each context in P, `act` is told the context.

        >>> import statepool as sp
        >>> player = sp.SelfTuned().player([[0.8, 0.2], [0.3, 0.7]], actions=["tea", "coffee"], states=["left", "cart"])
        >>> decision = player.act()
        >>> player.observe(decision, "cart")
        >>> player.update(decision, reward=1.0)
        """
        if horizon is not None:
            check_count(horizon, "horizon")
        check_count(delay, "delay", 0)
        if has_contexts(P):
            table, offered = check_maps(P, available)
            self.check_contexts(table.shape[0])
            if horizon is None:
                raise ValueError("horizon: is None, expected a number of rounds where there are contexts")
            contexts = np.zeros(horizon, dtype=np.int64)  # each is written when it is told
            problem = Problem(table, horizon, delay, Stream.from_seed(seed), instance, contexts, offered)
        else:
            problem = Problem(check_map(P), horizon, delay, Stream.from_seed(seed), instance)
        if instance is not None and not np.array_equal(instance.P, problem.P):
            raise ValueError("instance: has another map, expected one whose P is the P given here")
        return Player(self, problem, actions, states)


def short_name(learner: Learner) -> str:
    """The learner's class, with the settings that are not the defaults."""
    settings: tuple[Any, ...] = fields(learner) if is_dataclass(learner) else ()
    values = [(each.name, getattr(learner, each.name), each.default) for each in settings]
    given = [f"{name}={value!r}" for name, value, default in values if repr(value) != repr(default)]
    return type(learner).__name__ + (f"({', '.join(given)})" if given else "")


def problem_of(instance: Instance, learner: Learner, delay: int, stream: Stream) -> Problem:
    """What a learner is told of an instance; refused if it is more than the learner understands."""
    if instance.contexts is None:
        return Problem(instance.P, instance.horizon, delay, stream, instance)
    if learner.reads_losses:
        raise ValueError(
            f"learner: {type(learner).__name__} reads the true losses of one map and there are {instance.n_contexts}, "
            "expected one that learns from outcomes"
        )
    if instance.told is not None:
        return Problem(instance.told, instance.horizon, delay, stream, instance)
    learner.check_contexts(instance.n_contexts)
    # A copy that may be written to has the type that memories without contexts have: rules are compiled once for both.
    contexts = instance.contexts.copy()
    return Problem(instance.P, instance.horizon, delay, stream, instance, contexts, instance.available)


def unknown_play(learner: str) -> str:
    """Why there is no probability to report."""
    return f"play: {learner} draws from a distribution that has no closed form, expected a learner that tells its play"


@dataclass
class Decision:
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
        self._latest: Decision | None = None
        self._seen: dict[int, int] = {}

    def act(self, u: float | None = None, context: int | None = None) -> Decision:
        """Choose an action: from a uniform number of your own, or from the player's seed.

        Where there are contexts, `context` is that of the request.
        """
        drawn = float(self._luck.random()) if u is None else check_number(u, "u", 0, 1)
        self._note(context)
        if self.problem.instance is not None and self._round >= self.problem.instance.horizon:
            raise ValueError(f"act: round {self._round} is past the instance's {self.problem.instance.horizon} rounds")
        number = self._step(step_act, self._round, drawn)
        name = number if self._actions is None else self._actions[number]
        self._latest = Decision(self._round, name, self._probability(number), number, np.empty(self._width))
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
        with explained(self.learner, self.memory):
            return function(self.memory, *arguments, step=suited(step, self.memory))

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

    def observe(self, decision: Decision, state: Any) -> None:
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

    def update(self, decision: Decision, loss: float | None = None, reward: float | None = None) -> None:
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
    if not isinstance(decision, Decision):
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


def check_settings(rate: float | None = None, mixing: float = 0.0) -> None:
    """The two settings most learners share."""
    check_rate(rate)
    check_number(mixing, "mixing", 0, 1)


def check_flag(value: Any, name: str) -> None:
    """True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name}: is {shown(value)}, expected True or False")


def n_copies(copies: int | str, delay: int) -> int:
    """How many interleaved copies: a number, or "d+1"."""
    return delay + 1 if copies == "d+1" else int(copies)


def n_rows(copies: int, horizon: int | None) -> int:
    """How many copies ever play: no more than there are rounds."""
    return copies if horizon is None else min(copies, horizon)


def check_copies(copies: Any) -> None:
    if isinstance(copies, str):
        if copies != "d+1":
            raise ValueError(
                f"copies: is {shown(copies)}, expected a whole number of at least 1, 'd+1', or (pooled) 'idle'"
            )
    else:
        check_count(copies, "copies")


def typical_delay(delay: int | Ints) -> int:
    """The delay a rate is set for: the delay itself, or the floor of the mean of those that end before the horizon."""
    if isinstance(delay, int):
        return delay
    arriving = delay[delay < delay.size]
    return int(arriving.mean()) if arriving.size else delay.size
