"""Where a log comes from: files, frames and journals through duckdb, which streams and never holds them; databases.

CSV and JSON are read as text throughout and converted value by value, so that one odd entry spoils its own row only.
"""

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from statepool.audit.columns import Columns, Given, find_columns
from statepool.audit.engines import DuckEngine
from statepool.audit.journals import read_journal
from statepool.audit.log import TIMES, Log, first_line, flat_rows, quoted
from statepool.audit.remote import is_address, open_remote

MEMORY = "1GB"
MOST_THREADS = 8
INTEGERS = ("BIGINT", "INTEGER", "SMALLINT", "TINYINT", "UBIGINT", "UINTEGER", "USMALLINT", "UTINYINT", "HUGEINT")


def open_log(
    source: Any, given: Given, reward: bool | None = None, missing: float | None = None,
    table: str | None = None,
) -> Log:  # fmt: skip
    """Open a file, a folder or pattern of files, a frame, an Arrow table, a journal, or a table of a database."""
    if is_address(source):
        return open_remote(source, table, given, reward, missing)
    if table is not None:
        raise ValueError(f"table: is {table!r}, expected none unless the log is a database's address")
    duckdb = _duckdb()
    connection = _connect()
    try:
        name = _open_source(connection, source)
        types = {row[0]: row[1] for row in connection.execute("DESCRIBE source").fetchall()}
        columns = find_columns(list(types), given, reward)
        seconds = _counts_seconds(connection, columns, types)
        engine = DuckEngine(connection)
        engine.define("log", f"SELECT {_flat(columns, types, seconds, missing)} FROM source")
        connection.execute("SELECT * FROM log LIMIT 1").fetchall()
        textual = _is_textual(columns, types)
        return Log(engine, columns, name, seconds, _unread(connection, textual), textual)
    except duckdb.Error as error:
        connection.close()
        told = source if isinstance(source, str | os.PathLike) else "log"
        raise ValueError(f"{told}: cannot be read as a log ({first_line(error)})") from None
    except ValueError:
        connection.close()
        raise


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise ValueError('audit: needs the extra, pip install "statepool[audit]"') from None
    return duckdb


def _connect() -> Any:
    connection = _duckdb().connect(":memory:")
    # What does not fit is spilled to the system's place for such files, not to the folder of the caller.
    folder = str(Path(tempfile.gettempdir()) / "statepool-audit")
    connection.execute(f"SET memory_limit='{MEMORY}'; SET temp_directory={_text(folder)}")
    connection.execute(f"SET threads={min(os.cpu_count() or 1, MOST_THREADS)}; SET preserve_insertion_order=false")
    return connection


def _open_source(connection: Any, source: Any) -> str:
    """Make the view `source`; the name to call it by."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        files = _files(path)
        kind = files[0].suffixes[-2] if files[0].suffix.lower() == ".gz" and len(files[0].suffixes) > 1 else None
        kind = (kind or files[0].suffix).lower()
        if kind not in READERS:
            raise ValueError(f"{files[0]}: ends in {kind!r}, expected one of {', '.join(READERS)}")
        READERS[kind](connection, files)
        return path.name
    if not hasattr(source, "shape"):
        raise ValueError(f"log: is {type(source).__name__}, expected the path of a file, or a pandas or polars frame")
    connection.register("frame", source)
    connection.execute("CREATE TEMP VIEW source AS SELECT * FROM frame")
    return f"{type(source).__module__.partition('.')[0]} frame"


def _files(path: Path) -> list[Path]:
    """The file, or those of a folder or a pattern such as logs/*.parquet, in order of their names; all of one kind."""
    if path.is_dir():
        found = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith((".", "_")))
    else:
        found = [path] if path.is_file() else sorted(path.parent.glob(path.name)) if "*" in path.name else []
    if not found:
        raise ValueError(f"{path}: is not a file, expected a log to read")
    filled = [file for file in found if file.stat().st_size]
    if not filled:
        raise ValueError(f"{path}: is empty, expected a log with a row for each decision")
    endings = sorted({"".join(file.suffixes[-2:] if file.suffix == ".gz" else [file.suffix]) for file in filled})
    if len(endings) > 1:
        raise ValueError(f"{path}: holds files ending in {' and '.join(endings)}, expected all of one kind")
    return filled


def _read_parquet(connection: Any, files: list[Path]) -> None:
    connection.execute(f"CREATE TEMP VIEW source AS SELECT * FROM read_parquet({_list(files)})")


def _read_csv(connection: Any, files: list[Path]) -> None:
    # Lines that are too short or too long are kept, with what they have; those not readable at all are counted.
    options = "all_varchar=true, header=true, null_padding=true, store_rejects=true"
    query = "CREATE OR REPLACE TEMP VIEW source AS SELECT * FROM read_csv({}, {})"
    connection.execute(query.format(_list(files), options))
    try:
        connection.execute("SELECT count(*) FROM source").fetchall()
    except _duckdb().Error as error:
        # Line breaks inside quotes and lines that are too short: duckdb reads both only one part after the other.
        if "parallel=false" not in str(error):
            raise
        connection.execute(query.format(_list(files), f"{options}, parallel=false"))


def _read_json_lines(connection: Any, files: list[Path]) -> None:
    # Line by line, as text: one that is no object becomes a row without anything, and is counted as such.
    options = "delim='\x1f', quote='', escape='', header=false, auto_detect=false, max_line_size=16777216, "
    options += "store_rejects=true"
    lines = f"(SELECT line FROM read_csv({_list(files)}, columns={{'line': 'VARCHAR'}}, {options}))"
    # In two steps, since both sides of an AND may be evaluated.
    valid = "CASE WHEN json_valid(line) THEN json_type(line) = 'OBJECT' ELSE false END"
    keys = f"CASE WHEN {valid} THEN json_keys(line) END"
    sniffed = f"SELECT unnest({keys}) AS name FROM (SELECT * FROM {lines} LIMIT 20000)"
    names = [row[0] for row in connection.execute(f"SELECT DISTINCT name FROM ({sniffed}) ORDER BY name").fetchall()]
    if not names:
        raise ValueError(f"{files[0]}: holds no JSON object, expected one on each line")
    columns = ", ".join(
        f"CASE WHEN {valid} THEN json_extract_string(line, {_text(_json_path(name))}) END AS {quoted(name)}"
        for name in names
    )
    connection.execute(f"CREATE TEMP VIEW source AS SELECT {columns} FROM {lines}")


def _json_path(name: str) -> str:
    return '$."' + name.replace('"', '\\"') + '"'


READERS: dict[str, Callable[[Any, list[Path]], None]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".parquet": _read_parquet,
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".json": _read_json_lines,
    ".db": read_journal,
    ".sqlite": read_journal,
}


def _counts_seconds(connection: Any, columns: Columns, types: Mapping[str, str]) -> bool:
    """Whether the times of the log are dates: by type, or for text by what most of it can be read as."""
    named = next((getattr(columns, part) for part in TIMES if getattr(columns, part)), None)
    if named is None:
        return False
    if types[named] != "VARCHAR":
        return types[named].startswith(("TIMESTAMP", "DATE"))
    query = f"SELECT count(TRY_CAST({quoted(named)} AS DOUBLE)), count(TRY_CAST({quoted(named)} AS TIMESTAMP))"
    numbers, dates = connection.execute(f"{query} FROM (SELECT * FROM source LIMIT 10000)").fetchone()
    return bool(dates > numbers)


def _is_textual(columns: Columns, types: Mapping[str, str]) -> bool:
    used = [columns.outcome, *(column for part in TIMES if (column := getattr(columns, part)))]
    return any(not types[column].startswith(_NUMERIC) for column in used)


_NUMERIC = ("DOUBLE", "FLOAT", "BOOLEAN", "DECIMAL", "TIMESTAMP", "DATE", *INTEGERS)


def _flat(columns: Columns, types: Mapping[str, str], seconds: bool, missing: float | None) -> str:
    outcome, present = _number(columns.outcome, types), _present(columns.outcome, types)
    return flat_rows(
        columns,
        lambda _, column: _label(column, types),
        lambda _, column: _number(column, types),
        lambda _, column: _time(column, types, seconds),
        outcome if missing is None else f"CASE WHEN {present} THEN {outcome} ELSE {missing!r} END",
        # An outcome that is there but cannot be read is not the same as one that has not come.
        f"{present} AND NOT coalesce(isfinite({outcome}), false)",
    )


def _label(column: str, types: Mapping[str, str]) -> str:
    # Blank labels are told from others once for each distinct label, later, not for every row here.
    return quoted(column) if types[column] == "VARCHAR" else f"CAST({quoted(column)} AS VARCHAR)"


def _present(column: str, types: Mapping[str, str]) -> str:
    name = quoted(column)
    if types[column] == "VARCHAR":
        return f"nullif(trim({name}), '') IS NOT NULL"
    return (
        f"{name} IS NOT NULL AND NOT isnan({name})" if types[column] in ("DOUBLE", "FLOAT") else f"{name} IS NOT NULL"
    )


def _number(column: str, types: Mapping[str, str]) -> str:
    name = quoted(column)
    if types[column] == "VARCHAR":
        return f"coalesce(TRY_CAST({name} AS DOUBLE), CAST(TRY_CAST({name} AS BOOLEAN) AS DOUBLE))"
    return name if types[column] == "DOUBLE" else f"TRY_CAST({name} AS DOUBLE)"


def _time(column: str, types: Mapping[str, str], seconds: bool) -> str:
    name = quoted(column)
    if types[column].startswith(("TIMESTAMP", "DATE")):
        return f"epoch({name})"
    return f"epoch(TRY_CAST({name} AS TIMESTAMP))" if seconds else f"TRY_CAST({name} AS DOUBLE)"


def _unread(connection: Any, textual: bool) -> int:
    """Lines of a text file that are lost when its values are read: those that are no text at all."""
    if not textual:
        return 0
    used = ", ".join(f"count({part})" for part in ("action", "state", "outcome", "decided", "grouping", "propensity"))
    connection.execute(f"SELECT {used} FROM log").fetchall()
    kept = connection.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'reject_errors'").fetchone()[0]
    # Every reading of the file notes them anew, once for each value that is wrong.
    query = "SELECT count(DISTINCT (file_id, line)) FROM reject_errors"
    return int(connection.execute(query).fetchone()[0]) if kept else 0


def _text(value: object) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def _list(files: list[Path]) -> str:
    return "[" + ", ".join(_text(file) for file in files) + "]"
