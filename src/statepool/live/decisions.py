"""Decisions: drawn from the version that a process holds, and stored with one statement.

The statement inserts the decision only if the pool still has the version (by its random `uid`, which a restored backup
changes) and the revision that it was drawn from. It takes no lock, and it says which version is the latest. A
ticket that is there already is read back: the same request gets the same answer.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import sqlalchemy as sa

from statepool.checks import check_number
from statepool.live.catalogue import Catalogue, Offer, check_label, decoded, encoded
from statepool.live.database import Database
from statepool.live.errors import Conflict
from statepool.live.learning import PolicyVersion

LONGEST_TICKET = 200
TICKETS_AT_ONCE = 500


class Decision(msgspec.Struct, frozen=True):
    """What to do."""

    ticket: str
    action: Any
    probability: float
    """Of the action among all decisions, those of the holdout included."""
    is_holdout: bool = False
    """Whether it is kept from the learner, to measure what the learner is worth."""


def check_ticket(ticket: Any) -> str:
    """Text that both databases can hold."""
    if not (isinstance(ticket, str) and 0 < len(ticket) <= LONGEST_TICKET and ticket.isprintable()):
        raise ValueError(f"ticket: is {str(ticket)[:40]!r}, expected 1 to {LONGEST_TICKET} printable characters")
    return ticket


class Request(NamedTuple):
    """What was asked for, checked as far as it can be without a version."""

    ticket: str | None
    context: Any
    candidates: Any
    uniform: float | None


def make_request(ticket: Any, context: Any = None, candidates: Any = None, uniform: Any = None) -> Request:
    """One call of `decide`."""
    if uniform is not None and check_number(uniform, "uniform", 0, 1) == 1:
        raise ValueError(f"uniform: is {uniform!r}, expected a finite number in [0, 1)")
    context = None if context is None else check_label(context, "context")
    ticket = None if ticket is None else check_ticket(ticket)
    return Request(ticket, context, candidates, None if uniform is None else float(uniform))


Row = dict[str, Any]
"""The columns of one decision."""


class Stale(Exception):  # noqa: N818
    """The pool has another revision, or not this version; nothing was stored."""


class Decisions:
    """The statements of one pool's decisions."""

    def __init__(self, database: Database, pool: int) -> None:
        self._database, self._pool = database, pool
        self._table = database.tables.decisions
        self._insert_one = database.prepare(self._insert_from_version())
        self._insert = self._insert_arrays() if database.is_postgres else database.prepare(self._insert_values())
        self._latest = database.prepare(self._latest_of_version())

    def _parameter(self, name: str) -> Any:
        if name == "decided_at":
            return self._database.now()
        return sa.bindparam(name, type_=self._table.c[name].type)

    @property
    def _names(self) -> list[str]:
        return [column.name for column in self._table.c if column.name != "id"]

    def _number_of_latest(self) -> sa.ScalarSelect[int]:
        v = self._database.tables.versions.c
        return sa.select(sa.func.max(v.number)).where(v.pool == sa.bindparam("pool")).scalar_subquery()

    def _is_current(self) -> list[Any]:
        v, p = self._database.tables.versions.c, self._database.tables.pools.c
        return [
            v.pool == sa.bindparam("pool"), v.number == sa.bindparam("version"),
            v.uid == sa.bindparam("uid", type_=sa.LargeBinary()), p.id == v.pool,
            p.revision == sa.bindparam("revision"),
        ]  # fmt: skip

    def _insert_from_version(self) -> Any:
        names = self._names
        values = sa.select(*(self._parameter(name).label(name) for name in names)).where(*self._is_current())
        insert = self._database.insert(self._table).from_select(names, values, include_defaults=False)
        return insert.on_conflict_do_nothing(index_elements=["pool", "ticket"]).returning(self._number_of_latest())

    def _insert_values(self) -> Any:
        insert = self._database.insert(self._table).values({name: self._parameter(name) for name in self._names})
        return insert.on_conflict_do_nothing(index_elements=["pool", "ticket"])

    def _insert_arrays(self) -> str:
        """The same on PostgreSQL, where parameters are arrays: one value for each decision."""
        kinds = {column.name: column.type.compile(self._database.engine.dialect) for column in self._table.c}
        names = [name for name in self._names if name != "decided_at"]
        listed, arrays = ", ".join(names), ", ".join(f"%({name})s::{kinds[name]}[]" for name in names)
        return (
            f"INSERT INTO {self._table.fullname} ({listed}, decided_at) "
            f"SELECT {listed}, coalesce(at, extract(epoch from clock_timestamp())) "
            f"FROM unnest({arrays}, %(at)s::double precision[]) AS given ({listed}, at) "
            "ON CONFLICT (pool, ticket) DO NOTHING"
        )

    def _latest_of_version(self) -> Any:
        return sa.select(self._number_of_latest()).where(*self._is_current())

    def draw(
        self, version: PolicyVersion, requests: Sequence[Request], at: float | None
    ) -> tuple[list[Row], list[Offer]]:
        """The rows of new decisions, and what each was drawn from."""
        offers = [version.offer(request.context, request.candidates) for request in requests]
        base, varies = version.revision.catalogue.base, version.definition.learner.policy_varies
        uniforms = [secrets.randbits(53) / 2.0**53 if each.uniform is None else each.uniform for each in requests]
        rounds = [version.next_round() for _ in requests]
        if not varies and all(offer is base for offer in offers):
            distribution = version.distribution(base)
            drawn = distribution.draw(np.array(uniforms))
            plays = [(distribution, *each) for each in zip(*(part.tolist() for part in drawn), strict=True)]
        else:
            plays = []
            for offer, uniform, t in zip(offers, uniforms, rounds, strict=True):
                distribution = version.distribution(offer, t)
                plays.append((distribution, *(part.item() for part in distribution.draw(np.array([uniform])))))
        rows = []
        for request, offer, uniform, t, play in zip(requests, offers, uniforms, rounds, plays, strict=True):
            distribution, choice, probability, held = play
            action = offer.rows.actions.item(choice)
            rows.append({
                "pool": self._pool, "ticket": request.ticket or secrets.token_urlsafe(16), "round": t,
                "version": version.number, "action": action, "probability": probability, "uniform": uniform,
                "is_holdout": held, "at": at, "context": offer.context, "candidates": offer.digest,
                "label": encoded(offer.labels[choice]) if action < 0 and offer.labels is not None else None,
                "saved": version.saved_with(offer, distribution, choice),
                "uid": version.uid, "revision": version.revision.number,
            })  # fmt: skip
        return rows, offers

    def store_one(self, row: Row) -> int | None:
        """Store a decision; the number of the latest version, or None if nothing was stored."""

        def insert(connection: sa.Connection) -> Any:
            return connection.exec_driver_sql(self._insert_one, row).first()

        found = self._database.write(insert, one_statement=True)
        return None if found is None else int(found[0])

    def store(
        self, rows: list[Row], requests: Sequence[Request], offers: Sequence[Offer], keep: bool
    ) -> tuple[int, list[Row]]:
        """Store several decisions or none; the latest version and the decisions, where a ticket was there its own.

        Raises
        ------
        Stale
            If they were drawn from what the pool does not have any more.
        Conflict
            If a ticket is there with another request.
        """

        def insert(connection: sa.Connection) -> tuple[int, list[Row]] | None:
            latest = connection.exec_driver_sql(self._latest, _only(rows[0], CURRENT)).scalar_one_or_none()
            if latest is None:
                return None
            if keep:
                self._keep(connection, offers)
            new = [_only(row, None) for row in rows]
            if self._database.is_postgres:  # one statement for all
                arrays = {name: [row[name] for row in new] for name in new[0]}
                done = connection.exec_driver_sql(self._insert, arrays).rowcount
            else:
                done = connection.exec_driver_sql(self._insert, new).rowcount
            stored = rows
            if done != len(rows):
                stored = self._read_back(connection, rows, requests, offers)
            return int(latest), stored

        if not rows:
            return 0, []
        found = self._database.write(insert)
        if found is None:
            raise Stale
        return found

    def _keep(self, connection: sa.Connection, offers: Sequence[Offer]) -> None:
        table = self._database.tables.candidate_sets
        sets = {offer.digest: offer for offer in offers if offer.digest is not None}
        if sets:
            connection.execute(
                self._database.insert(table).on_conflict_do_nothing(),
                [
                    {"pool": self._pool, "digest": digest, "labels": encoded(offer.labels),
                     "rows": np.ascontiguousarray(offer.rows.columns.T).tobytes()}
                    for digest, offer in sets.items()
                ],
            )  # fmt: skip

    def _read_back(
        self, connection: sa.Connection, rows: list[Row], requests: Sequence[Request], offers: Sequence[Offer]
    ) -> list[Row]:
        known = self.find(connection, [row["ticket"] for row in rows])
        return [
            compare(known[row["ticket"]], request, offer)
            for row, request, offer in zip(rows, requests, offers, strict=True)
        ]

    def find(self, connection: sa.Connection, tickets: Sequence[str]) -> dict[str, Row]:
        """The decisions of these tickets that there are."""
        found: dict[str, Row] = {}
        for start in range(0, len(tickets), TICKETS_AT_ONCE):
            piece = list(tickets[start : start + TICKETS_AT_ONCE])
            query = sa.select(self._table).where(self._table.c.pool == self._pool, self._table.c.ticket.in_(piece))
            found.update((row["ticket"], dict(row)) for row in connection.execute(query).mappings())
        return found


CURRENT = ("pool", "version", "uid", "revision")


def _only(row: Row, names: Sequence[str] | None) -> Row:
    """The parameters of a statement: drivers refuse others than it names."""
    if names is None:
        return {name: value for name, value in row.items() if name not in ("uid", "revision")}
    return {name: row[name] for name in names}


def compare(known: Row, request: Request, offer: Offer) -> Row:
    """The decision of a ticket; raise if it was made for another request."""
    if request.uniform is not None and request.uniform != known["uniform"]:
        raise Conflict(
            f"uniform: ticket {known['ticket']!r} was drawn from {known['uniform']!r}, and now {request.uniform!r}"
        )
    if offer.context != known["context"]:
        raise Conflict(f"context: ticket {known['ticket']!r} was decided for another than {request.context!r}")
    if offer.digest != (None if known["candidates"] is None else bytes(known["candidates"])):
        raise Conflict(f"candidates: ticket {known['ticket']!r} was decided among others, expected the same again")
    return known


def answer(row: Row, catalogue: Catalogue) -> Decision:
    """A row as its caller sees it."""
    label = catalogue.labels[row["action"]] if row["label"] is None else decoded(row["label"])
    return Decision(row["ticket"], label, row["probability"], bool(row["is_holdout"]))
