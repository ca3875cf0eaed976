"""Where a log is counted: duckdb for files and frames, or the engine that holds the table.

Queries are written once, in SQL that all of them share. An engine defines names for parts of a query and fetches
answers as arrays; only counts and the sample travel. Elsewhere than duckdb they are translated by SQLGlot.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Answer = dict[str, NDArray[Any]]


class Engine(ABC):
    """What the audit asks of the place that holds a log, through its DB-API connection."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    @abstractmethod
    def define(self, name: str, select: str) -> None:
        """Let later queries call this one by a name."""

    def keep(self, name: str, select: str) -> None:
        """The same, computed once if the engine has room of its own."""
        self.define(name, select)

    @abstractmethod
    def fetch(self, select: str) -> Answer:
        """The answer, one array a column; a missing number is NaN, a missing label None."""

    def one(self, select: str) -> tuple[Any, ...]:
        """The first row of the answer."""
        return tuple(self._run(select).fetchone())

    @abstractmethod
    def _run(self, select: str) -> Any:
        """A cursor with the answer."""

    def close(self) -> None:
        self.connection.close()


class DuckEngine(Engine):
    """duckdb in this process; `connection` may be used for what only duckdb can do."""

    def define(self, name: str, select: str) -> None:
        self.connection.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {select}")

    def keep(self, name: str, select: str) -> None:
        self.connection.execute(f"CREATE TEMP TABLE {name} AS {select}")

    def fetch(self, select: str) -> Answer:
        return {name: _filled(values) for name, values in self._run(select).fetchnumpy().items()}

    def _run(self, select: str) -> Any:
        return self.connection.execute(select)


class RemoteEngine(Engine):
    """An engine elsewhere; `dialect` is SQLGlot's name of its SQL."""

    def __init__(self, connection: Any, dialect: str) -> None:
        super().__init__(connection)
        self.dialect = dialect
        self._parts: dict[str, str] = {}

    def define(self, name: str, select: str) -> None:
        # A name that is defined anew in terms of itself keeps its earlier meaning under another name.
        self._parts[name] = select

    def fetch(self, select: str) -> Answer:
        cursor = self._run(select)
        names = [column[0].lower() for column in cursor.description]
        rows = cursor.fetchall()
        columns = list(zip(*rows, strict=True)) if rows else [() for _ in names]
        return {name: _array(values) for name, values in zip(names, columns, strict=True)}

    def _run(self, select: str) -> Any:
        parts = ", ".join(f"{name} AS ({part})" for name, part in self._parts.items())
        cursor = self.connection.cursor()
        cursor.execute(translate(f"WITH {parts} {select}" if parts else select, self.dialect))
        return cursor


def translate(select: str, dialect: str) -> str:
    """A query of ours in another engine's SQL."""
    try:
        import sqlglot
    except ImportError:
        raise ValueError('audit: a log in a database needs the extra, pip install "statepool[audit]"') from None
    return str(sqlglot.transpile(select, read="duckdb", write=dialect, identify=False)[0])


def _filled(values: Any) -> NDArray[Any]:
    if values.dtype.kind == "O":
        found = np.array(np.ma.getdata(values), dtype=object)
        found[np.ma.getmaskarray(values)] = None
        return found
    if not np.ma.is_masked(values):
        return np.asarray(values)
    return np.ma.filled(values.astype(np.float64), np.nan)


def _array(values: tuple[Any, ...]) -> NDArray[Any]:
    if any(isinstance(value, str) for value in values):
        return np.array(values, dtype=object)
    return np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)
