"""Rows to read elsewhere, and what an operator does: export, erase, archive, back up."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import sqlalchemy as sa

from statepool.live.catalogue import decoded
from statepool.live.database import Database
from statepool.live.errors import UnknownTicket
from statepool.live.tables import EXPIRY, OUTCOME, STATE

if TYPE_CHECKING:
    from statepool.live.pool import Pool

COLUMNS = {
    "ticket": "VARCHAR", "action": "VARCHAR", "probability": "DOUBLE", "state": "VARCHAR", "loss": "DOUBLE",
    "reward": "DOUBLE", "decided_at": "TIMESTAMPTZ", "observed_at": "TIMESTAMPTZ", "resolved_at": "TIMESTAMPTZ",
    "is_holdout": "BOOLEAN", "expired": "BOOLEAN", "version": "BIGINT", "context": "VARCHAR", "cursor": "BIGINT",
}  # fmt: skip
"""What every row has, in order, and its type in a Parquet file."""
ROWS_AT_ONCE = 5_000
EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC).timestamp(), datetime.max.replace(tzinfo=UTC).timestamp()


def rows(pool: Pool, after: int | None, ticket: str | None = None) -> Iterator[dict[str, Any]]:
    """Flat records of decisions, in order of their key, read in pieces: a caller that stops holds no transaction.

    `loss` is on the pool's scale, 0 to 1 inside the bounds that it was made with; `reward` is as reported.
    """
    d, seen = pool.database.tables.decisions.c, 0
    labels = pool.catalogue
    while True:
        conditions = [d.pool == pool.definition.id, d.id > seen]
        if ticket is not None:
            conditions.append(d.ticket == ticket)
        with pool.database.read() as connection:
            found = connection.execute(_query(pool, conditions, after)).all()
        for row in found:
            if row.action >= len(labels.labels) or (row.context or 0) >= max(len(labels.contexts), 1):
                pool.refresh()
                labels = pool.catalogue
            yield _record(row, labels)
        if len(found) < ROWS_AT_ONCE:
            return
        seen = found[-1].id


def _query(pool: Pool, conditions: list[Any], after: int | None) -> Any:
    tables = pool.database.tables
    d, r = tables.decisions.c, tables.reports.c
    if after is not None:
        recent = sa.select(r.decision).where(r.pool == pool.definition.id, r.learned_in > after)
        conditions.append(d.id.in_(recent))
    s, o, e = (tables.reports.alias(kind) for kind in (STATE, OUTCOME, EXPIRY))
    joined: Any = tables.decisions
    for kind, each in ((STATE, s), (OUTCOME, o), (EXPIRY, e)):
        joined = joined.outerjoin(each, sa.and_(each.c.decision == d.id, each.c.kind == kind))
    return (
        sa.select(
            d.id, d.ticket, d.action, d.label, d.probability, d.decided_at, d.is_holdout, d.version, d.context,
            s.c.state, s.c.at.label("observed_at"), s.c.learned_in.label("state_in"),
            o.c.loss, o.c.reported, o.c.is_reward, o.c.at.label("resolved_at"), o.c.learned_in.label("outcome_in"),
            e.c.loss.label("default_loss"), e.c.reported.label("default_reported"),
            e.c.is_reward.label("default_is_reward"), e.c.at.label("expired_at"), e.c.learned_in.label("expiry_in"),
        )
        .select_from(joined).where(*conditions).order_by(d.id).limit(ROWS_AT_ONCE)
    )  # fmt: skip


def _record(row: Any, catalogue: Any) -> dict[str, Any]:
    expired = row.resolved_at is None and row.expired_at is not None
    reported = row.default_reported if expired else row.reported
    is_reward = row.default_is_reward if expired else row.is_reward
    hidden = row.ticket is None or row.context is None
    return {
        "ticket": row.ticket,
        "action": catalogue.labels[row.action] if row.label is None and row.action >= 0 else _label(row.label),
        "probability": row.probability,
        "state": None if row.state is None else catalogue.states[row.state],
        "loss": row.default_loss if expired else row.loss,
        "reward": reported if is_reward else None,
        "decided_at": _time(row.decided_at),
        "observed_at": _time(row.observed_at),
        "resolved_at": _time(row.expired_at if expired else row.resolved_at),
        "is_holdout": bool(row.is_holdout),
        "expired": expired,
        "version": row.version,
        "context": None if hidden else catalogue.contexts[row.context].label,
        "cursor": max(row.state_in or 0, row.outcome_in or 0, row.expiry_in or 0),
    }


def _label(text: str | None) -> Any:
    return None if text is None else decoded(text)


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(min(max(seconds, EARLIEST), LATEST - 1), UTC)


def export(records: Iterable[dict[str, Any]], path: Path) -> int:
    """Write flat records to a CSV, Parquet or JSON lines file; how many."""
    check_export(path)
    try:
        if path.suffix.lower() == ".csv":
            return _write_csv(records, path)
        if path.suffix.lower() == ".jsonl":
            return _write_lines(records, path)
        return _write_parquet(records, path)
    except OSError as error:
        raise ValueError(f"export: {str(path)!r} cannot be written ({error.strerror or error})") from None


def check_export(path: Path) -> None:
    """Refuse a file that cannot be written to."""
    if path.suffix.lower() not in (".csv", ".parquet", ".jsonl"):
        raise ValueError(f"export: is {str(path)!r}, expected a file that ends in .csv, .parquet or .jsonl")
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"export: is {str(path)!r}, expected a file in a folder that is there")


def _write_csv(records: Iterable[dict[str, Any]], path: Path) -> int:
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for record in records:
            values = (record[name] for name in COLUMNS)
            writer.writerow([value.isoformat() if isinstance(value, datetime) else value for value in values])
            count += 1
    return count


def _write_lines(records: Iterable[dict[str, Any]], path: Path) -> int:
    count = 0
    with path.open("wb") as file:
        for record in records:
            file.write(msgspec.json.encode(record) + b"\n")
            count += 1
    return count


def _write_parquet(records: Iterable[dict[str, Any]], path: Path) -> int:
    try:
        import duckdb
    except ImportError:
        raise ValueError("export: Parquet needs duckdb, expected `pip install statepool[audit]`, or a .csv") from None
    flat = path.with_name(path.name + ".csv.part")
    try:
        count = _write_csv(records, flat)
        with duckdb.connect() as database:
            database.read_csv(str(flat), header=True, columns=COLUMNS).write_parquet(str(path))
    finally:
        flat.unlink(missing_ok=True)
    return count


def erase(pool: Pool, ticket: str) -> None:
    """Set a decision's ticket, candidates and label to NULL. Its numbers stay, so replay still agrees.

    Its reports that were not learnt yet never are. The number of its context stays, since it was learnt from, but the
    view `decision_log` and `rows` do not show it any more.
    """
    tables = pool.database.tables
    d, r, c = tables.decisions, tables.reports, tables.candidate_sets

    def run(connection: sa.Connection) -> None:
        one = sa.and_(d.c.pool == pool.definition.id, d.c.ticket == ticket)
        found = connection.execute(sa.select(d.c.id, d.c.candidates).where(one).with_for_update()).first()
        if found is None:
            raise UnknownTicket(f"ticket: {ticket!r} is not known to this pool")
        empty = {"ticket": None, "candidates": None, "label": None}
        connection.execute(sa.update(d).where(d.c.id == found.id).values(empty))
        waiting = sa.and_(r.c.decision == found.id, r.c.learned_in.is_(None))
        connection.execute(sa.update(r).where(waiting).values(learned_in=0))
        if found.candidates is not None:
            used = sa.exists().where(d.c.pool == pool.definition.id, d.c.candidates == found.candidates)
            mine = sa.and_(c.c.pool == pool.definition.id, c.c.digest == found.candidates, ~used)
            connection.execute(sa.delete(c).where(mine))

    pool.database.write(run)


def archive(pool: Pool, before: float, path: Path) -> int:
    """Write settled decisions made before a time to a Parquet file, then delete them; how many.

    Settled are decisions with an outcome or a default whose reports were all taken in. Replay starts from the version
    that is made here. Earlier versions are deleted, except those that remaining decisions name.
    """
    if path.suffix.lower() != ".parquet":
        raise ValueError(f"archive: is {str(path)!r}, expected a file that ends in .parquet")
    check_export(path)
    if path.exists():
        raise ValueError(f"archive: {str(path)!r} is there, expected a new file")
    pool.learn()
    tables = pool.database.tables
    d, r = tables.decisions.c, tables.reports.c
    own = d.pool == pool.definition.id
    open_reports = sa.exists().where(r.decision == d.id, r.learned_in.is_(None))
    settled = sa.exists().where(r.decision == d.id, r.kind.in_([OUTCOME, EXPIRY]))
    with pool.database.read() as connection:
        query = sa.select(d.id).where(own, d.decided_at < before, settled, ~open_reports).order_by(d.id)
        ids = list(connection.execute(query).scalars())
    if not ids:
        return 0
    export(_records_of(pool, ids), path)
    with path.open("rb+") as file:
        _to_disk(file)
    pool.start_replay_here(lambda connection: _delete(connection, pool, ids))
    return len(ids)


def _to_disk(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def _records_of(pool: Pool, ids: list[int]) -> Iterator[dict[str, Any]]:
    d = pool.database.tables.decisions.c
    for start in range(0, len(ids), 500):
        with pool.database.read() as connection:
            found = connection.execute(_query(pool, [d.id.in_(ids[start : start + 500])], None)).all()
        yield from (_record(row, pool.catalogue) for row in found)


def _delete(connection: sa.Connection, pool: Pool, ids: list[int]) -> None:
    tables = pool.database.tables
    for start in range(0, len(ids), 500):
        piece = ids[start : start + 500]
        connection.execute(sa.delete(tables.reports).where(tables.reports.c.decision.in_(piece)))
        connection.execute(sa.delete(tables.decisions).where(tables.decisions.c.id.in_(piece)))
    v, d, p = tables.versions, tables.decisions.c, tables.pools.c
    named = sa.select(d.version).where(d.pool == pool.definition.id)
    start_at = sa.select(p.replay_from).where(p.id == pool.definition.id).scalar_subquery()
    old = sa.and_(v.c.pool == pool.definition.id, v.c.number < start_at, v.c.number.not_in(named))
    connection.execute(sa.delete(v).where(old))


def backup(database: Database, path: Path) -> None:
    """Copy an SQLite database to a new file while it is in use."""
    if database.is_postgres:
        raise ValueError("backup: is for SQLite, expected pg_dump for PostgreSQL")
    if path.exists() or not path.parent.is_dir():
        raise ValueError(f"backup: is {str(path)!r}, expected a new file in a folder that is there")
    with database.autocommit() as connection:
        connection.exec_driver_sql("VACUUM INTO :path", {"path": str(path)})
    with path.open("rb+") as file:
        _to_disk(file)
