"""Flat rows of a pool: their columns, and how they are written to a CSV, Parquet or JSON lines file."""

import csv
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

COLUMNS = {
    "ticket": "VARCHAR", "action": "VARCHAR", "probability": "DOUBLE", "state": "VARCHAR", "loss": "DOUBLE",
    "reward": "DOUBLE", "decided_at": "TIMESTAMPTZ", "observed_at": "TIMESTAMPTZ", "resolved_at": "TIMESTAMPTZ",
    "is_holdout": "BOOLEAN", "expired": "BOOLEAN", "version": "BIGINT", "context": "VARCHAR",
}  # fmt: skip
"""What every row has, in order, and its type in a Parquet file; of a pool, the service and the client."""


def export(rows: Iterable[dict[str, Any]], path: Path) -> int:
    """Flat rows to a CSV, Parquet or JSON lines file; how many."""
    check_export(path)
    try:
        return _export(rows, path)
    except OSError as error:
        raise ValueError(f"export: {str(path)!r} cannot be written ({error.strerror or error})") from None


def check_export(path: Path) -> None:
    """Refuse a file that nothing can be written to."""
    if path.suffix.lower() not in (".csv", ".parquet", ".jsonl"):
        raise ValueError(f"export: is {str(path)!r}, expected a file that ends in .csv, .parquet or .jsonl")
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"export: is {str(path)!r}, expected a file in a folder that is there")


def _export(rows: Iterable[dict[str, Any]], path: Path) -> int:
    if path.suffix.lower() == ".csv":
        return _write_csv(rows, path)
    if path.suffix.lower() == ".jsonl":
        return _write_lines(rows, path)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        flat = Path(folder) / "rows.csv"
        count = _write_csv(rows, flat)
        _csv_to_parquet(flat, path)
    return count


def _write_csv(rows: Iterable[dict[str, Any]], path: Path) -> int:
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for count, row in enumerate(rows, start=1):  # noqa: B007
            writer.writerow([_text(row[name]) for name in COLUMNS])
    return count


def _write_lines(rows: Iterable[dict[str, Any]], path: Path) -> int:
    count = 0
    with path.open("wb") as file:
        for count, row in enumerate(rows, start=1):  # noqa: B007
            file.write(msgspec.json.encode(row) + b"\n")
    return count


def _text(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value


def _csv_to_parquet(source: Path, path: Path) -> None:
    try:
        import duckdb
    except ImportError:
        raise ValueError("export: Parquet needs duckdb, expected `pip install statepool[audit]`, or a .csv") from None
    with duckdb.connect() as database:
        database.read_csv(str(source), header=True, columns=COLUMNS).write_parquet(str(path))
