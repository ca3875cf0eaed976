"""Replay: make every version again from the stored rows, and draw every decision again.

Everything that replay reads is checked. A version's digest covers all rows that it learnt from. Its saved statistics
and its kept state must come out the same. A decision's action, probability and saved statistics must follow from its
version and its random number. On the build that made a version, numbers are compared to the bit, on another to 1e-9.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import sqlalchemy as sa

from statepool.learners.stepper import Stepper
from statepool.live.catalogue import Offer, as_label
from statepool.live.database import STATE, Database
from statepool.live.learning import Batch, PolicyVersion, build, make_version, read_reported
from statepool.live.settings import Definition, Revision, read_revision

TOLERANCE = 1e-9
LAST = 2**31 - 1


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


def replay(database: Database, definition: Definition, redraw: bool) -> Replay:
    """See `Pool.replay`."""
    with database.read() as connection:
        run, fault = _Run(connection, database, definition), None
        try:
            run.run(redraw)
        except Fault as found:
            fault = str(found)
    return Replay(definition.name, run.n_versions, run.n_decisions, run.n_redrawn, run.same_build, fault)


class _Run:
    def __init__(self, connection: sa.Connection, database: Database, definition: Definition) -> None:
        self._connection, self._tables, self._definition = connection, database.tables, definition
        self.n_versions = self.n_decisions = self.n_redrawn = 0
        self.same_build = True

    def _rows(self, query: Any) -> Any:
        """A large result, read in pieces."""
        return closing(self._connection.execute(query, execution_options={"yield_per": 10_000}))

    def _scalar(self, query: Any) -> Any:
        return self._connection.execute(query).scalar_one_or_none()

    def run(self, redraw: bool) -> None:
        pool, v, d = self._definition.id, self._tables.versions.c, self._tables.decisions
        p, r = self._tables.pools.c, self._tables.reports.c
        self.n_decisions = self._scalar(sa.select(sa.func.count()).where(d.c.pool == pool))
        start = self._scalar(sa.select(p.replay_from).where(p.id == pool))
        versions = sa.select(self._tables.versions).where(v.pool == pool, v.number >= start).order_by(v.number)
        drawn = sa.select(d).where(d.c.pool == pool, d.c.version >= (start if redraw else LAST))
        with self._rows(versions) as rows, self._rows(drawn.order_by("version", "id")) as decisions:
            latest = self._check_versions(rows, groupby(decisions, key=attrgetter("version")), start)
        named = self._scalar(sa.select(sa.func.max(r.learned_in)).where(r.pool == pool)) or 0
        if named > latest:
            raise Fault(f"version {named} is named by a report, and is not there")

    def _check_versions(self, rows: Any, decisions: Iterator[tuple[int, Iterator[Any]]], start: int) -> int:
        """Make every version again, and draw its decisions; the number of the latest."""
        r = self._tables.revisions.c
        found = self._connection.execute(sa.select(r.version, r.revision).where(r.pool == self._definition.id))
        revision_from = dict(map(tuple, found))
        expected = max((each for version, each in revision_from.items() if version <= max(start, 1)), default=1)
        version: PolicyVersion | None = None
        revision: Revision | None = None
        state = None
        named, drawn = next(decisions, (LAST, iter(())))
        for row in rows:
            if version is not None and row.number != version.number + 1:
                raise Fault(f"version {version.number + 1} is missing")
            expected = revision_from.get(row.number, expected)
            if row.revision != expected:
                raise Fault(f"version {row.number} has revision {row.revision}, expected {expected}")
            if revision is None or revision.number != row.revision:
                revision = read_revision(self._connection, self._tables, self._definition, row.revision)
            if version is None and start > 0:  # where replay starts
                if row.state is None:
                    raise Fault(f"version {row.number} is where replay starts, and has no state")
                version = PolicyVersion.from_row(revision, row)
            else:
                version = self._check_version(row, version, revision)
            self.n_versions += 1
            state = row.state
            if named == row.number:
                for decision in drawn:
                    self._check_decision(version, decision, row.build == build())
                named, drawn = next(decisions, (LAST, iter(())))
        if version is None:
            raise Fault("version 1 is missing")
        if state is None:
            raise Fault(f"version {version.number} is the latest and has no state")
        if named != LAST:
            raise Fault(f"version {named} is named by a decision, and is not there")
        return version.number

    def _check_version(self, row: Any, before: PolicyVersion | None, revision: Revision) -> PolicyVersion:
        """A version made again from its reports."""
        batch, r, same = Batch(revision), self._tables.reports.c, row.build == build()
        taken = r.pool == self._definition.id, r.learned_in == row.number
        for reports in read_reported(self._connection, self._tables, *taken):
            decision = next(iter(reports.values()))
            if decision.table is None:
                raise Fault(f"decision {decision.id} names version {decision.version}, which is not there")
            if STATE not in reports and not decision.is_holdout:
                raise Fault(f"version {row.number} learnt an outcome of decision {decision.id}, which has no state")
            kinds = [kind for kind, report in reports.items() if report.learned_in == row.number]
            batch.add(reports, kinds, row.number)
        made = make_version(revision, before, batch, bytes(row.uid), row.made_at)
        self.same_build = self.same_build and same
        for name in ("round", "impossible"):
            if getattr(row, name) != getattr(made, name):
                raise Fault(f"version {row.number} has {name} {getattr(row, name)}, expected {getattr(made, name)}")
        if bytes(row.digest) != made.digest:
            raise Fault(f"version {row.number} learnt from other rows than are stored, or has another time")
        if not _equal(bytes(row.saved), made.saved, same):
            raise Fault(f"version {row.number} has other saved statistics than follow from the rows")
        if row.state is None:
            return made
        if not self._same_state(bytes(row.state), made, same):
            raise Fault(f"version {row.number} has another state than follows from the rows")
        # Of another build the stored numbers are taken, so that differences of rounding do not add up.
        return made if same else PolicyVersion.from_row(revision, row)

    def _same_state(self, stored: bytes, made: PolicyVersion, same_build: bool) -> bool:
        if same_build or len(stored) != len(made.state):
            return stored == made.state
        learner, problem = self._definition.learner, made.revision.problem
        both = [Stepper(learner, problem, state).arrays() for state in (stored, made.state)]
        return all(_close(*pair) for pair in zip(*both, strict=True))

    def _check_decision(self, version: PolicyVersion, decision: Any, same: bool) -> None:
        """Draw a decision of a version again."""
        if decision.round < version.round:
            raise Fault(f"decision {decision.id} has round {decision.round}, before that of version {version.number}")
        offer = self._offer(version, decision)
        if offer is None:
            return
        distribution = version.distribution(offer, decision.round)
        choice, probability, is_held = distribution.draw(decision.uniform)
        action = offer.rows.actions.item(choice)
        if not (
            decision.action == action
            and bool(decision.is_holdout) == is_held
            and (decision.probability == probability if same else _close(decision.probability, probability))
            and _equal(bytes(decision.saved or b""), version.saved_with(offer, distribution, choice) or b"", same)
            and decision.label == offer.label_of(choice)
        ):
            raise Fault(f"decision {decision.id} does not follow from version {version.number} and its uniform")
        self.n_redrawn += 1

    def _offer(self, version: PolicyVersion, decision: Any) -> Offer | None:
        """What a decision was drawn from; None if that was not kept."""
        catalogue = version.revision.catalogue
        if decision.candidates is not None:
            c = self._tables.candidate_sets
            mine = c.c.pool == self._definition.id, c.c.digest == decision.candidates
            kept = self._connection.execute(sa.select(c).where(*mine)).first()
            if kept is None:
                return None
            labels = list(map(as_label, msgspec.json.decode(kept.labels)))
            offer = catalogue.of_rows(labels, np.frombuffer(kept.rows).reshape(len(labels), -1), decision.context)
            if offer.digest != bytes(decision.candidates):
                raise Fault(f"decision {decision.id} was drawn among other candidates than are stored")
            return offer
        if decision.context is None and not catalogue.contexts:
            return catalogue.base
        if decision.context is None or decision.context >= len(catalogue.contexts):
            raise Fault(f"decision {decision.id} has context {decision.context}, which its version does not know")
        return version.offer(catalogue.contexts[decision.context])


def _equal(stored: bytes, made: bytes, same_build: bool) -> bool:
    if same_build or len(stored) != len(made):
        return stored == made
    return _close(np.frombuffer(stored), np.frombuffer(made))


def _close(known: Any, other: Any) -> bool:
    return bool(np.allclose(known, other, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True))
