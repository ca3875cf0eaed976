"""The published numbers, as printed, and how ours meet them."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from statepool.report.sheet import Value
from statepool.studies.study import Study, Table


@dataclass(frozen=True)
class Record:
    """One number of ours, and the published one where there is one."""

    study: str
    table: str
    cell: str
    column: str
    ours: Value
    published: str | None
    exact: bool
    reason: str

    @property
    def how(self) -> str | None:
        """How the published number is met: "digit", "within one standard error", or "not met"."""
        if self.published is None:
            return None
        decimals = len(self.published.partition(".")[2])
        if self.published in (self.ours.shown(), f"{self.ours.number:.{decimals}f}"):
            return "digit"
        if self.ours.se is not None and abs(self.ours.number - float(self.published)) <= self.ours.se:
            return "within one standard error"
        return "not met"

    @property
    def difference(self) -> float:
        """Ours less the published number, both as printed."""
        return 0.0 if self.published is None else round(float(self.ours.shown()) - float(self.published), 6)

    def why(self, quick: bool) -> str:
        """Why the published number is not met to the digit."""
        return "fewer seeds than published" if quick else self.reason or "no reason known"

    @property
    def met(self) -> bool | None:
        return None if self.how is None else self.how != "not met"

    def as_json(self) -> dict[str, Any]:
        return {
            "study": self.study, "table": self.table, "cell": self.cell, "column": self.column,
            "published": None if self.published is None else float(self.published),
            "ours": self.ours.number, "se": self.ours.se, "met": self.met, "how": self.how, "exact": self.exact,
            "reason": self.reason if self.how in ("not met", "within one standard error") else "",
            "shown": {"published": self.published, "ours": self.ours.shown(),
                      "se": None if self.ours.se is None else f"{self.ours.se:.{self.ours.digits}f}"},
        }  # fmt: skip


@cache
def published_numbers() -> dict[str, Any]:
    """published.toml: by study, then table, cell and column."""
    return tomllib.loads(resources.files(__package__).joinpath("published.toml").read_text())


def records_of(study: Study, tables: list[Table]) -> list[Record]:
    """Every number of a study's tables beside the published one."""
    book, records = published_numbers().get(study.name, {}), []
    for table in tables:
        numbers, loose = (book.get(part, {}).get(table.title, {}) for part in ("tables", "loose"))
        for cell, row in table.rows.items():
            for column, value in row.items():
                text = numbers.get(cell, {}).get(column)
                reason = loose.get(f"{cell}.{column}", loose.get("all", ""))
                exact = text is not None and not reason
                records.append(Record(study.name, table.title, cell, column, value, text, exact, reason))
    return records
