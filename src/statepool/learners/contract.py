"""What a learner is: settings, a memory, and up to five functions on the memory.

A learner is a frozen dataclass of settings. Its `start(problem)` makes a memory, a NamedTuple of numbers and arrays.
The rule is a set of plain functions on that memory, which `add_rule` ties to the memory's type:

    policy(memory, rows, t, out)                            write the probability of each action on offer into `out`
    remember(memory, rows, policy, choice, state, saved)    write into `saved` what learning from this decision needs
    learn(memory, played, loss, saved, sign)                the outcome of a decision has come (`sign` -1: take it back)
    see(memory, played, saved)                              optional: the state of a decision is known
    advance(memory, t, now)                                 optional: round t begins, at time `now`

`rows` are the rows of P that the request brings (`Rows`), `choice` the position of the action drawn among them,
`played` the decision that is reported on (`Played`). Simulation, live pools, replay and `Player` all call these
functions, and nothing else, so a rule is written once. `out` still holds the previous policy when `policy` is called
with rows that do not vary: a rule on which nothing has changed may leave it as it is.

In a simulation one round is

    advance, policy, (the action is drawn), remember, see        and `learn` for every outcome that arrives

A live pool makes a version of the policy from time to time. `saved` has two parts (`Learner.saved_width`): the first
must not depend on the choice, and on `rows` only where they do not vary; the second not on the state, nor on what
`policy` left. The pool stores the first part once per version, for every state, and the second with each decision.

Compiled code calls the functions by the names at the end of this module, and Numba picks them by the memory's type.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import overload
from numpy.typing import ArrayLike

from statepool.checks import Bools, Floats, Ints, shown
from statepool.compiling import INLINED, OPTIONS
from statepool.kernels import aligned, columns_of
from statepool.model import Instance, Sized
from statepool.rates import default_rate
from statepool.stream import Seed, Stream

if TYPE_CHECKING:
    from statepool.learners.player import Player


class Rows(NamedTuple):
    """The rows of P that one request brings."""

    columns: Floats
    """P transposed: one contiguous row for each state, one column for each action on offer."""
    actions: Ints
    """The catalogue number of each action on offer; -1 for one that is not in the catalogue."""
    context: int
    """The number of the request's context; 0 without contexts."""
    vary: bool
    """Whether requests bring different rows: then a policy is computed for each of them."""
    own: bool = False
    """Whether the request brought these rows itself (candidates), in place of the catalogue's."""


class RowTables(NamedTuple):
    """The columns of every context one after another, for the actions that it may be answered with."""

    columns: Floats
    actions: Ints
    starts: Ints
    """Where the actions of each context begin, and where the last ones end."""
    n_states: int
    vary: bool


def make_tables(P: Floats, available: Bools | None = None) -> RowTables:
    """The tables of one map, or of a map for each context."""
    maps = P if P.ndim == 3 else P[None]
    available = np.ones(maps.shape[:2], np.bool_) if available is None else available
    parts = [columns_of(rows[on]).ravel() for rows, on in zip(maps, available, strict=True)]
    columns = np.concatenate(parts, out=aligned(sum(part.size for part in parts)))
    actions = np.concatenate([np.flatnonzero(on) for on in available])
    starts = np.concatenate([[0], available.sum(axis=1).cumsum()])
    return RowTables(columns, actions, starts, P.shape[-1], P.ndim == 3)


@njit(inline="always")  # type: ignore[untyped-decorator]  # inlined, its arrays are counted as its caller counts
def rows_at(tables: Any, context: int) -> Any:
    """The rows of a context; it is ignored where there is one map for all."""
    number = context if tables.vary else 0
    first, last = tables.starts[number], tables.starts[number + 1]
    columns = tables.columns[tables.n_states * first : tables.n_states * last].reshape(tables.n_states, last - first)
    return Rows(columns, tables.actions[first:last], number, tables.vary, False)


class Played(NamedTuple):
    """A decision that is reported on."""

    t: int
    """Its round."""
    time: float
    """When it was made: seconds in a live pool, rounds in a simulation."""
    action: int
    """Its catalogue number, or -1."""
    state: int
    context: int
    wait: float
    """How long after `time` the outcome came; 0 in `see`."""


@dataclass(frozen=True)
class Problem(Sized):
    """What a learner knows before the first round."""

    P: Floats
    """The map, actions × states; with contexts, contexts × actions × states."""
    horizon: int | None
    """The number of rounds, or None if it is not known."""
    delay: int
    """How many rounds late an outcome usually is: with one delay for each round, the mean of those that arrive."""
    stream: Stream
    """Random numbers; a rule that draws keeps `stream.side_generator()` or `stream.key()` in its memory."""
    instance: Instance | None = None
    """The true losses, which only oracles read (`reads_losses`)."""
    has_contexts: bool = False
    """Whether requests bring rows of their own, so that `Rows.vary` is true."""
    window: float | None = None
    """After this time a decision without an outcome counts as `default`."""
    default: float = 1.0
    """The loss of a decision whose outcome did not come within the window."""
    bounds: tuple[float, float] = (0.0, 1.0)
    """The least and the largest loss. Only the parts of scale-free learners that need losses in [0, 1] read them."""
    prior: tuple[Floats, Floats] | None = None
    """Of each state, a mean loss known beforehand and how many outcomes it is worth."""
    cells: tuple[Floats, Floats] | None = None
    """The same for each action and state, where actions are known to differ beyond their states."""
    curve: tuple[Floats, Floats] | None = None
    """The delay curve known beforehand: time constants τ and weights w of F(age) = 1 - sum_k w_k exp(-age/τ_k)."""

    @cached_property
    def columns(self) -> Floats:
        """The map transposed: one contiguous row for each state (with contexts, of each)."""
        return np.asarray(columns_of(self.P)).copy()

    def rate(self, given: float | None, width: float, copies: int = 1) -> float:
        """The rate that a learner was given, or the paper's default for its width (states or actions)."""
        if given is not None:
            return float(given)
        return default_rate(self.n_actions, width, self.known_horizon(), self.delay, copies)

    def known_horizon(self) -> int:
        """The horizon, for a learner that needs it; raise ValueError where it is None."""
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

    known_policy: ClassVar[bool] = True
    """Whether `policy` writes the distribution that the action is drawn from; False where only the draw is known."""
    reads_losses: ClassVar[bool] = False
    """Whether it reads true losses: an oracle, for simulation only."""
    knows_contexts: ClassVar[bool] = False
    """Whether it can be handed rows that vary from request to request."""
    exposure: ClassVar[bool] = False
    """Whether it learns outcomes as they come where silence has a meaning (`Problem.window`). Other learners are
    handed each outcome when its window closes."""
    scale_free: ClassVar[bool] = False
    """Whether losses may be in any unit; other learners need losses in [0, 1]."""
    needs_state_probability: ClassVar[bool] = False
    """Whether it divides by the probability of a state: a state that the policy could not lead to is not learnt."""
    scratch: ClassVar[tuple[str, ...]] = ()
    """Fields of the memory that hold intermediate results only. A pool does not store them."""
    policy_varies: ClassVar[bool] = False
    """Whether the policy differs between rounds in which nothing was learnt (Thompson sampling draws each round)."""
    runs_live: ClassVar[bool] = False
    """Whether a pool can run it: all it knows is in arrays of the memory, and an outcome can be taken back."""
    learns_map: ClassVar[bool] = False
    """Whether the map is learnt from the pairs seen."""

    @abstractmethod
    def start(self, problem: Problem) -> Any:
        """A fresh memory, a NamedTuple of numbers and arrays whose type `add_rule` has tied a rule to."""

    def saved_width(self, problem: Problem) -> tuple[int, int]:
        """How many numbers a decision saves: those of its state, and those of its action and its request's rows."""
        return 1, 0

    def grow(self, memory: Any, before: Problem, after: Problem) -> Any:
        """The memory for a catalogue with more actions or other rows; arrays over actions are extended.

        Parameters
        ----------
        memory : NamedTuple
            What was learnt so far.
        before, after : Problem
            The catalogue until now, and from now on. Actions keep their numbers; new ones come at the end.
        """
        return _extended(memory, self.start(after))

    def check_policy(self) -> None:
        """Raise if the probability of an action cannot be reported."""
        if not self.known_policy:
            raise ValueError(
                f"policy: {type(self).__name__} draws from a distribution without a closed form, expected a learner "
                "whose policy is known"
            )

    def check_contexts(self, n_contexts: int) -> None:
        """Raise if there are contexts and this learner does not know of them."""
        if not self.knows_contexts:
            name = type(self).__name__
            raise ValueError(
                f"learner: {name} knows no contexts and there are {n_contexts}, expected one that does, "
                f"or PerContext({name}())"
            )

    def certificate(self, memory: Any) -> float:
        """A bound on the run's expected regret by its own account, from the memory it ended with."""
        raise ValueError(f"certificate: {type(self).__name__} keeps none, expected a learner that does: Certified")

    def player(
        self, P: ArrayLike, horizon: int | None = None, delay: int = 0, seed: Seed = 0,
        instance: Instance | None = None, *, actions: Sequence[Any] | None = None, states: Sequence[Any] | None = None,
        available: ArrayLike | None = None,
    ) -> Player:  # fmt: skip
        """Drive this learner one round at a time, with labels for actions and states if they are given.

        >>> import statepool as sp
        >>> player = sp.SelfTuned().player([[0.8, 0.2], [0.3, 0.7]], actions=["tea", "coffee"], states=["left", "cart"])
        >>> decision = player.act()
        >>> player.observe(decision, "cart")
        >>> player.update(decision, reward=1.0)
        """
        from statepool.learners.player import Player  # which is made of learners

        return Player(self, P, horizon, delay, seed, instance, actions, states, available)


def _extended(old: Any, new: Any) -> Any:
    """`new` with everything that `old` holds: arrays are copied into the leading corner of the new ones."""
    if isinstance(new, tuple):
        parts = [_extended(before, after) for before, after in zip(old, new, strict=True)]
        return type(new)(*parts) if hasattr(new, "_fields") else tuple(parts)
    if isinstance(new, np.ndarray) and new.ndim:
        new[tuple(slice(0, n) for n in old.shape)] = old
        return new
    return new


def short_name(learner: Learner) -> str:
    """The learner's class, with the settings that are not the defaults."""
    settings: tuple[Any, ...] = fields(learner) if is_dataclass(learner) else ()
    values = [(each.name, getattr(learner, each.name), each.default) for each in settings]
    given = [f"{name}={value!r}" for name, value, default in values if repr(value) != repr(default)]
    return type(learner).__name__ + (f"({', '.join(given)})" if given else "")


def problem_of(instance: Instance, learner: Learner, delay: int, stream: Stream) -> Problem:
    """What a learner knows of an instance; refused if it is more than the learner understands."""
    if instance.contexts is None:
        return Problem(instance.P, instance.horizon, delay, stream, instance)
    if learner.reads_losses:
        raise ValueError(
            f"learner: {type(learner).__name__} reads the true losses of one map and there are {instance.n_contexts}, "
            "expected one that learns from outcomes"
        )
    if instance.given_map is not None:
        return Problem(instance.given_map, instance.horizon, delay, stream, instance)
    learner.check_contexts(instance.n_contexts)
    alike = instance.available is not None and instance.available.all() and (instance.P[0] == instance.P).all()
    if alike and instance.effects is None:
        return Problem(instance.P[0], instance.horizon, delay, stream, instance)  # copies of one map are one map
    return Problem(instance.P, instance.horizon, delay, stream, instance, has_contexts=True)


def check_flag(value: Any, name: str) -> None:
    """True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name}: is {shown(value)}, expected True or False")


def typical_delay(delay: int | Ints) -> int:
    """The delay a rate is set for: the delay itself, or the floor of the mean of those that end before the horizon."""
    if isinstance(delay, int):
        return delay
    arriving = delay[delay < delay.size]
    return int(arriving.mean()) if arriving.size else delay.size


class Rule(NamedTuple):
    """The functions of one memory type."""

    policy: Callable[..., None]
    remember: Callable[..., None]
    learn: Callable[..., None]
    see: Callable[..., None]
    advance: Callable[..., None]


def _do_nothing(memory: Any, *rest: Any) -> None:
    pass


_RULES: dict[type, Rule] = {}


def add_rule(
    memory: type, policy: Any, remember: Any = _do_nothing, learn: Any = _do_nothing, see: Any = _do_nothing,
    advance: Any = _do_nothing,
) -> None:  # fmt: skip
    """Tie the functions of a rule to the type of its memory.

    Parameters
    ----------
    memory : type
        The NamedTuple that the learner's `start` returns.
    policy, remember, learn, see, advance : callable
        Plain functions as in the module's docstring; all but the first may be left out.
    """
    if memory in _RULES:
        raise ValueError(f"memory: {memory.__name__} has a rule already, expected a new NamedTuple type")
    alike = [each for each in _RULES if each.__name__ == memory.__name__]
    if any(getattr(each, "_fields", ()) == getattr(memory, "_fields", ()) for each in alike):
        memory.__name__ += f"_{len(_RULES)}"  # Numba takes types of one name and the same fields for one type
    _RULES[memory] = Rule(policy, remember, learn, see, advance)


def rule_of(memory: type) -> Rule | None:
    """The rule of a memory type, if it has one."""
    return _RULES.get(memory)


def is_own(memory: type) -> bool:
    """Whether a memory type is the package's, whose rules do not allocate and stay inside their arrays."""
    return memory.__module__.partition(".")[0] == __name__.partition(".")[0]


def _dispatched(name: str) -> Callable[..., Any]:
    """A function that compiled code and Python call by this name: that of the rule of its memory."""

    def call(memory: Any, *rest: Any) -> Any:
        return getattr(_RULES[type(memory)], name)(memory, *rest)

    def find(own: bool) -> Callable[..., Any]:
        def found(memory: Any, *rest: Any) -> Any:
            if not isinstance(memory, types.BaseNamedTuple):
                return None
            kind = memory.instance_class
            return getattr(_RULES[kind], name) if kind in _RULES and is_own(kind) is own else None

        return found

    # A policy may be long: it is compiled by itself first, and copied into the loop only where that pays.
    overload(call, strict=False, jit_options=OPTIONS if name == "policy" else INLINED)(find(own=True))
    overload(call, strict=False, jit_options={"boundscheck": True})(find(own=False))
    return call


policy, remember, learn = _dispatched("policy"), _dispatched("remember"), _dispatched("learn")
see, advance = _dispatched("see"), _dispatched("advance")
