"""Tables and numbers for people and other libraries; neither pandas nor polars is imported before it is asked for."""

from collections.abc import Mapping, Sequence
from html import escape
from importlib import import_module
from shutil import get_terminal_size
from typing import Any

NARROWEST, USUAL, WIDEST = 80, 100, 200


def terminal_width() -> int:
    """Columns to print tables in: the terminal's, between 80 and 200; 100 where there is none."""
    return min(max(get_terminal_size((USUAL, 24)).columns, NARROWEST), WIDEST)


LIBRARIES = ("pandas", "polars")


def make_frame(columns: Mapping[str, Any], library: str = "pandas") -> Any:
    """A frame of named columns."""
    if library not in LIBRARIES:
        raise ValueError(f"library: is {library!r}, expected one of {', '.join(LIBRARIES)}")
    try:
        module = import_module(library)
    except ImportError:
        raise ValueError(f"library: {library} is not installed, expected pip install {library}") from None
    return module.DataFrame(dict(columns))


def text_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns side by side: the first ones to the left, numbers to the right."""
    table = [list(headings), *(list(row) for row in rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(headings))]
    numeric = [all(is_number(row[i] or "0") for row in rows) for i in range(len(headings))]
    lines = []
    for row in table:
        cells = [cell.rjust(w) if right else cell.ljust(w) for cell, w, right in zip(row, widths, numeric, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def html_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same for a notebook."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def is_number(text: str) -> bool:
    """Whether a text can be read as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def listed(names: Sequence[str], most: int = 3) -> str:
    """The first few of many."""
    more = f" and {counted(len(names) - most)} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def counted(number: float) -> str:
    """A whole number with its thousands set apart."""
    return f"{round(number):,}".replace(",", "\N{NO-BREAK SPACE}")


def amount(number: float) -> str:
    """An amount as text: whole where it is large, never in powers of ten."""
    if abs(number) >= 10:
        return counted(number)
    text = f"{number:.2g}"
    return f"{number:.6f}".rstrip("0").rstrip(".") if "e" in text else text


def span(low: float, high: float) -> str:
    return f"{amount(low)} to {amount(high)}".replace("-", "−")
