"""Readings of a pool: one moment of it, counted with SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from statepool.checks import Floats, Ints
from statepool.learners.contract import Learner
from statepool.live.catalogue import Catalogue, Offer
from statepool.live.definitions import holdout_rule
from statepool.live.learning import PolicyVersion
from statepool.live.lift import Lift, Tally, lift
from statepool.live.settings import Settings
from statepool.live.tables import EXPIRY, OUTCOME, STATE

if TYPE_CHECKING:
    from statepool.live.pool import Pool


@dataclass(frozen=True)
class Status:
    """What a pool knows and does; printed without what is long."""

    name: str
    at: float = field(repr=False)
    """When this was read, in seconds by the pool's clock."""
    decisions: int
    pending: int
    """Decisions that wait for an outcome."""
    counts: Mapping[str, int]
    """states, outcomes and expiries that came; impossible: states that the policy could not lead to and the learner
    cannot learn from; out_of_bounds: outcomes outside the bounds; unlearned: reports that no version took in yet."""
    version: int
    """The number of the latest version."""
    version_at: float = field(repr=False)
    """When the latest version was made."""
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

    @property
    def actions(self) -> tuple[Any, ...]:
        """The label of every action by its number, retired ones included."""
        return self.catalogue.labels

    @property
    def states(self) -> tuple[Any, ...]:
        return self.catalogue.states

    @property
    def contexts(self) -> tuple[Any, ...]:
        return tuple(context.label for context in self.catalogue.contexts)

    @cached_property
    def distribution(self) -> Mapping[Any, float]:
        """The probability of each active action by its label, without a context."""
        labels = [self.catalogue.labels[number] for number in self.numbers.tolist()]
        return MappingProxyType(dict(zip(labels, self.policy.tolist(), strict=True)))

    @cached_property
    def lift(self) -> Lift | None:
        """How much less the learner loses than the holdout; None without outcomes of both."""
        if not self.settings.holdout:
            return None
        return lift(self.losses["learner"], self.losses["holdout"], self.settings.holdout)


def probabilities(version: PolicyVersion, offer: Offer) -> dict[Any, float]:
    """The probability of each action by its label, the holdout included."""
    catalogue = version.revision.catalogue
    labels = [catalogue.labels[number] for number in offer.rows.actions.tolist()]
    return dict(zip(labels, _shares(version, offer).tolist(), strict=True))


def _shares(version: PolicyVersion, offer: Offer) -> Floats:
    distribution = version.distribution(offer)
    return distribution.probability(np.arange(offer.rows.actions.size))


def read_status(pool: Pool, version: PolicyVersion) -> Status:
    """Everything of one moment."""
    revision, now = version.revision, pool.now()
    offer = revision.catalogue.base
    policy = _shares(version, offer)
    with pool.database.read() as connection:
        decisions = count_decisions(connection, pool)
        counts = _counts(connection, pool)
        pending = decisions - counts["outcomes"] - counts["expiries"] + counts.pop("replaced")
        losses = tallies(connection, pool, now)
    return Status(
        name=pool.name, at=now, decisions=decisions, pending=pending,
        counts=MappingProxyType(counts | {"impossible": version.impossible}), version=version.number,
        version_at=version.made_at, round=version.round, revision=revision.number, learner=pool.definition.learner,
        settings=revision.settings, catalogue=revision.catalogue, losses=MappingProxyType(losses), policy=policy,
        numbers=offer.rows.actions, state_probabilities=offer.rows.columns @ policy,
    )  # fmt: skip


def _counts(connection: sa.Connection, pool: Pool) -> dict[str, int]:
    r, own = pool.database.tables.reports.c, pool.definition.id
    grouped = sa.select(r.kind, sa.func.count()).where(r.pool == own).group_by(r.kind)
    by_kind: dict[str, int] = dict(map(tuple, connection.execute(grouped)))
    unlearned = sa.select(sa.func.count()).where(r.pool == own, r.learned_in.is_(None))
    clipped = sa.select(sa.func.count()).where(r.pool == own, r.is_clipped.is_(True))
    outcome = pool.database.tables.reports.alias()
    both = sa.and_(outcome.c.decision == r.decision, outcome.c.kind == OUTCOME)
    replaced = (
        sa.select(sa.func.count())
        .select_from(pool.database.tables.reports.join(outcome, both))
        .where(r.pool == own, r.kind == EXPIRY)
    )
    return {
        "states": by_kind.get(STATE, 0), "outcomes": by_kind.get(OUTCOME, 0), "expiries": by_kind.get(EXPIRY, 0),
        "out_of_bounds": connection.execute(clipped).scalar_one(),
        "unlearned": connection.execute(unlearned).scalar_one(),
        "replaced": connection.execute(replaced).scalar_one() if by_kind.get(EXPIRY) else 0,
    }  # fmt: skip


def count_decisions(connection: sa.Connection, pool: Pool) -> int:
    d = pool.database.tables.decisions.c
    return int(connection.execute(sa.select(sa.func.count()).where(d.pool == pool.definition.id)).scalar_one())


def _unsettled(pool: Pool) -> Any:
    d, r = pool.database.tables.decisions.c, pool.database.tables.reports.c
    settled = sa.exists().where(r.decision == d.id, r.kind.in_([OUTCOME, EXPIRY]))
    return sa.and_(d.pool == pool.definition.id, ~settled)


def count_pending(connection: sa.Connection, pool: Pool) -> int:
    table = pool.database.tables.decisions
    return int(connection.execute(sa.select(sa.func.count()).select_from(table).where(_unsettled(pool))).scalar_one())


def pending(pool: Pool, limit: int | None) -> Any:
    """The statement for decisions without an outcome, oldest first."""
    d = pool.database.tables.decisions.c
    return sa.select(d.ticket, d.decided_at).where(_unsettled(pool)).order_by(d.decided_at, d.id).limit(limit)


def tallies(connection: sa.Connection, pool: Pool, now: float) -> dict[str, Tally]:
    """The losses of both arms since the holdout last changed its share or its action."""
    tables, settings = pool.database.tables, pool.settings
    d, outcome, expiry = tables.decisions.c, tables.reports.alias(), tables.reports.alias()
    loss = sa.func.coalesce(outcome.c.loss, expiry.c.loss)
    inside = sa.case((loss < 0, 0.0), (loss > 1, 1.0), else_=loss)
    joined = tables.decisions.outerjoin(
        outcome, sa.and_(outcome.c.decision == d.id, outcome.c.kind == OUTCOME)
    ).outerjoin(expiry, sa.and_(expiry.c.decision == d.id, expiry.c.kind == EXPIRY))
    conditions = [d.pool == pool.definition.id, loss.is_not(None), d.version >= _holdout_since(connection, pool)]
    if settings.window is not None:  # otherwise the early outcomes of one arm would be compared with all of the other
        conditions.append(d.decided_at <= now - settings.window)
    query = (
        sa.select(d.is_holdout, sa.func.count(), sa.func.sum(inside), sa.func.sum(inside * inside))
        .select_from(joined).where(*conditions).group_by(d.is_holdout)
    )  # fmt: skip
    found = {bool(row[0]): Tally(*row[1:]) for row in connection.execute(query)}
    return {"learner": found.get(False, Tally()), "holdout": found.get(True, Tally())}


def _holdout_since(connection: sa.Connection, pool: Pool) -> int:
    """The first version with today's holdout."""
    r = pool.database.tables.revisions.c
    query = sa.select(r.version, r.settings).where(r.pool == pool.definition.id).order_by(r.revision.desc())
    since, rule = 0, None
    for version, settings in connection.execute(query):
        if rule is None:
            rule = holdout_rule(settings)
        elif holdout_rule(settings) != rule:
            break
        since = version
    return since
