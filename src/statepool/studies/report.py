"""The report of studies: one HTML file with every table and figure. It needs no network, and its bytes repeat."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from statepool.report.page import figures_of, render
from statepool.report.sheet import Drawing, Sheet, drawing_of, styled
from statepool.studies import STUDIES
from statepool.studies.published import Record
from statepool.studies.study import Results, Study, Table

WORDS = {"digit": "to the digit", "within one standard error": "within one standard error", "not met": "not met"}
MARKS = {"digit": "=", "within one standard error": "~", "not met": "≠"}
CLASSES = {"digit": "digit", "within one standard error": "near", "not met": "off"}


def write_report(
    folder: Path, studies: Sequence[Study], tables: Mapping[str, Sequence[Table]],
    records: Mapping[str, Sequence[Record]], results: Mapping[str, Results], quick: bool, name: str = "report",
) -> Path:  # fmt: skip
    """Draw the figures into `folder`/figures and write `folder`/`name`.html; return its path."""
    drawings = write_figures(results, folder / "figures")
    every = [record for study in studies for record in records[study.name]]
    page = render(
        __package__, "report.html", heading=heading_of(studies), whole=_is_whole(studies), quick=quick,
        total=_count(every), counts=[(study, _count(records[study.name])) for study in studies], tables=tables,
        # Worst first.
        exceptions=[each for how in ("not met", "within one standard error") for each in every if each.how == how],
        places={study.name: {(each.table, each.cell, each.column): each for each in records[study.name]}
                for study in studies},
        published={each.table for each in every if each.how}, figures=figures_of(drawings), words=WORDS, marks=MARKS,
        classes=CLASSES, worst=_worst, summary=_summary,
    )  # fmt: skip
    path = folder / f"{name}.html"
    path.write_text(page, encoding="utf-8")
    return path


def write_figures(results: Mapping[str, Results], folder: Path) -> list[Drawing]:
    """Draw every figure whose studies were run; save each as SVG and PDF."""
    folder.mkdir(parents=True, exist_ok=True)
    drawings = []
    for study in STUDIES.values():
        for figure in study.figures:
            if not {study.name, *figure.others} <= set(results):
                continue
            wide, narrow = Sheet(), Sheet(narrow=True)
            for sheet in (wide, narrow):
                with styled():
                    figure.draw(sheet, *(results[name] for name in (study.name, *figure.others)))
            home = "" if figure.up_front else study.name
            drawing = drawing_of(wide, narrow, figure.name, figure.title, figure.caption, home)
            (folder / f"{figure.name}.pdf").write_bytes(wide.saved("pdf"))
            (folder / f"{figure.name}.svg").write_text(_titled(drawing))
            drawings.append(drawing)
    return drawings


def _titled(drawing: Drawing) -> str:
    """The SVG with each target's text as its title, which browsers show when a reader points at it."""

    def title(match: re.Match[str]) -> str:
        return f"{match[0]}<title>{escape(drawing.tips[int(match[1])])}</title>"

    # Targets are not painted, and can be pointed at all the same.
    pointing = '<style>[id^="tip-"] {pointer-events: all}</style>'
    return re.sub(r'<g id="tip-(\d+)">', title, drawing.wide).replace("<defs>", pointing + "<defs>", 1)


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
