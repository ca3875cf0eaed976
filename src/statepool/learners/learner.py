"""What every learner is, and what it is told before the first round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

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
)
from statepool.kernels import columns_of
from statepool.learners.maps import Maps, start_maps
from statepool.learners.sums import Newcomers, Sum
from statepool.model import Instance
from statepool.rates import default_rate
from statepool.stream import Seed, Stream

if TYPE_CHECKING:
    from statepool.learners.player import Player


@dataclass(frozen=True)
class Problem:
    """What a learner knows before the first round, as `Learner.start` is told it."""

    P: Floats
    """The map, actions × states, read-only; with contexts, contexts × actions × states."""
    horizon: int | None
    """How many rounds there will be; None: nobody knows."""
    delay: int
    """How many rounds late an outcome usually is: with one delay a round, the mean of those that end in time."""
    stream: Stream
    """The luck of the run; a rule that needs more than its uniform keeps `stream.side_generator()` in its memory."""
    instance: Instance | None = None
    """The true losses, which only oracles look at (`reads_losses`)."""
    contexts: Ints | None = None
    """The context of each round, where P has a map for each; a learner looks no further than the round it plays."""
    available: Bools | None = None
    """With contexts: which actions each may be answered with."""
    newcomers: Newcomers | None = None
    """Where actions come and go: what each is charged for when it came."""
    live: bool = False
    """Whether this is a live pool: a learner of the map starts from the rows of P, each worth one round, and not from
    even ones, and any request may bring rows of its own."""

    @property
    def n_contexts(self) -> int:
        """How many contexts there are; 1 where P is one map."""
        return 1 if self.contexts is None else self.P.shape[0]

    @property
    def n_actions(self) -> int:
        """How many actions there are."""
        return self.P.shape[-2]

    @property
    def n_states(self) -> int:
        """How many states there are."""
        return self.P.shape[-1]

    @cached_property
    def columns(self) -> Floats:
        """The map transposed (with contexts each): one contiguous row a state, one's own to write to."""
        columns = columns_of(self.P)
        return np.asarray(columns if columns.flags.writeable else columns.copy())

    @property
    def has_requests(self) -> bool:
        """Whether requests bring rows of their own; a live pool cannot know that none will."""
        return self.live or self.maps.vary

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
        """The horizon, for a learner that cannot do without; raise ValueError where it is None."""
        if self.horizon is None:
            raise ValueError("horizon: is None, expected a number of rounds (or, for most learners, an explicit rate)")
        return self.horizon

    def oracle(self) -> Instance:
        """The instance with its true losses, for an oracle; raise ValueError where there is none."""
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
        """A fresh memory, a NamedTuple of numbers and arrays whose type `add_rule` has tied a rule to.

        `problem` says what is known before the first round: `n_actions`, `n_states`, the map `P` and, transposed,
        `columns`, the `horizon` (or None) and the usual `delay`; see `Problem`.
        """

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
        from statepool.learners.player import Player  # which is made of learners

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
