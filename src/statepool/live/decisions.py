"""Decisions and their reports, in any order, from any process.

A decision is drawn from the version that a process holds, and stored only if the pool still has that version (by its
random `uid`, which a restored backup changes) and its revision. Which version is the latest is asked as well, for the
next decision: on PostgreSQL by the same statement, on SQLite by another in the same transaction. A ticket that is there
already is read back: the same request gets the same answer.

A report is the state that was seen, the outcome, or the default once the window is over: one INSERT from the decision's
row. If nothing was inserted, the same report is there already, or another one, or the ticket is unknown.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from math import inf
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
import sqlalchemy as sa

from statepool.checks import shown
from statepool.live.catalogue import Offer, decoded, encoded
from statepool.live.database import EXPIRY, OUTCOME, STATE, Database
from statepool.live.errors import Conflict, UnknownTicket
from statepool.live.learning import PolicyVersion
from statepool.live.settings import Definition, Revision, about

LONGEST_TICKET = 200
random = secrets.SystemRandom().random
TICKETS_AT_ONCE, EXPIRED_AT_ONCE = 500, 1_000
SLACK = 60.0
"""Seconds before the watermark that expiry looks at again: decisions may commit late."""


class Decision(msgspec.Struct, frozen=True, omit_defaults=True):
    """The action to take."""

    ticket: Annotated[str, about("The name of the decision.")]
    action: Annotated[Any, about("The label of the action that was drawn.")]
    probability: Annotated[float, about("Of the action among all decisions, the holdout's included.", ge=0, le=1)]
    is_holdout: Annotated[bool, about("Whether it is kept from the learner, to measure the learner.")] = False


def check_ticket(ticket: Any) -> str:
    """Text that both databases can hold."""
    if not (isinstance(ticket, str) and 0 < len(ticket) <= LONGEST_TICKET and ticket.isprintable()):
        raise ValueError(f"ticket: is {shown(ticket)}, expected 1 to {LONGEST_TICKET} printable characters")
    return ticket


def make_ticket() -> str:
    """Milliseconds, then random characters: rows that are stored together are neighbours in the index of tickets."""
    return f"{time.time_ns() // 1_000_000:011x}{secrets.token_urlsafe(12)}"


Row = dict[str, Any]
"""The columns of one decision, or of one report."""


class Stale(ValueError):  # noqa: N818
    """The pool has another revision, or not this version; nothing was stored."""


class Decisions:
    """The statements of one pool's decisions."""

    def __init__(self, database: Database, pool: int) -> None:
        self._database, self._pool, self._table = database, pool, database.tables.decisions
        v, p = database.tables.versions.c, database.tables.pools.c
        latest = sa.select(sa.func.max(v.number)).where(v.pool == sa.bindparam("pool")).scalar_subquery()
        still_there = [
            v.pool == sa.bindparam("pool"), v.number == sa.bindparam("version"),
            v.uid == sa.bindparam("uid", type_=sa.LargeBinary()), p.id == v.pool,
            p.revision == sa.bindparam("revision"),
        ]  # fmt: skip
        self._latest = database.prepare(sa.select(latest).where(*still_there))
        insert = database.insert(self._table).on_conflict_do_nothing(index_elements=["pool", "ticket"])
        if database.is_postgres:
            source = columns_of_json(self._table) | {"decided_at": database.now()}
            select = sa.select(*(value.label(name) for name, value in source.items())).where(*still_there)
            insert = insert.from_select(list(source), select, include_defaults=False).returning(latest)
        else:
            names = [each.name for each in self._table.c if each.name not in ("id", "decided_at")]
            insert = insert.values({name: sa.bindparam(name) for name in names} | {"decided_at": database.now()})
        self._insert = database.prepare(insert)

    def decide(
        self, version: PolicyVersion, requests: Sequence[tuple[Any, Any, Any]], at: float | None,
        uniform: float | None = None,
    ) -> tuple[int, list[Decision]]:  # fmt: skip
        """Draw and store decisions, all or none; the number of the latest version, and an answer for each request.

        A request is its ticket, context and candidates, or None for each; `uniform` is the number to draw with. Raises
        Stale if the pool does not have this version any more, and Conflict if a ticket is there with another request.
        """
        if not requests:
            return 0, []
        offers = [version.offer(context, candidates) for _, context, candidates in requests]
        rows = [
            self._draw(version, offer, None if ticket is None else check_ticket(ticket), uniform, at)
            for (ticket, _, _), offer in zip(requests, offers, strict=True)
        ]
        latest, rows = self._store(rows, version, offers)
        labels = version.revision.catalogue.labels
        if any(row["action"] >= len(labels) for row in rows):  # another process has added it
            raise Stale
        return latest, [
            Decision(
                row["ticket"], labels[row["action"]] if row["label"] is None else decoded(row["label"]),
                row["probability"], bool(row["is_holdout"]),
            )
            for row in rows
        ]  # fmt: skip

    def _draw(
        self, version: PolicyVersion, offer: Offer, ticket: str | None, uniform: float | None, at: float | None
    ) -> Row:
        uniform, t = random() if uniform is None else uniform, next(version.rounds)
        distribution = version.distribution(offer, t)
        choice, probability, is_holdout = distribution.draw(uniform)
        action = offer.rows.actions.item(choice)
        return {
            "pool": self._pool, "ticket": ticket or make_ticket(), "round": t, "version": version.number,
            "action": action, "probability": probability, "uniform": uniform, "is_holdout": is_holdout, "at": at,
            "context": offer.context, "candidates": offer.digest,
            "label": offer.label_of(choice),
            "saved": version.saved_with(offer, distribution, choice),
        }  # fmt: skip

    def _store(self, rows: list[Row], version: PolicyVersion, offers: Sequence[Offer]) -> tuple[int, list[Row]]:
        """Insert decisions if the pool still has their version; the latest version, and the rows as they are stored."""
        drawn_from = {
            "pool": self._pool, "version": version.number, "uid": version.uid, "revision": version.revision.number,
        }  # fmt: skip
        sets = {offer.digest: offer for offer in offers if offer.digest and version.revision.settings.keep_candidates}
        kept = [
            {"pool": self._pool, "digest": digest, "labels": encoded(offer.labels),
             "rows": np.ascontiguousarray(offer.rows.columns.T).tobytes()}
            for digest, offer in sets.items()
        ]  # fmt: skip

        def insert(connection: sa.Connection) -> tuple[int, list[Row]]:
            if kept:
                table = self._database.tables.candidate_sets
                connection.execute(self._database.insert(table).on_conflict_do_nothing(), kept)
            if self._database.is_postgres:
                given = drawn_from | {"at": rows[0]["at"], "rows": encoded(rows)}
                found = connection.exec_driver_sql(self._insert, given).all()
                latest, done = found[0][0] if found else None, len(found)
            else:
                latest = connection.exec_driver_sql(self._latest, drawn_from).scalar()
                done = 0 if latest is None else connection.exec_driver_sql(self._insert, rows).rowcount
            if done == len(rows):
                return latest or 0, rows
            known = self._find(connection, rows)
            if latest is None and any(row["ticket"] not in known for row in rows):
                raise Stale
            for row in rows:
                compare(known[row["ticket"]], row)
            return latest or 0, [known[row["ticket"]] for row in rows]

        return self._database.write(insert, one_statement=not kept and len(rows) == 1)

    def _find(self, connection: sa.Connection, rows: Sequence[Row]) -> dict[str, Row]:
        found: dict[str, Row] = {}
        for start in range(0, len(rows), TICKETS_AT_ONCE):
            tickets = [row["ticket"] for row in rows[start : start + TICKETS_AT_ONCE]]
            query = sa.select(self._table).where(self._table.c.pool == self._pool, self._table.c.ticket.in_(tickets))
            found.update((row["ticket"], dict(row)) for row in connection.execute(query).mappings())
        return found


def columns_of_json(table: sa.Table) -> dict[str, Any]:
    """The columns of decisions that come as one parameter, `rows`, in JSON, with bytes in base64; for PostgreSQL."""
    columns = [each for each in table.c if each.name not in ("id", "decided_at")]
    is_bytes = {each.name: isinstance(each.type, sa.LargeBinary) for each in columns}
    typed = [sa.column(each.name, sa.Text() if is_bytes[each.name] else each.type) for each in columns]
    given: Any = sa.func.json_to_recordset(sa.bindparam("rows", type_=sa.JSON()))
    rows = given.table_valued(*typed).render_derived(name="given", with_types=True)
    base64 = sa.literal_column("'base64'", sa.Text())
    return {each.name: sa.func.decode(each, base64) if is_bytes[each.name] else each for each in rows.c}


def compare(known: Row, drawn: Row) -> None:
    """Raise if the decision of a ticket was made for another request than the one drawn now."""
    ticket = known["ticket"]
    if drawn["context"] != known["context"]:
        raise Conflict(f"context: ticket {ticket!r} was decided for another context, expected the same again")
    if drawn["candidates"] != (known["candidates"] and bytes(known["candidates"])):
        raise Conflict(f"candidates: ticket {ticket!r} was decided among other candidates, expected the same again")


def check_pairs(pairs: Any, what: str) -> list[tuple[Any, Any]]:
    """Tickets, each with a value: from a dict or pairs."""
    try:
        return [(ticket, value) for ticket, value in (pairs.items() if isinstance(pairs, Mapping) else pairs)]
    except (TypeError, ValueError):
        raise ValueError(f"pairs: is {shown(pairs)}, expected a list of (ticket, {what})") from None


class NewReport(NamedTuple):
    """A report to store: its ticket and columns of `reports`."""

    ticket: str
    kind: str
    state: int | None = None
    loss: float | None = None
    reported: float | None = None
    is_reward: bool | None = None
    is_clipped: bool | None = None

    @property
    def outcome(self) -> str:
        return f"{'reward' if self.is_reward else 'loss'} {self.reported!r}"


class Reports:
    """The statements of one pool's reports."""

    def __init__(self, database: Database, definition: Definition) -> None:
        self._database, self._definition, self._tables = database, definition, database.tables
        d, r = self._tables.decisions.c, self._tables.reports.c
        until_due: Any = sa.bindparam("until_due", type_=sa.Double())  # the window, or at once
        names = NewReport._fields[1:]
        values: dict[str, Any] = {
            "decision": d.id, "pool": d.pool, "at": database.now(), "due": d.decided_at + until_due,
            **{name: sa.bindparam(name, type_=r[name].type) for name in names},
        }  # fmt: skip
        ticket: Any = sa.bindparam("ticket", type_=sa.Text())
        # On PostgreSQL the decision is locked against being erased or archived meanwhile.
        decision = (
            sa.select(*(value.label(name) for name, value in values.items()))
            .where(d.pool == sa.bindparam("pool"), d.ticket == ticket)
            .with_for_update(read=True, key_share=True)
        )
        self._insert = database.prepare(self._insert_from(decision))

    def _insert_from(self, select: sa.Select[Any]) -> Any:
        names = [column.name for column in select.selected_columns]
        insert = self._database.insert(self._tables.reports).from_select(names, select, include_defaults=False)
        return insert.on_conflict_do_nothing(index_elements=["decision", "kind"])

    def store(self, reports: Sequence[NewReport], revision: Revision, at: float | None) -> int:
        """Store reports; how many are new.

        All that can be stored are, and then the first refusal is raised.
        """
        if not reports:
            return 0
        window = None if revision.definition.learner.exposure else revision.settings.window
        more = {"pool": self._definition.id, "at": at}
        rows: list[Row] = [
            report._asdict() | more | {"until_due": -inf if window is None or report.kind == STATE else window}
            for report in reports
        ]  # fmt: skip
        given: Any = rows[0] if len(rows) == 1 else rows

        def insert(connection: sa.Connection) -> tuple[int, ValueError | None]:
            done = connection.exec_driver_sql(self._insert, given).rowcount
            return done, None if done == len(rows) else self._first_refusal(connection, reports)

        # A single statement that stores nothing is followed by a read, which needs no transaction of its own.
        done, refusal = self._database.write(insert, one_statement=len(rows) == 1)
        if refusal is not None:
            raise refusal
        return done

    def _first_refusal(self, connection: sa.Connection, reports: Sequence[NewReport]) -> ValueError | None:
        """What is wrong with the first report that differs from the stored one."""
        d, r = self._tables.decisions.c, self._tables.reports.c
        columns = [r[name] for name in NewReport._fields[2:]]
        for report in reports:
            mine = d.pool == self._definition.id, d.ticket == report.ticket, r.decision == d.id, r.kind == report.kind
            found = connection.execute(sa.select(*columns).where(*mine)).first()
            if found is None:
                return UnknownTicket(f"ticket: {report.ticket!r} is not known to this pool")
            known = NewReport(report.ticket, report.kind, *found)
            if known.state != report.state:
                before, now = (self._definition.states[each.state or 0] for each in (known, report))
                return Conflict(f"state: ticket {report.ticket!r} was in {before!r} before, and now in {now!r}")
            # A reward that was reported as a loss before is the same if it is worth the same.
            alike = "reported" if bool(known.is_reward) == bool(report.is_reward) else "loss"
            if getattr(known, alike) != getattr(report, alike):
                return Conflict(
                    f"outcome: ticket {report.ticket!r} had {known.outcome} before, and now {report.outcome}"
                )
        return None

    def expire(self, revision: Revision, now: float) -> int:
        """Store the default of every decision older than the window that has no outcome; how many.

        After it, every decision up to the key `looked_to` that waits for an outcome was made after `expired_to`. So
        the next time only later decisions need to be looked at, wherever clocks have been set meanwhile.
        """
        if revision.settings.window is None:
            raise ValueError("expire: this pool has no window, expected one in its settings")
        p, d, before = self._tables.pools, self._tables.decisions.c, now - revision.settings.window
        own = p.c.id == self._definition.id
        with self._database.read() as connection:
            key, mark = connection.execute(sa.select(p.c.looked_to, p.c.expired_to).where(own)).one()
            mine = sa.func.min(sa.case((d.pool == self._definition.id, d.decided_at)))
            earliest, latest = connection.execute(sa.select(mine, sa.func.max(d.id)).where(d.id > key)).one()
        after = -inf if mark is None else min(each for each in (mark, before, earliest) if each is not None) - SLACK
        overdue = self._overdue(revision, now, after, before)
        insert = self._insert_from(overdue).returning(self._tables.reports.c.decision)
        total = 0
        while count := self._database.write(lambda connection: len(connection.execute(insert).all())):
            total += count

        def set_watermark(connection: sa.Connection) -> None:
            free = sa.select(p.c.id).where(own).with_for_update(key_share=True, skip_locked=True)
            # Else a version is being made, or another process stores some of them: a later expiry sets it.
            if connection.execute(free).first() is not None and connection.execute(overdue).first() is None:
                values = {"expired_to": before, "looked_to": key if latest is None else latest}
                connection.execute(sa.update(p).where(own).values(values))

        self._database.write(set_watermark)
        return total

    def _overdue(self, revision: Revision, now: float, after: float, before: float) -> sa.Select[Any]:
        """The defaults of decisions made in that time that have no outcome, as rows of `reports`."""
        d, r = self._tables.decisions.c, self._tables.reports.c
        default = revision.definition.scale.default(revision.settings)
        settled = sa.exists().where(r.decision == d.id, r.kind.in_([OUTCOME, EXPIRY]))
        values: dict[str, Any] = {
            "decision": d.id, "kind": sa.literal(EXPIRY), "pool": d.pool, "loss": sa.literal(default.loss),
            "reported": sa.literal(default.reported), "is_reward": sa.literal(default.is_reward),
            "at": sa.literal(now, sa.Double()), "due": sa.literal(-inf, sa.Double()),
        }  # fmt: skip
        return (
            sa.select(*(value.label(name) for name, value in values.items()))
            .where(d.pool == self._definition.id, d.decided_at > after, d.decided_at <= before, ~settled)
            .order_by(d.decided_at).limit(EXPIRED_AT_ONCE)
        )  # fmt: skip
