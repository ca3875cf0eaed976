"""The page: how much was met, the contents, the paper's two figures, then study by study."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from statepool.report.drawings import Drawing
from statepool.report.inline import figure_of
from statepool.report.page import render
from statepool.studies.published import Record
from statepool.studies.report.tables import CLASSES, LEGEND, MARKS, difference_of, ours_of, table_of
from statepool.studies.study import Study, Table

WORDS = {"digit": "to the digit", "within one standard error": "within one standard error", "not met": "not met"}
QUICK = (
    "Quick run: every study on its first few seeds only. Numbers differ from the published ones for that reason alone "
    "and are not to be quoted."
)


def page_of(
    studies: Sequence[Study],
    tables: Mapping[str, Sequence[Table]],
    records: Mapping[str, Sequence[Record]],
    drawings: Sequence[Drawing],
    quick: bool,
) -> str:
    """The whole file."""
    every = [record for study in studies for record in records[study.name]]
    sections = "".join(_study(study, tables[study.name], records[study.name], drawings, quick) for study in studies)
    front = "".join(figure_of(drawing) for drawing in drawings if not drawing.home)
    parts = {
        "heading": _heading(studies),
        "these": "Here is every study behind that claim" if _is_whole(studies) else "Here is some of what is behind it",
        "quick": f'<p class="warning" role="note">{QUICK}</p>' if quick else "",
        "headline": _headline(every, quick),
        "contents": _contents(studies, records),
        "front": f'<section id="paper"><h2>The paper in two figures</h2>{front}</section>' if front else "",
        "studies": sections,
        "legend": LEGEND,
    }
    return render(__package__, "report.html", **parts)


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


def _headline(records: Sequence[Record], quick: bool) -> str:
    count = _counted(records)
    total = sum(count.values())
    if not total:
        return "<p class='lead'>The studies that were run have no published numbers: everything below is ours.</p>"
    tiles = "".join(
        f'<div class="tile {CLASSES[how]}"><b>{number}</b><span>{WORDS[how]}</span></div>'
        for how, number in count.items()
    )
    shares = "".join(
        f'<i class="{CLASSES[how]}" style="flex-grow:{number}"></i>' for how, number in count.items() if number
    )
    return (
        f'<p class="lead"><b>{count["digit"]} of {total}</b> published numbers are met to the digit.</p>'
        f'<div class="tiles">{tiles}</div><div class="bar" aria-hidden="true">{shares}</div>'
        f"{_exceptions(records, quick)}"
    )


def _exceptions(records: Sequence[Record], quick: bool) -> str:
    """Those not met to the digit, worst first, with both figures and the reason."""
    chosen = [record for how in ("not met", "within one standard error") for record in records if record.how == how]
    if not chosen:
        return ""
    rows = "".join(_exception(record, quick) for record in chosen)
    return (
        f'<details class="exceptions"{"" if quick else " open"}>'
        f"<summary>The {len(chosen)} not met to the digit, and why</summary>"
        '<div class="scroll" tabindex="0" role="region" aria-label="Numbers not met to the digit">'
        '<table class="reasons"><thead><tr>'
        '<th scope="col">where</th><th scope="col">published</th><th scope="col">ours</th><td></td>'
        f'<th scope="col">reason</th></tr></thead><tbody>{rows}</tbody></table></div></details>'
    )


def _exception(record: Record, quick: bool) -> str:
    assert record.how is not None
    place = escape(f"{record.cell}, {record.column}")
    return (
        f'<tr><th scope="row"><a href="#{record.study}">{record.study}</a> {place}</th>'
        f"<td>{record.published}</td><td>{ours_of(record)}{difference_of(record)}</td>"
        f'<td class="{CLASSES[record.how]}">{MARKS[record.how]}</td>'
        f'<td class="words">{escape(record.why(quick))}</td></tr>'
    )


def _contents(studies: Sequence[Study], records: Mapping[str, Sequence[Record]]) -> str:
    lines = "".join(
        f'<li><a href="#{study.name}"><span class="number">{escape(study.number)}</span>'
        f"<span>{escape(study.title)}</span>"
        f"{_dots(records[study.name])}</a></li>"
        for study in studies
    )
    return f"<ol>{lines}</ol>"


def _dots(records: Sequence[Record]) -> str:
    """The worst way in which a number of the study is met, as a mark of its colour."""
    count = _counted(records)
    worst = next((how for how in reversed(WORDS) if count[how]), None)
    said = ", ".join(f"{number} {WORDS[how]}" for how, number in count.items() if number) or "no published numbers"
    return f'<i class="dot {CLASSES[worst] if worst else "none"}" title="{said}"></i>'


def _study(
    study: Study, tables: Sequence[Table], records: Sequence[Record], drawings: Sequence[Drawing], quick: bool
) -> str:
    by_place = {(record.table, record.cell, record.column): record for record in records}
    figures = "".join(figure_of(drawing) for drawing in drawings if drawing.home == study.name)
    return (
        f'<section id="{study.name}" class="study"><h2><span class="number">{escape(study.number)}</span>'
        f'{escape(study.title)}{_chip(records)}</h2><p class="asks">{escape(study.asks)}</p>'
        f'<p class="seen"><b>Seen.</b> {escape(study.seen)}</p>{figures}'
        f"{''.join(table_of(table, by_place, quick) for table in tables)}"
        f'<p class="limits"><b>Limits.</b> {escape(study.limits)}</p>'
        f'<p class="source">Source: {escape(study.source)} · <code>statepool reproduce {study.name}</code></p>'
        "</section>"
    )


def _chip(records: Sequence[Record]) -> str:
    count = _counted(records)
    total = sum(count.values())
    if not total:
        return '<span class="chip none">no published numbers</span>'
    worst = next(how for how in reversed(WORDS) if count[how])
    return f'<span class="chip {CLASSES[worst]}">{count["digit"]} of {total} to the digit</span>'
