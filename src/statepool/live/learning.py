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
from statepool.checks import Floats, Ints
from statepool.compiling import entry_point
from statepool.kernels import dot, draw
from statepool.learners.contract import Played, Problem, Rows, learn, see
from statepool.learners.outside import explained, python_of, suited
from statepool.learners.stepper import NO_TABLE, NOBODY, POLICY, Stepper, step
from statepool.live.catalogue import Catalogue, Offer
from statepool.live.definitions import Definition, Revision, problem_of
from statepool.live.settings import Settings
from statepool.live.tables import EXPIRY, ORDER, OUTCOME, STATE, Tables

LARGE, BLOCK = 4096, 256
"""A policy of more actions than the first is drawn from by binary search among sums of so many."""
KEEP_EVERY = 1000
"""Of so many versions one keeps its state."""
TINY, LARGEST_FACTOR = 1e-12, 2e12
SLACK = 1e-9


FAR = 64
"""Numbers between two arrays that compiled loops treat as apart for certain."""


def policy_of(stepper: Stepper, rows: Rows, t: int) -> Floats:
    """The policy of round t, into an array far from all others.

    Compiled loops sum in another order where one array begins less than some hundred bytes after another. A policy must
    be the same to the bit wherever its array happens to lie, so `Stepper.policy` will not do.
    """
    out = np.empty(rows.actions.size + 2 * FAR)[FAR:-FAR]

    def call(function: Any) -> None:
        function(stepper.memory, POLICY, rows._replace(vary=True), NOBODY, t, 0.0, 1.0, out, NO_TABLE)

    with explained(stepper.learner, stepper.memory, lambda: call(python_of(step))):
        call(suited(step, stepper.memory))
    return out


def state_probabilities(rows: Rows, policy: Floats) -> Floats:
    """The probability of each state under a policy, to the bit wherever its array lies."""
    likely = np.empty(len(rows.columns))
    _state_probabilities(rows.columns, policy, likely)
    return likely


@entry_point
def _state_probabilities(columns: Any, policy: Any, likely: Any) -> None:
    for s in range(likely.size):
        likely[s] = dot(policy, columns[s])


# Drawing


@entry_point
def _draw_all(policy: Any, ends: Any, uniforms: Any, choices: Any) -> None:
    """`kernels.draw` for each uniform; in a large policy inside the block that a binary search finds."""
    for n in range(uniforms.size):
        if ends.size == 0:
            choices[n] = draw(policy, uniforms[n])
            continue
        block = min(np.searchsorted(ends, uniforms[n]), ends.size - 1)
        while block > 0 and ends[block] == ends[block - 1]:
            block -= 1  # rounding left the sum below u, and the last blocks are empty
        reached = ends[block - 1] if block > 0 else 0.0
        inside = policy[block * BLOCK : (block + 1) * BLOCK]
        choices[n] = block * BLOCK + draw(inside, uniforms[n] - reached)


class Distribution:
    """What decisions of one version and one set of rows are drawn from.

    Parameters
    ----------
    policy : array
        The learner's action distribution, after the bounds on probabilities.
    holdout : float
        The share of decisions that the holdout takes.
    holdout_place : int, optional
        The place of the holdout's action; None: every action alike.
    """

    __slots__ = ("_ends", "holdout", "holdout_place", "policy")

    def __init__(self, policy: Floats, holdout: float = 0.0, holdout_place: int | None = None) -> None:
        if not (policy >= 0).all() or not abs(policy.sum() - 1) < 1e-6:
            raise ValueError("policy: the learner's numbers give no distribution, expected probabilities that sum to 1")
        self.policy, self.holdout, self.holdout_place = policy, holdout, holdout_place
        large = policy.size > LARGE
        self._ends = np.cumsum(np.add.reduceat(policy, np.arange(0, policy.size, BLOCK))) if large else np.zeros(0)

    def draw(self, uniforms: Floats) -> tuple[Ints, Floats, Any]:
        """The places, probabilities and whether they are the holdout's, of decisions with these random numbers.

        A probability is that of the action among all decisions, those of the holdout included.
        """
        held = uniforms < self.holdout
        choices = np.empty(uniforms.size, np.int64)
        rest = uniforms if not self.holdout else (uniforms - self.holdout) / (1 - self.holdout)
        _draw_all(self.policy, self._ends, rest, choices)
        if self.holdout:
            n = self.policy.size
            even = np.minimum((uniforms / self.holdout * n).astype(np.int64), n - 1)
            choices = np.where(held, even if self.holdout_place is None else self.holdout_place, choices)
        return choices, self.probability(choices), held

    def probability(self, choices: Ints) -> Floats:
        """The probability of actions at these places, among all decisions."""
        learned = self.policy[choices]
        if not self.holdout:
            return np.minimum(learned, 1.0)
        base = 1 / self.policy.size if self.holdout_place is None else (choices == self.holdout_place)
        return np.minimum((1 - self.holdout) * learned + self.holdout * base, 1.0)


def within(policy: Floats, low: Floats, high: Floats) -> Floats:
    """The distribution clip(c x, low, high) that sums to 1: proportions are kept wherever no bound is in the way."""
    if high.sum() < 1:  # actions were retired since: a decision is worth more than a bound
        high = high / high.sum() if high.sum() > TINY else np.ones(high.size)
    if low.sum() > 1:
        low = low / low.sum()
    floored = np.maximum(policy, TINY)
    bottom, top = 0.0, 1.0
    while np.clip(top * floored, low, high).sum() < 1 and top < LARGEST_FACTOR:
        bottom, top = top, 2 * top
    for _ in range(100):  # halving a bracket of doubles a hundred times leaves neighbours
        middle = (bottom + top) / 2
        if np.clip(middle * floored, low, high).sum() < 1:
            bottom = middle
        else:
            top = middle
    fitted = np.clip(top * floored, low, high)
    return np.asarray(fitted / fitted.sum())


def distribution_of(policy: Floats, offer: Offer, revision: Revision) -> Distribution:
    """The policy with the fixed action, the bounds and the holdout of the pool's settings."""
    settings, catalogue = revision.settings, revision.catalogue
    if not (settings.holdout or settings.probability_bounds or settings.fixed_action is not None):
        return Distribution(policy)

    def place_of(label: Any) -> int | None:
        if offer.labels is not None:
            return offer.labels.index(label) if label in offer.labels else None
        found = np.flatnonzero(offer.rows.actions == catalogue.number_of.get(label, -1))
        return int(found[0]) if found.size else None

    fixed = None if settings.fixed_action is None else place_of(settings.fixed_action)
    held = None if settings.holdout_action is None else place_of(settings.holdout_action)
    share = settings.holdout
    if fixed is not None:
        policy = np.zeros(policy.size)
        policy[fixed] = 1.0
    elif settings.probability_bounds:
        low, high = np.zeros(policy.size), np.ones(policy.size)
        for label, least, most in settings.probability_bounds:
            place = place_of(label)
            if place is not None:
                low[place], high[place] = least, most
        base = np.full(policy.size, 1 / policy.size) if held is None else np.eye(1, policy.size, held)[0]
        policy = within(policy, *(np.clip((each - share * base) / (1 - share), 0, 1) for each in (low, high)))
    return Distribution(policy, share, held)


def check_feasible(settings: Settings, catalogue: Catalogue) -> None:
    """Settings name actions of the catalogue, and their bounds leave room for a distribution."""
    bounds = {
        catalogue.action(label, "probability_bounds"): (low, high) for label, low, high in settings.probability_bounds
    }
    held = None if settings.holdout_action is None else catalogue.action(settings.holdout_action, "holdout_action")
    if settings.fixed_action is not None and not catalogue.is_active(settings.fixed_action):
        raise ValueError(f"fixed_action: {settings.fixed_action!r} is not an active action of the catalogue")
    n = int(catalogue.active.sum())
    others = n - sum(bool(catalogue.active[number]) for number in bounds)
    even = settings.holdout / n if held is None else 0.0
    least, most = others * even, float(others)
    if held is not None and catalogue.active[held] and held not in bounds:
        least += settings.holdout
    for number, (low, high) in bounds.items():
        if not catalogue.active[number]:
            continue
        share = even + (settings.holdout if number == held else 0.0)
        if share > high:
            raise ValueError(
                f"probability_bounds: the holdout alone gives {catalogue.labels[number]!r} {share:.6g}, "
                f"expected at most {high:.6g}"
            )
        least, most = least + max(low, share), most + high
    if least > 1 + SLACK:
        raise ValueError(f"probability_bounds: the lowest ones and the holdout sum to {least:.6g}, expected at most 1")
    if most < 1 - SLACK:
        raise ValueError(f"probability_bounds: the highest ones sum to {most:.6g}, expected at least 1")


# Versions


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

        def call(function: Any) -> None:
            function(stepper.memory, what, t, time, action, state, context, wait, loss, sign, saved)

        with explained(stepper.learner, stepper.memory, lambda: call(python_of(_take_in))):
            call(suited(_take_in, stepper.memory))


@entry_point
def _take_in(
    memory: Any, what: Any, t: Any, time: Any, action: Any, state: Any, context: Any, wait: Any, loss: Any, sign: Any,
    saved: Any,
) -> None:  # fmt: skip
    for i in range(what.size):
        played = Played(t[i], time[i], action[i], state[i], context[i], wait[i])
        if what[i] == 0:
            see(memory, played, saved[i])
        else:
            learn(memory, played, loss[i], saved[i], sign[i])


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
