"""A log in a database: its table or query, by the types that the database tells."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from statepool.audit.columns import Columns, Given, find_columns
from statepool.audit.engines import RemoteEngine
from statepool.audit.log import TIMES, Log, first_line, flat_rows, quoted

NUMBERS = ("int", "serial", "double", "real", "float", "numeric", "decimal", "number", "bignumeric")
DATES = ("timestamp", "date")


def is_address(source: Any) -> bool:
    """Whether a log is a database's address, such as postgresql://host/shop, or a connection with its dialect."""
    return isinstance(source, RemoteTable) or (isinstance(source, str) and source.partition("://")[0] in OPENERS)


@dataclass(frozen=True)
class RemoteTable:
    """A table or query of any engine that SQLGlot can speak to, through a DB-API connection of the caller's."""

    connection: Any
    dialect: str
    table: str


def _open_postgres(address: str) -> Any:
    try:
        import psycopg
    except ImportError:
        raise ValueError('log: psycopg is not installed, expected pip install "statepool[live]"') from None
    try:
        return psycopg.connect(address, autocommit=True)
    except psycopg.Error as error:
        raise ValueError(f"log: {address.partition('@')[2] or address} does not answer ({first_line(error)})") from None


OPENERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "postgresql": ("postgres", _open_postgres),
    "postgres": ("postgres", _open_postgres),
}
"""By the scheme of an address: SQLGlot's name of the dialect, and how to connect."""


def open_remote(source: Any, table: str | None, given: Given, reward: bool | None, missing: float | None) -> Log:
    if isinstance(source, str) and not table:
        raise ValueError("table: expected the log's table, or a query in brackets, beside the database's address")
    opened = source
    if not isinstance(source, RemoteTable):
        dialect, connect = OPENERS[source.partition("://")[0]]
        opened = RemoteTable(connect(source), dialect, str(table))
    engine = RemoteEngine(opened.connection, opened.dialect)
    try:
        types = _types(opened)
        columns = find_columns(list(types), given, reward)
        seconds = _counts_seconds(columns, types)
        engine.define("log", f"SELECT {_flat(columns, types, missing)} FROM {_relation(opened.table)}")
    except Exception as error:
        engine.close()
        if isinstance(error, ValueError):
            raise
        raise ValueError(f"table: {opened.table!r} cannot be read as a log ({first_line(error)})") from None
    return Log(engine, columns, opened.table[:60], seconds, 0, False)


def _relation(table: str) -> str:
    return f"{table} AS source" if table.lstrip().startswith("(") else table


def _types(opened: RemoteTable) -> dict[str, str]:
    """Each column's type, as the connection tells it of an empty answer."""
    cursor = opened.connection.cursor()
    cursor.execute(f"SELECT * FROM {_relation(opened.table)} LIMIT 0")
    return {column[0]: str(getattr(column, "type_display", column[1])).lower() for column in cursor.description}


def _counts_seconds(columns: Columns, types: Mapping[str, str]) -> bool:
    return any(types[column].startswith(DATES) for part in TIMES if (column := getattr(columns, part)))


def _flat(columns: Columns, types: Mapping[str, str], missing: float | None) -> str:
    outcome = _number("outcome", columns.outcome, types)
    return flat_rows(
        columns,
        lambda _, column: f"CAST({quoted(column)} AS VARCHAR)",
        lambda part, column: _number(part, column, types),
        lambda part, column: _time(part, column, types),
        outcome if missing is None else f"coalesce({outcome}, {missing!r})",
        f"{quoted(columns.outcome)} IS NOT NULL AND NOT ({outcome} BETWEEN -1e308 AND 1e308)",
    )


def _number(part: str, column: str, types: Mapping[str, str]) -> str:
    if types[column].startswith("bool"):
        return f"CASE WHEN {quoted(column)} THEN 1.0 WHEN NOT {quoted(column)} THEN 0.0 END"
    if not types[column].startswith(NUMBERS):
        raise ValueError(f"{part}: column {column!r} is {types[column]}, expected numbers, or true and false")
    return f"CAST({quoted(column)} AS DOUBLE)"


def _time(part: str, column: str, types: Mapping[str, str]) -> str:
    if types[column].startswith(DATES):
        return f"CAST(EXTRACT(EPOCH FROM {quoted(column)}) AS DOUBLE)"
    return _number(part, column, types)
