"""State-EXP3: exponential weights on losses pooled through the state.

    L(a) += P(s|a) · X / q(s)        q(s) = sum_a x(a) P(s|a) as of the round played        x(a) ∝ exp(-rate · L(a))

With `copies` > 1, copy t mod copies plays round t and learns from it alone (Interleaved-State-EXP3 at "d+1").
With `groups`, the same on merged states. L is a cache of P G: `charges` holds G, one number a state, all there
is to remember.

    copies="idle"     BOLD (Joulani et al. 2013): the lowest-numbered copy that waits for nothing plays, a new one if
                      all wait; with one delay for all this is "d+1"
    denominator       with contexts: "marginal", q(s) averaged over the latest requests, this one among them (`sums`),
                      "conditional", q(s) of the own context alone, which is blind to states it cannot reach, or how
                      often each context comes, for the average over all of them as they would be played now
    caution=γ         implicit exploration (Neu 2015, Kocák et al. 2014), pooled: divide by q(s) + γ; theirs: "rate/2"
    rate="capacity"   Eldowa et al. 2024, d = 0: sqrt(2 log K/((vbar - 1) T)), vbar a proved bound of the dimension

Source: paper, Section 3 and Appendices A and B; guarantees: Theorems A, 1 and B (one copy), 3 and 4.
Differs from the source: nothing. The three options are of the neighbours named, read in abstract only; BOLD's rate is
that of "d+1", the pooled caution and its bound are ours (docs/theory.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from statepool.checks import Floats, Ints, check_groups, check_number, check_shares, shown, unknown_name
from statepool.compiling import compiled, compiled_apart
from statepool.dimension import bracket
from statepool.kernels import AT_ONCE, LARGEST_CHARGE, dot
from statepool.learners.additive import add_additive_rule
from statepool.learners.learner import Learner, Problem, check_copies, check_settings, n_copies, n_rows
from statepool.learners.maps import Maps, start_maps, varies
from statepool.learners.parts.weights import (
    Weights,
    charge,
    distribution,
    draw,
    reach,
    refresh_for,
    reweigh_rows,
    set_totals,
    start_weights,
)
from statepool.learners.sums import REQUESTS, Newcomers, Sum, Sums, lay_out, marginal, start_clock, start_newcomers

CAPACITY, IDLE, HALF = "capacity", "idle", "rate/2"
MARGINAL, CONDITIONAL = "marginal", "conditional"
CAPACITY_GAP = 0.05
"""How closely the dimension is bracketed for a rate."""

MOST_NUMBERS = 1 << 27
"""A copy for every round would take this many totals at most: a gigabyte."""


@dataclass(frozen=True)
class StateEXP3(Learner):
    """The paper's learner: exponential weights on losses pooled through the state.

    L(a) += P(s|a) · X / q(s), with q(s) of the round played; x(a) ∝ exp(-rate · L(a)).

    `rate` None follows the paper, "capacity" is for a proved dimension; `copies` interleaves learners ("d+1", "idle");
    `groups` merges states, one index a state; `mixing` is the share of uniform play; `caution` is added to q(s).

    >>> import statepool as sp
    >>> sp.StateEXP3(groups=[0, 0, 1]).groups
    (0, 0, 1)
    """

    rate: float | str | None = None
    copies: int | str = 1
    groups: ArrayLike | None = None
    mixing: float = 0.0
    caution: float | str = 0.0
    denominator: str | ArrayLike = MARGINAL
    carried_by_request: ClassVar[tuple[int, ...]] = (0,)
    knows_contexts: ClassVar[bool] = True
    tells_play_for: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings(None if self.rate == CAPACITY else self.rate, self.mixing)  # type: ignore[arg-type]
        if self.copies != IDLE:
            check_copies(self.copies)
        if self.caution != HALF:
            check_number(self.caution, "caution", 0, 1e9)
        if not isinstance(self.denominator, str):
            object.__setattr__(self, "denominator", tuple(check_shares(self.denominator).tolist()))
        elif self.denominator not in (MARGINAL, CONDITIONAL):
            raise ValueError(unknown_name("denominator", self.denominator, (MARGINAL, CONDITIONAL)))
        if self.groups is not None:
            labels = check_groups(self.groups)
            object.__setattr__(self, "groups", tuple(labels.tolist()))  # a copy that can be compared and hashed

    def sums(self, requests: bool = False) -> tuple[Sum, ...]:
        kept = requests and self.denominator == MARGINAL
        return Sum("charges", told_by="outcome"), *(REQUESTS if kept else ())

    def start(self, problem: Problem) -> StateMemory:
        groups = np.arange(problem.n_states) if self.groups is None else check_groups(self.groups, problem.n_states)
        maps = problem.maps if self.groups is None else _merged_maps(problem, groups)
        columns = maps.columns
        copies = problem.delay + 1 if self.copies == IDLE else n_copies(self.copies, problem.delay)
        rows = _most_copies(problem) if self.copies == IDLE else n_rows(copies, problem.horizon)
        rate = self._rate(problem, columns, copies)
        if rows > 1 and maps.vary:
            raise ValueError(f"copies: is {shown(self.copies)}, expected 1 where there are contexts")
        weights = start_weights(problem.n_actions, rate, self.mixing, rows, len(columns))
        sums, of = lay_out(self.sums(problem.has_requests), problem.n_states, problem.n_actions)
        return StateMemory(
            sums, start_clock(), of["charges"][0], weights, maps, groups, np.zeros((rows, columns.shape[-2])),
            rate / 2 if self.caution == HALF else float(self.caution), np.zeros(1, np.int64),
            np.zeros(rows if self.copies == IDLE else 0, np.bool_),
            problem.newcomers or start_newcomers(problem.n_actions), self._shares(problem, maps),
            np.zeros(columns.shape[-2]), np.zeros(max(columns.shape[-2], AT_ONCE) if maps.vary else 0),
        )  # fmt: skip

    def _shares(self, problem: Problem, maps: Maps) -> Floats:
        if isinstance(self.denominator, str) or not maps.vary:
            return np.zeros(0)
        told = check_shares(self.denominator)
        if told.size != maps.map_of.size:
            raise ValueError(f"denominator: has {told.size} shares, expected {maps.map_of.size}, one a context")
        return np.asarray(np.bincount(maps.map_of, told, minlength=len(maps.columns)), float)

    def _rate(self, problem: Problem, columns: Floats, copies: int) -> float:
        if self.rate == CAPACITY:
            return capacity_rate(columns.swapaxes(-1, -2).reshape(-1, columns.shape[-2]), problem.known_horizon())
        return problem.rate(self.rate, width=columns.shape[-2], copies=copies)  # type: ignore[arg-type]

    def ticket_width(self, problem: Problem) -> int:
        return 2 if self.copies == IDLE else 1


class StateMemory(NamedTuple):
    sums: Sums
    clock: Any
    charges: Floats
    """G of all copies together, a number a state."""
    weights: Weights
    """One row a copy; its totals are a cache of P^g G."""
    maps: Maps
    groups: Ints
    by_copy: Floats
    """G, one row a copy, a number a group."""
    caution: float
    """Added to q(s) in the denominator."""
    turn: Ints
    """The copy that plays."""
    busy: NDArray[np.bool_]
    """Which copies wait for an outcome; empty where they take turns."""
    newcomers: Newcomers
    shares: Floats
    """How often each map is asked for, where that is told."""
    averages: Floats
    """Then: q of each group, averaged over the maps."""
    reaches: Floats
    """With contexts: q of each group under the play of this request (and room for AT_ONCE)."""


def capacity_rate(P: Floats, horizon: int) -> float:
    """The rate for a budget (vbar - 1) T without delay; vbar is bounded from above."""
    n_actions = P.shape[0]
    spread = (bracket(P, gap=CAPACITY_GAP).upper - 1) * horizon
    return float(np.sqrt(2 * np.log(n_actions) / spread)) if spread > 0 else 1.0


def _most_copies(problem: Problem) -> int:
    """A copy for every round: what is never played is never touched, and takes no memory."""
    if problem.horizon is None:
        raise ValueError("horizon: is None, expected a number of rounds: idle copies may come to one a round")
    if problem.horizon * problem.n_actions > MOST_NUMBERS:
        raise ValueError(
            f"copies: 'idle' may take one copy a round, {problem.horizon} of {problem.n_actions} actions, "
            f"expected at most {MOST_NUMBERS} numbers in all, or copies='d+1'"
        )
    return problem.horizon


def _merged_maps(problem: Problem, groups: Ints) -> Maps:
    return start_maps(merge_columns(problem.columns, groups), problem.contexts, problem.available)


def merge_columns(columns: Floats, groups: Ints) -> Floats:
    """The map onto groups, P^g, one row a group."""
    merged = np.zeros((*columns.shape[:-2], int(groups.max()) + 1, columns.shape[-1]))
    for state, group in enumerate(groups):
        merged[..., group, :] += columns[..., state, :]
    return merged


@compiled
def choose_idle(memory: Any) -> None:
    """The lowest-numbered copy that waits for nothing takes the turn."""
    copy = 0
    while memory.busy[copy]:
        copy += 1
    memory.turn[0] = copy


def prepare(memory: Any, t: int) -> None:
    if memory.busy.size > 0:
        choose_idle(memory)
    else:
        memory.turn[0] = t % memory.by_copy.shape[0]
    if memory.shares.size > 0:
        _average(memory)
    refresh_for(memory.weights, memory.turn[0], memory.maps)


@compiled_apart
def _average(memory: Any) -> None:
    """q of each group over all maps, as they would be played now."""
    maps, averages = memory.maps, memory.averages
    own = maps.now[0]
    averages[:] = 0.0
    for number in range(memory.shares.size):
        maps.now[0] = number
        read_rows(memory)
        for g in range(averages.size):
            averages[g] += memory.shares[number] * memory.reaches[g]
    maps.now[0] = own
    read_rows(memory)


def rest(memory: Any, out: Any) -> None:
    distribution(memory.weights, memory.turn[0], out)


def pick(memory: Any, u: float) -> int:
    return draw(memory.weights, memory.turn[0], u)


def own_reach(memory: Any, state: int) -> float:
    if memory.reaches.size > 0:
        return memory.reaches[memory.groups[state]]
    return reach(memory.weights, memory.turn[0], memory.maps.columns[memory.maps.now[0]][memory.groups[state]])


def reach_under(memory: Any, play: Any, state: int) -> float:
    return dot(play, memory.maps.columns[memory.maps.now[0]][memory.groups[state]])


def carry(memory: Any, state: int, q: float, ticket: Any) -> None:
    if memory.shares.size > 0:
        q = memory.averages[memory.groups[state]]
    ticket[0] = marginal(memory.sums, state, q) + memory.caution
    if memory.busy.size > 0:
        ticket[1] = memory.turn[0]


def notice(memory: Any, t: int, action: int, state: int) -> None:
    if memory.busy.size > 0:
        memory.busy[memory.turn[0]] = True


@compiled
def lesson(out: Any, loss: float, t: int, ticket: Any) -> None:
    # 0 / q(s) is not a number where q(s) has underflowed.
    out[0] = min(loss / ticket[0], LARGEST_CHARGE) if loss > 0.0 else 0.0


@compiled
def release(memory: Any, t: int, ticket: Any) -> int:
    """The copy that played round t, which waits no longer."""
    if memory.busy.size == 0:
        return t % memory.by_copy.shape[0]
    copy = int(ticket[1])
    memory.busy[copy] = False
    return copy


def absorb(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    copy, group, amount = release(memory, t, ticket), memory.groups[state], memory.sums.outcome.lesson[0]
    memory.by_copy[copy, group] += amount
    if not varies(memory.maps):
        charge(memory.weights, copy, memory.maps.columns[memory.maps.now[0]][group], amount)


def rebuild(memory: Any) -> None:
    memory.by_copy[0, :] = 0.0
    for s in range(memory.groups.size):
        memory.by_copy[0, memory.groups[s]] += memory.charges[s]
    set_totals(memory.weights, memory.maps.columns[memory.maps.now[0]], memory.by_copy[0], memory.newcomers.handicap)


@compiled
def read_rows(memory: Any) -> None:
    """The play of the only copy, through the rows of the request."""
    reweigh_rows(memory.weights, memory.maps, memory.by_copy[0], memory.newcomers.handicap, memory.reaches)


add_additive_rule(
    StateMemory, prepare=prepare, rest=rest, pick=pick, own_reach=own_reach, reach_under=reach_under, carry=carry,
    notice=notice, lesson=lesson, absorb=absorb, read_rows=read_rows, rebuild=rebuild,
)  # fmt: skip
