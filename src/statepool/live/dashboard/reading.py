"""What the dashboard reads from the tables: counts and sums of a pool's latest decisions."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from statepool.checks import Floats
from statepool.live.database import Database
from statepool.live.tables import EXPIRY, OUTCOME, STATE

WINDOW = 50_000
"""Decisions that a page looks at: no page reads a whole table."""
N_BUCKETS = 120
N_ACTIONS = 500
"""Actions whose rows are compared with the states observed."""
WIDTHS = (1, 2, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 86_400, 7 * 86_400, 30 * 86_400)
"""Seconds of one point of a curve."""


@dataclass
class Tally:
    """Decisions and their outcomes; `total` is the sum of the outcomes as reported."""

    decisions: int = 0
    states: int = 0
    outcomes: int = 0
    total: float = 0.0

    def add(self, decisions: int, states: int, outcomes: int, total: float | None) -> None:
        self.decisions += decisions
        self.states += states
        self.outcomes += outcomes
        self.total += total or 0.0

    @property
    def mean(self) -> float:
        return self.total / self.outcomes if self.outcomes else float("nan")


@dataclass(frozen=True)
class Reading:
    """Sums over the latest decisions of a pool."""

    since: float | None
    """When the oldest of them was made; None: there is none."""
    decisions: int
    width: float
    """Seconds of one point of a curve."""
    curve: dict[tuple[int, bool], Tally]
    """By point and whether it is of the holdout."""
    by_action: dict[tuple[int, str | None], Tally]
    """By catalogue number, and by label where a candidate is not in the catalogue."""
    by_state: dict[int, Tally]
    """By the number of the state that was observed."""
    observed: dict[int, dict[int, int]]
    """Of decisions without context and candidates: how often each state was observed after each action."""
    expired: int
    clipped: int
    """Outcomes outside the bounds."""
    unlearned: int
    oldest_unlearned: float | None
    """When the oldest report that is due and not learnt was reported."""
    oldest_pending: float | None
    rows: dict[int, Floats]
    """The row of P of each action in `observed`, of the most frequent ones."""


def read(database: Database, name: str, now: float, rewards: bool) -> Reading:
    """Read the latest decisions of a pool; `rewards`: outcomes are rewards, else losses."""
    d, r = database.tables.decisions, database.tables.reports
    with database.read() as connection:

        def scalar(statement: Any) -> Any:
            return connection.execute(statement).scalar()

        pools = database.tables.pools
        pool = scalar(sa.select(pools.c.id).where(pools.c.name == name))
        mine = sa.select(d.c.decided_at).where(d.c.pool == pool)
        latest = mine.order_by(d.c.decided_at.desc())
        last = scalar(latest.limit(1))
        since = scalar(latest.offset(WINDOW).limit(1))
        since = scalar(mine.order_by(d.c.decided_at).limit(1)) if since is None else since
        recent = sa.and_(d.c.pool == pool, d.c.decided_at >= (since or 0.0))
        width = _width(0.0 if last is None else last - since)
        sums = _sums(connection, d, r, recent, width, rewards)
        clipped = r.c.pool == pool, r.c.is_clipped.is_(True)
        waiting = r.c.pool == pool, r.c.learned_in.is_(None), r.c.kind != EXPIRY, r.c.due <= now
        no_outcome = ~sa.exists().where(r.c.decision == d.c.id, r.c.kind.in_((OUTCOME, EXPIRY)))
        pending = sa.select(d.c.decided_at).where(recent, no_outcome).order_by(d.c.decided_at).limit(1)
        return Reading(
            since=since, width=width, **sums,
            clipped=scalar(sa.select(sa.func.count()).select_from(r).where(*clipped)),
            unlearned=scalar(sa.select(sa.func.count()).select_from(r).where(*waiting)),
            oldest_unlearned=scalar(sa.select(sa.func.min(r.c.at)).where(*waiting)),
            oldest_pending=scalar(pending),
            rows=_rows(connection, database.tables.actions, pool, sums["observed"]),
        )  # fmt: skip


def _width(seconds: float) -> float:
    return next((float(width) for width in WIDTHS if seconds <= width * N_BUCKETS), float(WIDTHS[-1]))


def _sums(connection: Any, d: sa.Table, r: sa.Table, recent: Any, width: float, rewards: bool) -> dict[str, Any]:
    """One grouped query; its groups are added up here by action, by state and over time."""
    s, o, e = (r.alias(kind) for kind in (STATE, OUTCOME, EXPIRY))
    joined = d
    for report in (s, o, e):
        joined = joined.outerjoin(report, sa.and_(report.c.decision == d.c.id, report.c.kind == report.name))  # type: ignore[assignment]
    value = sa.case((o.c.is_reward.is_(rewards), o.c.reported), (e.c.is_reward.is_(rewards), e.c.reported))
    point = sa.cast(sa.func.floor(d.c.decided_at / width), sa.BigInteger)
    plain = sa.and_(d.c.context.is_(None), d.c.candidates.is_(None))
    keys = (point, d.c.is_holdout, d.c.action, d.c.label, s.c.state, plain)
    counted = sa.func.count(), sa.func.count(s.c.state), sa.func.count(value), sa.func.sum(value)
    late = sa.func.sum(sa.case((sa.and_(o.c.decision.is_(None), e.c.decision.is_not(None)), 1), else_=0))
    curve: dict[tuple[int, bool], Tally] = defaultdict(Tally)
    by_action: dict[tuple[int, str | None], Tally] = defaultdict(Tally)
    by_state: dict[int, Tally] = defaultdict(Tally)
    observed: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    decisions = expired = 0
    statement = sa.select(*keys, *counted, late).select_from(joined).where(recent).group_by(*keys)
    for at, held, action, label, state, is_plain, count, states, outcomes, total, n_late in connection.execute(
        statement
    ):
        found = count, states, outcomes, total
        curve[at, bool(held)].add(*found)
        by_action[action, label].add(*found)
        if state is not None:
            by_state[state].add(*found)
            if is_plain and action >= 0:
                observed[action][state] += states
        decisions, expired = decisions + count, expired + n_late
    return {
        "decisions": decisions, "curve": curve, "by_action": by_action, "by_state": by_state, "observed": observed,
        "expired": expired,
    }  # fmt: skip


def _rows(connection: Any, actions: sa.Table, pool: int, observed: dict[int, dict[int, int]]) -> dict[int, Floats]:
    frequent = sorted(observed, key=lambda action: -sum(observed[action].values()))[:N_ACTIONS]
    mine = actions.c.pool == pool, actions.c.action.in_(frequent), actions.c.row.is_not(None)
    statement = sa.select(actions.c.action, actions.c.row).where(*mine).order_by(actions.c.since)
    return {action: np.frombuffer(row) for action, row in connection.execute(statement)}
