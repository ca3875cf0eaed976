"""Studies on the terminal: tables that fit its width, then how many published numbers are met."""

from collections import Counter
from collections.abc import Iterator

from rich.console import Console
from rich.measure import Measurement
from rich.panel import Panel
from rich.table import Table as Grid
from rich.text import Text

from statepool.studies.published import Record
from statepool.studies.study import Study, Table

LEGEND = "= published, to the digit;  ~ within one standard error of the published number below it;  ≠ not met"
MARKS = {"digit": ("=", "green"), "within one standard error": ("~", "yellow"), "not met": ("≠", "bold red")}
Places = dict[tuple[str, str, str], Record]


def print_study(console: Console, study: Study, tables: list[Table], records: list[Record], quick: bool) -> None:
    """A study's question and its tables; below each number that differs, the published one and the difference."""
    console.print(Panel(study.asks, title=f"{study.number}. {study.title}", title_align="left", width=console.width))
    places = {(record.table, record.cell, record.column): record for record in records}
    for table in tables:
        for grid in _grids(console, table, places, quick):
            console.print(grid)
        published = any(places[table.title, cell, name].how for cell, row in table.rows.items() for name in row)
        for note in (LEGEND if published else "", table.note):
            if note:
                console.print(note, style="italic", width=console.width, markup=False, highlight=False)


def _grids(console: Console, table: Table, places: Places, quick: bool) -> Iterator[Grid]:
    """The table, or several one below the other if its columns do not fit side by side."""
    title: str | None = table.title + (" (ours)" if table.ours else "") + (" · QUICK: fewer seeds" if quick else "")
    piece: list[str] = []
    for name in table.columns:
        if piece and _width(console, _grid(table, [*piece, name], places, None, narrow=True)) > console.width:
            yield _grid(table, piece, places, title, narrow=True)
            piece, title = [], None
        piece.append(name)
    whole = _grid(table, piece, places, title)
    yield whole if _width(console, whole) <= console.width else _grid(table, piece, places, title, narrow=True)


def _width(console: Console, grid: Grid) -> int:
    return Measurement.get(console, console.options.update(max_width=10_000), grid).maximum


def _grid(table: Table, names: list[str], places: Places, title: str | None, narrow: bool = False) -> Grid:
    """Some columns of a table; if `narrow`, as wide as the longest word of the heading or the longest number."""
    grid = Grid(title=title, title_justify="left")
    grid.add_column("", overflow="fold", max_width=26)
    for name in names:
        entries = [_entry(places[table.title, cell, name]) for cell, row in table.rows.items() if name in row]
        longest = max(map(len, [*name.split(), *(line for entry in entries for line in entry.plain.splitlines())]))
        grid.add_column(name, justify="right", width=longest if narrow else None)
    for cell, row in table.rows.items():
        grid.add_row(cell, *(_entry(places[table.title, cell, name]) if name in row else "" for name in names))
    return grid


def _entry(record: Record) -> Text:
    """Our number; beside it how it meets the published one, below it the published one if they differ."""
    text = Text(record.ours.shown())
    if record.how is None:
        return text
    mark, style = MARKS[record.how]
    text.append(f" {mark}", style)
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
