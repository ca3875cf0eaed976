"""SelfTuned: the learner to run; no horizon, no rate, no delay, no knob.

    leader    argmin_a P (h - b),  b² = log⁺(mean n / n) / (10 (n + 2))
              h: state means mixed over memories of several lengths (`memories`);  n: visits of states, in flight or not
    safe      State-EXP3 on the rounds since the last power of two, s; starts on the leader of that moment with 1/s
              spread evenly, at the rate of Theorem 1 for a learner that is given SHARE of the rounds
    play      SHARE on safe, the rest on the leader; all on safe while one of two alarms is on

An alarm rings when what h foretold was wrong by more than luck, or when more was lost than safe would have lost
(`alarms`). The second gives the floor: on any oblivious instance with a fixed delay, regret is within a constant times
sqrt(log(K T)/log K) of Theorem 1.

With `learn_map` the map is counted from the pairs seen (P itself is not read), optimism extends to rows played less
than their share, and safe's totals are read through today's map; with contexts rows lean on each other
(`context_rows`). The floor is proved for the known map.

Source: ours; safe is the paper's State-EXP3. Proof, and what is only measured: docs/self-tuned.md.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from statepool.checks import Floats, Ints, shown
from statepool.compiling import compiled, compiled_apart
from statepool.kernels import LARGEST_CHARGE, TIE, combine, dot, log, lowest_index
from statepool.learners.additive import add_additive_rule
from statepool.learners.learner import Learner, Problem
from statepool.learners.maps import Maps, bar_values, start_even_maps, start_maps, varies
from statepool.learners.parts import alarms, memories
from statepool.learners.parts.alarms import Alarms, carry_alarms, is_ringing, start_alarms, teach_alarms
from statepool.learners.parts.context_rows import ContextRows, read_context, see_pair, start_rows
from statepool.learners.parts.memories import (
    N_LESSON,
    N_MEMORIES,
    Memories,
    carry_guesses,
    mean_delay,
    mix,
    start_memories,
    teach_memories,
)  # fmt: skip
from statepool.learners.parts.safe import SHARE, begin, lean_on, start_clock
from statepool.learners.parts.weights import (
    Weights,
    charge,
    distribution,
    draw,
    reach,
    reach_all,
    refresh_for,
    start_weights,
)
from statepool.learners.sums import REQUESTS, Newcomers, Sum, Sums, lay_out, marginal, start_newcomers

UNKNOWN = -1

OPTIMISM = 0.4
"""The squared bonus, in units of the variance of a mean of n losses (at the most 1/4n) times log⁺."""

ALARMS = N_MEMORIES
REACH = ALARMS + 3
"""Where a ticket holds what the alarms need, and q(S)."""

PAIRS = Sum("pairs", told_by="state", over="cells")
CHARGES = Sum("charges", told_by="outcome", anew=True)


@dataclass(frozen=True)
class SelfTuned(Learner):
    """The learner to run: no horizon, no rate, no delay, no knob; follows drift and keeps a proved floor.

    `learn_map` True learns the map while it plays. What each part does, and where it fails: docs/self-tuned.md.

    >>> import statepool as sp
    >>> sp.simulate(sp.families.spread(seed=0, horizon=500), sp.SelfTuned(), delay=10, seed=80_000).regret < 50
    True
    """

    learn_map: bool = False
    carried_by_request: ClassVar[tuple[int, ...]] = (ALARMS + alarms.RATIO, REACH)
    knows_contexts: ClassVar[bool] = True
    tells_play_for: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.learn_map, bool):
            raise ValueError(f"learn_map: is {shown(self.learn_map)}, expected True or False")

    def sums(self, requests: bool = False) -> tuple[Sum, ...]:
        learnt, reached = (PAIRS,) if self.learn_map else (), REQUESTS if requests else ()
        return *memories.SUMS, CHARGES, *alarms.SUMS, *learnt, *reached

    @property
    def learns_map(self) -> bool:
        return self.learn_map

    def start(self, problem: Problem) -> "SelfTunedMemory":
        K, S = problem.n_actions, problem.n_states
        maps = self._start_maps(problem)
        views = lay_out(self.sums(problem.live or maps.vary), S, K, n_registers=S)
        several, learnt = maps.vary, K if self.learn_map else 0
        rows = start_rows(len(maps.columns) if several and self.learn_map else 0, S, K)
        return SelfTunedMemory(
            views.sums, start_clock(), start_memories(views), start_alarms(views), views.of["charges"][0],
            views.sums.registers, start_weights(K, 1.0), maps,
            LearntMap(
                views.of.get("pairs", np.zeros((0, 0))), maps.columns[0, :, :learnt].copy(), np.zeros(learnt), rows
            ),
            np.empty(S), np.empty(K), np.empty(K), problem.newcomers or start_newcomers(K),
            np.full(len(maps.columns), UNKNOWN), np.zeros(S if several else 0),
        )  # fmt: skip

    def _start_maps(self, problem: Problem) -> Maps:
        if not self.learn_map:
            return problem.maps
        if problem.contexts is not None:
            return start_even_maps(problem.P.shape, problem.contexts, problem.available)
        K, S = problem.n_actions, problem.n_states
        return start_maps(problem.columns if problem.live else np.full((S, K), 1 / S))

    def ticket_width(self, problem: Problem) -> int:
        return REACH + 1


class LearntMap(NamedTuple):
    """Empty where the map is known. One row a state, one column an action."""

    pairs: Floats
    prior: Floats
    """Counts as one round."""
    visits: Floats
    rows: ContextRows


class SelfTunedMemory(NamedTuple):
    sums: Sums
    clock: Any
    memories: Memories
    alarms: Alarms
    charges: Floats
    anchor: Floats
    """The optimistic state means of the round that safe started in: it started on the action best by them."""
    safe: Weights
    """Its totals are the rate times L, and a cache of P `charges`."""
    maps: Maps
    learnt: LearntMap
    hopes: Floats
    values: Floats
    squares: Floats
    newcomers: Newcomers
    anchors: Ints
    """Of each map, the action that safe started on, where it has been looked for since."""
    reaches: Floats
    """With contexts: the probability of each state under safe's play."""


@compiled
def hope_for_states(memory: Any) -> float:
    """P (h - b) into `values`; how many rounds h rests on is returned."""
    mean, played, hopes = memory.memories.mean, memory.memories.visits, memory.hopes
    n_states = mean.size
    total = 0.0
    for s in range(n_states):
        total += played[s]
    for s in range(n_states):
        scarcity = (total + n_states) / (n_states * (played[s] + 1.0))
        hopes[s] = mean[s]
        if scarcity > 1.0:
            hopes[s] -= np.sqrt(OPTIMISM * 0.25 / (played[s] + 2.0) * log(scarcity))
    combine(memory.maps.columns[memory.maps.now[0]], hopes, memory.values)
    bar_values(memory.maps, memory.values)
    return total


@compiled_apart
def _hope_for_rows(memory: Any, total: float) -> None:
    """The same for the rows of a map being learnt: a row seen n times puts P h within sqrt(var h / n)."""
    values, squares, hopes = memory.values, memory.squares, memory.hopes
    visits = memory.learnt.rows.worth if memory.learnt.rows.worth.size > 0 else memory.learnt.visits
    for s in range(hopes.size):
        hopes[s] *= hopes[s]
    combine(memory.maps.columns[memory.maps.now[0]], hopes, squares)
    for a in range(visits.size):
        scarcity = (total + visits.size) / (visits.size * (visits[a] + 1.0))
        variance = max(squares[a] - values[a] * values[a], 0.0)
        values[a] -= np.sqrt(OPTIMISM * variance / (visits[a] + 1.0) * log(max(scarcity, 1.0)))


@compiled
def _worth_of_all(memory: Any) -> float:
    """How many rounds the rows of the request are worth together."""
    total = 0.0
    for a in range(memory.learnt.rows.worth.size):
        total += memory.learnt.rows.worth[a]
    return total


@compiled
def read_safe(memory: Any) -> None:
    """Safe's totals, from the charges of its states through today's map and from where it started."""
    totals, clock, newcomers, number = memory.safe.totals[0], memory.clock, memory.newcomers, memory.maps.now[0]
    columns = memory.maps.columns[number]
    if memory.anchors[number] == UNKNOWN:
        combine(columns, memory.anchor, totals)
        bar_values(memory.maps, totals)
        memory.anchors[number] = lowest_index(totals, TIE)
    combine(columns, memory.charges, totals)
    for a in range(totals.size):
        if newcomers.came[a] >= clock.start:
            totals[a] += newcomers.handicap[a]
        totals[a] *= clock.rate
    lean_on(memory.safe, memory.anchors[number], clock.start)


def read_rows(memory: Any) -> None:
    if memory.learnt.rows.worth.size > 0:
        learnt, number = memory.learnt, memory.maps.now[0]
        read_context(learnt.rows, learnt.pairs, learnt.visits, number, memory.maps.columns[number])
        memory.anchors[number] = UNKNOWN
    read_safe(memory)


def prepare(memory: Any, t: int) -> None:
    clock = memory.clock
    mix(memory.memories, t)
    total = hope_for_states(memory)
    if t >= 2 * clock.start:
        begin(clock, t, mean_delay(memory.memories), memory.charges.size, memory.values.size)
        for s in range(memory.hopes.size):
            memory.anchor[s] = memory.hopes[s]
            memory.charges[s] = 0.0
        memory.alarms.excess[0] = 0.0
        memory.anchors[:] = UNKNOWN
        read_safe(memory)
    elif memory.learnt.visits.size > 0 and not varies(memory.maps):
        memory.anchors[0] = UNKNOWN
        read_safe(memory)
    if memory.learnt.visits.size > 0:
        _hope_for_rows(memory, _worth_of_all(memory) if memory.learnt.rows.worth.size > 0 else total)
    clock.leader = lowest_index(memory.values, TIE)
    refresh_for(memory.safe, 0, memory.maps)
    if memory.reaches.size > 0:
        reach_all(memory.safe, memory.maps.columns[memory.maps.now[0]], memory.reaches)
    clock.part = 1.0 if is_ringing(memory.alarms, clock.start, SHARE) else SHARE


def lead(memory: Any) -> tuple[int, float]:
    return memory.clock.leader, 1.0 - memory.clock.part


def rest(memory: Any, out: Any) -> None:
    distribution(memory.safe, 0, out)


def pick(memory: Any, u: float) -> int:
    part = memory.clock.part
    if u < 1.0 - part:
        return memory.clock.leader
    return draw(memory.safe, 0, (u - (1.0 - part)) / part)


def own_reach(memory: Any, state: int) -> float:
    column, part = memory.maps.columns[memory.maps.now[0]][state], memory.clock.part
    return (1.0 - part) * column[memory.clock.leader] + part * _safe_reach(memory, state)


@compiled
def _safe_reach(memory: Any, state: int) -> float:
    if memory.reaches.size > 0:
        return memory.reaches[state]
    return reach(memory.safe, 0, memory.maps.columns[memory.maps.now[0]][state])


def reach_under(memory: Any, play: Any, state: int) -> float:
    return dot(play, memory.maps.columns[memory.maps.now[0]][state])


def carry(memory: Any, state: int, q: float, ticket: Any) -> None:
    safe = _safe_reach(memory, state)
    carry_guesses(memory.memories, state, ticket)
    carry_alarms(memory.memories, state, safe / q if q > 0.0 else 1.0, ticket[ALARMS:])
    ticket[REACH] = marginal(memory.sums, state, q)


def notice(memory: Any, t: int, action: int, state: int) -> None:
    if memory.learnt.visits.size > 0:
        memory.learnt.visits[action] += 1.0
        if memory.learnt.rows.worth.size > 0:
            see_pair(memory.learnt.rows, memory.maps.now[0], action, state)
        else:
            _read_row(memory, action)


@compiled
def _read_row(memory: Any, action: int) -> None:
    learnt, columns = memory.learnt, memory.maps.columns[memory.maps.now[0]]
    for s in range(learnt.pairs.shape[0]):
        columns[s, action] = (learnt.pairs[s, action] + learnt.prior[s, action]) / (learnt.visits[action] + 1.0)


@compiled
def lesson(out: Any, loss: float, t: int, ticket: Any) -> None:
    teach_memories(out, loss, t, ticket)
    out[N_LESSON] = min(loss / ticket[REACH], LARGEST_CHARGE) if loss > 0.0 else 0.0
    teach_alarms(out[N_LESSON + 1 :], loss, ticket[ALARMS:])


def absorb(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    if t >= memory.clock.start and not varies(memory.maps):
        charge(
            memory.safe,
            0,
            memory.maps.columns[memory.maps.now[0]][state],
            memory.clock.rate * memory.sums.outcome.lesson[N_LESSON],
        )


def rebuild(memory: Any) -> None:
    learnt = memory.learnt
    for a in range(learnt.visits.size):
        learnt.visits[a] = 0.0
        for s in range(learnt.pairs.shape[0]):
            learnt.visits[a] += learnt.pairs[s, a]
        _read_row(memory, a)
    memory.anchors[memory.maps.now[0]] = UNKNOWN
    read_safe(memory)


add_additive_rule(
    SelfTunedMemory, prepare=prepare, lead=lead, rest=rest, pick=pick, own_reach=own_reach, reach_under=reach_under,
    carry=carry, lesson=lesson, notice=notice, absorb=absorb, read_rows=read_rows, rebuild=rebuild,
)  # fmt: skip
