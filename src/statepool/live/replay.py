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
from typing import Any

import msgspec
import numpy as np
import sqlalchemy as sa

from statepool.learners.stepper import Stepper
from statepool.live.catalogue import Offer, decoded
from statepool.live.database import Database
from statepool.live.definitions import Definition, Revision, problem_of, read_definition, read_revision
from statepool.live.errors import NoSuchPool
from statepool.live.learning import Batch, PolicyVersion, build, make_version, read_reported
from statepool.live.policies import Distribution
from statepool.live.settings import Scale, Settings, check_settings
from statepool.live.tables import STATE

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


def replay(database: Database, name: str, redraw: bool = True) -> Replay:
    """Replay the pool of a name; see `Pool.replay`."""
    with database.read() as connection:
        definition = read_definition(connection, database.tables, name)
        if definition is None:
            raise NoSuchPool(f"pool: {name!r} is not there")
        run = _Run(connection, database, definition)
        fault = None
        try:
            run.run(redraw)
        except Fault as found:
            fault = str(found)
        return Replay(name, run.n_versions, run.n_decisions, run.n_redrawn, run.same_build, fault)


class _Run:
    def __init__(self, connection: sa.Connection, database: Database, definition: Definition) -> None:
        self._connection, self._tables, self._definition = connection, database.tables, definition
        self.n_versions = self.n_decisions = self.n_redrawn = 0
        self.same_build = True
        self._saved: dict[int, bytes] = {}

    def _rows(self, query: Any) -> Any:
        """A large result, read in pieces."""
        return closing(self._connection.execute(query, execution_options={"yield_per": 10_000}))

    def _scalar(self, query: Any) -> Any:
        return self._connection.execute(query).scalar_one_or_none()

    def run(self, redraw: bool) -> None:
        pool, v, d = self._definition.id, self._tables.versions.c, self._tables.decisions
        p, r = self._tables.pools.c, self._tables.reports.c
        start = self._scalar(sa.select(p.replay_from).where(p.id == pool))
        early = sa.select(v.number, v.saved).where(v.pool == pool, v.number < start)
        self._saved = {row.number: bytes(row.saved) for row in self._connection.execute(early)}
        self._check_reports()
        versions = sa.select(self._tables.versions).where(v.pool == pool, v.number >= start).order_by(v.number)
        drawn = sa.select(d).where(d.c.pool == pool, d.c.version >= (start if redraw else LAST))
        with self._rows(versions) as rows, self._rows(drawn.order_by("version", "id")) as decisions:
            latest = self._check_versions(rows, _Grouped(decisions), start)
        named = self._scalar(sa.select(sa.func.max(r.learned_in)).where(r.pool == pool)) or 0
        if named > latest:
            raise Fault(f"version {named} is named by a report, and is not there")
        self.n_decisions = self._scalar(sa.select(sa.func.count()).where(d.c.pool == pool))

    def _check_versions(self, rows: Any, decisions: _Grouped, start: int) -> int:
        """Make every version again; the number of the latest."""
        r = self._tables.revisions.c
        found = self._connection.execute(sa.select(r.version, r.revision).where(r.pool == self._definition.id))
        revision_from = dict(map(tuple, found))
        begun = [number for version, number in revision_from.items() if version <= max(start, 1)]
        expected, before = max(begun, default=1), None
        stepper: Stepper | None = None
        revision: Revision | None = None
        for row in rows:
            if before is not None and row.number != before.number + 1:
                raise Fault(f"version {before.number + 1} is missing")
            expected = revision_from.get(row.number, expected)
            if row.revision != expected:
                raise Fault(f"version {row.number} has revision {row.revision}, expected {expected}")
            if revision is None or revision.number != row.revision:
                revision = read_revision(self._connection, self._tables, self._definition, row.revision)
                if stepper is not None:
                    stepper = stepper.grow(problem_of(self._definition, revision))
            if before is None and start > 0:
                version = self._kept(row, revision)
                stepper = version.stepper
            else:
                if stepper is None:
                    stepper = Stepper(self._definition.learner, problem_of(self._definition, revision))
                version = self._check_version(row, before, stepper, revision)
            self._saved[row.number] = bytes(row.saved)
            self.n_versions += 1
            self._check_decisions(version, decisions.of(row.number), row.build == build())
            before = row
        if before is None:
            raise Fault("version 1 is missing")
        if before.state is None:
            raise Fault(f"version {before.number} is the latest and has no state")
        if decisions.first is not None:
            raise Fault(f"version {decisions.first} is named by a decision, and is not there")
        return int(before.number)

    def _kept(self, row: Any, revision: Revision) -> PolicyVersion:
        """The version that replay starts from."""
        if row.state is None:
            raise Fault(f"version {row.number} is where replay starts, and has no state")
        return PolicyVersion(
            self._definition, revision, row.number, bytes(row.uid), row.round, row.made_at, row.impossible,
            bytes(row.state), bytes(row.saved),
        )  # fmt: skip

    def _check_version(self, row: Any, before: Any, stepper: Stepper, revision: Revision) -> PolicyVersion:
        batch = Batch(self._definition, stepper.width)
        r = self._tables.reports.c
        taken = r.pool == self._definition.id, r.learned_in == row.number
        for decision in read_reported(self._connection, self._tables, *taken):
            kinds = [kind for kind, report in decision.reports.items() if report.learned_in == row.number]
            if decision.version not in self._saved:
                raise Fault(f"decision {decision.id} names version {decision.version}, which is not there")
            if STATE not in decision.reports and not decision.is_holdout:
                raise Fault(f"version {row.number} learnt an outcome of decision {decision.id}, which has no state")
            batch.add(decision, self._saved[decision.version], kinds, row.number)
        uid = bytes(row.uid)
        made = make_version(stepper, self._definition, revision, row.number, uid, before, row.made_at, batch)
        self._compare(row, made, stepper)
        return made

    def _compare(self, row: Any, made: PolicyVersion, stepper: Stepper) -> None:
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
        with self._rows(query.where(r.pool == self._definition.id, r.kind != STATE)) as rows:
            for row in rows:
                value = tuple(row)[1:]
                if value in known:
                    continue
                if row.reported is None or not any(_follows(row, scale, each) for each in settings):
                    what = f"{row.kind} {row.reported!r}"
                    raise Fault(f"decision {row.decision} has {what} and a loss that does not follow from it")
                if len(known) < 100_000:
                    known.add(value)

    def _check_decisions(self, version: PolicyVersion, decisions: list[Any], same: bool) -> None:
        """Draw the decisions of one version again."""
        plain = []
        for decision in decisions:
            if decision.round < version.round:
                raise Fault(
                    f"decision {decision.id} has round {decision.round}, before that of version {version.number}"
                )
            brings = decision.candidates is not None or decision.context is not None or decision.action < 0
            if brings or self._definition.learner.policy_varies:
                self._check_one(version, decision, same)
            else:
                plain.append(decision)
        if plain and not version.revision.catalogue.contexts:
            offer = version.revision.catalogue.base
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


def _follows(row: Any, scale: Scale, settings: Settings) -> bool:
    """Whether a report's loss follows from what was reported, by the bounds of these settings."""
    if row.is_reward and settings.reward_bounds is None:
        return False
    outcome = scale.outcome(settings, *((None, row.reported) if row.is_reward else (row.reported, None)))
    return bool(outcome.loss == row.loss and (outcome.is_clipped or None) == row.is_clipped)


def _equal(stored: bytes, made: bytes, same_build: bool) -> bool:
    if same_build or len(stored) != len(made):
        return stored == made
    return _close(np.frombuffer(stored), np.frombuffer(made))


def _close(known: Any, other: Any) -> bool:
    return bool(np.allclose(known, other, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True))


class _Grouped:
    """Decisions sorted by version, handed out version by version."""

    def __init__(self, decisions: Iterator[Any]) -> None:
        self._groups = groupby(decisions, key=lambda row: row.version)
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
