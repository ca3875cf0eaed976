"""The results of studies: how our numbers meet the published ones, one HTML report, and tables on the terminal.

The report has every table and figure, needs no network, and its bytes repeat.
"""

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.table import Table as Grid
from rich.text import Text

from statepool.report.page import render
from statepool.report.palette import COLOURS
from statepool.report.sheet import Sheet, Value, styled
from statepool.studies import STUDIES
from statepool.studies.study import Results, Study, Table


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


WORDS = {"digit": "to the digit", "within one standard error": "within one standard error", "not met": "not met"}
MARKS = {"digit": "=", "within one standard error": "~", "not met": "≠"}
CLASSES = {"digit": "digit", "within one standard error": "near", "not met": "off"}


def write_report(
    folder: Path, studies: Sequence[Study], tables: Mapping[str, Sequence[Table]],
    records: Mapping[str, Sequence[Record]], results: Mapping[str, Results], quick: bool, name: str = "report",
) -> Path:  # fmt: skip
    """Draw the figures into `folder`/figures and write `folder`/`name`.html; return its path."""
    figures = write_figures(results, folder / "figures")
    every = [record for study in studies for record in records[study.name]]
    page = render(
        __package__, "report.html", heading=heading_of(studies), whole=_is_whole(studies), quick=quick,
        total=_count(every), counts=[(study, _count(records[study.name])) for study in studies], tables=tables,
        # Worst first.
        exceptions=[each for how in ("not met", "within one standard error") for each in every if each.how == how],
        places={study.name: {(each.table, each.cell, each.column): each for each in records[study.name]}
                for study in studies},
        published={each.table for each in every if each.how}, figures=figures, words=WORDS, marks=MARKS,
        classes=CLASSES, worst=_worst, summary=_summary,
    )  # fmt: skip
    path = folder / f"{name}.html"
    path.write_text(page, encoding="utf-8")
    return path


def write_figures(results: Mapping[str, Results], folder: Path) -> defaultdict[str, str]:
    """Draw every figure whose studies were run, as SVG and PDF; the HTML of each section's, "" for the beginning."""
    folder.mkdir(parents=True, exist_ok=True)
    sections: defaultdict[str, str] = defaultdict(str)
    for study in STUDIES.values():
        for figure in study.figures:
            if not {study.name, *figure.others} <= set(results):
                continue
            sheet = Sheet()
            with styled():
                figure.draw(sheet, *(results[name] for name in (study.name, *figure.others)))
            svg = sheet.saved("svg").decode()
            (folder / f"{figure.name}.pdf").write_bytes(sheet.saved("pdf"))
            (folder / f"{figure.name}.svg").write_text(svg)
            drawn = figure_of(figure.name, figure.title, figure.caption, sheet.tips, svg)
            sections["" if figure.up_front else study.name] += drawn
    return sections


NOT_FOR_A_PAGE = re.compile(
    r'<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>|<style type="text/css">.*?</style>| xmlns(:xlink)?="[^"]*"',
    re.DOTALL,
)


def figure_of(name: str, title: str, caption: str, tips: Sequence[str], svg: str) -> str:
    """A figure with title, caption and links to its files."""
    files = " · ".join(f'<a href="figures/{name}.{kind}">{kind.upper()}</a>' for kind in ("svg", "pdf"))
    return (
        f'<figure id="figure-{name}" class="drawing">'
        f'<div class="picture">{_inline(svg, f"{name}-", title, tips)}</div><figcaption><b>{escape(title)}.</b> '
        f'{escape(caption)} <span class="files">{files}</span></figcaption></figure>'
    )


def _inline(svg: str, prefix: str, title: str, tips: Sequence[str]) -> str:
    """An SVG as part of a page: the theme's colours, targets with their texts, ids that no other drawing has."""
    svg = NOT_FOR_A_PAGE.sub("", svg).strip()
    svg = re.sub(r'<g id="tip-(\d+)">', lambda m: f'<g class="tip" data-tip="{escape(tips[int(m[1])])}">', svg)
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = svg.replace('xlink:href="#', f'href="#{prefix}').replace("url(#", f"url(#{prefix}")
    variables = {light: f"var(--{name})" for name, (light, _) in COLOURS.items()}
    svg = re.sub("|".join(variables), lambda match: variables[match[0]], svg)
    # A marker's outline is left to the place that uses it, where pointing turns it on.
    svg = svg.replace('" style="stroke: #000000; stroke-opacity: 0"/>', '"/>')
    heading = f'<svg role="img" aria-label="{escape(title)}" '
    return re.sub(r'<svg width="[^"]*" height="[^"]*" |<svg height="[^"]*" ', heading, svg, count=1)


def _is_whole(studies: Sequence[Study]) -> bool:
    """Whether these are all studies of the paper."""
    return {study.name for study in studies} >= {study.name for study in STUDIES.values() if not study.beyond}


def heading_of(studies: Sequence[Study]) -> str:
    if _is_whole(studies):
        return "The paper, reproduced"
    count = "One study" if len(studies) == 1 else f"{len(studies)} studies"
    return f"{count} {'beyond' if all(study.beyond for study in studies) else 'of'} the paper"


def _count(records: Iterable[Record]) -> dict[str, int]:
    count = Counter(record.how for record in records)
    return {how: count[how] for how in WORDS}


def _worst(count: Mapping[str, int]) -> str:
    """The class of the worst way in which a number is met."""
    return next((CLASSES[how] for how in reversed(WORDS) if count[how]), "none")


def _summary(count: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {WORDS[how]}" for how, number in count.items() if number) or "no published numbers"


NAME, NUMBER = 28, 13
"""Room for the name of a row, and for a column of numbers: columns that do not fit side by side follow below."""
LEGEND = "= published, to the digit;  ~ within one standard error of the published number;  ≠ not met;  no mark: ours"
STYLES = {"digit": "green", "within one standard error": "yellow", "not met": "bold red"}


def print_study(console: Console, study: Study, tables: list[Table], records: list[Record], quick: bool) -> None:
    """A study's question and its tables; below each number that differs, the published one and the difference."""
    console.print(Panel(study.asks, title=f"{study.number}. {study.title}", title_align="left", width=console.width))
    for table in tables:
        found = {(each.cell, each.column): each for each in records if each.table == table.title}
        title = table.title + (" (ours)" if table.ours else "") + (" · QUICK: fewer seeds" if quick else "")
        side_by_side = max(1, (console.width - NAME) // NUMBER)
        for start in range(0, len(table.columns), side_by_side):
            grid = Grid(title=None if start else title, title_justify="left")
            grid.add_column("", overflow="fold")
            names = table.columns[start : start + side_by_side]
            for name in names:
                grid.add_column(name, justify="right", overflow="fold")
            for cell in table.rows:
                grid.add_row(cell, *(_entry(found[cell, name]) if (cell, name) in found else "" for name in names))
            console.print(grid)
        for note in (LEGEND if any(each.how for each in found.values()) else "", table.note):
            if note:
                console.print(note, style="italic", width=console.width, markup=False, highlight=False)


def _entry(record: Record) -> Text:
    """Our number; beside it how it meets the published one, below it the published one if they differ."""
    text = Text(record.ours.shown())
    if record.how is None:
        return text
    text.append(f" {MARKS[record.how]}", STYLES[record.how])
    return text.append(f"\n{record.published} {record.difference:+g}", "dim") if record.difference else text


def print_summary(console: Console, records: list[Record], quick: bool) -> None:
    """How many published numbers are met, and those not met to the digit, with the reason."""
    count = Counter(record.how for record in records if record.how)
    for how in ("within one standard error", "not met"):
        for record in records:
            if record.how == how:
                place = f"{record.study}, {record.cell}, {record.column}"
                numbers = f"published {record.published}, ours {record.ours.shown()}"
                console.print(f"{how}: {place}: {numbers} ({record.why(quick)})", width=console.width)
    console.print(
        f"[bold]{count.total()} published numbers: {count['digit']} to the digit, "
        f"{count['within one standard error']} within one standard error, {count['not met']} not met."
        + (" Quick run: fewer seeds than published." if quick else ""),
        width=console.width,
    )
