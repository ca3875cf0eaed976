"""The report: one HTML file with every table and figure, that needs no network and is the same bytes every time."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from statepool.studies.figures import write_figures
from statepool.studies.published import Record
from statepool.studies.report.page import page_of
from statepool.studies.study import Results, Study, Table


def write_report(
    folder: Path,
    studies: Sequence[Study],
    tables: Mapping[str, Sequence[Table]],
    records: Mapping[str, Sequence[Record]],
    results: Mapping[str, Results],
    quick: bool,
    name: str = "report",
) -> Path:
    """Draw the figures into `folder`/figures and write `folder`/`name`.html; its path."""
    drawings = write_figures(results, folder / "figures")
    path = folder / f"{name}.html"
    path.write_text(page_of(studies, tables, records, drawings, quick), encoding="utf-8")
    return path


__all__ = ["write_report"]
