"""Reports: the state that was seen, the outcome, or the default once the window is over.

Each is one INSERT from the decision's row. If nothing was inserted, the report is there already, and the same value is
accepted again, or the ticket is unknown. Reports may come in any order, from any process, without a lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from statepool.checks import shown
from statepool.live.database import Database
from statepool.live.definitions import Definition, is_held
from statepool.live.errors import Conflict, UnknownTicket
from statepool.live.settings import Outcome, Settings
from statepool.live.tables import EXPIRY, OUTCOME, STATE

EXPIRED_AT_ONCE = 1_000
SLACK = 60.0
"""Seconds before the watermark that are looked at again: decisions may commit late."""


def check_pairs(pairs: Any, what: str) -> list[tuple[Any, Any]]:
    """Tickets, each with a value: from a dict, pairs, or a frame of two columns."""
    if isinstance(pairs, Mapping):
        return list(pairs.items())
    if hasattr(pairs, "to_numpy"):
        pairs = pairs.to_numpy().tolist()
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise ValueError(f"pairs: is {shown(pairs)}, expected a list of (ticket, {what})")
    listed = list(pairs)
    for pair in listed:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise ValueError(f"pairs: has {shown(pair)}, expected (ticket, {what})")
    return [(ticket, value) for ticket, value in listed]


class NewReport(NamedTuple):
    """A report to store."""

    ticket: str
    kind: str
    state: int | None = None
    outcome: Outcome | None = None


class Reports:
    """The statements of one pool's reports."""

    def __init__(self, database: Database, definition: Definition) -> None:
        self._database, self._definition = database, definition
        self._tables = database.tables
        self._insert = database.prepare(self._insert_from_decision())

    def _insert_from_decision(self) -> Any:
        d, reports = self._tables.decisions.c, self._tables.reports
        now = self._database.now()
        hold: Any = sa.bindparam("hold", type_=sa.Double())  # the window, where outcomes are held until it closes
        later = sa.case((d.decided_at + hold > now, d.decided_at + hold), else_=now)
        values: dict[str, Any] = {
            "decision": d.id, "kind": _bound("kind", reports), "pool": d.pool,
            **{name: _bound(name, reports) for name in ("state", "loss", "reported", "is_reward", "is_clipped")},
            "at": now, "due": later,
        }  # fmt: skip
        select = sa.select(*(value.label(name) for name, value in values.items())).where(
            d.pool == _bound("pool", reports), d.ticket == sa.bindparam("ticket", type_=sa.Text())
        )
        insert = self._database.insert(reports).from_select(list(values), select, include_defaults=False)
        return insert.on_conflict_do_nothing(index_elements=["decision", "kind"])

    def _row(self, report: NewReport, settings: Settings, at: float | None) -> dict[str, Any]:
        held = report.kind == OUTCOME and is_held(self._definition, settings)
        outcome = report.outcome
        return {
            "ticket": report.ticket, "kind": report.kind, "pool": self._definition.id, "state": report.state,
            "loss": outcome and outcome.loss, "reported": outcome and outcome.reported,
            "is_reward": outcome and outcome.is_reward, "is_clipped": (outcome and outcome.is_clipped) or None,
            "at": at, "hold": settings.window if held else float("-inf"),
        }  # fmt: skip

    def store(self, reports: Sequence[NewReport], settings: Settings, at: float | None) -> int:
        """Store reports; how many are new.

        All that can be stored are, and then the first refusal is raised.
        """
        if not reports:
            return 0
        rows = [self._row(report, settings, at) for report in reports]

        def insert(connection: sa.Connection) -> tuple[int, ValueError | None]:
            if len(rows) == 1:
                done = connection.exec_driver_sql(self._insert, rows[0]).rowcount
            else:
                done = connection.exec_driver_sql(self._insert, rows).rowcount
            return done, None if done == len(rows) else self._first_refusal(connection, reports)

        # A single statement that stores nothing is followed by a read, which needs no transaction of its own.
        done, refusal = self._database.write(insert, one_statement=len(rows) == 1)
        if refusal is not None:
            raise refusal
        return done

    def _first_refusal(self, connection: sa.Connection, reports: Sequence[NewReport]) -> ValueError | None:
        """What is wrong with the first report that differs from the stored one."""
        d, r = self._tables.decisions.c, self._tables.reports.c
        states = self._definition.states
        for report in reports:
            joined = self._tables.decisions.outerjoin(
                self._tables.reports, sa.and_(r.decision == d.id, r.kind == report.kind)
            )
            query = sa.select(r.state, r.reported, r.is_reward, r.loss).select_from(joined)
            known = connection.execute(query.where(d.pool == self._definition.id, d.ticket == report.ticket)).first()
            if known is None:
                return UnknownTicket(f"ticket: {report.ticket!r} is not known to this pool")
            if report.kind == STATE and known.state != report.state:
                before, now = states[known.state], states[report.state or 0]
                return Conflict(f"state: ticket {report.ticket!r} was in {before!r} before, and now in {now!r}")
            if report.kind == OUTCOME and report.outcome is not None and not _same(known, report.outcome):
                before, now = _shown(known), _shown(report.outcome)
                return Conflict(f"outcome: ticket {report.ticket!r} had {before} before, and now {now}")
        return None

    def expire(self, settings: Settings, now: float | None) -> int:
        """Store the default of every decision older than the window that has no outcome; how many."""
        if settings.window is None:
            raise ValueError("expire: this pool has no window, expected one in its settings")
        now = self._database.time() if now is None else now
        p, before = self._tables.pools, now - settings.window
        with self._database.read() as connection:
            mark = connection.execute(sa.select(p.c.expired_to).where(p.c.id == self._definition.id)).scalar_one()
        # The clock may have been set back: then decisions younger than the watermark are not expired yet.
        after = float("-inf") if mark is None else min(mark, before) - SLACK
        total = 0
        while count := self._expire_some(settings, now, after, before):
            total += count
        self._database.write(lambda connection: self._set_watermark(connection, before))
        return total

    def _expire_some(self, settings: Settings, now: float, after: float, before: float) -> int:
        d, r, reports = self._tables.decisions.c, self._tables.reports.c, self._tables.reports
        outcome = self._definition.scale.default(settings)
        settled = sa.exists().where(r.decision == d.id, r.kind.in_([OUTCOME, EXPIRY]))
        values: dict[str, Any] = {
            "decision": d.id, "kind": sa.literal(EXPIRY), "pool": d.pool, "loss": sa.literal(outcome.loss),
            "reported": sa.literal(outcome.reported), "is_reward": sa.literal(outcome.is_reward),
            "at": sa.literal(now, sa.Double()), "due": sa.literal(now, sa.Double()),
        }  # fmt: skip
        select = (
            sa.select(*(value.label(name) for name, value in values.items()))
            .where(d.pool == self._definition.id, d.decided_at > after, d.decided_at <= before, ~settled)
            .order_by(d.decided_at)
            .limit(EXPIRED_AT_ONCE)
        )
        insert = self._database.insert(reports).from_select(list(values), select, include_defaults=False)
        statement = insert.on_conflict_do_nothing(index_elements=["decision", "kind"]).returning(reports.c.decision)
        return self._database.write(lambda connection: len(connection.execute(statement).all()))

    def _set_watermark(self, connection: sa.Connection, before: float) -> None:
        p = self._tables.pools
        free = sa.select(p.c.id).where(p.c.id == self._definition.id).with_for_update(key_share=True, skip_locked=True)
        if connection.execute(free).first() is not None:  # else a version is being made: the next expiry sets it
            connection.execute(sa.update(p).where(p.c.id == self._definition.id).values(expired_to=before))


def _bound(name: str, table: sa.Table) -> Any:
    return sa.bindparam(name, type_=table.c[name].type)


def _same(known: Any, outcome: Outcome) -> bool:
    if bool(known.is_reward) == outcome.is_reward:
        return bool(known.reported == outcome.reported)
    return bool(known.loss == outcome.loss)  # a reward that was reported as a loss before


def _shown(outcome: Any) -> str:
    return f"{'reward' if outcome.is_reward else 'loss'} {outcome.reported!r}"
