"""Replay: make every version again from the stored rows, and draw every decision again.

Everything that replay reads is checked. A version's digest covers all rows that it learnt from. Its saved statistics
and its kept state must come out the same. A decision's action, probability and saved statistics must follow from its
version and its random number. On the build that made a version, numbers are compared to the bit, on another to 1e-9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import sqlalchemy as sa

from statepool.learners.stepper import Stepper
from statepool.live.catalogue import Offer, decoded
from statepool.live.database import Database
from statepool.live.definitions import Definition, Revision, all_revisions, problem_of, read_definition, read_revision
from statepool.live.errors import NoSuchPool
from statepool.live.learning import (
    Batch,
    Distribution,
    Made,
    PolicyVersion,
    Report,
    Reported,
    build,
    first_stepper,
    make_version,
)  # fmt: skip
from statepool.live.settings import check_settings
from statepool.live.tables import EXPIRY, OUTCOME, STATE

TOLERANCE = 1e-9


@dataclass(frozen=True)
class Replay:
    """What was replayed."""

    name: str
    versions: int
    decisions: int
    """All that are stored."""
    redrawn: int
    """Those drawn again; others have rows that were not kept, or versions from before the replay's start."""
    same_build: bool
    """Whether this build made all versions, so that numbers were compared to the bit."""
    fault: str | None
    """The first version or decision that does not follow from the rows; None: all do."""

    @property
    def ok(self) -> bool:
        return self.fault is None


class Fault(Exception):  # noqa: N818
    """The first thing that does not follow."""


def replay(database: Database, name: str, redraw: bool = True) -> Replay:
    """Replay the pool of a name; see `Pool.replay`."""
    with database.read() as connection:
        definition = read_definition(connection, database.tables, name)
        if definition is None:
            raise NoSuchPool(f"pool: {name!r} is not there")
        run = _Run(connection, database, definition, redraw)
        fault = None
        try:
            run.run()
        except Fault as found:
            fault = str(found)
        finally:
            run.close()
        return Replay(name, run.n_versions, run.n_decisions, run.n_redrawn, run.same_build, fault)


class _Run:
    def __init__(self, connection: sa.Connection, database: Database, definition: Definition, redraw: bool) -> None:
        self._connection, self._tables, self._definition = connection, database.tables, definition
        self._streaming = connection.execution_options(stream_results=True, yield_per=10_000)
        self._redraw = redraw
        self.n_versions = self.n_decisions = self.n_redrawn = 0
        self.same_build = True
        self._saved: dict[int, bytes] = {}
        self._open: list[Any] = []

    def _stream(self, query: Any) -> Any:
        """A large result, read in pieces."""
        self._open.append(self._streaming.execute(query))
        return self._open[-1]

    def close(self) -> None:
        """Close the results that were not read to their end."""
        for result in self._open:
            result.close()

    def run(self) -> None:
        tables, pool = self._tables, self._definition.id
        p, v = tables.pools.c, tables.versions.c
        start = self._connection.execute(sa.select(p.replay_from).where(p.id == pool)).scalar_one()
        revisions = dict(all_revisions(self._connection, tables, self._definition))
        first_of = {version: revision for revision, version in revisions.items()}
        early = sa.select(v.number, v.saved).where(v.pool == pool, v.number < start)
        self._saved = {row.number: bytes(row.saved) for row in self._connection.execute(early)}
        reports = _Grouped(self._read_reports(start), lambda row: row[0])
        decisions = _Grouped(self._read_decisions(start) if self._redraw else iter(()), attrgetter("version"))
        self._check_reports()
        query = sa.select(tables.versions).where(v.pool == pool, v.number >= start).order_by(v.number)
        stepper: Stepper | None = None
        revision: Revision | None = None
        before: Any = None
        for row in self._stream(query):
            expected = first_of.get(row.number, None if before is None else before.revision)
            if expected is None:  # replay starts inside a revision
                expected = max(number for number, version in revisions.items() if version <= row.number)
            if row.revision != expected:
                raise Fault(f"version {row.number} has revision {row.revision}, expected {expected}")
            if before is not None and row.number != before.number + 1:
                raise Fault(f"version {before.number + 1} is missing")
            if revision is None or revision.number != row.revision:
                revision = read_revision(self._connection, tables, self._definition, row.revision)
                if stepper is not None:
                    stepper = stepper.grow(problem_of(self._definition, revision))
            if before is None and start > 0:
                stepper, base = self._kept(row, revision), None
            else:
                if stepper is None:
                    stepper = first_stepper(self._definition, revision)
                base = self._check_version(row, before, stepper, revision, reports.of(row.number))
            self._saved[row.number] = bytes(row.saved)
            self.n_versions += 1
            self._check_decisions(row, stepper, base, revision, decisions.of(row.number))
            before = row
        if before is None:
            raise Fault("version 1 is missing")
        if before.state is None:
            raise Fault(f"version {before.number} is the latest and has no state")
        left = decisions.first if reports.first is None else reports.first
        if left is not None:
            raise Fault(f"version {left} is named by a decision or a report, and is not there")
        self._count()

    def _count(self) -> None:
        d = self._tables.decisions.c
        query = sa.select(sa.func.count()).where(d.pool == self._definition.id)
        self.n_decisions = int(self._connection.execute(query).scalar_one())

    def _kept(self, row: Any, revision: Revision) -> Stepper:
        """The learner at the version that replay starts from."""
        if row.state is None:
            raise Fault(f"version {row.number} is where replay starts, and has no state")
        return Stepper(self._definition.learner, problem_of(self._definition, revision), bytes(row.state))

    def _check_version(
        self, row: Any, before: Any, stepper: Stepper, revision: Revision, reported: list[tuple[int, Reported]]
    ) -> Distribution:
        batch = Batch(self._definition, stepper.width, bool(revision.catalogue.contexts))
        for _, decision in reported:
            kinds = [kind for kind, report in decision.reports.items() if report.learned_in == row.number]
            if decision.version not in self._saved:
                raise Fault(f"decision {decision.id} names version {decision.version}, which is not there")
            if STATE not in decision.reports and not decision.is_holdout:
                raise Fault(f"version {row.number} learnt an outcome of decision {decision.id}, which has no state")
            batch.add(decision, self._saved[decision.version], kinds, row.number)
        t, impossible = (0, 0) if before is None else (before.round, before.impossible)
        made = make_version(stepper, self._definition, revision, row.number, t, impossible, row.made_at, batch)
        self._compare(row, made, stepper)
        return made.distribution

    def _compare(self, row: Any, made: Made, stepper: Stepper) -> None:
        same = row.build == build()
        self.same_build = self.same_build and same
        for name in ("round", "impossible"):
            if getattr(row, name) != getattr(made, name):
                raise Fault(f"version {row.number} has {name} {getattr(row, name)}, expected {getattr(made, name)}")
        if bytes(row.digest) != made.digest:
            raise Fault(f"version {row.number} learnt from other rows than are stored, or has another time")
        if not _equal(bytes(row.saved), made.saved, same):
            raise Fault(f"version {row.number} has other saved statistics than follow from the rows")
        if row.state is not None and not self._same_state(bytes(row.state), made.state, stepper, same):
            raise Fault(f"version {row.number} has another state than follows from the rows")
        if not same and row.state is not None:
            stepper.load(bytes(row.state))  # so that differences of rounding do not add up

    def _same_state(self, stored: bytes, made: bytes, stepper: Stepper, same_build: bool) -> bool:
        if same_build or len(stored) != len(made):
            return stored == made
        both = [Stepper(self._definition.learner, stepper.problem, state).arrays() for state in (stored, made)]
        return all(_close(*pair) for pair in zip(*both, strict=True))

    def _check_reports(self) -> None:
        """Every loss follows from what was reported, by the bounds of some revision."""
        r, v = self._tables.reports.c, self._tables.revisions.c
        texts = self._connection.execute(sa.select(v.settings).where(v.pool == self._definition.id)).scalars()
        settings = {text: check_settings(msgspec.json.decode(text)) for text in set(texts)}.values()
        query = sa.select(r.decision, r.kind, r.reported, r.is_reward, r.loss, r.is_clipped)
        scale = self._definition.scale
        known: set[Any] = set()
        for row in self._stream(query.where(r.pool == self._definition.id, r.kind != STATE)):
            value = tuple(row)[1:]
            if value in known:
                continue
            matches = False
            for each in settings:
                if row.reported is None or (row.is_reward and each.reward_bounds is None):
                    continue
                args = (None, row.reported) if row.is_reward else (row.reported, None)
                outcome = scale.outcome(each, *args)
                matches = matches or (outcome.loss == row.loss and (outcome.is_clipped or None) == row.is_clipped)
            if not matches:
                raise Fault(f"decision {row.decision} has {row.kind} {row.reported!r}, and a loss that does not follow")
            if len(known) < 100_000:
                known.add(value)

    def _read_reports(self, start: int) -> Iterator[tuple[int, Reported]]:
        """Each version's decisions with all their reports, in order of version and decision."""
        d, r = self._tables.decisions.c, self._tables.reports
        kinds = {kind: r.alias(kind) for kind in (STATE, OUTCOME, EXPIRY)}
        taken = (
            sa.select(r.c.learned_in, r.c.decision).distinct()
            .where(r.c.pool == self._definition.id, r.c.learned_in > start)
        ).subquery()  # fmt: skip
        joined: Any = taken.join(self._tables.decisions, d.id == taken.c.decision)
        for kind, each in kinds.items():
            joined = joined.outerjoin(each, sa.and_(each.c.decision == d.id, each.c.kind == kind))
        names = ("state", "loss", "reported", "is_reward", "at", "due", "learned_in")
        query = sa.select(
            taken.c.learned_in, d.id, d.version, d.round, d.action, d.probability, d.uniform, d.is_holdout,
            d.decided_at, d.context, d.saved, *(each.c[name] for each in kinds.values() for name in names),
        )  # fmt: skip
        for row in self._stream(query.select_from(joined).order_by(taken.c.learned_in, d.id)):
            parts = zip(kinds, (row[11:18], row[18:25], row[25:32]), strict=True)
            reports = {kind: Report(*part) for kind, part in parts if part[4] is not None}
            saved = None if row[10] is None else bytes(row[10])
            yield row[0], Reported._make([*row[1:10], saved, reports])

    def _read_decisions(self, start: int) -> Iterator[Any]:
        d = self._tables.decisions
        query = sa.select(d).where(d.c.pool == self._definition.id, d.c.version >= start)
        yield from self._stream(query.order_by(d.c.version, d.c.id))

    def _check_decisions(
        self, row: Any, stepper: Stepper, base: Distribution | None, revision: Revision, decisions: list[Any]
    ) -> None:
        """Draw the decisions of one version again."""
        if not decisions:
            return
        version = PolicyVersion(
            self._definition, revision, row.number, bytes(row.uid), row.round, row.made_at, row.impossible,
            stepper.dump(), bytes(row.saved), base,
        )  # fmt: skip
        same = row.build == build()
        plain = []
        for decision in decisions:
            if decision.round < row.round:
                raise Fault(f"decision {decision.id} has round {decision.round}, before that of version {row.number}")
            brings = decision.candidates is not None or decision.context is not None or decision.action < 0
            if brings or self._definition.learner.policy_varies:
                self._check_one(version, decision, same)
            else:
                plain.append(decision)
        if plain and not revision.catalogue.contexts:
            offer = revision.catalogue.base
            self._check_drawn(version, offer, version.distribution(offer), plain, same)
            self.n_redrawn += len(plain)

    def _check_one(self, version: PolicyVersion, decision: Any, same: bool) -> None:
        offer = self._offer(version, decision)
        if offer is not None:
            self._check_drawn(version, offer, version.distribution(offer, decision.round), [decision], same)
            self.n_redrawn += 1

    def _offer(self, version: PolicyVersion, decision: Any) -> Offer | None:
        """What a decision was drawn from; None if that was not kept."""
        catalogue = version.revision.catalogue
        if decision.candidates is not None:
            c = self._tables.candidate_sets
            kept = self._connection.execute(
                sa.select(c).where(c.c.pool == self._definition.id, c.c.digest == decision.candidates)
            ).first()
            if kept is None:
                return None
            labels = [tuple(each) if isinstance(each, list) else each for each in msgspec.json.decode(kept.labels)]
            rows = np.frombuffer(kept.rows).reshape(len(labels), -1).copy()
            offer = catalogue.of_rows(labels, rows, decision.context)
            if offer.digest != bytes(decision.candidates):
                raise Fault(f"decision {decision.id} was drawn among other candidates than are stored")
            return offer
        if decision.ticket is None and (decision.action < 0 or (catalogue.contexts and decision.context is None)):
            return None  # erased
        if decision.context is None:
            return catalogue.base
        if decision.context >= len(catalogue.contexts):
            raise Fault(f"decision {decision.id} has context {decision.context}, which its version does not know")
        return version.offer(catalogue.contexts[decision.context].label)

    def _check_drawn(
        self, version: PolicyVersion, offer: Offer, distribution: Distribution, decisions: list[Any], same: bool
    ) -> None:
        choices, probabilities, held = distribution.draw(np.array([each.uniform for each in decisions]))
        saved: dict[int, bytes | None] = {}
        for decision, choice, probability, is_held in zip(
            decisions, choices.tolist(), probabilities.tolist(), held.tolist(), strict=True
        ):
            if choice not in saved:
                saved[choice] = version.saved_with(offer, distribution, choice)
            action = offer.rows.actions.item(choice)
            follows = (
                decision.action == action
                and bool(decision.is_holdout) == is_held
                and (decision.probability == probability if same else _close(decision.probability, probability))
                and _equal(bytes(decision.saved or b""), saved[choice] or b"", same)
                and (action >= 0 or decision.label is None or decoded(decision.label) == (offer.labels or ())[choice])
            )
            if not follows:
                raise Fault(f"decision {decision.id} does not follow from version {version.number} and its uniform")


def _equal(stored: bytes, made: bytes, same_build: bool) -> bool:
    if same_build or len(stored) != len(made):
        return stored == made
    known, other = np.frombuffer(stored), np.frombuffer(made)
    return _close(known, other)


def _close(known: Any, other: Any) -> bool:
    return bool(np.allclose(known, other, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True))


class _Grouped:
    """Rows sorted by version, handed out version by version."""

    def __init__(self, rows: Iterator[Any], version: Callable[[Any], int]) -> None:
        self._groups = groupby(rows, key=version)
        self.first: int | None = None
        self._take()

    def _take(self) -> None:
        found = next(self._groups, None)
        self.first, self._rows = (None, []) if found is None else (found[0], list(found[1]))

    def of(self, version: int) -> list[Any]:
        if self.first != version:
            return []
        rows = self._rows
        self._take()
        return rows
