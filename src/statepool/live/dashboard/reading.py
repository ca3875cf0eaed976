"""What the dashboard reads from the tables: counts and sums of a pool's latest decisions, in the unit reported."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import nan, sqrt
from typing import Any

import sqlalchemy as sa

from statepool.live.database import EXPIRY, OUTCOME, STATE
from statepool.live.pool import Pool

LATEST = 50_000
"""Decisions that a page looks at: no page reads a whole table."""
N_POINTS, N_AGES = 120, 24
WIDTHS = (1, 2, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 86_400, 7 * 86_400, 30 * 86_400)
"""Seconds of one point of a curve."""


@dataclass
class Tally:
    """Decisions, their states and their outcomes; only decisions older than the window have outcomes here."""

    decisions: int = 0
    states: int = 0
    outcomes: int = 0
    total: float = 0.0
    squares: float = 0.0

    def __add__(self, other: "Tally") -> "Tally":
        mine, theirs = vars(self), vars(other)
        return Tally(**{name: mine[name] + theirs[name] for name in mine})

    @property
    def mean(self) -> float:
        return self.total / self.outcomes if self.outcomes else nan

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        if self.outcomes < 2:
            return nan
        return sqrt(max(self.squares - self.total * self.mean, 0.0) / (self.outcomes - 1) / self.outcomes)


@dataclass(frozen=True)
class Cell:
    """Decisions of one kind: the same action, the same state, learner or holdout."""

    is_holdout: bool
    action: int
    label: str | None
    state: int | None
    is_plain: bool
    """Whether they were drawn from the catalogue, without context and candidates."""
    tally: Tally


@dataclass
class Reading:
    """The latest decisions of a pool."""

    since: float | None
    """When the oldest of them was made; None: there is none."""
    width: float = 1.0
    """Seconds of one point of the curve."""
    cells: list[Cell] = field(default_factory=list)
    curve: dict[tuple[int, bool], Tally] = field(default_factory=dict)
    """By point and whether it is of the holdout."""
    expired: int = 0
    """Decisions with the default of a window that is over."""
    age: float = 1.0
    """Seconds of one bar of the two counts below."""
    waits: list[int] = field(default_factory=list)
    """Outcomes by how long they took."""
    pending: list[int] = field(default_factory=list)
    """Decisions without an outcome, by their age; the last bar has all older ones."""

    def sum(self, cells: Iterable[Cell] | None = None) -> Tally:
        return sum((cell.tally for cell in (self.cells if cells is None else cells)), Tally())


def read(pool: Pool, now: float) -> Reading:
    """Read the latest decisions of a pool."""
    tables, settings = pool.database.tables, pool.settings
    d, r = tables.decisions, tables.reports
    with pool.database.read() as connection:

        def scalar(statement: Any) -> Any:
            return connection.execute(statement).scalar()

        mine = sa.select(d.c.decided_at).where(d.c.pool == pool.definition.id)
        latest = mine.order_by(d.c.decided_at.desc())
        last, since = scalar(latest.limit(1)), scalar(latest.offset(LATEST).limit(1))
        if last is None:
            return Reading(None)
        since = scalar(mine.order_by(d.c.decided_at).limit(1)) if since is None else since
        span = last - since
        width = next((float(width) for width in WIDTHS if span <= width * N_POINTS), float(WIDTHS[-1]))
        s, o, e = (r.alias(kind) for kind in (STATE, OUTCOME, EXPIRY))
        joined: Any = d
        for report in (s, o, e):
            joined = joined.outerjoin(report, sa.and_(report.c.decision == d.c.id, report.c.kind == report.name))
        rewards = settings.reward_bounds is not None
        counts = d.c.decided_at <= now - (settings.window or 0.0)
        reported = sa.case((o.c.is_reward.is_(rewards), o.c.reported), (e.c.is_reward.is_(rewards), e.c.reported))
        value = sa.case((counts, reported))
        sums = sa.func.count(), sa.func.count(s.c.state), sa.func.count(value), sa.func.sum(value)
        recent = d.c.pool == pool.definition.id, d.c.decided_at >= since

        def grouped(*keys: Any) -> Any:
            query = sa.select(*keys, *sums, sa.func.sum(value * value)).select_from(joined).where(*recent)
            for row in connection.execute(query.group_by(*keys)):
                n = len(keys)
                yield *row[:n], Tally(row[n], row[n + 1], row[n + 2], row[n + 3] or 0.0, row[n + 4] or 0.0)

        plain = sa.and_(d.c.context.is_(None), d.c.candidates.is_(None))
        cells = [Cell(*row) for row in grouped(d.c.is_holdout, d.c.action, d.c.label, s.c.state, plain)]
        point = sa.cast(sa.func.floor(d.c.decided_at / width), sa.BigInteger)
        curve = {(at, bool(held)): tally for at, held, tally in grouped(point, d.c.is_holdout)}
        longest = sa.select(sa.func.max(o.c.at - d.c.decided_at)).select_from(joined).where(*recent)
        age = max(settings.window or scalar(longest) or 1.0, 1e-6) / N_AGES

        def by_age(seconds: Any, *conditions: Any) -> list[int]:
            bar = sa.cast(sa.func.floor(seconds / age), sa.BigInteger)
            query = sa.select(bar, sa.func.count()).select_from(joined).where(*recent, *conditions).group_by(bar)
            bars = [0] * (N_AGES + 1)
            for place, n in connection.execute(query):
                bars[min(max(place, 0), N_AGES)] += n
            return bars

        waits = by_age(o.c.at - d.c.decided_at, o.c.decision.is_not(None))
        open_ = o.c.decision.is_(None), e.c.decision.is_(None)
        pending = by_age(now - d.c.decided_at, *open_)
        late = (
            sa.select(sa.func.count())
            .select_from(joined)
            .where(*recent, o.c.decision.is_(None), e.c.decision.is_not(None))
        )
        return Reading(since, width, cells, curve, scalar(late), age, waits, pending)
