"""Decisions: drawn from the version that a process holds, and stored with one statement.

The statement inserts the decision only if the pool still has the version (by its random `uid`, which a restored backup
changes) and the revision that it was drawn from. It takes no lock, and it says which version is the latest. A
ticket that is there already is read back: the same request gets the same answer.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
import sqlalchemy as sa

from statepool.checks import check_number
from statepool.live.catalogue import Offer, check_label, decoded, encoded
from statepool.live.database import Database
from statepool.live.errors import Conflict
from statepool.live.learning import PolicyVersion

LONGEST_TICKET = 200
TICKETS_AT_ONCE = 500
TICKET_BYTES = 18
"""Of a random ticket: 24 characters."""


class Decision(msgspec.Struct, frozen=True, omit_defaults=True):
    """The action to take."""

    ticket: Annotated[str, msgspec.Meta(description="The name of the decision.")]
    action: Annotated[Any, msgspec.Meta(description="The label of the action that was drawn.")]
    probability: Annotated[
        Annotated[float, msgspec.Meta(ge=0, le=1)],
        msgspec.Meta(description="Of the action among all decisions, those of the holdout included."),
    ]
    is_holdout: Annotated[
        bool, msgspec.Meta(description="Whether it is kept from the learner, to measure what the learner is worth.")
    ] = False


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
Compare = Callable[[dict[str, Row]], list[Row]]
"""From the decisions that were there, by ticket, to one for each request; raises if one differs."""


class Stale(Exception):  # noqa: N818
    """The pool has another revision, or not this version; nothing was stored."""


class Decisions:
    """The statements of one pool's decisions."""

    def __init__(self, database: Database, pool: int) -> None:
        self._database, self._pool = database, pool
        self._table = database.tables.decisions
        self._insert_one = database.prepare(self._insert_from_version())
        self._insert = self._insert_arrays() if database.is_postgres else database.prepare(self._insert_values())
        self._latest = database.prepare(sa.select(self._number_of_latest()).where(*self._is_current()))

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

    def decide(
        self, version: PolicyVersion, requests: Sequence[Request], at: float | None
    ) -> tuple[int, list[Decision]]:
        """Draw and store decisions, all or none; the number of the latest version, and an answer for each request.

        Raises
        ------
        Stale
            If the pool does not have this version or this revision any more.
        Conflict
            If a ticket is there with another request.
        """
        if not requests:
            return 0, []
        offers = [version.offer(request.context, request.candidates) for request in requests]
        keys = [request.ticket or place for place, request in enumerate(requests)]
        first: dict[Any, int] = {}
        for place, key in enumerate(keys):
            first.setdefault(key, place)
        drawn = self._draw(version, [(requests[place], offers[place]) for place in first.values()], at)
        rows = dict(zip(first, drawn, strict=True))

        def compare_all(known: dict[str, Row]) -> list[Row]:
            by_ticket = {row["ticket"]: row for row in drawn} | known
            found = [by_ticket[rows[key]["ticket"]] for key in keys]
            return [compare(*each) for each in zip(found, requests, offers, strict=True)]

        if len(requests) == 1 and not (offers[0].digest and version.revision.settings.keep_candidates):
            latest, stored = self._store_one(drawn[0], version, requests[0].ticket, compare_all)
        else:
            latest, stored = self._store(drawn, version, offers, compare_all)
        labels = version.revision.catalogue.labels
        if any(row["action"] >= len(labels) for row in stored):  # another process has added it
            raise Stale
        return latest, [
            Decision(
                row["ticket"], labels[row["action"]] if row["label"] is None else decoded(row["label"]),
                row["probability"], bool(row["is_holdout"]),
            )
            for row in stored
        ]  # fmt: skip

    def _draw(self, version: PolicyVersion, asked: Sequence[tuple[Request, Offer]], at: float | None) -> list[Row]:
        """The rows of new decisions."""
        base, varies = version.revision.catalogue.base, version.definition.learner.policy_varies
        bits, tickets = secrets.token_bytes(8 * len(asked)), secrets.token_urlsafe(TICKET_BYTES * len(asked))
        uniforms = ((np.frombuffer(bits, np.uint64) >> 11) * 2.0**-53).tolist()
        for n, (request, _) in enumerate(asked):
            if request.uniform is not None:
                uniforms[n] = request.uniform
        rounds = [version.next_round() for _ in asked]
        if not varies and all(offer is base for _, offer in asked):
            distributions = [version.distribution(base)] * len(asked)
            drawn: tuple[Any, ...] = distributions[0].draw(np.array(uniforms))
        else:
            distributions = [version.distribution(offer, t) for (_, offer), t in zip(asked, rounds, strict=True)]
            each = zip(distributions, uniforms, strict=True)
            parts = zip(*(one.draw(np.array([u])) for one, u in each), strict=True)
            drawn = tuple(np.concatenate(part) for part in parts)
        choices, probabilities, held = (part.tolist() for part in drawn)
        rows = []
        for n, (request, offer) in enumerate(asked):
            action = offer.rows.actions.item(choices[n])
            rows.append({
                "pool": self._pool, "ticket": request.ticket or tickets[24 * n : 24 * n + 24], "round": rounds[n],
                "version": version.number, "action": action, "probability": probabilities[n], "uniform": uniforms[n],
                "is_holdout": held[n], "at": at, "context": offer.context, "candidates": offer.digest,
                "label": encoded(offer.labels[choices[n]]) if action < 0 and offer.labels is not None else None,
                "saved": version.saved_with(offer, distributions[n], choices[n]),
            })  # fmt: skip
        return rows

    def _store_one(
        self, row: Row, version: PolicyVersion, ticket: str | None, compare_all: Compare
    ) -> tuple[int, list[Row]]:
        """One statement, which inserts the decision if its version is current and says which version is the latest."""
        given = row | {"uid": version.uid, "revision": version.revision.number}

        def insert(connection: sa.Connection) -> Any:
            return connection.exec_driver_sql(self._insert_one, given).first()

        found = self._database.write(insert, one_statement=True)
        if found is not None:
            return int(found[0]), [row]
        if ticket is not None:
            with self._database.read() as connection:
                known = self.find(connection, [ticket])
            if known:
                return 0, compare_all(known)
        raise Stale

    def _store(
        self, rows: list[Row], version: PolicyVersion, offers: Sequence[Offer], compare_all: Compare
    ) -> tuple[int, list[Row]]:
        """Several in one transaction."""
        current = {
            "pool": self._pool, "version": version.number, "uid": version.uid, "revision": version.revision.number,
        }  # fmt: skip
        # PostgreSQL takes arrays in one statement, SQLite one row after the other.
        given = {name: [row[name] for row in rows] for name in rows[0]} if self._database.is_postgres else rows

        def insert(connection: sa.Connection) -> tuple[int, list[Row]] | None:
            latest = connection.exec_driver_sql(self._latest, current).scalar_one_or_none()
            if latest is None:
                return None
            if version.revision.settings.keep_candidates:
                self._keep(connection, offers)
            done = connection.exec_driver_sql(self._insert, given).rowcount
            all_new = done == len(rows) == len(offers)
            known = {} if done == len(rows) else self.find(connection, [row["ticket"] for row in rows])
            return int(latest), rows if all_new else compare_all(known)

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

    def find(self, connection: sa.Connection, tickets: Sequence[str]) -> dict[str, Row]:
        """The decisions of these tickets that there are."""
        found: dict[str, Row] = {}
        for start in range(0, len(tickets), TICKETS_AT_ONCE):
            piece = list(tickets[start : start + TICKETS_AT_ONCE])
            query = sa.select(self._table).where(self._table.c.pool == self._pool, self._table.c.ticket.in_(piece))
            found.update((row["ticket"], dict(row)) for row in connection.execute(query).mappings())
        return found


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
