"""SelfTuned: the learner to run; no horizon, no rate, no delay, no knob.

    leader    argmin_a P (h - b),  b² = log⁺(mean n / n) / (10 (n + 2))
              h: state means mixed over memories of several lengths (`memories`);  n: plays of a state, in flight or not
    safe      State-EXP3 on the rounds since the last power of two, s; starts on the leader of that moment with 1/s
              spread evenly, at the rate of Theorem 1 for a learner that is given SHARE of the plays
    play      SHARE on safe, the rest on the leader; all on safe while one of two alarms is on

    doubt     sum (h(S) - g)(X - g) < -2 sqrt(sum (h(S) - g)² g (1 - g)),  g: mean of h over the states played
              What h foretold was wrong by more than luck: losses swing with the delay, and who follows comes late.
    guard     sum X (1 - q_safe(S)/q(S)) > 3 sqrt(s / SHARE), counted anew from each power of two
              The plays have lost that much more than safe would have. This gives the floor: on any oblivious instance
              with a fixed delay, regret is within a constant times sqrt(log(K T)/log K) of Theorem 1.

With `learn_map` the map is counted from the pairs seen (P itself is not read), optimism extends to rows played less
than their share, and safe's totals are read through today's map. The floor is proved for the known map.

Source: ours; safe is the paper's State-EXP3. Proof, and what is only measured: docs/self-tuned.md.
"""

from dataclasses import dataclass
from math import e
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats, Ints
from statepool.compiling import compiled
from statepool.kernels import TIE, combine, exp, log, lowest, lowest_index
from statepool.learners.learner import Learner, Problem
from statepool.learners.parts.map_counts import MapCounts, count_pair, start_counts
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
from statepool.learners.parts.weights import Weights, charge, distribution, draw, reach, refresh, start_weights
from statepool.learners.rules import add_rule

SHARE = 1 / 32
"""What insurance costs: a thirty-second of what following gains; the floor grows as 1/sqrt(SHARE)."""

OPTIMISM = 0.4
"""The squared bonus, in units of the variance of a mean of n losses (at the most 1/4n) times log⁺."""

DOUBT = 2.0
"""How many standard errors what was foretold may be worth less than nothing."""

GUARD = 3.0
"""The guard is that many times sqrt(s / SHARE), the standard deviation of its sum at the most: luck hardly rings it."""

LOG_WINDOW = -1e-3
"""Doubt looks back a thousand rounds."""

ROUND, LEADER, START, ANCHOR = range(4)
FORETOLD, LUCK, EXCESS, DELAYS, ARRIVALS, RATE, PART = range(7)
LEAN, USUAL, REACH, RATIO = range(4)


@dataclass(frozen=True)
class SelfTuned(Learner):
    learn_map: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.learn_map, bool):
            raise ValueError(f"learn_map: is {self.learn_map!r}, expected True or False")

    def start(self, problem: Problem) -> "SelfTunedMemory":
        K, S = problem.n_actions, problem.n_states
        counts = start_counts(K, S, 1 / S) if self.learn_map else start_counts(0, 0, 0.0)
        columns = np.full((S, K), 1 / S) if self.learn_map else problem.columns
        return SelfTunedMemory(
            start_memories(S), start_weights(K, 1.0), np.zeros(S), columns, counts, np.empty(S), np.empty(K),
            np.empty(K), np.zeros(4, np.int64), np.zeros(7),
        )  # fmt: skip

    def ticket_width(self, problem: Problem) -> int:
        return start_memories(1).evidence.size + 4


class SelfTunedMemory(NamedTuple):
    memories: Memories
    safe: Weights
    """Its totals are the rate times L, and a cache of P `charges`."""
    charges: Floats
    columns: Floats
    counts: MapCounts
    """Empty where the map is known."""
    hopes: Floats
    values: Floats
    squares: Floats
    clock: Ints
    """The round, the leader, the round safe started in, and the leader it started on."""
    tallies: Floats


@compiled
def hope_for_states(memory: Any) -> float:
    """P (h - b) into `values`; how many plays h rests on is returned."""
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
    combine(memory.columns, hopes, memory.values)
    return total


@compiled
def find_leader(memory: Any) -> None:
    """The action that looks best by optimistic state means."""
    total = hope_for_states(memory)
    if memory.counts.visits.size > 0:
        _hope_for_rows(memory, total)
    memory.clock[LEADER] = lowest_index(memory.values, TIE)


@compiled
def _hope_for_rows(memory: Any, total: float) -> None:
    """The same for the rows of a map being learnt: a row seen n times puts P h within sqrt(var h / n)."""
    visits, values, squares, hopes = memory.counts.visits, memory.values, memory.squares, memory.hopes
    for s in range(hopes.size):
        hopes[s] *= hopes[s]
    combine(memory.columns, hopes, squares)
    for a in range(visits.size):
        scarcity = (total + visits.size) / (visits.size * (visits[a] + 1.0))
        variance = max(squares[a] - values[a] * values[a], 0.0)
        values[a] -= np.sqrt(OPTIMISM * variance / (visits[a] + 1.0) * log(max(scarcity, 1.0)))


@compiled
def begin_epoch(memory: Any, t: int, width: int) -> None:
    """Safe starts anew on today's leader, at the rate for as many rounds as there were; `width`: states or actions."""
    tallies, n_actions = memory.tallies, memory.values.size
    memory.clock[START], memory.clock[ANCHOR] = t, memory.clock[LEADER]
    # A delay that is the same for all is known exactly by the first outcome that safe learns from.
    delay = tallies[DELAYS] / max(tallies[ARRIVALS], 1.0)
    length = max(t, 1)
    cost = (3.3 * (width - 1) / SHARE + 2.0 * delay + 1.0) * length
    tallies[RATE] = min(np.sqrt(2.0 * log(float(n_actions * length)) / cost), SHARE / (e * (delay + 1.0)))
    tallies[EXCESS] = 0.0


@compiled
def read_safe(memory: Any) -> None:
    """Safe's totals, from the charges of its states through today's map and from where it started."""
    combine(memory.columns, memory.charges, memory.safe.totals[0])
    lean_on_anchor(memory)


@compiled
def lean_on_anchor(memory: Any) -> None:
    """The start of an epoch, into safe's totals: 1/s spread evenly, the rest on the leader of that moment."""
    totals, n_actions = memory.safe.totals[0], memory.values.size
    odds = float(n_actions * max(memory.clock[START], 1))
    price = log(odds)
    for a in range(n_actions):
        totals[a] += price
    totals[memory.clock[ANCHOR]] -= price + log(1.0 - (n_actions - 1) / odds)
    memory.safe.references[0] = lowest(totals)
    memory.safe.changed[0] = True


@compiled
def part_of_safe(memory: Any) -> float:
    """SHARE, or 1 while an alarm is on."""
    tallies = memory.tallies
    in_doubt = tallies[FORETOLD] < -DOUBT * np.sqrt(tallies[LUCK])
    guilty = tallies[EXCESS] > GUARD * np.sqrt(memory.clock[START] / SHARE)
    return 1.0 if in_doubt or guilty else SHARE


def act(memory: Any, t: int, u: float) -> int:
    share_out(memory.memories)
    fade(memory.memories, t)
    memory.tallies[FORETOLD] *= exp(LOG_WINDOW)
    memory.tallies[LUCK] *= exp(LOG_WINDOW)
    prepare(memory, t)
    return pick(memory, u)


@compiled
def prepare(memory: Any, t: int) -> None:
    """The play of round t, from what has been shared out and faded."""
    memory.clock[ROUND] = t
    mix(memory.memories, memory.tallies[DELAYS] / max(memory.tallies[ARRIVALS], 1.0))
    if t >= 2 * memory.clock[START]:
        begin_epoch(memory, t, memory.charges.size)
        memory.charges[:] = 0.0
        read_safe(memory)
    elif memory.counts.visits.size > 0:
        read_safe(memory)
    find_leader(memory)
    refresh(memory.safe, 0)
    memory.tallies[PART] = part_of_safe(memory)


@compiled
def pick(memory: Any, u: float) -> int:
    """The action of one uniform number."""
    part = memory.tallies[PART]
    if u < 1.0 - part:
        return memory.clock[LEADER]
    return draw(memory.safe, 0, (u - (1.0 - part)) / part)


def observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    memories, column, part = memory.memories, memory.columns[state], memory.tallies[PART]
    usual = usual_loss(memories)
    safe = reach(memory.safe, 0, column)
    q = (1.0 - part) * column[memory.clock[LEADER]] + part * safe
    own = ticket[memories.evidence.size :]
    own[LEAN], own[USUAL], own[REACH], own[RATIO] = memories.mean[state] - usual, usual, q, safe / q
    write_guesses(memories, state, ticket)
    if memory.counts.visits.size > 0:
        _count(memory, action, state)


@compiled
def usual_loss(memories: Any) -> float:
    """The mean of h over the states played."""
    total = weighted = 0.0
    for s in range(memories.mean.size):
        total += memories.visits[s]
        weighted += memories.visits[s] * memories.mean[s]
    return weighted / total if total > 0.0 else 0.5


@compiled
def _count(memory: Any, action: int, state: int) -> None:
    counts = memory.counts
    count_pair(counts, action, state)
    for s in range(counts.pairs.shape[0]):
        memory.columns[s, action] = (counts.pairs[s, action] + counts.smoothing) / (counts.visits[action] + 1.0)


def update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    memories, tallies, age = memory.memories, memory.tallies, memory.clock[ROUND] - t
    remember(memories, t, memory.clock[ROUND], state, loss, ticket)
    own = ticket[memories.evidence.size :]
    kept = faded(LOG_WINDOW, age)
    tallies[FORETOLD] += kept * foretold(own[LEAN], own[USUAL], loss)
    tallies[LUCK] += kept * luck(own[LEAN], own[USUAL])
    tallies[DELAYS] += age
    tallies[ARRIVALS] += 1.0
    if t >= memory.clock[START]:
        amount = tallies[RATE] * loss / own[REACH]
        memory.charges[state] += amount
        charge(memory.safe, 0, memory.columns[state], amount)
        tallies[EXCESS] += excess(own[RATIO], loss)


@compiled
def foretold(lean: float, usual: float, loss: float) -> float:
    """What leaning towards a state was worth, seen by its outcome."""
    return lean * (loss - usual)


@compiled
def luck(lean: float, usual: float) -> float:
    """The variance of that if the lean were worth nothing."""
    return lean * lean * usual * (1.0 - usual)


@compiled
def excess(ratio: float, loss: float) -> float:
    """How much more was lost than safe would have."""
    return loss * (1.0 - ratio)


def play(memory: Any, t: int, out: Any) -> None:
    part = memory.tallies[PART]
    distribution(memory.safe, 0, out)
    for a in range(out.size):
        out[a] *= part
    out[memory.clock[LEADER]] += 1.0 - part


add_rule(SelfTunedMemory, act, observe, update, play)
