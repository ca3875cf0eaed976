"""CorrectedPool: pooled through the state, and corrected by what each action's own outcomes say past the state.

    leader    argmin_a  P (h - b) + sum_s P(s|a) ê(a, s) - sqrt( doubt(a) log⁺(mean n / n(a)) )
              h, b: SelfTuned's state means and optimism;  ê, doubt: effects and their variance (`direct_effects`)
    safe      action-level EXP3 on the rounds since the last power of two, s; starts on the leader of that moment with
              1/s spread evenly, at the rate for a learner that is given SHARE of the rounds
    play      SHARE on safe, the rest on the leader; all on safe while one of two alarms is on (SelfTuned's)

Where the state tells all, the evidence says so, ê and doubt vanish, and the leader is SelfTuned's. Where it does not,
actions that could be better for all that is known are tried (doubt), and their own outcomes take over.

Safe and the guard charge the action alone, so what they promise needs no state to tell anything: SelfTuned's proof
holds with the identity for a map and K for |S|. On any oblivious instance with a fixed delay, with any direct
effects, regret is of the order sqrt((K + d) T log(K T)): sublinear. docs/corrected-pool.md has the steps.

Source: ours. Not there: an unknown map.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled, compiled_elementwise
from statepool.kernels import LARGEST_CHARGE, TIE, combine, log, lowest_index
from statepool.learners.additive import add_additive_rule
from statepool.learners.learner import Learner, Problem
from statepool.learners.maps import Maps, bar_values, varies
from statepool.learners.parts import alarms, direct_effects, memories
from statepool.learners.parts.alarms import Alarms, carry_alarms, is_ringing, start_alarms, teach_alarms
from statepool.learners.parts.direct_effects import (
    Effects,
    add_effects,
    carry_cell,
    carry_state,
    clear_means,
    read_action,
    read_effects,
    share_beliefs,
    start_effects,
    teach_effects,
    weigh_cell,
)  # fmt: skip
from statepool.learners.parts.memories import (
    N_MEMORIES,
    Memories,
    carry_guesses,
    mean_delay,
    mix,
    start_memories,
    teach_memories,
)  # fmt: skip
from statepool.learners.parts.safe import SHARE, begin, lean_on, start_clock
from statepool.learners.parts.weights import Weights, distribution, draw, probability, refresh_for, start_weights
from statepool.learners.self_tuned import hope_for_states
from statepool.learners.sums import Newcomers, Sum, Sums, lay_out, start_newcomers

CHARGES = Sum("charges", told_by="outcome", over="actions", anew=True)

EFFECTS = memories.N_LESSON
CHARGE = EFFECTS + direct_effects.N_LESSON
"""Where a lesson has what the effects learn, and what safe is charged; the alarms' part follows."""

OF_STATE = N_MEMORIES
ALARMS = OF_STATE + 2
OF_CELL = ALARMS + 3
REACH = OF_CELL + 2
"""Where a ticket has what the effects will need of the state, the alarms, the effects of the cell, and x(A)."""


@dataclass(frozen=True)
class CorrectedPool(Learner):
    """`SelfTuned` where actions may move the outcome past the state: pooled, corrected by each action's own outcomes.

    Nothing to set. What it costs without such effects and gains with them: docs/corrected-pool.md.

    >>> import statepool as sp
    >>> sp.CorrectedPool()
    CorrectedPool()
    """

    knows_contexts: ClassVar[bool] = True
    tells_play_for: ClassVar[bool] = True
    carried_by_action: ClassVar[tuple[int, ...]] = (ALARMS + alarms.RATIO, OF_CELL, OF_CELL + 1, REACH)

    def sums(self, requests: bool = False) -> tuple[Sum, ...]:
        return (*memories.SUMS, *direct_effects.SUMS, CHARGES, *alarms.SUMS)

    def start(self, problem: Problem) -> "CorrectedMemory":
        K, S = problem.n_actions, problem.n_states
        views = lay_out(self.sums(), S, K, n_registers=S)
        effects = start_effects(views, K, S)
        read_effects(effects, problem.maps.columns[0])
        return CorrectedMemory(
            views.sums, start_clock(), start_memories(views), start_alarms(views), effects,
            views.of["charges"][0], views.sums.registers, start_weights(K, 1.0), problem.maps, np.empty(S),
            np.empty(K), np.empty(K), np.zeros(K), np.zeros(1), problem.newcomers or start_newcomers(K),
        )  # fmt: skip

    def ticket_width(self, problem: Problem) -> int:
        return REACH + 1


class CorrectedMemory(NamedTuple):
    """As SelfTuned's, with effects, and charges of actions."""

    sums: Sums
    clock: Any
    memories: Memories
    alarms: Alarms
    effects: Effects
    charges: Floats
    anchor: Floats
    """The optimistic state means of the round that safe started in, should the action that it started on retire."""
    safe: Weights
    """Its totals are the rate times L."""
    maps: Maps
    hopes: Floats
    values: Floats
    doubts: Floats
    seen_logs: Floats
    """log(n(a) + 1), n(a): how often an action was seen played; `n_plays`: how often all were."""
    n_plays: Floats
    newcomers: Newcomers


@compiled
def _find_leader(memory: Any) -> int:
    share_beliefs(memory.effects)
    add_effects(memory.effects, memory.values, memory.doubts)
    seek(memory.values, memory.doubts, memory.seen_logs, log(memory.n_plays[0] / memory.values.size + 1.0))
    bar_values(memory.maps, memory.values)
    return lowest_index(memory.values, TIE)


@compiled_elementwise
def seek(values: Any, doubts: Any, seen_logs: Any, mean_log: float) -> None:
    """values -= sqrt(doubt log⁺(mean n / n(a)))"""
    for a in range(values.size):
        values[a] -= np.sqrt(doubts[a] * max(mean_log - seen_logs[a], 0.0))


@compiled
def _read_safe(memory: Any) -> None:
    """Safe's totals, from the charges of its actions and from where it started."""
    totals, clock = memory.safe.totals[0], memory.clock
    combine(memory.maps.columns[memory.maps.now[0]], memory.anchor, totals)
    bar_values(memory.maps, totals)
    anchor = lowest_index(totals, TIE)  # unless the leader of that moment is still there
    for a in range(totals.size):
        if memory.newcomers.number[a] == clock.anchor and not varies(memory.maps):
            anchor = a
    for a in range(totals.size):
        totals[a] = clock.rate * memory.charges[a]
        if memory.newcomers.came[a] >= clock.start:
            totals[a] += clock.rate * memory.newcomers.handicap[a]
    lean_on(memory.safe, anchor, clock.start)


def prepare(memory: Any, t: int) -> None:
    clock = memory.clock
    mix(memory.memories, t)
    clear_means(memory.effects, memory.memories)
    hope_for_states(memory)
    clock.leader = _find_leader(memory)
    if t >= 2 * clock.start:
        clock.anchor = memory.newcomers.number[clock.leader]
        begin(clock, t, mean_delay(memory.memories), memory.values.size, memory.values.size)
        for s in range(memory.hopes.size):
            memory.anchor[s] = memory.hopes[s]
        for a in range(memory.charges.size):
            memory.charges[a] = 0.0
        memory.alarms.excess[0] = 0.0
        _read_safe(memory)
    refresh_for(memory.safe, 0, memory.maps)
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


def own_probability(memory: Any, action: int) -> float:
    part = memory.clock.part
    return part * probability(memory.safe, 0, action) + (1.0 - part if action == memory.clock.leader else 0.0)


def carry(memory: Any, state: int, q: float, ticket: Any) -> None:
    carry_guesses(memory.memories, state, ticket)
    carry_state(memory.memories, state, ticket[OF_STATE:])
    carry_alarms(memory.memories, state, 1.0, ticket[ALARMS:])


def carry_of_action(memory: Any, action: int, state: int, p: float, ticket: Any) -> None:
    carry_cell(memory.effects, memory.memories, action, state, ticket[OF_CELL:])
    ticket[ALARMS + alarms.RATIO] = probability(memory.safe, 0, action) / p
    ticket[REACH] = p


def notice(memory: Any, t: int, action: int, state: int) -> None:
    _count_plays(memory, action)
    memory.n_plays[0] += 1.0
    read_action(memory.effects, memory.maps.columns[memory.maps.now[0]], action)


@compiled
def _count_plays(memory: Any, action: int) -> float:
    tried, n = memory.effects.tried, 0.0
    for s in range(tried.shape[0]):
        n += tried[s, action]
    memory.seen_logs[action] = log(n + 1.0)
    return n


@compiled
def lesson(out: Any, loss: float, t: int, ticket: Any) -> None:
    teach_memories(out, loss, t, ticket)
    teach_effects(out[EFFECTS:], loss, ticket[OF_STATE:], ticket[OF_CELL:])
    out[CHARGE] = min(loss / ticket[REACH], LARGEST_CHARGE)
    teach_alarms(out[CHARGE + 1 :], loss, ticket[ALARMS:])


def absorb(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    weigh_cell(memory.effects, state, action)
    read_action(memory.effects, memory.maps.columns[memory.maps.now[0]], action)
    if t >= memory.clock.start:
        memory.safe.totals[0, action] += memory.clock.rate * memory.sums.outcome.lesson[CHARGE]
        memory.safe.changed[0] = True


def rebuild(memory: Any) -> None:
    memory.n_plays[0] = 0.0
    for a in range(memory.seen_logs.size):
        memory.n_plays[0] += _count_plays(memory, a)
    read_effects(memory.effects, memory.maps.columns[memory.maps.now[0]])
    _read_safe(memory)


def read_rows(memory: Any) -> None:
    for a in range(memory.values.size):
        read_action(memory.effects, memory.maps.columns[memory.maps.now[0]], a)
    _read_safe(memory)


add_additive_rule(
    CorrectedMemory, prepare=prepare, lead=lead, rest=rest, pick=pick, carry=carry, own_probability=own_probability,
    carry_of_action=carry_of_action, lesson=lesson, notice=notice, absorb=absorb, read_rows=read_rows,
    rebuild=rebuild,
)  # fmt: skip
