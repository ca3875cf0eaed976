"""The shell of SelfTuned: a safe part of the policy, and a guard that falls back on it.

*Safe* is State-EXP3 on the rounds since it started, in each round s that is at least twice the one before: it starts on
the leader of that moment with 1/s spread evenly, at the anytime rate of Theorem A for a learner that is given SHARE of
the policy,

    rate = sqrt(log(K s) / ((.55 (S - 1)/SHARE + d + 1) s))        d: the mean delay of what has come

*Guard.* The whole policy is safe's while sum X (1 - q_safe(S)/q(S)) > 3 sqrt(s/SHARE) over the rounds since s: what was
played has lost that much more than safe would have.

Losses are scaled to [0, 1] by the bounds. With a window they are measured from the default, so that silence adds
nothing. Where requests bring rows of their own there is no shell: nothing is proved there.

Source: the paper's State-EXP3. What it guarantees: Theorem G, docs/theory.md; proof: docs/theory-proofs.md.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled, compiled_inside, compiled_part
from statepool.kernels import LARGEST_ESTIMATE, combine_apart, dot, lowest, softmin
from statepool.learners.contract import Problem

SHARE = 1 / 64
GUARD = 3.0

START, RATE, EXCESS, PREPARED = range(4)
"""Of `Safe.numbers`: the round that it started in, its rate, the guard's sum, and the start that row PRIOR of
`Safe.actions` belongs to."""
ESTIMATE, ANCHOR = range(2)
"""Of `Safe.states`: G, the cumulative loss estimates; the optimistic state means of the round that it started in, whose
best action it starts on."""
POLICY, TOTAL, PRIOR = range(3)


class Safe(NamedTuple):
    numbers: Floats
    states: Floats
    actions: Floats
    """[what, action on offer]; no actions where there is no shell."""
    low: float
    width: float
    """The least loss, and the range of losses."""
    default: float
    """What silence costs, scaled; 0 without a window."""


def start_safe(problem: Problem) -> Safe:
    """Nothing learnt."""
    K, S = 0 if problem.has_contexts else problem.n_actions, problem.n_states
    low, width = problem.bounds[0], problem.bounds[1] - problem.bounds[0]
    default = 0.0 if problem.window is None else min(max((problem.default - low) / width, 0.0), 1.0)
    numbers = np.array([0.0, 1.0, 0.0, -1.0])
    return Safe(numbers, np.zeros((2, S)), np.zeros((3, K)), float(low), float(width), default)


@compiled
def rate_of(length: float, delay: float, n_states: int, n_actions: int) -> float:
    """Theorem A's rate for so many rounds at that delay."""
    return sqrt(log(max(n_actions * length, 2.0)) / ((0.55 * (n_states - 1) / SHARE + delay + 1.0) * length))


@compiled_part
def start_again(safe: Any, t: int, delay: float, hope: Any) -> None:
    """Restart in round t."""
    safe.numbers[START] = t
    safe.numbers[RATE] = rate_of(max(float(t), 1.0), delay, hope.size, safe.actions.shape[1])
    safe.numbers[EXCESS] = 0.0
    for s in range(hope.size):
        safe.states[ESTIMATE, s] = 0.0
        safe.states[ANCHOR, s] = hope[s]


@compiled_part
def add_safe(safe: Any, columns: Any, fixed: bool, out: Any) -> None:
    """Mix the safe part into a policy; it is the whole policy while the guard is on. `fixed`: rows are always these."""
    n = out.size
    x, totals, prior = safe.actions[POLICY, :n], safe.actions[TOTAL, :n], safe.actions[PRIOR, :n]
    if not fixed or safe.numbers[PREPARED] != safe.numbers[START]:
        safe.numbers[PREPARED] = safe.numbers[START]
        _start_on_leader(safe, columns, prior, totals)
    combine_apart(columns, safe.states[ESTIMATE], totals)
    rate = safe.numbers[RATE]
    for a in range(n):
        totals[a] = rate * totals[a] + prior[a]
    softmin(totals, 1.0, x)
    share = 1.0 if safe.numbers[EXCESS] > GUARD * sqrt(safe.numbers[START] / SHARE) else SHARE
    for a in range(n):
        out[a] = (1.0 - share) * out[a] + share * x[a]


@compiled_inside
def _start_on_leader(safe: Any, columns: Any, out: Any, room: Any) -> None:
    """-log of where it started: 1/s spread evenly, the rest on the leader of that moment."""
    combine_apart(columns, safe.states[ANCHOR], room)
    best, ties = lowest(room), 0.0
    bound = best + 1e-12 * abs(best)
    for a in range(out.size):
        ties += 1.0 if room[a] <= bound else 0.0
    start = max(safe.numbers[START], 1.0)
    evenly = log(out.size * start)
    on_leader = -log(1.0 / (out.size * start) + (1.0 - 1.0 / start) / ties)
    for a in range(out.size):
        out[a] = on_leader if room[a] <= bound else evenly


@compiled_part
def save_safe(safe: Any, columns: Any, policy: Any, state: int, saved: Any, place: int) -> None:
    """What learning needs: q and q_safe of the state."""
    saved[place] = dot(policy, columns[state])
    saved[place + 1] = dot(safe.actions[POLICY, : policy.size], columns[state])


@compiled_part
def learn_safe(safe: Any, played: Any, loss: float, saved: Any, place: int, sign: float) -> None:
    """An outcome has come; it counts if safe has not started since."""
    q = saved[place]
    if played.t >= safe.numbers[START] and q > 0.0:
        scaled = min(max((loss - safe.low) / safe.width, 0.0), 1.0) - safe.default
        safe.states[ESTIMATE, played.state] += sign * min(max(scaled / q, -LARGEST_ESTIMATE), LARGEST_ESTIMATE)
        safe.numbers[EXCESS] += sign * scaled * (1.0 - saved[place + 1] / q)
