"""Read a map from a file: CSV, Parquet, NPY or JSON (`AUDIT.json`), with or without names of rows and columns."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from statepool.checks import ROW_TOLERANCE, Floats, check_map, check_table

READABLE = (".csv", ".json", ".npy", ".parquet")


def read_map(path: Path, normalise: bool = False) -> Floats:
    """The map in a file, one row an action; `normalise` scales rows to sum to 1."""
    if path.suffix.lower() not in READABLE:
        raise ValueError(f"{path}: ends in {path.suffix!r}, expected one of {', '.join(READABLE)}")
    try:
        table = _READERS[path.suffix.lower()](path)
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror or error})") from None
    checked = check_table(table, str(path), "one row an action, one column a state")
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


def _read_csv(path: Path) -> Floats:
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        rows = [row for row in csv.reader(file) if row]
    if not rows:
        raise ValueError(f"{path}: is empty, expected one row an action")
    rows = _without_labels(rows)
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise ValueError(f"{path}: row {i} has {len(row)} columns, expected {len(rows[0])} as in row 0")
        for j, cell in enumerate(row):
            if not _is_number(cell):
                raise ValueError(f"{path}: row {i}, column {j} is {cell!r}, expected a number")
    if not _is_map(rows):
        for what, cells in (("row", rows[0]), ("column", [row[0] for row in rows])):
            if _counts_up(cells):
                shown = ", ".join(cells[:3]) + (", …" if len(cells) > 3 else "")
                raise ValueError(f"{path}: {what} 0 is {shown}: data, or names? expected names that are no numbers")
    return np.array(rows, dtype=np.float64)


def _without_labels(rows: list[list[str]]) -> list[list[str]]:
    """The rows without a header and without a column of names: those that hold no numbers, or whole numbers where
    a map is left without them."""
    if len(rows) > 1 and not any(_is_number(cell) for cell in rows[0]):
        rows = rows[1:]
    if len(rows[0]) > 1 and not any(_is_number(row[0]) for row in rows):
        rows = [row[1:] for row in rows]
    if _is_map(rows):
        return rows
    headless, nameless = rows[1:], [row[1:] for row in rows]
    numbered = all(_is_whole(row[0]) for row in headless)
    if _is_header(rows[0]) and _is_map(headless):
        return headless
    if numbered and _is_whole(rows[0][0]) and _is_map(nameless):
        return nameless
    if numbered and _is_header(nameless[0]) and _is_map(nameless[1:]):
        return nameless[1:]
    return rows


def _is_map(rows: list[list[str]]) -> bool:
    """Whether these are numbers whose rows are as long as each other and sum to 1."""
    if not rows or not rows[0] or not all(len(row) == len(rows[0]) for row in rows):
        return False
    return all(all(map(_is_number, row)) and abs(sum(map(float, row)) - 1) <= ROW_TOLERANCE for row in rows)


def _is_header(cells: list[str]) -> bool:
    """Whole numbers, some above 1: no probabilities."""
    return bool(cells) and all(map(_is_whole, cells)) and max(map(float, cells)) > 1


def _is_whole(text: str) -> bool:
    return _is_number(text) and float(text).is_integer()


def _counts_up(cells: list[str]) -> bool:
    """1, 2, 3 or the like: what programs write where nobody gave names."""
    return len(cells) > 1 and all(map(_is_whole, cells)) and bool((np.diff(np.array(cells, float)) == 1).all())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_names(path: Path) -> list[str] | None:
    """The names of a map's rows, where its file has them: JSON's `actions`, CSV's first column if it is no number."""
    if path.suffix.lower() == ".json":
        given = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(given, dict) or "actions" not in given:
            return None
        if isinstance(given.get("P"), dict):
            return [name for name, _ in _joint(given["P"], given["actions"])]
        return [str(name) for name in given["actions"]]
    if path.suffix.lower() != ".csv":
        return None
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        first = [row[0] for row in csv.reader(file) if row]
    body = first[1:] if len(first) > 1 and not _is_number(first[0]) else first
    return body if not any(map(_is_number, body)) else None


def _read_json(path: Path) -> Floats:
    """The map under `P`, as `AUDIT.json` holds it, or a plain list of rows."""
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
        rows = given["P"] if isinstance(given, dict) else given
        if isinstance(rows, dict):
            # A map for each context: the joint map, context by context.
            rows = [row for _, row in _joint(rows, given["actions"])]
        return np.array(rows, dtype=np.float64)
    except KeyError:
        raise ValueError(f"{path}: has no P, expected the rows of a map under that name") from None
    except (UnicodeDecodeError, ValueError, TypeError):
        raise ValueError(f"{path}: is not a map as JSON, expected rows of numbers, or these under P") from None


def _joint(tables: dict[str, Any], actions: list[Any]) -> list[tuple[str, Any]]:
    """Names and rows of the joint map of contexts and actions; a context has a row an action, or {action: row}."""
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
    path.open("rb").close()  # so that a missing file says so in our words
    try:
        columns = duckdb.read_parquet(str(path)).fetchnumpy()
    except duckdb.Error:
        raise ValueError(f"{path}: is not a Parquet file") from None
    numeric = {name: values for name, values in columns.items() if values.dtype.kind in "iuf"}
    if len(numeric) < len(columns) - 1 or not numeric:
        odd = next((name for name in columns if name not in numeric), "none")
        raise ValueError(
            f"{path}: column {odd!r} holds no numbers, expected one column a state (and one of names at most)"
        )
    return np.column_stack([np.ma.filled(values, np.nan) for values in numeric.values()])


_READERS = {".csv": _read_csv, ".json": _read_json, ".npy": _read_npy, ".parquet": _read_parquet}
