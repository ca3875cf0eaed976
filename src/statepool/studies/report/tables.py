"""A study's tables: our number, its standard error, and under it the published number with the difference."""

from collections.abc import Mapping
from html import escape

from statepool.studies.published import Record
from statepool.studies.study import Table

MARKS = {"digit": "=", "within one standard error": "~", "not met": "≠"}
CLASSES = {"digit": "digit", "within one standard error": "near", "not met": "off"}
LEGEND = (
    "Under each number of ours stands the published one: <span class='digit'>= met to the digit</span>, "
    "<span class='near'>~ met within one standard error</span>, <span class='off'>≠ not met</span>, with the "
    "difference where there is one. ± is the standard error of our mean over seeds."
)

Places = Mapping[tuple[str, str, str], Record]


def table_of(table: Table, records: Places, quick: bool) -> str:
    """A table in a box of its own, which scrolls where the page is too narrow for it."""
    columns = list(dict.fromkeys(name for row in table.rows.values() for name in row))
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "".join(
        f'<tr><th scope="row">{escape(cell)}</th>'
        + "".join(_entry(records[table.title, cell, name]) if name in row else "<td></td>" for name in columns)
        + "</tr>"
        for cell, row in table.rows.items()
    )
    published = any(records[table.title, cell, name].published for cell, row in table.rows.items() for name in row)
    return (
        f'<div class="table"><h3>{escape(table.title)}{_badges(table, published, quick)}</h3>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.title)}">'
        f"<table><thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table></div>{_note(table.note)}</div>"
    )


def _badges(table: Table, published: bool, quick: bool) -> str:
    badges = ""
    if table.ours:
        badges += ' <span class="badge ours" title="the paper does not have this">ours</span>'
    elif not published:
        badges += ' <span class="badge" title="the paper prints no number of this table">no published numbers</span>'
    if quick:
        badges += ' <span class="badge quick">quick: fewer seeds</span>'
    return badges


def _note(note: str) -> str:
    return f'<p class="note">{escape(note)}</p>' if note else ""


def _entry(record: Record) -> str:
    paper = ""
    if record.how is not None:
        said = f"{MARKS[record.how]} {record.published}{difference_of(record)}"
        paper = f'<span class="paper {CLASSES[record.how]}">{said}</span>'
    return f'<td title="{record.ours.number:.6g}">{ours_of(record)}{paper}</td>'


def ours_of(record: Record) -> str:
    """Our number with its standard error."""
    ours = record.ours
    return ours.shown() + ("" if ours.se is None else f'<span class="se">±{ours.se:.{ours.digits}f}</span>')


def difference_of(record: Record) -> str:
    """Ours less the published number; nothing where they agree."""
    return f" ({record.difference:+g})".replace("-", "−") if record.difference else ""
