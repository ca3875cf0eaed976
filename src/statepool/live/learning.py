"""Versions of a policy: how one is made from the reports that have come, and how decisions are drawn from it.

A version is the learner's memory after everything that was reported so far:

    advance, then for each decision in order of its key: `see` its state, `learn` its outcome; then the policy

A default that was learnt and is replaced by an outcome is taken back first. Decisions of the holdout are not learnt.
The order is recorded (`reports.learned_in`), so `replay` calls the same functions with the same numbers. One process
at a time makes a version, under the lock of the pool's row.
"""

from __future__ import annotations

import platform
import secrets
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from hashlib import blake2b
from itertools import count, groupby
from math import inf
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import sqlalchemy as sa

from statepool import __version__
from statepool.checks import Floats
from statepool.learners.contract import Problem
from statepool.learners.outside import explained, suited
from statepool.learners.stepper import Stepper
from statepool.live.catalogue import Offer
from statepool.live.definitions import Definition, Revision, problem_of
from statepool.live.policies import Distribution, distribution_of, policy_of, state_probabilities, take_in
from statepool.live.tables import EXPIRY, ORDER, OUTCOME, STATE, Tables

KEEP_EVERY = 1000
"""Of so many versions one keeps its state."""


class PolicyVersion:
    """One version of a pool's policy; what it draws never changes."""

    def __init__(
        self, definition: Definition, revision: Revision, number: int, uid: bytes, t: int, made_at: float,
        impossible: int, state: bytes, saved: bytes, base: Distribution | None = None, digest: bytes = b"",
    ) -> None:  # fmt: skip
        self.definition, self.revision = definition, revision
        self.number, self.uid, self.round, self.made_at = number, uid, t, made_at
        self.impossible, self.state, self.saved, self.digest = impossible, state, saved, digest
        self._drawn = count()
        self._lock = threading.Lock()  # a stepper has scratch arrays, which two threads must not share
        self._stepper: Stepper | None = None
        self._wide: dict[int, Stepper] = {}
        self._contexts: dict[int, tuple[Offer, Distribution]] = {}
        self._base = base
        """What decisions without rows of their own are drawn from; computed when it is needed."""

    @property
    def nbytes(self) -> int:
        return len(self.state) + len(self.saved) + 150

    def next_round(self) -> int:
        """The round of the next decision that this process draws."""
        return self.round + next(self._drawn)

    def offer(self, context: Any = None, candidates: Any = None) -> Offer:
        """What a request may be answered with."""
        catalogue = self.revision.catalogue
        number = None if context is None else catalogue.context(context)
        if candidates is not None:
            if not self.definition.learner.knows_contexts:
                name = type(self.definition.learner).__name__
                raise ValueError(f"candidates: {name} knows no candidates, expected a learner that knows contexts")
            return catalogue.of_candidates(candidates, number)
        if number is None:
            if catalogue.contexts:
                raise ValueError("context: is missing, expected one of this pool's contexts, or candidates")
            return catalogue.base
        if number not in self._contexts:
            offer = catalogue.of_context(number)
            self._contexts[number] = offer, self._compute(offer, self.round)
        return self._contexts[number][0]

    def distribution(self, offer: Offer, t: int | None = None) -> Distribution:
        """What a decision with these rows is drawn from; its round `t` matters to learners whose policy varies."""
        varies = self.definition.learner.policy_varies
        if varies and t is not None:
            return self._compute(offer, t)
        if offer.labels is not None:
            return self._compute(offer, self.round)
        if offer.context is not None and offer.context in self._contexts:
            return self._contexts[offer.context][1]
        if self._base is None:
            self._base = self._compute(offer, self.round)
        return self._base

    def saved_with(self, offer: Offer, distribution: Distribution, choice: int) -> bytes | None:
        """What is stored with a decision for learning from it; None: nothing."""
        if offer is self.revision.catalogue.base and not self._width[1]:
            return None
        with self._lock:
            stepper = self._stepper_for(offer.rows.actions.size)
            parts = [stepper.saved_by_decision(offer.rows, distribution.policy, choice)]
            if offer is not self.revision.catalogue.base:
                if not self.revision.catalogue.contexts:
                    parts.insert(0, stepper.saved_by_state(offer.rows, distribution.policy).ravel())
                parts.append(state_probabilities(offer.rows, distribution.policy))
        return np.concatenate(parts).tobytes() or None

    @cached_property
    def _width(self) -> tuple[int, int]:
        return self.definition.learner.saved_width(problem_of(self.definition, self.revision))

    @property
    def stepper(self) -> Stepper:
        if self._stepper is None:
            self._stepper = Stepper(self.definition.learner, problem_of(self.definition, self.revision), self.state)
        return self._stepper

    def _stepper_for(self, n_actions: int) -> Stepper:
        """A stepper with room for so many actions, since memories are made for those of the catalogue."""
        stepper = self.stepper
        if n_actions <= stepper.problem.n_actions:
            return stepper
        room = 1 << (n_actions - 1).bit_length()
        if room not in self._wide:
            P = stepper.problem.P
            more = np.repeat(P[..., :1, :], room - P.shape[-2], axis=-2)
            problem = Problem(
                np.concatenate([P, more], axis=-2), None, 0, stepper.problem.stream,
                has_contexts=stepper.problem.has_contexts, window=stepper.problem.window,
                default=stepper.problem.default,
            )  # fmt: skip
            self._wide[room] = stepper.grow(problem)
        return self._wide[room]

    def _compute(self, offer: Offer, t: int) -> Distribution:
        with self._lock:
            policy = policy_of(self._stepper_for(offer.rows.actions.size), offer.rows, t)
        return distribution_of(policy, offer, self.revision)


@cache
def build() -> str:
    """The release and the processor: on the same ones, numbers are the same to the bit."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        processor = platform.processor() or platform.machine()
    return f"statepool {__version__}, numpy {np.__version__}, {processor}"


# Learning


class Report(NamedTuple):
    """A report, as far as learning reads it."""

    state: int | None
    loss: float | None
    reported: float | None
    is_reward: bool | None
    at: float
    due: float
    learned_in: int | None


class Reported(NamedTuple):
    """A decision with its reports."""

    id: int
    version: int
    round: int
    action: int
    probability: float
    uniform: float
    is_holdout: bool
    decided_at: float
    context: int | None
    saved: bytes | None
    reports: dict[str, Report]


class Batch:
    """What one version takes in: the calls of the learner, in order, and a digest of all that they were made from."""

    def __init__(self, definition: Definition, width: tuple[int, int]) -> None:
        self._definition, self._width = definition, width
        self._numbers: list[tuple[float, ...]] = []
        self._saved: list[Floats] = []
        self._inputs: list[Any] = []
        self.taken: list[tuple[int, str]] = []
        self.n_seen = self.n_impossible = 0

    def add(self, decision: Reported, table: bytes, kinds: Sequence[str], number: int) -> None:
        """The reports of `kinds` of one decision, taken in by version `number`; `table`: the saved of its version."""
        reports, learner = decision.reports, self._definition.learner
        self.taken += [(decision.id, kind) for kind in kinds]
        self._inputs.append((*decision[:-1], [(kind, *reports[kind][:5]) for kind in kinds]))
        if decision.is_holdout:
            return
        state = reports[STATE].state
        assert state is not None
        saved, likely = self._saved_of(decision, table, state)
        possible = likely > 0 or not learner.needs_state_probability
        if STATE in kinds:
            self.n_impossible += not possible
            if possible or learner.learns_map:
                self.n_seen += 1
                self._call(0, decision, state, saved)
        if not possible:
            return
        outcome, expiry = reports.get(OUTCOME), reports.get(EXPIRY)
        if OUTCOME in kinds:
            if expiry is not None and 0 < (expiry.learned_in or 0) < number and not learner.exposure:
                self._learn(decision, state, expiry, saved, -1.0)
            assert outcome is not None
            self._learn(decision, state, outcome, saved, 1.0)
        replaced = outcome is not None and (OUTCOME in kinds or 0 < (outcome.learned_in or 0) <= number)
        if EXPIRY in kinds and not learner.exposure and not replaced:
            assert expiry is not None
            self._learn(decision, state, expiry, saved, 1.0)

    def _learn(self, decision: Reported, state: int, report: Report, saved: Floats, sign: float) -> None:
        wait = max(report.at - decision.decided_at, 0.0)
        loss = self._definition.scale.learned(float(report.loss or 0.0))
        self._call(1, decision, state, saved, wait, loss, sign)

    def _call(
        self, what: int, decision: Reported, state: int, saved: Floats, wait: float = 0.0, loss: float = 0.0,
        sign: float = 1.0,
    ) -> None:  # fmt: skip
        played = decision.round, decision.decided_at, decision.action, state, decision.context or 0, wait
        self._numbers.append((what, *played, loss, sign))
        self._saved.append(saved)

    def _saved_of(self, decision: Reported, table: bytes, state: int) -> tuple[Floats, float]:
        """What was saved for a decision that led to a state, and how likely the state was."""
        n_states, (a, b) = len(self._definition.states), self._width
        own = np.frombuffer(decision.saved or b"")
        by_state = np.frombuffer(table).reshape(n_states, a + 1)
        if own.size == b:
            return np.concatenate([by_state[state, :a], own]), float(by_state[state, a])
        likely = float(own[own.size - n_states + state])
        if own.size == b + n_states:
            return np.concatenate([by_state[state, :a], own[:b]]), likely
        return np.concatenate([own[state * a : (state + 1) * a], own[n_states * a : n_states * a + b]]), likely

    def digest(self, *version: Any) -> bytes:
        """Of everything that was taken in, and of the version's own numbers."""
        return blake2b(msgspec.msgpack.encode([version, self._inputs]), digest_size=16).digest()

    def apply(self, stepper: Stepper) -> None:
        """Hand everything to the learner."""
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
    stepper: Stepper, definition: Definition, revision: Revision, number: int, uid: bytes, before: Any, made_at: float,
    batch: Batch,
) -> PolicyVersion:  # fmt: skip
    """Update `stepper`, which is at the version before (whose round and count of impossible states count on)."""
    t = batch.n_seen + (0 if before is None else before.round)
    impossible = batch.n_impossible + (0 if before is None else before.impossible)
    stepper.advance(t, made_at)
    batch.apply(stepper)
    offer = revision.catalogue.base
    distribution = distribution_of(policy_of(stepper, offer.rows, t), offer, revision)
    likely = state_probabilities(offer.rows, distribution.policy)
    saved = np.column_stack([stepper.saved_by_state(offer.rows, distribution.policy), likely]).tobytes()
    if len(offer.rows.actions) < len(revision.catalogue.labels):
        # Memories have scratch arrays for all actions; a policy of all of them leaves no remains of earlier ones.
        policy_of(stepper, revision.catalogue.every, t)
    digest = batch.digest(number, revision.number, t, made_at, impossible)
    state = stepper.dump()
    return PolicyVersion(
        definition, revision, number, uid, t, made_at, impossible, state, saved, distribution, digest
    )  # fmt: skip


class Learning:
    """The learning step of one pool in one process."""

    def __init__(self, database: Any, definition: Definition) -> None:
        self._tables, self._definition = database.tables, definition
        self._chain: tuple[bytes, Revision, Stepper] | None = None
        self._saved: dict[int, bytes] = {}

    def step(
        self, connection: sa.Connection, revision: Revision, before: PolicyVersion | None, now: float,
        force: bool = False,
    ) -> PolicyVersion | None:  # fmt: skip
        """Make the version after `before` inside the caller's transaction, if there is anything to take in.

        `force`: make one anyway. The caller holds the pool's lock.
        """
        number = 1 if before is None else before.number + 1
        stepper = self._stepper(revision, before)
        batch = Batch(self._definition, stepper.width)
        ready: list[tuple[Reported, list[str]]] = []
        parked: list[dict[str, Any]] = []
        r = self._tables.reports.c
        due = r.pool == self._definition.id, r.learned_in.is_(None), r.due <= now
        for decision in read_reported(connection, self._tables, *due):
            waits = STATE not in decision.reports and not decision.is_holdout  # an outcome is learnt with its state
            kinds = [
                kind for kind, report in decision.reports.items()
                if report.learned_in is None and (report.due <= now or (report.due == inf and not waits))
            ]  # fmt: skip
            if waits:
                parked += [{"d": decision.id, "k": kind} for kind in kinds]
            else:
                ready.append((decision, kinds))
        self._load_saved(connection, {decision.version for decision, _ in ready})
        for decision, kinds in ready:
            batch.add(decision, self._saved[decision.version], kinds, number)
        self._mark(connection, parked, {"due": inf})
        if not (batch.taken or force):
            return None
        self._chain = None  # until the new one is complete
        made_at = now if before is None else max(now, before.made_at)  # the clock may have been set back
        uid = secrets.token_bytes(8)
        made = make_version(stepper, self._definition, revision, number, uid, before, made_at, batch)
        self._store(connection, made, batch)
        self._chain = uid, revision, stepper
        self._saved[number] = made.saved
        return made

    def forget(self) -> None:
        """Start from what is stored: the transaction of the last step was rolled back."""
        self._chain = None
        self._saved.clear()

    def _stepper(self, revision: Revision, before: PolicyVersion | None) -> Stepper:
        """The learner at version `before`, for the revision of the next one."""
        if before is None:
            return Stepper(self._definition.learner, problem_of(self._definition, revision))
        if self._chain is None or self._chain[0] != before.uid:
            problem = problem_of(self._definition, before.revision)
            self._chain = before.uid, before.revision, Stepper(self._definition.learner, problem, before.state)
            self._saved = {before.number: before.saved}
        _, known, stepper = self._chain
        return stepper if known.number == revision.number else stepper.grow(problem_of(self._definition, revision))

    def _load_saved(self, connection: sa.Connection, numbers: Iterable[int]) -> None:
        v = self._tables.versions.c
        if len(self._saved) > 10_000:
            self._saved.clear()
        missing = sorted(set(numbers) - set(self._saved))
        for start in range(0, len(missing), 500):
            piece = missing[start : start + 500]
            query = sa.select(v.number, v.saved).where(v.pool == self._definition.id, v.number.in_(piece))
            self._saved.update((row.number, bytes(row.saved)) for row in connection.execute(query))

    def _mark(self, connection: sa.Connection, reports: list[dict[str, Any]], values: dict[str, Any]) -> None:
        r = self._tables.reports
        if reports:
            one = sa.and_(r.c.decision == sa.bindparam("d"), r.c.kind == sa.bindparam("k"))
            connection.execute(sa.update(r).where(one).values(values), reports)

    def _store(self, connection: sa.Connection, made: PolicyVersion, batch: Batch) -> None:
        versions, pool, number = self._tables.versions, self._definition.id, made.number
        connection.execute(
            sa.insert(versions).values(
                pool=pool, number=number, uid=made.uid, build=build(), revision=made.revision.number, round=made.round,
                made_at=made.made_at, impossible=made.impossible, digest=made.digest, saved=made.saved,
                state=made.state,
            )
        )  # fmt: skip
        if (number - 1) % KEEP_EVERY:
            start = sa.select(self._tables.pools.c.replay_from).where(self._tables.pools.c.id == pool).scalar_subquery()
            old = sa.and_(versions.c.pool == pool, versions.c.number == number - 1, versions.c.number != start)
            connection.execute(sa.update(versions).where(old).values(state=None))
        taken = [{"d": decision, "k": kind} for decision, kind in batch.taken]
        self._mark(connection, taken, {"learned_in": number})


def read_reported(connection: sa.Connection, tables: Tables, *conditions: Any) -> Iterator[Reported]:
    """Decisions with a report that meets the conditions, each with all its reports, in order of their key."""
    d, r = tables.decisions.c, tables.reports.c
    some = sa.select(r.decision).distinct().where(*conditions).subquery()
    query = (
        sa.select(
            d.id, d.version, d.round, d.action, d.probability, d.uniform, d.is_holdout, d.decided_at, d.context,
            d.saved, r.kind, r.state, r.loss, r.reported, r.is_reward, r.at, r.due, r.learned_in,
        )
        .select_from(some.join(tables.decisions, d.id == some.c.decision).join(tables.reports, r.decision == d.id))
        .order_by(d.id, sa.case(ORDER, value=r.kind))
    )  # fmt: skip
    for _, rows in groupby(connection.execute(query), key=itemgetter(0)):
        listed = list(rows)
        *own, saved = listed[0][:10]
        reports = {row[10]: Report(*row[11:]) for row in listed}
        yield Reported._make([*own, None if saved is None else bytes(saved), reports])
