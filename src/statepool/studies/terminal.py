"""Studies on the terminal: a live bar each, then tables that fit its columns, then what was met."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Task as Bar
from rich.table import Table as Grid
from rich.text import Text

from statepool.studies.published import Record
from statepool.studies.study import Study, Table

LEGEND = "= published, to the digit;  ~ within one standard error of the published number below it;  ≠ not met"
BORDERS, GAP = 1, 3
"""Columns that a table's frame takes: at its end, and beside each of its columns."""
MARKS = {"digit": ("=", "green"), "within one standard error": ("~", "yellow"), "not met": ("≠", "bold red")}


class _Speed(ProgressColumn):
    """Rounds played per second, stored ones left out."""

    def render(self, task: Bar) -> Text:
        played = task.fields.get("played", 0)
        elapsed = (task.finished_time if task.finished_time is not None else task.elapsed) or 0.0
        return Text(f"{played / elapsed / 1e6:5.2f} M rounds/s" if played and elapsed else "from store", "magenta")


class Bars:
    """One bar a study; the watcher of a run."""

    def __init__(self, console: Console) -> None:
        self.progress = Progress(
            TextColumn("{task.description:<22}"), BarColumn(24), TextColumn("{task.percentage:>4.0f}%"), _Speed(),
            TimeRemainingColumn(), console=console,
        )  # fmt: skip
        self._bars: dict[str, Any] = {}
        self._compiling: Any = None

    def compiling(self, busy: bool) -> None:
        """Kernels are compiled the first time after a change, and never again."""
        if self._compiling is None:
            self._compiling = self.progress.add_task("compiling, once", total=None, visible=False)
        self.progress.update(self._compiling, visible=busy)

    def started(self, study: str, rounds: int) -> None:
        self._bars[study] = self.progress.add_task(study, total=rounds, start=False, played=0)

    def finished(self, study: str, rounds: int, stored: bool) -> None:
        bar = self._bars[study]
        if self.progress.tasks[bar].start_time is None:
            self.progress.start_task(bar)
        played = self.progress.tasks[bar].fields["played"] + (0 if stored else rounds)
        self.progress.update(bar, advance=rounds, played=played)


def print_study(console: Console, study: Study, tables: list[Table], records: list[Record], quick: bool) -> None:
    """A study's question and its tables; under each number that differs, the published one and the difference."""
    title = f"{study.number}. {study.title}"
    console.print(Panel(study.asks, title=title, title_align="left", width=console.width))
    by_place = {(record.table, record.cell, record.column): record for record in records}
    for table in tables:
        for grid in _grids(table, by_place, quick, console.width):
            console.print(grid)
        published = any(by_place[table.title, cell, name].how for cell, row in table.rows.items() for name in row)
        for note in (LEGEND if published else "", table.note):
            if note:
                console.print(note, style="italic", width=console.width, markup=False, highlight=False)


def _grids(table: Table, records: dict[tuple[str, str, str], Record], quick: bool, width: int) -> Iterator[Grid]:
    """The table, or as many below each other as its columns need to stay whole, each with the names of the rows."""
    columns = list(dict.fromkeys(name for row in table.rows.values() for name in row))
    entries = {
        (cell, name): _entry(records[table.title, cell, name]) for cell, row in table.rows.items() for name in row
    }
    wide = {name: _width(name, [entry for (_, at), entry in entries.items() if at == name]) for name in columns}
    first = min(max(map(len, table.rows), default=0), width // 3)
    room = width - first - BORDERS - GAP
    whole = {name: max(wide[name], len(name)) for name in columns}
    if sum(whole.values()) + GAP * len(whole) <= room:  # headings on one line, where all of the table fits so
        wide = whole
    pieces = list(_pieces(wide, room))
    title = table.title + (" (ours)" if table.ours else "") + (" · QUICK: fewer seeds" if quick else "")
    for place, names in enumerate(pieces):
        needed = min(width, len(title)) if place == 0 else None
        grid = Grid(title=title if place == 0 else None, title_justify="left", min_width=needed)
        grid.add_column("", width=first, overflow="fold")
        for name in names:
            grid.add_column(name, justify="right", width=wide[name])
        for cell in table.rows:
            grid.add_row(cell, *(entries.get((cell, name), "") for name in names))
        yield grid


def _width(heading: str, entries: list[Text]) -> int:
    """What a column needs for no word of its heading and no number to be broken."""
    lines = [line for entry in entries for line in entry.plain.splitlines()]
    return max(map(len, [*heading.split(), *lines, ""]))


def _pieces(wide: dict[str, int], room: int) -> Iterator[list[str]]:
    """The columns in groups that fit side by side."""
    piece: list[str] = []
    for name, width in wide.items():
        if piece and sum(wide[each] + GAP for each in piece) + width + GAP > room:
            yield piece
            piece = []
        piece.append(name)
    if piece:
        yield piece


def _entry(record: Record) -> Text:
    """Ours; one number where it is the published one to the digit."""
    text = Text(record.ours.shown())
    if record.how is None or record.published is None:
        return text
    mark, style = MARKS[record.how]
    text.append(f" {mark}", style)
    return text.append(f"\n{record.published} {record.difference:+g}", "dim") if record.difference else text


def print_summary(console: Console, records: list[Record], quick: bool) -> None:
    """How many published numbers were met, and those that were not to the digit, with the reason."""
    count = Counter(record.how for record in records if record.how)
    for how in ("within one standard error", "not met"):
        for record in records:
            if record.how == how:
                place = f"{record.study}, {record.cell}, {record.column}"
                numbers = f"published {record.published}, ours {record.ours.shown()}"
                console.print(f"{how}: {place}: {numbers} ({record.why(quick)})", width=console.width)
    total = sum(count.values())
    console.print(
        f"[bold]{total} published numbers: {count['digit']} to the digit, "
        f"{count['within one standard error']} within one standard error, {count['not met']} not met."
        + (" Quick run: fewer seeds than published." if quick else ""),
        width=console.width,
    )
