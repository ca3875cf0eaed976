"""Rows to read elsewhere, and what an operator does: export, erase, archive, back up."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import msgspec
import sqlalchemy as sa

from statepool.live.catalogue import decoded
from statepool.live.database import EXPIRY, OUTCOME, Database
from statepool.live.errors import UnknownTicket
from statepool.live.learning import PolicyVersion, learn_reports

if TYPE_CHECKING:
    from statepool.live.pool import Pool

COLUMNS = {
    "ticket": "VARCHAR", "action": "VARCHAR", "probability": "DOUBLE", "state": "VARCHAR", "loss": "DOUBLE",
    "reward": "DOUBLE", "decided_at": "TIMESTAMPTZ", "observed_at": "TIMESTAMPTZ", "resolved_at": "TIMESTAMPTZ",
    "is_holdout": "BOOLEAN", "expired": "BOOLEAN", "version": "BIGINT", "context": "VARCHAR", "cursor": "BIGINT",
}  # fmt: skip
"""What every row has, in order, and its type in a Parquet file."""
ROWS_AT_ONCE, DELETED_AT_ONCE = 5_000, 500
EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC).timestamp(), datetime.max.replace(tzinfo=UTC).timestamp()


def rows(pool: Pool, *conditions: Any, ids: list[int] | None = None) -> Iterator[dict[str, Any]]:
    """Flat records of the decisions that meet the conditions, in order of their key; `ids` collects the keys.

    `loss` is on the pool's scale, 0 to 1 inside the bounds that it was made with; `reward` is as reported. They are
    read in pieces: a caller that stops holds no transaction.
    """
    tables, seen = pool.database.tables, 0
    d, r = tables.decisions.c, tables.reports.c
    cursor = sa.select(sa.func.max(r.learned_in)).where(r.decision == d.id).scalar_subquery()
    query = tables.log().add_columns(sa.func.coalesce(cursor, 0).label("cursor"))
    query = query.where(d.pool == pool.definition.id, *conditions).order_by(d.id).limit(ROWS_AT_ONCE)
    while True:
        with pool.database.read() as connection:
            found = connection.execute(query.where(d.id > seen)).mappings().all()
        for row in found:
            if ids is not None:
                ids.append(row["id"])
            yield {name: _shown(name, row[name], pool) for name in COLUMNS}
        if len(found) < ROWS_AT_ONCE:
            return
        seen = found[-1]["id"]


def _shown(name: str, value: Any, pool: Pool) -> Any:
    """A column of the log as Python has it."""
    if value is None:
        return None
    if name in ("action", "context"):
        return decoded(value)
    if name == "state":
        return pool.definition.states[value]
    kind = COLUMNS[name]
    if kind == "TIMESTAMPTZ":
        return datetime.fromtimestamp(min(max(value, EARLIEST), LATEST - 1), UTC)
    return bool(value) if kind == "BOOLEAN" else value


def check_export(path: Path) -> None:
    """Refuse a file that cannot be written to."""
    if path.suffix.lower() not in (".csv", ".parquet", ".jsonl"):
        raise ValueError(f"export: is {str(path)!r}, expected a file that ends in .csv, .parquet or .jsonl")
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"export: is {str(path)!r}, expected a file in a folder that is there")


def export(records: Iterable[dict[str, Any]], path: Path) -> int:
    """Write flat records to a CSV, Parquet or JSON lines file, which is there as a whole or not at all; how many."""
    check_export(path)
    kind = path.suffix.lower()
    try:
        with TemporaryDirectory(dir=path.parent) as folder:
            made = Path(folder) / "rows"
            count = _write_lines(records, made, as_csv=kind != ".jsonl")
            if kind == ".parquet":
                made = _as_parquet(made)
            made.replace(path)
            return count
    except OSError as error:
        raise ValueError(f"export: {str(path)!r} cannot be written ({error.strerror or error})") from None


def _write_lines(records: Iterable[dict[str, Any]], path: Path, as_csv: bool) -> int:
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if as_csv:
            writer.writerow(COLUMNS)
        for count, record in enumerate(records, 1):  # noqa: B007
            if as_csv:
                writer.writerow(each.isoformat() if isinstance(each, datetime) else each for each in record.values())
            else:
                file.write(msgspec.json.encode(record).decode() + "\n")
    return count


def _as_parquet(lines: Path) -> Path:
    """A Parquet file beside a CSV file."""
    try:
        import duckdb
    except ImportError:
        raise ValueError("export: Parquet needs duckdb, expected `pip install statepool[audit]`, or a .csv") from None
    made = lines.with_name("made")
    with duckdb.connect() as database:
        database.read_csv(str(lines), header=True, columns=COLUMNS).write_parquet(str(made))
    return made


def erase(pool: Pool, ticket: str) -> None:
    """Remove a decision's ticket, candidates and label. Its numbers stay, so replay still agrees.

    That it had candidates stays known. Its reports that were not learnt yet never are. The number of its context
    stays, since it was learnt from, but the view `decision_log` and `rows` do not show it any more.
    """
    tables = pool.database.tables
    d, r, c = tables.decisions, tables.reports, tables.candidate_sets

    def run(connection: sa.Connection) -> None:
        one = sa.and_(d.c.pool == pool.definition.id, d.c.ticket == ticket)
        found = connection.execute(sa.select(d.c.id, d.c.candidates).where(one).with_for_update()).first()
        if found is None:
            raise UnknownTicket(f"ticket: {ticket!r} is not known to this pool")
        empty = {"ticket": None, "candidates": None if found.candidates is None else b"", "label": None}
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

    Settled are decisions with an outcome or a default whose reports were all taken in. One that is reported on while
    the file is written stays. Replay starts from the version that is made here. Earlier versions are deleted, except
    those that remaining decisions name.
    """
    check_export(path)
    if path.suffix.lower() != ".parquet":
        raise ValueError(f"archive: is {str(path)!r}, expected a file that ends in .parquet")
    if path.exists():
        raise ValueError(f"archive: {str(path)!r} is there, expected a new file")
    pool.learn()
    tables = pool.database.tables
    d, r, v, own = tables.decisions.c, tables.reports.c, tables.versions, pool.definition.id
    with pool.database.read() as connection:
        latest = connection.execute(sa.select(sa.func.max(v.c.number)).where(v.c.pool == own)).scalar_one()
    settled = sa.exists().where(r.decision == d.id, r.kind.in_([OUTCOME, EXPIRY]))
    moving = sa.exists().where(r.decision == d.id, sa.or_(r.learned_in.is_(None), r.learned_in > latest))
    ids: list[int] = []
    if not export(rows(pool, d.decided_at < before, settled, ~moving, ids=ids), path):
        path.unlink()
        return 0
    _to_disk(path)

    gone: list[int] = []

    def delete(connection: sa.Connection, before: PolicyVersion, now: float) -> PolicyVersion | None:
        gone.clear()  # the job may be run again
        made = learn_reports(connection, tables, before.revision, before, now, force=True)
        assert made is not None
        one = tables.pools.c.id == own
        # SQLite may give the keys of deleted decisions again: expiry looks at all of them once more.
        connection.execute(sa.update(tables.pools).where(one).values(replay_from=made.number, looked_to=0))
        for start in range(0, len(ids), DELETED_AT_ONCE):
            piece = d.id.in_(ids[start : start + DELETED_AT_ONCE])
            connection.execute(sa.select(d.id).where(piece).with_for_update())  # no report on them can come now
            still = list(connection.execute(sa.select(d.id).where(piece, settled, ~moving)).scalars())
            connection.execute(sa.delete(tables.decisions).where(d.id.in_(still)))
            connection.execute(sa.delete(tables.reports).where(r.decision.in_(still)))
            gone.extend(still)
        named = sa.select(d.version).where(d.pool == own)
        connection.execute(sa.delete(v).where(v.c.pool == own, v.c.number < made.number, v.c.number.not_in(named)))
        return made

    pool.make_version(delete)
    return len(gone)


def backup(database: Database, path: Path) -> None:
    """Copy an SQLite database to a new file while it is in use."""
    if database.is_postgres:
        raise ValueError("backup: is for SQLite, expected pg_dump for PostgreSQL")
    if path.exists() or not path.parent.is_dir():
        raise ValueError(f"backup: is {str(path)!r}, expected a new file in a folder that is there")
    with database.explained(), database.engine.connect() as connection:
        connection.exec_driver_sql("VACUUM INTO :path", {"path": str(path)})
    _to_disk(path)


def _to_disk(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
