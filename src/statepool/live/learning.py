"""Versions of a policy: how one is made from the reports that have come, and how decisions are drawn from it.

A version is the learner's memory of the version before, after what was reported and became due since:

    advance, then for each decision in order of its key: `see` its state, `learn` its outcome

The policy follows from the memory. A learner with `exposure`, such as the default one, learns outcomes as they come and
no defaults. Any other is handed outcomes when the window closes, and defaults, which an outcome takes back. An outcome
without its state is parked. Reports of the holdout are taken in and not learnt. `reports.learned_in` is the order, for
`replay`. One process at a time makes a version, under a lock (of the pool's row; of the file on SQLite).
"""

from __future__ import annotations

import platform
import secrets
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property
from hashlib import blake2b
from itertools import count, groupby
from math import inf
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import sqlalchemy as sa

from statepool import __version__
from statepool.checks import Floats
from statepool.compiling import entry_point
from statepool.learners.contract import Played, Rows, learn, see
from statepool.learners.outside import explained, suited
from statepool.learners.stepper import NOTHING, Stepper
from statepool.live.catalogue import Offer
from statepool.live.database import EXPIRY, OUTCOME, STATE, Tables
from statepool.live.lift import find_root
from statepool.live.settings import Revision, insert_revision, limits

KEEP_EVERY = 1000
"""Of so many versions one keeps its state."""
TINY, LARGEST_FACTOR, TINIEST = 1e-12, 2e12, 5e-324
SEE, LEARN = 0, 1


def state_probabilities(rows: Rows, policy: Floats) -> Floats:
    """The probability of each state under a policy, to the bit wherever its array lies, unlike a matrix product."""
    return np.asarray((rows.columns * policy).sum(axis=1))


@entry_point
def take_in(
    memory: Any, what: Any, t: Any, time: Any, action: Any, state: Any, context: Any, wait: Any, loss: Any, sign: Any,
    saved: Any,
) -> None:  # fmt: skip
    """Hand states and outcomes to the learner, in their order."""
    for i in range(what.size):
        played = Played(t[i], time[i], action[i], state[i], context[i], wait[i])
        if what[i] == SEE:
            see(memory, played, saved[i])
        else:
            learn(memory, played, loss[i], saved[i], sign[i])


class Distribution:
    """What decisions of one version and one set of rows are drawn from.

    It is the learner's `policy`, after the bounds on probabilities, and with probability `holdout` that of the holdout.
    """

    def __init__(self, policy: Floats, holdout: float, base: Floats) -> None:
        if not (policy >= 0).all() or not abs(policy.sum() - 1) < 1e-6:
            raise ValueError("policy: the learner's numbers give no distribution, expected probabilities that sum to 1")
        self.policy, self.holdout = policy, holdout
        self._ends, self._base_ends = np.cumsum(policy), np.cumsum(base)
        self.probabilities = np.minimum((1 - holdout) * policy + holdout * base, 1.0)
        """Of each action among all decisions, those of the holdout included."""
        self.by_state = self.likely = NOTHING
        """Of rows that are not the catalogue's: what is saved for each state, and the probability of each state."""

    def draw(self, uniform: float) -> tuple[int, float, bool]:
        """The place of the action that a random number draws, its probability, and whether it is the holdout's."""
        is_held = uniform < self.holdout
        ends, rest = self._ends, (uniform - self.holdout) / (1 - self.holdout)
        if is_held:
            ends, rest = self._base_ends, uniform / self.holdout
        # As in simulations: the first whose cumulative probability reaches u, never one of probability 0.
        place = int(ends.searchsorted(min(max(rest, TINIEST), ends[-1])))
        return place, self.probabilities.item(place), is_held


def within(policy: Floats, low: Floats, high: Floats) -> Floats:
    """The distribution clip(c x, low, high) that sums to 1: proportions are kept wherever no bound is in the way."""
    if high.sum() < 1:  # actions were retired since: a decision is worth more than a bound
        high = high / high.sum() if high.sum() > TINY else np.ones(high.size)
    floored = np.maximum(policy, TINY)
    factor = find_root(lambda c: float(np.clip(c * floored, low, high).sum()) - 1, 0.0, LARGEST_FACTOR)
    fitted = np.clip(factor * floored, low, high)
    return np.asarray(fitted / fitted.sum())


def distribution_of(policy: Floats, offer: Offer, revision: Revision) -> Distribution:
    """The policy with the fixed action, the bounds and the holdout of the pool's settings."""
    settings, catalogue, share = revision.settings, revision.catalogue, revision.settings.holdout
    low, high, base = limits(settings, catalogue, offer)
    fixed = catalogue.place(offer, settings.fixed_action)
    if fixed is not None:
        policy = np.eye(1, policy.size, fixed)[0]
    elif settings.probability_bounds:
        policy = within(policy, *(np.clip((each - share * base) / (1 - share), 0, 1) for each in (low, high)))
    return Distribution(policy, share, base)


class PolicyVersion:
    """One version of a pool's policy; what it draws never changes."""

    def __init__(
        self, revision: Revision, number: int, uid: bytes, t: int, made_at: float, impossible: int, state: bytes,
        saved: bytes, digest: bytes = b"",
    ) -> None:  # fmt: skip
        self.revision, self.number, self.uid, self.round, self.made_at = revision, number, uid, t, made_at
        self.impossible, self.state, self.saved, self.digest = impossible, state, saved, digest
        self.rounds = count(t)
        """Of the decisions that this process draws; other processes give the same numbers."""
        self._lock = threading.Lock()  # a stepper has scratch arrays, which two threads must not share
        self._steppers: dict[int, Stepper] = {}
        self.known: dict[int | None, tuple[Offer, Distribution]] = {}
        """By context, None without one: what decisions are drawn from, as far as it was needed."""

    @classmethod
    def from_row(cls, revision: Revision, row: Any) -> PolicyVersion:
        state, saved = bytes(row.state), bytes(row.saved)
        return cls(revision, row.number, bytes(row.uid), row.round, row.made_at, row.impossible, state, saved)

    def offer(self, context: Any = None, candidates: Any = None) -> Offer:
        """What a request may be answered with."""
        catalogue, learner = self.revision.catalogue, self.revision.definition.learner
        number = None if context is None else catalogue.context(context)
        if candidates is not None:
            if not learner.knows_contexts:
                name = type(learner).__name__
                raise ValueError(f"candidates: {name} knows no candidates, expected a learner that knows contexts")
            return catalogue.of_candidates(candidates, number)
        if number is None and catalogue.contexts:
            raise ValueError("context: is missing, expected one of this pool's contexts, or candidates")
        return self.of(number)[0]

    def distribution(self, offer: Offer, t: int) -> Distribution:
        """What a decision with these rows is drawn from; its round `t` matters to learners whose policy varies."""
        varies = self.revision.definition.learner.policy_varies
        if varies or offer.labels is not None:
            return self._compute(offer, t if varies else self.round)
        return self.of(offer.context)[1]

    def of(self, context: int | None) -> tuple[Offer, Distribution]:
        """What a context may be answered with, or without one any request, and what it is drawn from."""
        if context not in self.known:
            catalogue = self.revision.catalogue
            offer = catalogue.base if context is None else catalogue.of_context(context)
            self.known[context] = offer, self._compute(offer, self.round)
        return self.known[context]

    def _compute(self, offer: Offer, t: int) -> Distribution:
        with self._lock:
            stepper = self._stepper_for(offer.rows.actions.size)
            made = distribution_of(stepper.policy(offer.rows, t), offer, self.revision)
            if offer is not self.revision.catalogue.base:  # now, since `remember` may read what `policy` has left
                made.by_state = stepper.saved_by_state(offer.rows, made.policy).ravel()
                made.likely = state_probabilities(offer.rows, made.policy)
        return made

    def saved_with(self, offer: Offer, distribution: Distribution, choice: int) -> bytes | None:
        """What is stored with a decision for learning from it; None: nothing."""
        if not (distribution.likely.size or self.width[1]):
            return None
        with self._lock:
            stepper = self._stepper_for(offer.rows.actions.size)
            own = stepper.saved_by_decision(offer.rows, distribution.policy, choice)
        return np.concatenate([distribution.by_state, own, distribution.likely]).tobytes()

    @cached_property
    def width(self) -> tuple[int, int]:
        """How many numbers are saved per state of a version, and per decision."""
        return self.revision.definition.learner.saved_width(self.revision.problem)

    def _stepper_for(self, n_actions: int) -> Stepper:
        """A stepper with room for so many actions, since memories are made for those of the catalogue."""
        problem = self.revision.problem
        room = problem.n_actions if n_actions <= problem.n_actions else 1 << (n_actions - 1).bit_length()
        if room not in self._steppers:
            stepper = Stepper(self.revision.definition.learner, problem, self.state)
            if room > problem.n_actions:
                more = np.repeat(problem.P[..., :1, :], room - problem.n_actions, axis=-2)
                stepper = stepper.grow(replace(problem, P=np.concatenate([problem.P, more], axis=-2)))
            self._steppers[room] = stepper
        return self._steppers[room]


@cache
def build() -> str:
    """The release and the processor: on the same ones, numbers are the same to the bit."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        processor = platform.processor() or platform.machine()
    return f"statepool {__version__}, numpy {np.__version__}, {processor}"


def read_reported(connection: sa.Connection, tables: Tables, *conditions: Any) -> Iterator[dict[str, Any]]:
    """Of each decision with a report that meets the conditions all its reports by kind, in order of the decision's key.

    A report is a row with the columns of its decision and of what its version has saved (`table`; None: that version
    is not there).
    """
    d, r, v = tables.decisions.c, tables.reports.c, tables.versions.c
    some = sa.select(r.decision).distinct().where(*conditions).subquery()
    query = (
        sa.select(
            d.id, d.version, d.round, d.action, d.probability, d.uniform, d.is_holdout, d.decided_at, d.context,
            d.saved, r.kind, r.state, r.loss, r.reported, r.is_reward, r.is_clipped, r.at, r.due, r.learned_in,
            v.saved.label("table"),
        )
        .select_from(
            some.join(tables.decisions, d.id == some.c.decision)
            .join(tables.reports, r.decision == d.id)
            .outerjoin(tables.versions, sa.and_(v.pool == d.pool, v.number == d.version))
        )
        .order_by(d.id, r.kind.desc())  # state, outcome, expiry
    )  # fmt: skip
    for _, rows in groupby(connection.execute(query), key=itemgetter(0)):
        yield {row.kind: row for row in rows}


class Batch:
    """What one version takes in: the calls of the learner, in order, and a digest of all that they were made from."""

    def __init__(self, revision: Revision) -> None:
        self._definition = revision.definition
        self._width = self._definition.learner.saved_width(revision.problem)
        self._numbers: list[tuple[float, ...]] = []
        self._saved: list[Floats] = []
        self._inputs: list[Any] = []
        self.taken: list[tuple[int, str]] = []
        self.n_seen = self.n_impossible = 0

    def add(self, reports: dict[str, Any], kinds: Sequence[str], number: int) -> None:
        """The reports of `kinds` of one decision, taken in by version `number`."""
        decision, learner = next(iter(reports.values())), self._definition.learner
        self.taken += [(decision.id, kind) for kind in kinds]
        self._inputs.append((*decision[:10], [tuple(reports[kind][10:17]) for kind in kinds]))
        if decision.is_holdout:
            return
        state = reports[STATE].state
        saved, likely = self._saved_of(decision, state)
        possible = likely > 0 or not learner.needs_state_probability
        if STATE in kinds:
            self.n_impossible += not possible
            if possible or learner.learns_map:
                self.n_seen += 1
                self._call(state, saved, decision)
        if not possible:
            return
        outcome, expiry = reports.get(OUTCOME), reports.get(EXPIRY)
        if OUTCOME in kinds:
            if expiry is not None and 0 < (expiry.learned_in or 0) < number and not learner.exposure:
                self._call(state, saved, expiry, LEARN, -1.0)
            self._call(state, saved, outcome, LEARN)
        replaced = outcome is not None and (OUTCOME in kinds or 0 < (outcome.learned_in or 0) <= number)
        if EXPIRY in kinds and not learner.exposure and not replaced:
            self._call(state, saved, expiry, LEARN)

    def _call(self, state: int, saved: Floats, report: Any, what: int = SEE, sign: float = 1.0) -> None:
        """See the state of a decision, or learn an outcome of it."""
        wait = max(report.at - report.decided_at, 0.0) if what == LEARN else 0.0
        loss = self._definition.scale.learned(report.loss) if what == LEARN else 0.0
        played = report.round, report.decided_at, report.action, state, report.context or 0, wait
        self._numbers.append((what, *played, loss, sign))
        self._saved.append(saved)

    def _saved_of(self, decision: Any, state: int) -> tuple[Floats, float]:
        """What was saved for a decision that led to a state, and how likely the state was."""
        n_states, (a, b) = len(self._definition.states), self._width
        own = np.frombuffer(decision.saved or b"")
        if own.size == b:
            by_state = np.frombuffer(decision.table).reshape(n_states, a + 1)[state]
            return np.concatenate([by_state[:a], own]), float(by_state[a])
        by_state = own[: n_states * a].reshape(n_states, a)[state]
        return np.concatenate([by_state, own[n_states * a : n_states * a + b]]), float(own[state - n_states])

    def digest(self, *version: Any) -> bytes:
        """Of everything that was taken in, and of the version's own numbers."""
        return blake2b(msgspec.msgpack.encode([version, self._inputs]), digest_size=16).digest()

    def apply(self, stepper: Stepper) -> None:
        if not self._numbers:
            return
        columns = np.array(self._numbers).T
        what, t, action, state, context = (columns[n].astype(np.int64) for n in (0, 1, 3, 4, 5))
        time, wait, loss, sign = (np.ascontiguousarray(columns[n]) for n in (2, 6, 7, 8))
        saved = np.array(self._saved).reshape(len(self._saved), sum(self._width))
        with explained(stepper.learner, stepper.memory):
            suited(take_in, stepper.memory)(
                stepper.memory, what, t, time, action, state, context, wait, loss, sign, saved,
            )  # fmt: skip


def make_version(
    revision: Revision, before: PolicyVersion | None, batch: Batch, uid: bytes, made_at: float
) -> PolicyVersion:
    """The version after `before`, a pure function of its arguments."""
    learner, catalogue = revision.definition.learner, revision.catalogue
    number, t, impossible = 1, batch.n_seen, batch.n_impossible
    if before is None:
        stepper = Stepper(learner, revision.problem)
    else:
        number, t, impossible = before.number + 1, t + before.round, impossible + before.impossible
        stepper = Stepper(learner, before.revision.problem, before.state)
        if before.revision.number != revision.number:
            stepper = stepper.grow(revision.problem)
    stepper.advance(t, made_at)
    batch.apply(stepper)
    offer = catalogue.base
    distribution = distribution_of(stepper.policy(offer.rows, t), offer, revision)
    likely = state_probabilities(offer.rows, distribution.policy)
    saved = np.column_stack([stepper.saved_by_state(offer.rows, distribution.policy), likely]).tobytes()
    digest = batch.digest(number, revision.number, t, made_at, impossible)
    made = PolicyVersion(revision, number, uid, t, made_at, impossible, stepper.dump(), saved, digest)
    made.known[None] = offer, distribution
    return made


def learn_reports(
    connection: sa.Connection, tables: Tables, revision: Revision, before: PolicyVersion | None, now: float,
    force: bool = False,
) -> PolicyVersion | None:  # fmt: skip
    """Make the version after `before` inside the caller's transaction, if there is anything to take in.

    A new revision is stored with it. `force`: make one anyway. The caller holds the pool's lock.
    """
    number, r = 1 if before is None else before.number + 1, tables.reports.c
    if before is None or before.revision is not revision:
        force = True
        insert_revision(connection, tables, revision, None if before is None else before.revision, number, now)
    batch = Batch(revision)
    parked, lost = list[tuple[int, str]](), list[tuple[int, str]]()
    due = r.pool == revision.definition.id, r.learned_in.is_(None), r.due <= now
    for reports in read_reported(connection, tables, *due):
        decision = next(iter(reports.values()))
        waits = STATE not in reports and not decision.is_holdout  # an outcome is learnt with its state
        kinds = [
            kind for kind, report in reports.items()
            if report.learned_in is None and (report.due <= now or (report.due == inf and not waits))
        ]  # fmt: skip
        if decision.table is None:  # its version was archived in the moment in which it was stored
            lost += [(decision.id, kind) for kind in kinds]
        elif waits:
            parked += [(decision.id, kind) for kind in kinds]
        else:
            batch.add(reports, kinds, number)
    _mark(connection, tables, lost, {"learned_in": 0})
    _mark(connection, tables, parked, {"due": inf})
    if not (batch.taken or force):
        return None
    made_at = now if before is None else max(now, before.made_at)  # the clock may have been set back
    made = make_version(revision, before, batch, secrets.token_bytes(8), made_at)
    versions, pool = tables.versions, revision.definition.id
    connection.execute(
        sa.insert(versions).values(
            pool=pool, number=number, uid=made.uid, build=build(), revision=revision.number, round=made.round,
            made_at=made.made_at, impossible=made.impossible, digest=made.digest, saved=made.saved, state=made.state,
        )
    )  # fmt: skip
    if (number - 1) % KEEP_EVERY:
        start = sa.select(tables.pools.c.replay_from).where(tables.pools.c.id == pool).scalar_subquery()
        old = sa.and_(versions.c.pool == pool, versions.c.number == number - 1, versions.c.number != start)
        connection.execute(sa.update(versions).where(old).values(state=None))
    _mark(connection, tables, batch.taken, {"learned_in": number})
    return made


def _mark(connection: sa.Connection, tables: Tables, reports: list[tuple[int, str]], values: dict[str, Any]) -> None:
    r = tables.reports
    if reports:
        one = sa.and_(r.c.decision == sa.bindparam("d"), r.c.kind == sa.bindparam("k"))
        keys = [{"d": decision, "k": kind} for decision, kind in reports]
        connection.execute(sa.update(r).where(one).values(values), keys)
