"""Read a map from a file: CSV, Parquet, NPY or JSON (`AUDIT.json`), with or without names of rows and columns."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from statepool.checks import ROW_TOLERANCE, Floats, check_map, check_table

Cells = list[list[str]]


def read_map(path: Path, normalise: bool = False) -> Floats:
    """The map in a file, one row for each action; `normalise` scales rows to sum to 1."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise ValueError(f"{path}: ends in {path.suffix!r}, expected one of {', '.join(READERS)}")
    try:
        table = reader(path)
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror or error})") from None
    checked = check_table(table, str(path), "one row for each action, one column for each state")
    if normalise:
        sums = checked.sum(axis=1, keepdims=True)
        wrong = np.flatnonzero(~(np.isfinite(sums) & (sums > 0))[:, 0])
        if wrong.size:
            raise ValueError(
                f"{path}: row {wrong[0]} sums to {sums[wrong[0], 0]}, expected a positive number to scale by"
            )
        checked = checked / sums
    try:
        return check_map(checked, str(path))
    except ValueError as error:
        hint = "" if normalise or "sums to" not in str(error) else "; --normalise scales every row"
        raise ValueError(f"{error}{hint}") from None


def read_names(path: Path) -> list[str] | None:
    """The names of a map's rows, if its file has them: JSON's `actions`, or CSV's first column."""
    if path.suffix.lower() == ".json":
        given = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(given, dict) or "actions" not in given:
            return None
        if isinstance(given.get("P"), dict):
            return [name for name, _ in _joint(given["P"], given["actions"])]
        return [str(name) for name in given["actions"]]
    if path.suffix.lower() != ".csv":
        return None
    first = [row[0] for row in _cells(path)]
    body = first[1:] if len(first) > 1 and not _is_number(first[0]) else first
    return body if not any(map(_is_number, body)) else None


def _cells(path: Path) -> Cells:
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        return [row for row in csv.reader(file) if row]


def _read_csv(path: Path) -> Floats:
    rows = _without_labels(_cells(path))
    if not rows:
        raise ValueError(f"{path}: is empty, expected one row for each action")
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise ValueError(f"{path}: row {i} has {len(row)} columns, expected {len(rows[0])} as in row 0")
        for j, cell in enumerate(row):
            if not _is_number(cell):
                raise ValueError(f"{path}: row {i}, column {j} is {cell!r}, expected a number")
    numbers = np.array(rows, dtype=np.float64)
    for what, line in (("row", numbers[0]), ("column", numbers[:, 0])) if not _is_map(rows) else ():
        if line.size > 1 and (line % 1 == 0).all() and (np.diff(line) == 1).all():  # 1, 2, 3: as programs number lines
            shown = ", ".join(f"{x:g}" for x in line[:3]) + (", …" if line.size > 3 else "")
            raise ValueError(f"{path}: {what} 0 is {shown}: data, or names? expected names that are no numbers")
    return numbers


def _without_labels(rows: Cells) -> Cells:
    """The rows without header and names: labels are no numbers, or whole numbers beside what is a map."""
    if len(rows) > 1 and not any(map(_is_number, rows[0])):
        rows = rows[1:]
    if rows and len(rows[0]) > 1 and not any(_is_number(row[0]) for row in rows):
        rows = [row[1:] for row in rows]
    for header, names in ((0, 0), (1, 0), (0, 1), (1, 1)):
        body = [row[names:] for row in rows[header:]]
        top, side = rows[0][names:] if header and rows else [], [row[0] for row in rows[header:]] if names else []
        # A header of 0 and 1 only could be a row of probabilities.
        labels = all(map(_is_whole, [*top, *side])) and (not header or max(map(float, top), default=0) > 1)
        if labels and _is_map(body):
            return body
    return rows


def _is_map(rows: Cells) -> bool:
    """Whether these are numbers in rows of one length that sum to 1."""
    if not rows or not rows[0] or not all(len(row) == len(rows[0]) for row in rows):
        return False
    return all(all(map(_is_number, row)) and abs(sum(map(float, row)) - 1) <= ROW_TOLERANCE for row in rows)


def _is_whole(text: str) -> bool:
    return _is_number(text) and float(text).is_integer()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_json(path: Path) -> Floats:
    """The map under `P`, as in `AUDIT.json`, or a plain list of rows."""
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
        rows = given["P"] if isinstance(given, dict) else given
        if isinstance(rows, dict):
            rows = [row for _, row in _joint(rows, given["actions"])]
        return np.array(rows, dtype=np.float64)
    except KeyError:
        raise ValueError(f"{path}: has no P, expected the rows of a map under that name") from None
    except (UnicodeDecodeError, ValueError, TypeError):
        raise ValueError(f"{path}: is not a map as JSON, expected rows of numbers, or these under P") from None


def _joint(tables: dict[str, Any], actions: list[Any]) -> list[tuple[str, Any]]:
    """Names and rows of the joint map of contexts and actions; a context has a row per action, or {action: row}."""
    return [
        (f"{context}: {action}", row)
        for context, table in tables.items()
        for action, row in (table.items() if isinstance(table, dict) else zip(actions, table, strict=True))
    ]


def _read_npy(path: Path) -> Floats:
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (ValueError, EOFError):
        raise ValueError(f"{path}: is not an NPY file of numbers") from None


def _read_parquet(path: Path) -> Floats:
    try:
        import duckdb
    except ImportError:
        raise ValueError(f'{path}: Parquet needs the extra, pip install "statepool[audit]"') from None
    path.open("rb").close()  # a missing file is an OSError
    try:
        columns = duckdb.read_parquet(str(path)).fetchnumpy()
    except duckdb.Error:
        raise ValueError(f"{path}: is not a Parquet file") from None
    numeric = [np.ma.filled(values, np.nan) for values in columns.values() if values.dtype.kind in "iuf"]
    if len(numeric) < len(columns) - 1 or not numeric:
        raise ValueError(f"{path}: expected one column of numbers for each state, and one of names at most")
    return np.column_stack(numeric)


READERS = {".csv": _read_csv, ".json": _read_json, ".npy": _read_npy, ".parquet": _read_parquet}
