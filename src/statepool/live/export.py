"""Flat rows of a pool, written to a CSV or Parquet file."""

import csv
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

TYPES = {
    "ticket": "VARCHAR", "action": "VARCHAR", "probability": "DOUBLE", "state": "VARCHAR", "loss": "DOUBLE",
    "decided_at": "TIMESTAMPTZ", "observed_at": "TIMESTAMPTZ", "resolved_at": "TIMESTAMPTZ", "held": "BOOLEAN",
    "expired": "BOOLEAN", "version": "BIGINT",
}  # fmt: skip


def export(rows: Iterable[dict[str, Any]], path: Path) -> int:
    """Flat rows to a CSV or Parquet file; how many."""
    check_export(path)
    try:
        return _export(rows, path)
    except OSError as error:
        raise ValueError(f"export: {str(path)!r} cannot be written ({error.strerror or error})") from None


def check_export(path: Path) -> None:
    """Refuse a file that nothing can be written to."""
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise ValueError(f"export: is {str(path)!r}, expected a file that ends in .csv or .parquet")
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"export: is {str(path)!r}, expected a file in a folder that is there")


def _export(rows: Iterable[dict[str, Any]], path: Path) -> int:
    if path.suffix.lower() == ".csv":
        return _write_csv(rows, path)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        flat = Path(folder) / "rows.csv"
        count = _write_csv(rows, flat)
        _csv_to_parquet(flat, path)
    return count


def _write_csv(rows: Iterable[dict[str, Any]], path: Path) -> int:
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(TYPES)
        for count, row in enumerate(rows, start=1):  # noqa: B007
            writer.writerow([_text(row[name]) for name in TYPES])
    return count


def _text(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value


def _csv_to_parquet(source: Path, path: Path) -> None:
    try:
        import duckdb
    except ImportError:
        raise ValueError("export: Parquet needs duckdb, expected `pip install statepool[audit]`, or a .csv") from None
    with duckdb.connect() as database:
        database.read_csv(str(source), header=True, columns=TYPES).write_parquet(str(path))
