"""The page: how much was met, the contents, the paper's two figures, then study by study; `report.html` says it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from statepool.report.drawings import Drawing
from statepool.report.inline import figures_of
from statepool.report.page import render
from statepool.studies.published import Record
from statepool.studies.study import Study, Table

WORDS = {"digit": "to the digit", "within one standard error": "within one standard error", "not met": "not met"}
MARKS = {"digit": "=", "within one standard error": "~", "not met": "≠"}
CLASSES = {"digit": "digit", "within one standard error": "near", "not met": "off"}
Places = Mapping[tuple[str, str, str], Record]


def page_of(
    studies: Sequence[Study],
    tables: Mapping[str, Sequence[Table]],
    records: Mapping[str, Sequence[Record]],
    drawings: Sequence[Drawing],
    quick: bool,
) -> str:
    """The whole file."""
    every = [record for study in studies for record in records[study.name]]
    return render(
        __package__, "report.html", heading=_heading(studies), whole=_is_whole(studies), quick=quick,
        total=_counted(every), counts=[(study, _counted(records[study.name])) for study in studies], tables=tables,
        # Worst first.
        exceptions=[each for how in ("not met", "within one standard error") for each in every if each.how == how],
        places={study.name: {(each.table, each.cell, each.column): each for each in records[study.name]}
                for study in studies},
        figures=figures_of(drawings), words=WORDS, marks=MARKS, classes=CLASSES, worst=_worst, told=_told,
        columns_of=_columns_of, is_published=_is_published,
    )  # fmt: skip


def _is_whole(studies: Sequence[Study]) -> bool:
    """Whether these are all studies of the paper."""
    from statepool.studies import STUDIES

    return {study.name for study in studies} >= {study.name for study in STUDIES.values() if not study.beyond}


def _heading(studies: Sequence[Study]) -> str:
    if _is_whole(studies):
        return "The paper, reproduced"
    ours = all(study.beyond for study in studies)
    count = "One study" if len(studies) == 1 else f"{len(studies)} studies"
    return f"{count} beyond the paper" if ours else f"{count} of the paper"


def _counted(records: Iterable[Record]) -> dict[str, int]:
    count = Counter(record.how for record in records)
    return {how: count[how] for how in WORDS}


def _worst(count: Mapping[str, int]) -> str:
    """The class of the worst way in which a number is met."""
    return next((CLASSES[how] for how in reversed(WORDS) if count[how]), "none")


def _told(count: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {WORDS[how]}" for how, number in count.items() if number) or "no published numbers"


def _columns_of(table: Table) -> list[str]:
    return list(dict.fromkeys(name for row in table.rows.values() for name in row))


def _is_published(table: Table, places: Places) -> bool:
    return any(places[table.title, cell, name].published for cell, row in table.rows.items() for name in row)
