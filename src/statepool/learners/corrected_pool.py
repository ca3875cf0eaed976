"""CorrectedPool: pooled through the state, and corrected by what each action's own outcomes say past the state.

    leader    argmin_a  P (h - b) + sum_s P(s|a) ê(a, s) - sqrt( doubt(a) log⁺(mean n / n(a)) )
              h, b: SelfTuned's state means and optimism;  ê, doubt: effects and their variance (`direct_effects`)
    safe      action-level EXP3 on the rounds since the last power of two, s; starts on the leader of that moment with
              1/s spread evenly, at the rate for a learner that is given SHARE of the plays
    play      SHARE on safe, the rest on the leader; all on safe while one of two alarms is on (SelfTuned's)

Where the state tells all, the evidence says so, ê and doubt vanish, and the leader is SelfTuned's. Where it does not,
actions that could be better for all that is known are tried (doubt), and their own outcomes take over.

Safe and the guard charge the action alone, so what they promise needs no state to tell anything: SelfTuned's proof
holds with the identity for a map and K for |S|. On any oblivious instance with a fixed delay, with any direct
effects, regret is of the order sqrt((K + d) T log(K T)): sublinear. docs/corrected-pool.md has the steps.

Source: ours. Not there: an unknown map.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats, Ints
from statepool.compiling import compiled
from statepool.kernels import LARGEST_CHARGE, TIE, exp, log, lowest_index
from statepool.learners.learner import Learner, Problem
from statepool.learners.parts.direct_effects import (
    WIDTH,
    Effects,
    clear_means,
    correct,
    foretell,
    learn_effect,
    start_effects,
)
from statepool.learners.parts.memories import (
    Memories,
    fade,
    faded,
    mix,
    remember,
    share_out,
    start_memories,
    write_guesses,
)
from statepool.learners.parts.weights import Weights, probability, refresh, start_weights
from statepool.learners.rules import add_rule
from statepool.learners.self_tuned import (
    ARRIVALS,
    DELAYS,
    EXCESS,
    FORETOLD,
    LEADER,
    LEAN,
    LOG_WINDOW,
    LUCK,
    PART,
    RATE,
    RATIO,
    REACH,
    ROUND,
    START,
    USUAL,
    begin_epoch,
    excess,
    foretold,
    hope_for_states,
    lean_on_anchor,
    luck,
    part_of_safe,
    pick,
    play,
    usual_loss,
)


@dataclass(frozen=True)
class CorrectedPool(Learner):
    def start(self, problem: Problem) -> "CorrectedMemory":
        K, S = problem.n_actions, problem.n_states
        memories = start_memories(S)
        return CorrectedMemory(
            memories, start_effects(K, S, memories), start_weights(K, 1.0), problem.columns, np.empty(S), np.empty(K),
            np.zeros(K), np.zeros(4, np.int64), np.zeros(7),
        )  # fmt: skip

    def ticket_width(self, problem: Problem) -> int:
        return start_memories(1).evidence.size + WIDTH + 4


class CorrectedMemory(NamedTuple):
    """Names and places are SelfTuned's, whose functions read them."""

    memories: Memories
    effects: Effects
    safe: Weights
    """Its totals are the rate times L."""
    columns: Floats
    hopes: Floats
    values: Floats
    plays: Floats
    clock: Ints
    tallies: Floats


@compiled
def _find_leader(memory: Any) -> None:
    values, plays, doubts = memory.values, memory.plays, memory.effects.doubts
    hope_for_states(memory)
    correct(memory.effects, memory.columns, values)
    total = 0.0
    for a in range(plays.size):
        total += plays[a]
    for a in range(plays.size):
        scarcity = (total + plays.size) / (plays.size * (plays[a] + 1.0))
        if scarcity > 1.0:
            values[a] -= np.sqrt(doubts[a] * log(scarcity))
    memory.clock[LEADER] = lowest_index(values, TIE)


def act(memory: Any, t: int, u: float) -> int:
    memory.clock[ROUND] = t
    share_out(memory.memories)
    fade(memory.memories, t)
    memory.tallies[FORETOLD] *= exp(LOG_WINDOW)
    memory.tallies[LUCK] *= exp(LOG_WINDOW)
    mix(memory.memories, memory.tallies[DELAYS] / max(memory.tallies[ARRIVALS], 1.0))
    clear_means(memory.effects, memory.memories)
    if t >= 2 * memory.clock[START]:
        begin_epoch(memory, t, memory.values.size)
        memory.safe.totals[:] = 0.0
        lean_on_anchor(memory)
    _find_leader(memory)
    refresh(memory.safe, 0)
    memory.tallies[PART] = part_of_safe(memory)
    return pick(memory, u)


def observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    memories, part = memory.memories, memory.tallies[PART]
    usual = usual_loss(memories)
    safe = probability(memory.safe, 0, action)
    p = part * safe + (1.0 - part if action == memory.clock[LEADER] else 0.0)
    own = ticket[memories.evidence.size + WIDTH :]
    own[LEAN], own[USUAL], own[REACH], own[RATIO] = memories.mean[state] - usual, usual, p, safe / p
    foretell(memory.effects, memories, action, state, ticket[memories.evidence.size :])
    write_guesses(memories, state, ticket)
    memory.plays[action] += 1.0


def update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    memories, tallies, age = memory.memories, memory.tallies, memory.clock[ROUND] - t
    remember(memories, t, memory.clock[ROUND], state, loss, ticket)
    learn_effect(memory.effects, memories, age, action, state, loss, ticket[memories.evidence.size :])
    own = ticket[memories.evidence.size + WIDTH :]
    kept = faded(LOG_WINDOW, age)
    tallies[FORETOLD] += kept * foretold(own[LEAN], own[USUAL], loss)
    tallies[LUCK] += kept * luck(own[LEAN], own[USUAL])
    tallies[DELAYS] += age
    tallies[ARRIVALS] += 1.0
    if t >= memory.clock[START]:
        memory.safe.totals[0, action] += min(tallies[RATE] * loss / own[REACH], LARGEST_CHARGE)
        memory.safe.changed[0] = True
        tallies[EXCESS] += excess(own[RATIO], loss)


add_rule(CorrectedMemory, act, observe, update, play)
