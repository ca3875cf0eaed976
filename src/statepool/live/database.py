"""One database of pools: its tables, connections and transactions, and the one background thread of a process.

Rows are the truth. They are written once and read with SQL; the exceptions are named here:

    decisions     never updated, except to erase a person
    reports       `learned_in` is set once, by the version that took the report in, also if it taught nothing
                  (0: never, as its decision was erased or its version archived); `due`, when it may be taken in, is
                  at once (-inf), at the end of the window (learners without `exposure`), or unknown (inf) while an
                  outcome waits for its state
    versions      `state` is set to NULL when a later version is there, except in every 1000th and where replay starts
    pools         `revision` with each change of the catalogue or the settings, `expired_to` and `looked_to` with expiry

Times are seconds since 1970 (or whatever the pool's `clock` counts). Labels are JSON, so that text, numbers and tuples
stay apart; the view `decision_log` shows text labels without their quotes.

Both databases run the same statements, and both drivers leave the beginning of transactions to us. What differs:

    SQLite       one writer at a time. Calls that wait for their turn share the next transaction and its fsync.
    PostgreSQL   every call has its own transaction; a call of one statement begins none, in one round trip.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from statepool.live.errors import ReadOnly, StoreUnavailable

if TYPE_CHECKING:
    from statepool.live.pool import Pool

T = TypeVar("T")
logger = logging.getLogger("statepool.live")

SCHEMA = 3
"""The number of this layout; a database with another one is refused."""
POSTGRES_SCHEMA = "statepool"
STATE, OUTCOME, EXPIRY = "state", "outcome", "expiry"
"""The kinds of reports."""
BUSY_SECONDS = 60
"""How long a call waits for SQLite's write lock."""
CLOCK = sa.extract("epoch", sa.func.clock_timestamp())
LOCK_TIMEOUT = "SET LOCAL lock_timeout = '20s'"
PREPARED_AFTER = 5  # executions
TICK = 0.5
"""Seconds between two rounds of the background thread."""


class Tables:
    """All tables of one schema; None is SQLite, which has none."""

    def __init__(self, schema: str | None) -> None:
        self.metadata = sa.MetaData(schema=schema)
        self.log_name = "decision_log" if schema is None else f"{schema}.decision_log"

        def table(name: str, *columns: Any, **options: Any) -> sa.Table:
            return sa.Table(name, self.metadata, *columns, **options)

        def column(name: str, kind: Any, key: bool = False, optional: bool = False) -> sa.Column[Any]:
            return sa.Column(name, kind, primary_key=key, nullable=optional, autoincrement=False)

        text, number, small, blob = sa.Text(), sa.BigInteger(), sa.Integer(), sa.LargeBinary()
        double: sa.Double[float] = sa.Double()
        identity = sa.BigInteger().with_variant(sa.Integer(), "sqlite")  # SQLite numbers rows of this type only
        self.meta = table("meta", column("schema", number, key=True), column("session_secret", blob))
        self.pools = table(
            "pools",
            sa.Column("id", sa.Integer(), primary_key=True),
            sa.Column("name", text, nullable=False, unique=True),
            column("learner", text),
            column("states", text),
            column("key", number),  # seeds the random numbers of learners that draw
            column("revision", small),
            # Decisions up to this key and made up to this time were looked at for expiry.
            column("looked_to", number), column("expired_to", double, optional=True),
            column("replay_from", small),  # earlier versions cannot be replayed: their rows were archived
            column("created_at", double),
        )  # fmt: skip
        self.revisions = table(
            "revisions",
            column("pool", small, key=True), column("revision", small, key=True),
            column("version", small),  # the version that was made with it
            column("settings", text), column("at", double),
        )  # fmt: skip
        self.actions = table(
            "actions",
            column("pool", small, key=True), column("action", small, key=True), column("since", small, key=True),
            column("label", text), column("category", text), column("row", blob, optional=True),
            sqlite_with_rowid=False,
        )  # fmt: skip
        self.contexts = table(
            "contexts",
            column("pool", small, key=True), column("context", small, key=True), column("since", small, key=True),
            column("label", text),
        )  # fmt: skip
        self.candidate_sets = table(
            "candidate_sets",
            column("pool", small, key=True), column("digest", blob, key=True), column("labels", text),
            column("rows", blob),
        )  # fmt: skip
        self.versions = table(
            "versions",
            column("pool", small, key=True), column("number", small, key=True), column("uid", blob),
            column("build", text), column("revision", small), column("made_at", double),
            column("round", number),  # how many decisions had their state learnt
            column("impossible", number),  # states so far that the policy could not lead to and are not learnt
            column("digest", blob),  # of everything that this version learnt from
            column("saved", blob),  # by state: what learning from any of its decisions needs, and its probability
            column("state", blob, optional=True),  # the learner's memory
        )  # fmt: skip
        self.decisions = table(
            "decisions",
            sa.Column("id", identity, sa.Identity(), primary_key=True),
            column("pool", small), column("ticket", text, optional=True),
            column("round", number),  # its version's, and how many the process had drawn from it: may be there twice
            column("version", small), column("action", small),  # -1: a candidate that is not in the catalogue
            column("probability", double), column("uniform", double), column("is_holdout", sa.Boolean()),
            column("decided_at", double), column("context", small, optional=True),
            column("candidates", blob, optional=True), column("label", text, optional=True),
            column("saved", blob, optional=True),  # what the version's lacks: of the action; of its own rows everything
            sa.UniqueConstraint("pool", "ticket"), sa.Index("decisions_by_time", "pool", "decided_at"),
        )  # fmt: skip
        self.reports = table(
            "reports",
            column("decision", number, key=True), column("kind", text, key=True), column("pool", small),
            column("state", small, optional=True), column("loss", double, optional=True),
            column("reported", double, optional=True), column("is_reward", sa.Boolean(), optional=True),
            column("is_clipped", sa.Boolean(), optional=True), column("at", double),
            column("due", double), column("learned_in", small, optional=True),
            sqlite_with_rowid=False,
        )  # fmt: skip
        sa.Index("reports_by_version", self.reports.c.pool, self.reports.c.learned_in, self.reports.c.due)
        clipped = self.reports.c.is_clipped.is_(True)
        sa.Index("reports_out_of_bounds", self.reports.c.pool, sqlite_where=clipped, postgresql_where=clipped)
        self.api_keys = table(
            "api_keys",
            column("name", text, key=True), column("hash", text), column("role", text),
            column("pools", text, optional=True), column("created_at", double),
            column("expires_at", double, optional=True),
        )  # fmt: skip

    def joined(self) -> tuple[Any, Any, Any, Any]:
        """Decisions with their reports: the join, and the aliases of `reports` for state, outcome and expiry."""
        join: Any = self.decisions
        state, outcome, expiry = aliases = [self.reports.alias(kind) for kind in (STATE, OUTCOME, EXPIRY)]
        for each in aliases:
            join = join.outerjoin(each, sa.and_(each.c.decision == self.decisions.c.id, each.c.kind == each.name))
        return join, state, outcome, expiry

    def log(self) -> sa.Select[Any]:
        """What `decision_log` and `Pool.rows` show of each decision, with labels as JSON and times in seconds."""
        d, p, (joined, s, o, e) = self.decisions.c, self.pools.c, self.joined()

        def first_label(table: sa.Table, number: str) -> Any:
            mine = table.c.pool == d.pool, table.c[number] == d[number]
            return sa.select(table.c.label).where(*mine).order_by(table.c.since).limit(1).scalar_subquery()

        def either(name: str) -> Any:
            return sa.func.coalesce(o.c[name], e.c[name])

        values = {
            "id": d.id, "pool": p.name, "ticket": d.ticket,
            "action": sa.func.coalesce(d.label, first_label(self.actions, "action")), "probability": d.probability,
            "context": sa.case((d.ticket.is_not(None), first_label(self.contexts, "context"))),  # else it was erased
            "state": s.c.state, "loss": either("loss"),
            "reward": sa.case((either("is_reward"), either("reported"))), "decided_at": d.decided_at,
            "observed_at": s.c.at, "resolved_at": either("at"), "is_holdout": d.is_holdout,
            "expired": sa.and_(o.c.at.is_(None), e.c.at.is_not(None)), "version": d.version,
            "clipped": sa.func.coalesce(o.c.is_clipped, sa.false()),
        }  # fmt: skip
        columns = [value.label(name) for name, value in values.items()]
        return sa.select(*columns).select_from(joined.join(self.pools, p.id == d.pool))

    def view(self, dialect: sa.Dialect) -> str:
        """The statement that makes the view `decision_log`: the log with labels as text and times as times."""
        label, time, state = "json_extract({0}, '$')", "strftime('%Y-%m-%dT%H:%M:%fZ', {0}, 'unixepoch')", ""
        state = "json_extract(states, '$[' || state || ']')"
        if dialect.name == "postgresql":
            label, time, state = "{0}::json #>> '{{}}'", "to_timestamp({0})", "states::json ->> state::int"
        shown = {"action": label, "context": label, "state": state}
        shown |= dict.fromkeys(("decided_at", "observed_at", "resolved_at"), time)
        log = self.log()
        columns = [f"{shown.get(name, '{0}').format(name)} AS {name}" for name in log.selected_columns.keys()[1:]]
        rows = log.add_columns(self.pools.c.states).compile(dialect=dialect, compile_kwargs={"literal_binds": True})
        return f"CREATE VIEW {self.log_name} AS SELECT {', '.join(columns)} FROM ({rows}) AS log"


class Database(AbstractContextManager["Database"]):
    """Tables of pools at a URL, shared by all pools of a process.

    Parameters
    ----------
    url : str
        `sqlite:///file.db` or `postgresql://user@host/database`.
    read_only : bool
        Make no tables and change nothing.

    Raises
    ------
    ValueError
        For a URL of another kind, or tables of another release.
    StoreUnavailable
        If the database does not answer.
    """

    def __init__(self, url: str, read_only: bool = False) -> None:
        self.url, self.read_only = _parse(url), read_only
        self.is_postgres = self.url.get_backend_name() == "postgresql"
        plain = self.url.set(drivername=self.url.get_backend_name())
        self.shown_url = plain.render_as_string(hide_password=True)
        self.schema = POSTGRES_SCHEMA if self.is_postgres else None
        self.tables = Tables(self.schema)
        self.path = None if self.is_postgres else Path(str(self.url.database))
        if self.path is not None and read_only and not self.path.exists():
            raise ValueError(f"url: {self.shown_url} is not there, expected a file with pools")
        self.engine = _engine(self.url, self.is_postgres, read_only)
        snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ" if self.is_postgres else "BEGIN"
        self._reads = self.engine.execution_options(begin=snapshot)
        self._writes = self.engine.execution_options(begin="BEGIN" if self.is_postgres else "BEGIN IMMEDIATE")
        self._turn = threading.Lock()
        self._waiting: deque[tuple[Callable[[sa.Connection], Any], Future[Any]]] = deque()
        self._file: tuple[int, int] | None = None
        self.background = Background()
        try:
            self._check_tables()
        except BaseException:
            self.engine.dispose()
            raise

    def insert(self, table: sa.Table) -> Any:
        """An INSERT that knows ON CONFLICT."""
        return postgresql.insert(table) if self.is_postgres else sqlite.insert(table)

    def prepare(self, statement: sa.sql.expression.ClauseElement) -> str:
        """The text of a statement that is run all the time, with named parameters, for `exec_driver_sql`."""
        return str(statement.compile(dialect=self.engine.dialect))

    def now(self) -> sa.ColumnElement[float]:
        """The time of the database, or the parameter `at` where it is not None."""
        at: sa.BindParameter[float] = sa.bindparam("at", type_=sa.Double())
        return sa.func.coalesce(at, CLOCK, type_=sa.Double()) if self.is_postgres else at

    def time(self, connection: sa.Connection | None = None) -> float:
        """The time of the database, asked by a connection of the caller's or by another."""
        if not self.is_postgres:
            return time.time()
        if connection is None:
            with self.read() as connection:
                return self.time(connection)
        return float(connection.execute(sa.select(CLOCK)).scalar_one())

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A connection that sees one moment of the database."""
        self._check_file()
        with self.explained(), self._reads.connect() as connection:
            yield connection

    def write(self, job: Callable[[sa.Connection], T], one_statement: bool = False) -> T:
        """Run `job` in a transaction that is durable when this returns.

        On SQLite the transaction may be shared with other calls; a job that raises ValueError is undone alone. On
        PostgreSQL a lost connection is tried again once, so a job must be repeatable.
        """
        if self.read_only:
            raise ReadOnly(f"url: {self.shown_url} is read-only here, send this to a process that decides")
        engine = self.engine if one_statement else self._writes
        with self.explained():
            if not self.is_postgres:
                return self._run_in_turn(job)
            try:
                with engine.begin() as connection:
                    return job(connection)
            except sa.exc.DBAPIError as error:
                if not error.connection_invalidated:
                    raise
            with engine.begin() as connection:
                return job(connection)

    def _run_in_turn(self, job: Callable[[sa.Connection], T]) -> T:
        """Group commit on SQLite: the call whose turn it is runs all calls that wait, in one transaction."""
        done: Future[T] = Future()
        self._waiting.append((job, done))
        with self._turn:
            if not done.done():
                self._run_together([self._waiting.popleft() for _ in range(len(self._waiting))])
        return done.result()

    def _run_together(self, calls: list[tuple[Callable[[sa.Connection], Any], Future[Any]]]) -> None:
        try:
            self._check_file()
            with self._writes.begin() as connection:
                answers = [job(connection) for job, _ in calls]
        except BaseException as error:
            if isinstance(error, ValueError) and len(calls) > 1:
                for call in calls:  # all were undone: now each alone, so that only one is refused
                    self._run_together([call])
                return
            for _, done in calls:
                done.set_exception(error)
        else:
            for (_, done), answer in zip(calls, answers, strict=True):
                done.set_result(answer)

    def _check_file(self) -> None:
        """Connect again if another file has taken the place of SQLite's; raise if there is none.

        No other file gets its number meanwhile, since idle connections keep it open.
        """
        if self.path is None:
            return
        try:
            found = self.path.stat()
        except OSError as error:
            raise StoreUnavailable(f"store: {self.shown_url} is not there any more ({error.strerror})") from None
        if self._file not in (None, (found.st_dev, found.st_ino)):
            self.engine.dispose()
        self._file = found.st_dev, found.st_ino

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn what the driver says into one sentence."""
        try:
            yield
        except (sa.exc.DBAPIError, sa.exc.TimeoutError) as error:
            cause = " ".join(str(getattr(error, "orig", None) or error).split())
            again = "" if cause.endswith(("is not a database", "unable to open database file")) else ": try again"
            raise StoreUnavailable(f"store: {self.shown_url} did not answer ({cause}){again}") from None

    def _check_tables(self) -> None:
        """Make the tables if there are none; refuse those of another release."""
        with self.explained():
            is_new = not sa.inspect(self.engine).has_table("meta", self.schema)
        if is_new and self.read_only:
            raise ValueError(f"url: {self.shown_url} has no pools, expected a database that a pool was made in")
        if is_new:
            self.write(self._make_tables)
        with self.read() as connection:
            schema = connection.execute(sa.select(self.tables.meta.c.schema)).scalar_one()
        if schema != SCHEMA:
            raise ValueError(
                f"url: {self.shown_url} has tables of another release of statepool, which this one does not read: "
                "export with that release, or use another database"
            )

    def _make_tables(self, connection: sa.Connection) -> None:
        if self.is_postgres:
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(7212461)"))  # several processes start at once
            connection.execute(sa.text(f"CREATE SCHEMA IF NOT EXISTS {self.schema}"))
        if sa.inspect(connection).has_table("meta", self.schema):
            return
        self.tables.metadata.create_all(connection, checkfirst=False)
        connection.exec_driver_sql(self.tables.view(self.engine.dialect))
        connection.execute(sa.insert(self.tables.meta).values(schema=SCHEMA, session_secret=secrets.token_bytes(32)))

    def session_secret(self) -> bytes:
        """The secret that all processes on this database sign sessions with."""
        with self.read() as connection:
            return bytes(connection.execute(sa.select(self.tables.meta.c.session_secret)).scalar_one())

    def pool_names(self) -> list[str]:
        """The names of all pools, sorted."""
        with self.read() as connection:
            return list(connection.execute(sa.select(self.tables.pools.c.name).order_by("name")).scalars())

    def close(self) -> None:
        """Stop the background thread and close all connections."""
        self.background.stop()
        self.engine.dispose()

    def __repr__(self) -> str:
        return f"Database({self.shown_url!r})"

    def __exit__(self, *error: object) -> None:
        self.close()


def _parse(url: Any) -> sa.URL:
    expected = "expected sqlite:///file.db or postgresql://user@host/database"
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError, TypeError, AttributeError):
        raise ValueError(f"url: is {str(url)[:80]!r}, {expected}") from None
    backend = parsed.get_backend_name()
    if backend == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if backend != "sqlite" or parsed.database in (None, "", ":memory:"):
        raise ValueError(f"url: is {parsed.render_as_string(hide_password=True)[:80]!r}, {expected}")
    file = Path(str(parsed.database))
    if file.is_dir() or not file.parent.is_dir():
        what = f"{str(file)!r} is a folder" if file.is_dir() else f"the folder {str(file.parent)!r} is not there"
        raise ValueError(f"url: {what}, expected a file in a folder that is there")
    return parsed.set(drivername="sqlite+pysqlite")


def _engine(url: sa.URL, is_postgres: bool, read_only: bool) -> sa.Engine:
    """An engine whose driver begins no transaction: the execution option `begin` is the statement that does."""
    arguments: dict[str, Any] = {"autocommit": True, "prepare_threshold": None, "connect_timeout": 10}
    pragmas = []
    if not is_postgres:
        arguments = {"isolation_level": None, "timeout": BUSY_SECONDS}
        pragmas = ["journal_mode=WAL", "synchronous=FULL", *(["query_only=ON"] if read_only else [])]
    style = {} if is_postgres else {"paramstyle": "named"}
    engine = sa.create_engine(url, connect_args=arguments, pool_size=8, max_overflow=32, **style)

    @sa.event.listens_for(engine, "connect")
    def set_up(connection: Any, record: Any) -> None:
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
        # Behind a pooler the session has another number. The next transaction may be in yet another session.
        if is_postgres and connection.execute("SELECT pg_backend_pid()").fetchone()[0] == connection.info.backend_pid:
            connection.prepare_threshold = PREPARED_AFTER

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        statement = connection.get_execution_options().get("begin")
        if statement is not None:
            connection.exec_driver_sql(statement)

    return engine


class Background(threading.Thread):
    """The one background thread of a process and its database: it calls `Pool.work` of its pools from time to time."""

    def __init__(self) -> None:
        super().__init__(name="statepool", daemon=True)
        self.awake = threading.Event()
        """Set it to have the thread look now."""
        self._pools: dict[Pool, bool] = {}
        """Whether it worked the last time."""
        self._turn = threading.Lock()
        self._is_stopped = False

    def add(self, pool: Pool) -> None:
        with self._turn:
            self._pools[pool] = True
            if self.ident is None:
                self.start()

    def remove(self, pool: Pool) -> None:
        """The thread is done with this pool when this returns."""
        with self._turn:
            self._pools.pop(pool, None)

    def stop(self) -> None:
        self._is_stopped = True
        self.awake.set()
        if self.ident is not None:
            self.join()

    def run(self) -> None:
        while not self._is_stopped:
            self.awake.wait(TICK)
            self.awake.clear()
            for pool in tuple(self._pools):
                with self._turn:
                    if pool not in self._pools or self._is_stopped:
                        continue
                    try:
                        pool.work()
                        self._pools[pool] = True
                    except Exception as error:
                        if self._pools[pool]:
                            logger.warning("pool %s could not learn or expire: %s", pool.name, error)
                        self._pools[pool] = False
