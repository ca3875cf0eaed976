"""SelfTuned's ledger: its memories, its evidence, its tallies, and the charges of its safe part.

Everything fades by the round played, as in the learner's file. Safe starts anew at each power of two: its charges and
its excess are those of rounds since its start; start, anchor, leader and rate travel with the version.
"""

from math import log
from typing import Any

import numpy as np

from statepool.checks import Floats
from statepool.learners import self_tuned as rule
from statepool.learners.learner import Learner
from statepool.learners.parts.memories import FIRST, FORGETTING, TENTH, evidence_of, mix, share_out
from statepool.learners.parts.weights import distribution, reach
from statepool.learners.rules import step_play
from statepool.learners.self_tuned import SelfTuned
from statepool.live.exact import ExactSums
from statepool.live.ledgers.ledger import Ledger, Record, charge_of, read
from statepool.live.versions import Part, spread

N_MEMORIES = len(FORGETTING)


class SelfTunedLedger(Ledger):
    heeds_states = True
    learner: SelfTuned

    def __init__(self, learner: Learner, n_states: int) -> None:
        super().__init__(learner, n_states)
        self.learns_map = self.learner.learn_map
        for i, forgetting in enumerate(FORGETTING):
            for name in ("losses", "counts", "played"):
                self.sums[f"{name} {i}"] = ExactSums(n_states, log(forgetting))
        self.sums["evidence"] = ExactSums(N_MEMORIES)
        self.sums["doubt"] = ExactSums(2, rule.LOG_WINDOW)
        self.sums["charges"] = ExactSums(n_states)
        self.sums["excess"] = ExactSums(1)
        self._delays = self._arrivals = 0
        self._pairs: dict[int, list[int]] = {}
        self._leader = self._anchor = -1
        self._rate = 0.0

    def prepare(self, plays: int) -> None:
        if self.learns_map:
            self._write_map()
        self._write_memories(plays)
        share_out(self.memory.memories)
        self._write_safe(plays)
        rule.prepare(self.memory, plays)

    def _write_map(self) -> None:
        """Rows given or taken over count as one play."""
        nothing = [0] * self.n_states
        pairs = np.array([self._pairs.get(number, nothing) for number in self.ids.tolist()], dtype=float)
        visits = pairs.sum(axis=1)
        self.memory.counts.pairs[:] = pairs.T
        self.memory.counts.visits[:] = visits
        self.memory.columns[:] = ((pairs + self.P) / (visits[:, None] + 1.0)).T

    def _write_memories(self, plays: int) -> None:
        memories = self.memory.memories
        for i in range(N_MEMORIES):
            memories.sums[i] = self.sums[f"losses {i}"].read(plays)
            memories.counts[i] = self.sums[f"counts {i}"].read(plays)
            memories.played[i] = self.sums[f"played {i}"].read(plays)
        memories.evidence[:] = self.sums["evidence"].read(plays) / (1 + (plays - 1) / FIRST) ** TENTH

    def _write_safe(self, plays: int) -> None:
        memory, clock, tallies = self.memory, self.memory.clock, self.memory.tallies
        tallies[rule.FORETOLD], tallies[rule.LUCK] = self.sums["doubt"].read(plays)
        tallies[rule.DELAYS], tallies[rule.ARRIVALS] = self._delays, self._arrivals
        tallies[rule.RATE], tallies[rule.EXCESS] = self._rate, self.sums["excess"].read(plays)[0]
        memory.charges[:] = self._rate * self.sums["charges"].read(plays)
        leader, anchor = self.place_of(self._leader), self.place_of(self._anchor)
        if leader is not None and anchor is not None:
            clock[rule.START], clock[rule.LEADER], clock[rule.ANCHOR] = self.since, leader, anchor
            rule.read_safe(memory)
            memory.safe.totals[0] += self._rate * np.where(self.added >= self.since, self.handicaps, 0.0)
        else:  # none yet, or retired: safe starts anew, on today's leader
            mix(memory.memories, self._delays / max(self._arrivals, 1))
            rule.find_leader(memory)
            clock[rule.START] = 0

    def play(self) -> Floats:
        out = np.empty(len(self.ids))
        step_play(self.memory, 0, out)
        return out

    def parts(self, play: Floats) -> tuple[Part, ...]:
        """The leader comes first."""
        safe = np.empty(play.size)
        distribution(self.memory.safe, 0, safe)
        followed = 1.0 - float(self.memory.tallies[rule.PART])
        leader = Part(followed, place=int(self.memory.clock[rule.LEADER]))
        return (leader, spread(safe)) if followed else (spread(safe),)

    def columns(self) -> Floats:
        return np.asarray(self.memory.columns)

    def record(self, q: Floats) -> Record:
        memory = self.memory
        safe = np.array([reach(memory.safe, 0, column) for column in memory.columns])
        return super().record(q) | {
            "safe": safe.tobytes(),
            "guesses": memory.memories.guesses.tobytes(),
            "mean": memory.memories.mean.tobytes(),
            "usual": float(rule.usual_loss(memory.memories)),
            "start": int(memory.clock[rule.START]),
            "rate": float(memory.tallies[rule.RATE]),
            "leader": int(self.ids[memory.clock[rule.LEADER]]),
            "anchor": int(self.ids[memory.clock[rule.ANCHOR]]),
        }

    def resume(self, record: Record, plays: int) -> None:
        super().resume(record, plays)
        self._leader, self._anchor, self._rate = record["leader"], record["anchor"], record["rate"]
        if record["start"] != self.since:
            self.since = record["start"]
            for name in ("charges", "excess", "unreached"):
                self.sums[name].clear()

    def see(self, play: int, action: int, state: int) -> None:
        for i in range(N_MEMORIES):
            self.sums[f"played {i}"].add(state, play, 1.0)
        if self.learns_map:
            self._pairs.setdefault(action, [0] * self.n_states)[state] += 1

    def arrive(self, age: int) -> None:
        self._delays += age
        self._arrivals += 1

    def _learn(self, record: Record, play: int, state: int, loss: float, sign: int) -> None:
        sums, q, usual = self.sums, read(record, "q")[state], record["usual"]
        lean = read(record, "mean")[state] - usual
        weight = (1 + play / FIRST) ** TENTH
        for i, guess in enumerate(read(record, "guesses")[state :: self.n_states].tolist()):
            sums[f"losses {i}"].add(state, play, loss, sign)
            sums[f"counts {i}"].add(state, play, 1.0, sign)
            sums["evidence"].add(i, play, weight * evidence_of(guess, loss), sign)
        sums["doubt"].add(0, play, rule.foretold(lean, usual, loss), sign)
        sums["doubt"].add(1, play, rule.luck(lean, usual), sign)
        if play >= self.since:
            sums["charges"].add(state, play, charge_of(loss, q), sign)
            sums["excess"].add(0, play, rule.excess(read(record, "safe")[state] / q, loss), sign)

    def category_row(self, ids: list[int]) -> Floats | None:
        """The row of all actions of a category together."""
        rows = [self._pairs[number] for number in ids if number in self._pairs]
        if not rows:
            return None
        pairs = np.array(rows, dtype=float).sum(axis=0)
        return (pairs + 1 / self.n_states) / (pairs.sum() + 1.0)

    def dump(self) -> dict[str, Any]:
        pairs = [[number, self._pairs[number]] for number in sorted(self._pairs)]
        safe = [self.since, self._leader, self._anchor, self._rate]
        return super().dump() | {"delays": [self._delays, self._arrivals], "pairs": pairs, "safe": safe}

    def load(self, dumped: dict[str, Any]) -> None:
        super().load(dumped)
        self._delays, self._arrivals = dumped["delays"]
        self._pairs = {number: list(row) for number, row in dumped["pairs"]}
        self.since, self._leader, self._anchor, self._rate = dumped["safe"]
