"""A store in PostgreSQL, shared by processes and machines: a batch is a transaction under the pool's advisory lock.

A batch takes two round trips: (begin, lock, head), then (all that was appended, commit, flush). The commit does not
wait for the disk, so the lock is free at once; the flush that follows waits until the log is on disk up to there, and
only then does the batch return. Many processes share one flush. What one of them has read of another's batch is flushed
before or with its own, since the log is flushed in order. The tables are in the schema `statepool`.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import msgspec
import psycopg

from statepool.live.errors import Busy, NoStore, OlderTables, StoreUnavailable
from statepool.live.events import Kind
from statepool.live.forks import forks
from statepool.live.luck import number_of
from statepool.live.stores.archive import Archive
from statepool.live.stores.contents import TABLES, Contents, Rows, refuse_unless_empty, select
from statepool.live.stores.migrations import steps
from statepool.live.stores.postgres_connections import PATIENCE, Connection, Connections, errors
from statepool.live.stores.postgres_people import PostgresPeople
from statepool.live.stores.sql_view import COLUMNS, PIECE, SQLView
from statepool.live.stores.store import (
    NUMBERS,
    PROBE_BYTES,
    SILENT,
    Batch,
    Entry,
    Head,
    LaneBatch,
    LaneRow,
    Overdue,
    Sealed,
    Standing,
    Standings,
    View,
    check_announced,
    check_gapless,
    check_replaced,
    entry_of_row,
    kind_of,
)  # fmt: skip

CATALOGUE = """
    SELECT b.hash, e.seq, e.kind, e.ticket, e.play, e.body, e.hash
    FROM statepool.events AS e LEFT JOIN statepool.events AS b ON b.pool = e.pool AND b.seq = e.seq - 1
    WHERE e.pool = %s AND e.kind = 7 AND e.seq > %s AND e.seq <= %s ORDER BY e.seq LIMIT %s
"""
CLOCK = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
POOL = f"{CLOCK}, id, sealed, seq, hash, plays, epoch"
# Beside the head what was handed on with it, unless the head is known: one statement sees both of one moment.
POOL_AND_ROW = f"""
    SELECT CASE WHEN hash <> %s THEN body END, {POOL}
    FROM statepool.pools LEFT JOIN statepool.plays ON plays.pool = pools.id WHERE name = %s
"""
HAND_ON = """
    INSERT INTO statepool.plays (pool, body) VALUES (%(pool)s, %(body)s)
    ON CONFLICT (pool) DO UPDATE SET body = excluded.body
"""
# The oldest is the first of an index: one look a pool, however many wait.
STANDINGS = """
    SELECT name, in_lanes.count, pending + in_lanes.count, LEAST(in_lanes.oldest, CASE WHEN pending > 0 THEN (
        SELECT at FROM statepool.pending WHERE pool = pools.id ORDER BY at LIMIT 1) END), seq, hash, plays, epoch
    FROM statepool.pools CROSS JOIN LATERAL (
        SELECT count(*), min(at) AS oldest FROM statepool.lanes WHERE pool = pools.id AND ticket IS NOT NULL
    ) AS in_lanes
"""
# Of the many lanes that have ended only those are read that something waits in.
WAITING = """
    WITH waiting AS MATERIALIZED (
        SELECT pool, lane, place, ticket, at, body, hash FROM statepool.lanes
        WHERE pool = (SELECT id FROM statepool.pools WHERE name = %s) AND ticket IS NOT NULL
    )
    SELECT lane, place, ticket, at, body, hash FROM waiting
    UNION ALL
    SELECT before.* FROM (SELECT pool, lane, min(place) AS first FROM waiting GROUP BY pool, lane) AS begun
    CROSS JOIN LATERAL (
        SELECT lane, place, ticket, at, body, hash FROM statepool.lanes
        WHERE pool = begun.pool AND lane = begun.lane AND place = begun.first - 1 OFFSET 0
    ) AS before
    ORDER BY lane, place
"""
PATIENT = f"set_config('lock_timeout', '{PATIENCE:.0f}s', true)"
WAIT_FOR_THE_DISK = """
    set_config('synchronous_commit', CASE current_setting('synchronous_commit')
        WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)
"""
# Nothing is written unless the lane ends as its writer believes, the journal is as far as it knows and hardly further,
# and no event has left for a segment since tickets were looked up. The statement is a transaction by itself: BEGIN,
# settings and COMMIT, each a statement of its own, cost as much as all the rest of a decision. Where the server begins
# such transactions at another level, the trigger would not see what was committed meanwhile.
ADD_TO_LANE = f"""
    WITH settings AS MATERIALIZED (SELECT {WAIT_FOR_THE_DISK}, {PATIENT}), new AS (
        INSERT INTO statepool.lanes (pool, lane, place, ticket, at, body, hash)
        SELECT %(pool)s, %(lane)s, (e ->> 1)::bigint, e ->> 2, (e ->> 3)::bigint,
               decode(e ->> 4, 'base64'), decode(e ->> 5, 'base64')
        FROM settings, json_array_elements(%(rows)s::json) AS e
        WHERE current_setting('transaction_isolation') = 'read committed'
        AND (SELECT seq FROM statepool.pools WHERE id = %(pool)s AND sealed = %(sealed)s)
            BETWEEN %(earliest)s AND %(latest)s
        AND CASE WHEN %(first)s = 0
            THEN NOT EXISTS (SELECT FROM statepool.lanes WHERE pool = %(pool)s AND lane = %(lane)s)
            ELSE EXISTS (SELECT FROM statepool.lanes
                WHERE pool = %(pool)s AND lane = %(lane)s AND place = %(first)s - 1 AND hash = %(before)s) END
        ORDER BY e ->> 2 -- so that nobody waits in a circle for tickets that several bring at once
        RETURNING 1
    )
    SELECT count(*) FROM new
"""
# A statement a lane: a join with the lanes' table reads all of it until that has been analysed.
TAKE_OVER = """
    WITH gone AS (
        DELETE FROM statepool.lanes WHERE pool = %(pool)s AND lane = %(lane)s AND place < %(place)s
    )
    UPDATE statepool.lanes SET ticket = NULL, body = '', at = %(at)s
    WHERE pool = %(pool)s AND lane = %(lane)s AND place = %(place)s
"""
FORGET_SILENT = "DELETE FROM statepool.lanes WHERE pool = %(pool)s AND ticket IS NULL AND at < %(silent)s"
# A decision that the journal makes itself: nobody may make one of the same ticket in a lane meanwhile. Whoever tries
# waits for this batch, and then the journal knows the ticket; whoever was first is in the way.
CLAIM = """
    INSERT INTO statepool.lanes (pool, lane, place, ticket, at, body, hash)
    SELECT %(pool)s, '', place, ticket, 0, '', ''
    FROM json_array_elements_text(%(tickets)s::json) WITH ORDINALITY AS claimed (ticket, place)
    ORDER BY ticket -- as in a lane
"""
UNCLAIM = "DELETE FROM statepool.lanes WHERE pool = %(pool)s AND lane = ''"

BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Settings are of the transaction, never of the session, which may be another one behind a pooler. A writer that hangs
# with the lock in its hands is cut off, and who waits for it gives up later than that.
CUT_OFF = 30.0
NOT_IDLE = f"set_config('idle_in_transaction_session_timeout', '{CUT_OFF:.0f}s', true)"
BATCH = f"SELECT set_config('synchronous_commit', 'off', true), {NOT_IDLE}, set_config('lock_timeout', %s, true)"
# The server itself cuts off only who has ended a statement, and not who stands still within or just after a pipeline
# (psycopg ends one with a request to flush, which stops that clock). So whoever has waited for longer looks who has the
# lock, and ends it if that waits for its own client, and not for a disk or a processor.
FIRST_WAIT = CUT_OFF + 10
STILL = f"""
    SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND granted AND (classid::bigint << 32) | objid::bigint = %s AND objsubid = 1
    AND datname = current_database() AND wait_event = 'ClientRead'
    AND state_change < clock_timestamp() - interval '{CUT_OFF:.0f} seconds'
"""
DURABLE = f"SELECT {WAIT_FOR_THE_DISK}, {PATIENT}, {NOT_IDLE}"
READING = f"SELECT {PATIENT}"
# A transaction of its own that writes to the log and, unlike the batch's, waits for the disk.
FLUSH = f"SELECT {WAIT_FOR_THE_DISK}, pg_logical_emit_message(true, 'statepool', '')"

LOOSEN = "INSERT INTO statepool.loose (pool, digest, place, at) VALUES (%(pool)s, %(digest)s, %(place)s, %(at)s)"

# A row that was damaged may be found by one way of reading and not by another: how many there are, and which, by each.
KEYS = {"events": "seq", "pending": "play", "snapshots": "seq", "segments": "first", "lanes": "place"}
BY_INDEX = "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_indexscan = on"
BY_TABLE = "SET LOCAL enable_seqscan = on; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_indexscan = off"
WHICH = "SELECT count(*), sum(hashint8extended({key}, 1)::numeric) FROM statepool.{table} WHERE pool = %s"

# One look at the tickets' index each: `ticket = ANY(…)` reads the whole pool until the table has been analysed.
LOOK_UP_IN_JOURNAL = """
    SELECT wanted.ticket, found.* FROM unnest(%s::text[], %s::bigint[]) AS wanted (ticket, play) CROSS JOIN LATERAL (
        SELECT kind, body FROM statepool.events WHERE pool = %s AND play = coalesce((
            SELECT play FROM statepool.events WHERE pool = %s AND ticket = wanted.ticket AND kind = 0), wanted.play)
        UNION ALL
        SELECT kind, body FROM statepool.events WHERE pool = %s AND ticket = wanted.ticket AND kind = 6 OFFSET 0
    ) AS found
"""
LOOK_UP = f"""
    {LOOK_UP_IN_JOURNAL}
    UNION ALL
    SELECT found.* FROM unnest(%s::text[]) AS wanted (ticket) CROSS JOIN LATERAL (
        SELECT ticket, 0, body FROM statepool.lanes WHERE pool = %s AND ticket = wanted.ticket OFFSET 0
    ) AS found
"""
LOOK_UP_NUMBERS = """
    SELECT wanted.play, found.* FROM unnest(%s::bigint[]) AS wanted (play) CROSS JOIN LATERAL (
        SELECT kind, body FROM statepool.events WHERE pool = %s AND play = wanted.play OFFSET 0
    ) AS found
"""

# One statement whatever the number of events: they come as one JSON array, which costs the client least.
# What ends in the batch it began in never becomes pending: no part of the statement sees what another one wrote.
APPEND = """
    WITH new AS (
        INSERT INTO statepool.events (pool, seq, kind, ticket, play, body, hash)
        SELECT %(pool)s, (e ->> 0)::bigint, (e ->> 1)::smallint, e ->> 2, (e ->> 3)::bigint,
               decode(e ->> 4, 'base64'), decode(e ->> 5, 'base64')
        FROM json_array_elements(%(entries)s::json) AS e
        RETURNING kind, play
    ), ended AS (
        SELECT play FROM new WHERE kind IN (2, 3)
    ), opened AS (
        INSERT INTO statepool.pending (pool, play, ticket, at)
        SELECT %(pool)s, (e ->> 0)::bigint, e ->> 1, (e ->> 2)::bigint FROM json_array_elements(%(opened)s::json) AS e
        WHERE NOT EXISTS (SELECT FROM ended WHERE ended.play = (e ->> 0)::bigint)
        RETURNING 1
    ), closed AS (
        DELETE FROM statepool.pending USING ended
        WHERE pending.pool = %(pool)s AND pending.play = ended.play
        RETURNING 1
    )
    UPDATE statepool.pools
    SET seq = %(seq)s, hash = %(hash)s, plays = %(decisions)s, epoch = %(epoch)s,
        pending = pending + (SELECT count(*) FROM opened) - (SELECT count(*) FROM closed)
    WHERE id = %(pool)s
"""

Row = tuple[Any, ...]
Statement = tuple[str, dict[str, Any]]


class PostgresView(SQLView):
    """One transaction of a connection; `over` once that has ended."""

    def __init__(
        self, connection: Connection, archive: Archive, pool: int, n_sealed: int, head: Head, clock: int
    ) -> None:
        self._connection, self._archive = connection, archive
        self._pool, self._n_sealed = pool, n_sealed
        self._head = head
        self._clock = clock
        self._fork = forks.process
        self.over = False

    def _ask(self, sql: str, *values: Any) -> list[Row]:
        if self.over or self._fork != forks.process:
            raise ValueError("this reading of the store has ended")
        with errors():
            return self._connection.execute(sql, values, binary=True).fetchall()

    def _read(self, sql: str, *values: Any) -> list[Row]:
        return self._ask(_spelt(sql), *values)

    def clock(self) -> int:
        return self._clock

    def _tail_linked_catalogue(self, after: int, last: int) -> list[Any]:
        return self._ask(CATALOGUE, self._pool, after, last, PIECE)

    def _tail_entries_of(self, number: int) -> list[Entry]:
        sql = f"SELECT {COLUMNS} FROM statepool.events WHERE pool = %s AND play = %s"
        return [entry_of_row(*row) for row in self._ask(sql, self._pool, number)]

    def _tail_bodies(self, tickets: Sequence[str]) -> dict[str, dict[Kind, bytes]]:
        if not tickets:
            return {}
        return _grouped(self._ask(LOOK_UP, *self._wanted(tickets), list(tickets), self._pool))

    def _wanted(self, tickets: Sequence[str]) -> tuple[Any, ...]:
        return list(tickets), [number_of(ticket) for ticket in tickets], self._pool, self._pool, self._pool

    def _tail_bodies_of(self, numbers: Sequence[int]) -> dict[int, dict[Kind, bytes]]:
        return _grouped(self._ask(LOOK_UP_NUMBERS, list(numbers), self._pool)) if numbers else {}

    def pending(self, before: int | None = None, limit: int | None = None) -> list[Overdue]:
        sql = "SELECT play, ticket, at FROM statepool.pending WHERE pool = %s"
        if before is None:
            return [Overdue(*row) for row in self._ask(f"{sql} ORDER BY play LIMIT %s", self._pool, limit)]
        # By time as long as few are overdue; else the first by number are near the start of the table.
        by_time = f"{sql} AND at < %s ORDER BY at LIMIT %s"
        rows = self._ask(by_time, self._pool, before, None if limit is None else limit + 1)
        if limit is not None and len(rows) > limit:
            by_number = f"{sql} AND at + 0 < %s ORDER BY play LIMIT %s"  # + 0: not by the index of times, and a sort
            rows = self._ask(by_number, self._pool, before, limit)
        return sorted(Overdue(*row) for row in rows)

    def damage(self) -> list[str]:
        """Tables that tell less or more than their indexes do; from here on this reading goes by the indexes."""
        by_table, by_index = self._which(BY_TABLE), self._which(BY_INDEX)
        return [
            f"the table {table} does not hold the rows that its index finds"
            for table in KEYS
            if by_table[table] != by_index[table]
        ]

    def _which(self, way: str) -> dict[str, list[Row]]:
        with errors():
            self._connection.execute(way)
        return {table: self._ask(WHICH.format(key=key, table=table), self._pool) for table, key in KEYS.items()}


class PostgresBatch(PostgresView, Batch):
    """The writer's transaction: what is written waits in `_todo` until something is read, or until the commit.

    Once a statement has failed, nothing of the batch can be kept (`failure`).
    """

    def __init__(
        self, connection: Connection, archive: Archive, pool: int, n_sealed: int, head: Head, clock: int,
        in_lanes: list[Row],
    ) -> None:  # fmt: skip
        super().__init__(connection, archive, pool, n_sealed, head, clock)
        self._in_lanes = in_lanes
        self._todo: list[Statement] = []
        self.failure: Exception | None = None

    def lane_rows(self) -> list[LaneRow]:
        """Of lanes that something waits in, as of the beginning of the batch: who asks about a ticket was told of it
        before."""
        return [LaneRow(*row) for row in self._in_lanes]

    def _tail_bodies(self, tickets: Sequence[str]) -> dict[str, dict[Kind, bytes]]:
        """Without what has come to lanes since the beginning, which has no place in the journal yet."""
        return _grouped(self._ask(LOOK_UP_IN_JOURNAL, *self._wanted(tickets))) if tickets else {}

    def _ask(self, sql: str, *values: Any) -> list[Row]:
        try:
            if self._todo:
                self._send()
            return super()._ask(sql, *values)
        except Exception as error:
            self.failure = self.failure or error
            raise

    def _send(self, *last: Statement) -> None:
        todo, self._todo = [*self._todo, *last], []
        with errors(), self._connection.pipeline():
            cursors = [self._connection.execute(sql, values) for sql, values in todo]
        # COMMIT after a statement that failed is answered with ROLLBACK, and is no error to PostgreSQL.
        if last and cursors[-len(last)].statusmessage != "COMMIT":
            raise StoreUnavailable("PostgreSQL rolled the batch back")

    def commit(self) -> None:
        if self.failure is not None:
            raise self.failure
        self._send(("COMMIT", {}), (FLUSH, {}))

    def append(self, entries: Sequence[Entry], head: Head, opened: Sequence[Overdue] = ()) -> None:
        check_gapless(self._head, entries, head, opened)
        self._claim([each.ticket for each in opened])
        rows = [(each.seq, NUMBERS[each.kind], each.ticket, each.number, each.body, each.hash) for each in entries]
        texts = {"entries": msgspec.json.encode(rows).decode(), "opened": msgspec.json.encode(opened).decode()}
        self._write(APPEND, **texts, **head._asdict())
        self._head = head

    def _claim(self, tickets: list[str]) -> None:
        """Those that do not come from a lane, where their rows are in everybody's way."""
        from_lanes = {row.ticket for row in self.lane_rows()}
        own = [ticket for ticket in tickets if ticket not in from_lanes]
        if own:
            self._write(CLAIM, tickets=msgspec.json.encode(own).decode())
            self._write(UNCLAIM)

    def save_snapshot(self, seq: int, blob: bytes) -> None:
        sql = """INSERT INTO statepool.snapshots (pool, seq, body) VALUES (%(pool)s, %(seq)s, %(body)s)
                 ON CONFLICT (pool) DO UPDATE SET seq = excluded.seq, body = excluded.body"""
        self._write(sql, seq=seq, body=blob)

    def hand_on(self, row: bytes) -> None:
        self._write(HAND_ON, body=row)

    def seal(self, segment: Sealed) -> None:
        self._check_next(segment)
        self._fasten(segment.digest)
        sql = """INSERT INTO statepool.segments (pool, first, last, hash, digest, place, size)
                 VALUES (%(pool)s, %(first)s, %(last)s, %(hash)s, %(digest)s, %(place)s, %(size)s)"""
        self._write(sql, **segment._asdict())
        self._write("UPDATE statepool.pools SET sealed = %(last)s WHERE id = %(pool)s", last=segment.last)
        self._n_sealed = segment.last

    def announce(self, digest: str, place: str) -> None:
        self._write(LOOSEN, digest=digest, place=place, at=self._clock)

    def _fasten(self, digest: str) -> None:
        sql = "DELETE FROM statepool.loose WHERE pool = %s AND digest = %s AND at > 0 RETURNING 1"
        check_announced(digest, len(self._ask(sql, self._pool, digest)))

    def condemn(self, digests: Sequence[str]) -> None:
        sql = "UPDATE statepool.loose SET at = -abs(at) WHERE pool = %(pool)s AND digest = ANY(%(digests)s)"
        self._write(sql, digests=list(digests))

    def drop_loose(self, digests: Sequence[str]) -> None:
        sql = "DELETE FROM statepool.loose WHERE pool = %(pool)s AND digest = ANY(%(digests)s)"
        self._write(sql, digests=list(digests))

    def erase(self, changed: Sequence[Entry]) -> None:
        """The server keeps the old rows until it vacuums the table."""
        for entry in changed:
            sql = "UPDATE statepool.events SET ticket = %(ticket)s, body = %(body)s"
            self._write(
                f"{sql} WHERE pool = %(pool)s AND seq = %(seq)s", ticket=entry.ticket, body=entry.body, seq=entry.seq
            )
            if entry.kind == "decision":
                sql = "UPDATE statepool.pending SET ticket = %(ticket)s WHERE pool = %(pool)s AND play = %(number)s"
                self._write(sql, ticket=entry.ticket, number=entry.number)

    def replace_segment(self, old: Sealed, new: Sealed) -> None:
        sql = """UPDATE statepool.segments SET digest = %s, place = %s, size = %s
                 WHERE pool = %s AND first = %s AND digest = %s RETURNING 1"""
        values = (new.digest, new.place, new.size, self._pool, old.first, old.digest)
        check_replaced(old, len(self._ask(sql, *values)))
        if new.digest != old.digest:
            self._fasten(new.digest)
            self._write(LOOSEN, digest=old.digest, place=old.place, at=-self._clock)

    def drop_sealed(self, limit: int) -> int:
        first = self._ask("SELECT min(seq) FROM statepool.events WHERE pool = %s", self._pool)[0][0]
        if first is None or first > self._n_sealed:
            return 0
        sql = "DELETE FROM statepool.events WHERE pool = %s AND seq <= %s RETURNING 1"
        return len(self._ask(sql, self._pool, min(first + limit - 1, self._n_sealed)))

    def take_over(self, last: Sequence[LaneRow]) -> None:
        for row in last:
            self._write(TAKE_OVER, lane=row.lane, place=row.place, at=self._clock)
        self._write(FORGET_SILENT, silent=self._clock - SILENT)

    def _write(self, sql: str, **values: Any) -> None:
        if self.over:
            raise ValueError("this batch has ended")
        self._todo.append((sql, {"pool": self._pool, **values}))


class PostgresLane(PostgresView, LaneBatch):
    """Readings, each of its own moment, then a transaction that takes no lock: it writes new rows, and waits for the
    disk."""

    _rows: Sequence[LaneRow] = ()
    _before, _between = b"", (0, 0)

    def __init__(
        self, connection: Connection, archive: Archive, pool: int, n_sealed: int, head: Head, clock: int,
        row: bytes | None,
    ) -> None:  # fmt: skip
        super().__init__(connection, archive, pool, n_sealed, head, clock)
        self._row = row

    def handed_on(self) -> bytes | None:
        return self._row

    def add(self, rows: Sequence[LaneRow], before: bytes, between: tuple[int, int]) -> None:
        self._rows, self._before, self._between = rows, before, between

    def commit(self) -> None:
        if not self._rows:
            return
        values = {"pool": self._pool, "lane": self._rows[0].lane, "first": self._rows[0].place, "before": self._before,
                  "earliest": self._between[0], "latest": self._between[1], "sealed": self._n_sealed,
                  "rows": msgspec.json.encode(self._rows).decode()}  # fmt: skip
        with errors():
            added = self._connection.execute(ADD_TO_LANE, values).fetchone() or (0,)
        self.kept = added[0] == len(self._rows)


class PostgresStore(PostgresPeople):
    """A batch has a connection of its own, so that a pool whose lock is held elsewhere holds up no other pool."""

    has_lanes = True

    def __init__(self, url: str, create: bool = True, to_read: bool = False) -> None:
        self._connections = Connections(url, self._count_loss)
        self._archive = Archive()
        try:
            self._migrate(create and not to_read, to_read)
        except BaseException:
            self.close()
            raise

    def _count_loss(self) -> None:
        self.connections += 1

    def _migrate(self, create: bool, to_read: bool) -> None:
        todo = steps("postgres")
        with self._reading() as connection:
            found, database = _version(connection, todo[-1][0]), connection.info.dbname
        if found == todo[-1][0]:
            return
        if not found and not create:
            raise NoStore(
                f"the database {database!r} holds no pools of statepool, expected one that does: check the URL"
            )
        if to_read:
            how = "make a backup with the release that made them"
            raise OlderTables(f"the database {database!r}", found, todo[-1][0], how)
        with self._writing() as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_key("migrations"),))
            if not connection.execute("SELECT FROM pg_namespace WHERE nspname = 'statepool'").fetchall():
                connection.execute("CREATE SCHEMA statepool")
            connection.execute("CREATE TABLE IF NOT EXISTS statepool.migrations (version integer PRIMARY KEY)")
            done = _version(connection, todo[-1][0])
            for number, sql in todo:
                if number > done:
                    connection.execute(sql)
                    connection.execute("INSERT INTO statepool.migrations VALUES (%s)", (number,))

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A few statements that are kept together, and are on disk when this returns."""
        with self._connections.lend_to_writer() as connection, errors():
            connection.execute(BEGIN)
            connection.execute(DURABLE)
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """One consistent reading, which holds up nobody."""
        with self._connections.lend() as connection, errors():
            with connection.pipeline():
                connection.execute(READ)
                connection.execute(READING)
            yield connection

    def _take(self, connection: Connection, name: str) -> None:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_key(f"pool {name}"),))

    def _begin(self, connection: Connection, name: str, patience: float) -> tuple[Any, ...]:
        """Wait for the pool's lock; what a batch is made of."""
        with errors(), connection.pipeline():
            connection.execute(BEGIN)
            connection.execute(BATCH, (f"{patience:.0f}s",))
            self._take(connection, name)
            # Statements of their own: they see what was committed before the lock was granted.
            cursor = _select_pool(connection, name)
            waiting = connection.execute(WAITING, (name,), binary=True)
        return *_pool(cursor, name), waiting.fetchall()

    @contextmanager
    def batch(self, name: str) -> Iterator[Batch]:
        with self._connections.lend_to_writer() as connection:
            try:
                begun = self._begin(connection, name, FIRST_WAIT)
            except Busy:
                with errors():
                    connection.execute("ROLLBACK")
                    connection.execute(STILL, (_key(f"pool {name}"),))
                begun = self._begin(connection, name, PATIENCE - FIRST_WAIT)
            batch = PostgresBatch(connection, self._archive, *begun)
            try:
                yield batch
                batch.commit()
            finally:
                batch.over = True

    @contextmanager
    def lane(self, name: str, known: bytes = b"") -> Iterator[LaneBatch]:
        with self._connections.lend() as connection:
            with errors():
                row, *pool = _found(connection.execute(POOL_AND_ROW, (known, name), binary=True), name)
            lane = PostgresLane(connection, self._archive, *_as_pool(pool), row)
            try:
                yield lane
                lane.commit()
            finally:
                lane.over = True

    @contextmanager
    def view(self, name: str) -> Iterator[View]:
        with self._connections.lend() as connection:
            with errors(), connection.pipeline():
                connection.execute(READ)
                connection.execute(READING)
                cursor = _select_pool(connection, name)
            view = PostgresView(connection, self._archive, *_pool(cursor, name))
            try:
                yield view
            finally:
                view.over = True

    def pools(self) -> list[str]:
        with self._reading() as connection:
            return sorted(name for (name,) in connection.execute("SELECT name FROM statepool.pools"))

    def standings(self) -> Standings:
        with self._reading() as connection:
            rows = connection.execute(STANDINGS).fetchall()
            clock = (connection.execute(f"SELECT {CLOCK}").fetchone() or (0,))[0]
        found = {
            name: Standing(Head(*head), pending, oldest, in_lanes)
            for name, in_lanes, pending, oldest, *head in sorted(rows)
        }
        return Standings(clock, found)

    def has(self, name: str) -> bool:
        with self._reading() as connection:
            return connection.execute("SELECT FROM statepool.pools WHERE name = %s", (name,)).fetchone() is not None

    def ensure(self, name: str) -> None:
        if self.has(name):
            return
        with self._writing() as connection:
            connection.execute("INSERT INTO statepool.pools (name) VALUES (%s) ON CONFLICT DO NOTHING", (name,))

    def probe(self) -> None:
        sql = """INSERT INTO statepool.probes (id, body) VALUES (1, %s)
                 ON CONFLICT (id) DO UPDATE SET body = excluded.body"""
        with self._writing() as connection:
            connection.execute(sql, (os.urandom(PROBE_BYTES),))

    def copy_to(self, path: str) -> None:
        """In one snapshot of the server's, which holds up nobody."""
        from statepool.live.stores.sqlite import SQLiteStore

        target = SQLiteStore(path, synchronous="OFF")  # whoever asked brings the file to disk as a whole
        try:
            with self.contents() as contents:
                target.fill(contents)
        finally:
            target.close()

    @contextmanager
    def contents(self) -> Iterator[Contents]:
        with self._reading() as connection:
            yield Contents(lambda table: _stream(connection, table))

    def fill(self, contents: Contents) -> None:
        """Rows come by COPY, whole tables in one transaction; what a table then knows of its numbers is set after."""
        with self._writing() as connection:
            connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # the other store may be slow
            connection.execute("LOCK TABLE statepool.pools, statepool.keys IN EXCLUSIVE MODE")
            held = "SELECT (SELECT count(*) FROM statepool.pools) + (SELECT count(*) FROM statepool.keys)"
            refuse_unless_empty((connection.execute(held).fetchone() or (0,))[0])
            for table, columns in TABLES.items():
                sql = f"COPY statepool.{table} ({', '.join(columns)}) FROM STDIN"
                with connection.cursor() as cursor, cursor.copy(sql) as copy:
                    for row in contents.rows(table):
                        copy.write_row(row)
            connection.execute(
                "SELECT setval(pg_get_serial_sequence('statepool.pools', 'id'), max(id)) FROM statepool.pools"
            )

    def close(self) -> None:
        self._connections.close()


def _grouped(rows: list[Row]) -> dict[Any, dict[Kind, bytes]]:
    """By what was asked for: a ticket, or the number of a decision."""
    known: dict[Any, dict[Kind, bytes]] = {}
    for asked, kind, body in rows:
        known.setdefault(asked, {})[kind_of(kind)] = body
    return known


def _stream(connection: Connection, table: str) -> Rows:
    """Through a cursor of the server's, so that a large table is never in memory."""
    with connection.cursor(name=f"statepool_{table}", binary=True) as cursor:
        cursor.itersize = PIECE
        cursor.execute(select(table, "statepool."))
        yield from cursor


@lru_cache
def _spelt(sql: str) -> str:
    """A statement of both stores as PostgreSQL has it."""
    return sql.format("statepool.").replace("?", "%s")


def _key(of: str) -> int:
    """The number of an advisory lock; two names that share one would only wait for each other."""
    return int.from_bytes(hashlib.blake2b(f"statepool {of}".encode(), digest_size=8).digest(), signed=True)


def _select_pool(connection: Connection, name: str) -> psycopg.Cursor[Row]:
    return connection.execute(f"SELECT {POOL} FROM statepool.pools WHERE name = %s", (name,), binary=True)


def _found(cursor: psycopg.Cursor[Row], name: str) -> Row:
    row = cursor.fetchone()
    if row is None:
        raise ValueError(f"this store has no pool {name!r}")
    return row


def _as_pool(row: Sequence[Any]) -> tuple[int, int, Head, int]:
    return row[1], row[2], Head(*row[3:]), row[0]


def _pool(cursor: psycopg.Cursor[Row], name: str) -> tuple[int, int, Head, int]:
    return _as_pool(_found(cursor, name))


def _version(connection: Connection, newest: int) -> int:
    if connection.execute("SELECT to_regclass('statepool.migrations')").fetchone() == (None,):
        return 0
    version = (connection.execute("SELECT coalesce(max(version), 0) FROM statepool.migrations").fetchone() or (0,))[0]
    if version > newest:
        raise ValueError(f"this database has tables of version {version}, made by a later statepool; known: {newest}")
    return version
