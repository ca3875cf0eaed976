"""Readings of a pool: one moment of it, counted with SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from statepool.checks import Floats, Ints
from statepool.learners.contract import Learner
from statepool.live.catalogue import Catalogue
from statepool.live.database import EXPIRY, OUTCOME, STATE, Tables
from statepool.live.learning import PolicyVersion
from statepool.live.lift import Lift, Tally, lift
from statepool.live.settings import Settings, Unit, read_settings

if TYPE_CHECKING:
    from statepool.live.pool import Pool


@dataclass(frozen=True)
class Status:
    """What a pool knows and does; printed without what is long."""

    name: str
    decisions: int
    pending: int
    """Decisions that wait for an outcome."""
    counts: Mapping[str, Any]
    """states, outcomes and expiries that came; corrected: outcomes that came after an expiry; impossible: states that
    the policy could not lead to and the learner cannot learn from; out_of_bounds: outcomes outside the bounds;
    unlearned: reports that no version has learnt; late: of those, reports that are due."""
    version: int
    """The number of the latest version."""
    round: int
    """How many decisions had their state learnt."""
    revision: int
    """How often the catalogue or the settings were set, the first time included."""
    learner: Learner
    settings: Settings = field(repr=False)
    catalogue: Catalogue = field(repr=False)
    losses: Mapping[str, Tally] = field(repr=False)
    """Of the learner's decisions and of the holdout's, on the pool's scale, since the holdout last changed; with a
    window only of decisions that are older than it."""
    policy: Floats = field(repr=False)
    """The probability of each active action without a context, by its place in `numbers`."""
    numbers: Ints = field(repr=False)
    state_probabilities: Floats = field(repr=False)
    """The probability of each state under that policy."""
    unit: Unit = field(repr=False)
    """The unit that outcomes are reported in."""

    @cached_property
    def lift(self) -> Lift | None:
        """How much better than the holdout the learner does, in the user's unit; None without outcomes of both."""
        if not self.settings.holdout:
            return None
        found = lift(self.losses["learner"], self.losses["holdout"], self.settings.holdout)
        return None if found is None else self.unit.lift(found)


def read_status(pool: Pool, version: PolicyVersion) -> Status:
    revision, now = version.revision, pool.now()
    offer, distribution = version.of(None)
    policy = distribution.probabilities
    with pool.database.read() as connection:
        counts = count(connection, pool.database.tables, pool.definition.id, now)
        losses = tallies(connection, pool, now)
    return Status(
        name=pool.name, decisions=counts["decisions"], pending=counts["pending"],
        counts=counts | {"impossible": version.impossible}, version=version.number,
        round=version.round, revision=revision.number, learner=pool.definition.learner,
        settings=revision.settings, catalogue=revision.catalogue, losses=losses, policy=policy,
        numbers=offer.rows.actions, state_probabilities=offer.rows.columns @ policy,
        unit=pool.definition.scale.unit(revision.settings),
    )  # fmt: skip


def count(connection: sa.Connection, tables: Tables, pool: int, now: float) -> dict[str, Any]:
    """What is counted of one pool, for its status, its metrics and its page."""
    d, r, outcome = tables.decisions.c, tables.reports.c, tables.reports.alias()
    number, own = sa.func.count(), r.pool == pool
    kinds = connection.execute(sa.select(r.kind, number).where(own).group_by(r.kind)).all()
    by_kind = {STATE: 0, OUTCOME: 0, EXPIRY: 0} | {row[0]: row[1] for row in kinds}
    unlearned = sa.select(number, sa.func.min(r.at)).where(own, r.learned_in.is_(None))
    late, late_since = connection.execute(unlearned.where(r.kind != EXPIRY, r.due <= now)).one()
    decisions = connection.execute(sa.select(number).where(d.pool == pool)).scalar_one()
    is_replaced = sa.exists().where(outcome.c.decision == r.decision, outcome.c.kind == OUTCOME)
    corrected = connection.execute(sa.select(number).where(own, r.kind == EXPIRY, is_replaced)).scalar_one()
    settled = sa.exists().where(r.decision == d.id, r.kind.in_([OUTCOME, EXPIRY]))
    oldest = sa.select(d.decided_at).where(d.pool == pool, ~settled).order_by(d.decided_at).limit(1)
    return {
        "decisions": decisions, "pending": decisions - by_kind[OUTCOME] - by_kind[EXPIRY] + corrected,
        "states": by_kind[STATE], "outcomes": by_kind[OUTCOME], "expiries": by_kind[EXPIRY], "corrected": corrected,
        "out_of_bounds": connection.execute(sa.select(number).where(own, r.is_clipped.is_(True))).scalar_one(),
        "unlearned": connection.execute(unlearned).one()[0], "late": late, "late_since": late_since,
        "oldest_pending": connection.execute(oldest).scalar_one_or_none(),
    }  # fmt: skip


def tallies(connection: sa.Connection, pool: Pool, now: float) -> dict[str, Tally]:
    """The losses of both arms since the holdout last changed its share or its action."""
    tables, settings = pool.database.tables, pool.settings
    d, (joined, _, outcome, expiry) = tables.decisions.c, tables.joined()
    loss = sa.func.coalesce(outcome.c.loss, expiry.c.loss)
    conditions = [d.pool == pool.definition.id, d.version >= _holdout_since(connection, pool)]
    if settings.window is None:
        conditions.append(loss.is_not(None))
    else:  # younger ones show only their early outcomes; of older ones the default may not be stored yet
        loss = sa.func.coalesce(loss, pool.definition.scale.default(settings).loss)
        conditions.append(d.decided_at <= now - settings.window)
    inside = sa.case((loss < 0, 0.0), (loss > 1, 1.0), else_=loss)
    query = (
        sa.select(d.is_holdout, sa.func.count(), sa.func.sum(inside))
        .select_from(joined).where(*conditions).group_by(d.is_holdout)
    )  # fmt: skip
    found = {bool(row[0]): Tally(*row[1:]) for row in connection.execute(query)}
    return {"learner": found.get(False, Tally()), "holdout": found.get(True, Tally())}


def _holdout_since(connection: sa.Connection, pool: Pool) -> int:
    """The first version with today's holdout."""
    r = pool.database.tables.revisions.c
    query = sa.select(r.version, r.settings).where(r.pool == pool.definition.id).order_by(r.revision.desc())
    since, today = 0, None
    for version, text in connection.execute(query):
        settings = read_settings(text)
        rule = settings.holdout, settings.holdout and settings.holdout_action
        if today not in (None, rule):
            break
        since, today = version, rule
    return since
