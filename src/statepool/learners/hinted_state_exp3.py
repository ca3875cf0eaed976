"""Hinted State-EXP3: State-EXP3 that guesses the outcomes in flight from the last block that was delivered in full.

    x_t(a) ∝ exp(-rate · ((P G)(a) + hint(a)))        G(s): sum of X / q(s) over the outcomes used, as in State-EXP3
    hint(a) = min(2 d, sum of c(a) - X over block k-2)   c(a) = P(S|a) X / q(S) of a round; in the first two blocks 0

Rounds are cut into blocks k = 1, 2, … of d rounds, d the largest delay. Every outcome is used d + 1 rounds after its
decision, so when block k begins, block k-2 is the last one that is known in full.

`rate=None` knows neither horizon, drift nor dimension. Epoch i runs the rule from scratch at rate 2^-i/(12 d) and
watches

    Q = sum of X + (1/rate) log mean_a exp(-rate (P G)(a))

over its outcomes, which together with log K/rate bounds its expected regret (`Run.certificate`). Once Q exceeds
max(1, log K)/rate at the start of a block, that block is the epoch's last.

`hold` is d. Without it d is the problem's delay, and doubles, with a new epoch, when an outcome is not there d + 1
rounds after its decision.

Source: Theorem F (docs/theory.md; docs/paper/theorem_f.tex). Differs from the source: d may be learnt by doubling, and
outcomes later than `hold` are left out; the certificate counts each outcome that was not used as one.
"""

from __future__ import annotations

from math import log
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from statepool.checks import Floats, Ints
from statepool.compiling import compiled
from statepool.kernels import LARGEST_ESTIMATE, combine, lowest, softmin
from statepool.kernels import log as fast_log
from statepool.learners.contract import Learner, Problem, add_rule
from statepool.learners.parts import remember_state, settled

LARGEST_RATE = 12
"""Theorem F holds for rates up to 1/(12 d), where the parameter-free version starts."""
LARGEST_HINT = 2
ROOM = 32
"""How many times the problem's delay d can grow."""
NEVER = 1 << 62

BEGUN, START, END, HOLD, USED, OPEN, LEARNT = range(7)
"""Places in `clock`: rounds begun; first round of the epoch and of the next; d; rounds whose outcome was due; first
round of the epoch that the sums belong to; how many outcomes were used."""
RATE, BOOKED_RATE, LOST, LOST_BEFORE, SETTLED = range(5)
"""Places in `numbers`: the epoch's rate; the rate of the sums; losses summed, now and when the block began; the
certificate of earlier epochs."""


@settled
class HintedStateEXP3(Learner):
    """State-EXP3 with hints: one guarantee for overlap and drift (Theorem F).

    A delay costs only as much as differences between actions change within it. Theorem F covers rates up to 1/(12 d).
    Without a rate it restarts at smaller ones when its own certificate demands that. Outcomes later than `hold` are
    never used.

    >>> import statepool as sp
    >>> run = sp.simulate(sp.families.spread(seed=0, horizon=500), sp.HintedStateEXP3(), delay=10, seed=80_000)
    >>> run.regret < run.certificate
    True
    """

    rate: float | None = None
    hold: int | None = None
    needs_state_probability: ClassVar[bool] = True

    def start(self, problem: Problem) -> HintedMemory:
        K, S = problem.n_actions, problem.n_states
        hold = max(1, problem.delay if self.hold is None else self.hold)
        room = hold + 1 if self.hold is not None else ROOM * (hold + 1)
        if problem.horizon is not None:
            room = max(2, min(room, problem.horizon + 1))
        clock = np.zeros(7, np.int64)
        clock[END], clock[HOLD] = NEVER, min(hold, room - 1)
        numbers = np.zeros(5)
        numbers[RATE] = numbers[BOOKED_RATE] = 1 / (LARGEST_RATE * hold) if self.rate is None else self.rate
        return HintedMemory(
            np.zeros(S), np.zeros(S), np.zeros(K), np.zeros(K), np.full(room, -1, np.int64),
            np.zeros(room, np.int64), np.zeros(room), np.zeros(room), np.ones(1, np.bool_), clock, numbers,
            self.rate is None, self.hold is None, log(K),
        )  # fmt: skip

    def certificate(self, memory: Any) -> float:
        """Q + log K/rate, summed over epochs, and one for each outcome that was not used.

        Its mean bounds the expected regret, whatever the delays and the rate: average it over runs.
        """
        rate, outstanding = memory.numbers[BOOKED_RATE], memory.clock[BEGUN] - memory.clock[LEARNT]
        least = memory.totals.min()
        value = np.log(np.exp(-rate * (memory.totals - least)).sum()) / rate - least
        return float(memory.numbers[SETTLED] + memory.numbers[LOST] + value + outstanding)


class HintedMemory(NamedTuple):
    losses: Floats
    """G: the cumulative loss estimates, one number for each state."""
    losses_before: Floats
    """G when the block began."""
    hint: Floats
    """What is guessed of the outcomes in flight, for each action."""
    totals: Floats
    """P G."""
    rounds: Ints
    """A ring of outcomes that came: the round of each."""
    states: Ints
    estimates: Floats
    """X / q."""
    outcomes: Floats
    """X."""
    changed: NDArray[np.bool_]
    """Whether the policy has changed."""
    clock: Ints
    numbers: Floats
    restarts: bool
    """Whether the rate falls when the certificate demands it."""
    grows: bool
    """Whether d doubles when an outcome is late."""
    log_actions: float


@compiled
def _potential(memory: Any, columns: Any, out: Any) -> float:
    """(1/rate) log sum_a exp(-rate (P G)(a)) of the sums; `out` is overwritten."""
    rate = memory.numbers[BOOKED_RATE]
    combine(columns, memory.losses, memory.totals)
    memory.changed[0] = True
    return fast_log(softmin(memory.totals, rate, out)) / rate - lowest(memory.totals)


@compiled
def _begin_epoch(memory: Any, t: int) -> None:
    memory.clock[START], memory.clock[END] = t, NEVER
    memory.losses_before[:] = 0.0
    memory.hint[:] = 0.0
    memory.numbers[LOST_BEFORE] = 0.0
    memory.changed[0] = True


@compiled
def _settle(memory: Any, columns: Any, out: Any) -> None:
    """All outcomes of an earlier epoch have come: note its certificate and start new sums."""
    clock, numbers = memory.clock, memory.numbers
    numbers[SETTLED] += numbers[LOST] + _potential(memory, columns, out)
    numbers[BOOKED_RATE], numbers[LOST], clock[OPEN] = numbers[RATE], 0.0, clock[START]
    memory.losses[:] = 0.0


@compiled
def _use(memory: Any, columns: Any, t: int, out: Any) -> None:
    """Use the outcomes that are due at the start of round t; the first that is missing makes d grow."""
    clock, numbers, n = memory.clock, memory.numbers, memory.rounds.size
    while clock[USED] + clock[HOLD] + 1 <= t:
        r = clock[USED]
        slot = r % n
        if memory.rounds[slot] != r and memory.grows and clock[HOLD] < n - 1:
            longer = min(2 * clock[HOLD], n - 1)
            if memory.restarts:
                numbers[RATE] *= clock[HOLD] / longer
            clock[HOLD] = longer
            _begin_epoch(memory, t)
            continue
        clock[USED] += 1
        if r >= clock[START] and clock[OPEN] < clock[START]:
            _settle(memory, columns, out)
        if memory.rounds[slot] == r:
            clock[LEARNT] += 1
            numbers[LOST] += memory.outcomes[slot]
            if memory.estimates[slot] > 0.0:
                memory.losses[memory.states[slot]] += memory.estimates[slot]
                memory.changed[0] = True


@compiled
def _begin_block(memory: Any, columns: Any, t: int, out: Any) -> None:
    """Set the hint from the block just delivered, and test the certificate."""
    clock, numbers = memory.clock, memory.numbers
    if memory.restarts:
        value = numbers[LOST] + _potential(memory, columns, out) - memory.log_actions / numbers[RATE]
        if value > max(1.0, memory.log_actions) / numbers[RATE]:
            clock[END] = t + clock[HOLD]
    before, lost = memory.losses_before, numbers[LOST] - numbers[LOST_BEFORE]
    for s in range(before.size):
        before[s] = memory.losses[s] - before[s]
    combine(columns, before, memory.hint)
    most = float(LARGEST_HINT * clock[HOLD])
    for a in range(memory.hint.size):
        memory.hint[a] = min(most, memory.hint[a] - lost)
    for s in range(before.size):
        before[s] = memory.losses[s]
    numbers[LOST_BEFORE] = numbers[LOST]
    memory.changed[0] = True


@compiled
def _begin_round(memory: Any, columns: Any, t: int, out: Any) -> None:
    clock = memory.clock
    _use(memory, columns, t, out)
    if t == clock[END]:
        memory.numbers[RATE] *= 0.5
        _begin_epoch(memory, t)
    since, d = t - clock[START], clock[HOLD]
    if since >= 2 * d and since % d == 0:
        _begin_block(memory, columns, t, out)


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    clock = memory.clock
    while clock[BEGUN] <= t:
        _begin_round(memory, rows.columns, clock[BEGUN], out)
        clock[BEGUN] += 1
    if not (memory.changed[0] or rows.vary):
        return
    memory.changed[0] = False
    combine(rows.columns, memory.losses, memory.totals)
    if clock[OPEN] < clock[START]:  # nothing of this epoch is known yet
        out[:] = 1.0 / out.size
        return
    for a in range(out.size):
        out[a] = memory.totals[a] + memory.hint[a]
    softmin(out, memory.numbers[RATE], out)


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    if played.t < memory.clock[USED]:  # it was given up
        return
    slot = played.t % memory.rounds.size
    memory.rounds[slot], memory.states[slot] = played.t, played.state
    memory.outcomes[slot], memory.estimates[slot] = loss, min(loss / saved[0], LARGEST_ESTIMATE)


add_rule(HintedMemory, policy, remember_state, learn)
