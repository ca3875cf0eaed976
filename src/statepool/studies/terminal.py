"""Studies on the terminal: a live bar each, then tables that fit 100 columns, then what was met."""

from collections import Counter
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Task as Bar
from rich.table import Table as Grid
from rich.text import Text

from statepool.studies.published import Record
from statepool.studies.study import Study, Table

WIDTH = 100
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

    def started(self, study: str, rounds: int) -> None:
        self._bars[study] = self.progress.add_task(study, total=rounds, start=False, played=0)

    def finished(self, study: str, rounds: int, stored: bool) -> None:
        bar = self._bars[study]
        if self.progress.tasks[bar].start_time is None:
            self.progress.start_task(bar)
        played = self.progress.tasks[bar].fields["played"] + (0 if stored else rounds)
        self.progress.update(bar, advance=rounds, played=played)


def print_study(console: Console, study: Study, tables: list[Table], records: list[Record], quick: bool) -> None:
    """A study's question and its tables; under each number, the published one and the difference."""
    console.print(Panel(study.asks, title=f"{study.number}. {study.title}", title_align="left", width=WIDTH))
    by_place = {(record.table, record.cell, record.column): record for record in records}
    for table in tables:
        console.print(_grid(table, by_place, quick))


def _grid(table: Table, records: dict[tuple[str, str, str], Record], quick: bool) -> Grid:
    title = table.title + (" (ours)" if table.ours else "") + (" · QUICK: fewer seeds" if quick else "")
    grid = Grid(title=title, title_justify="left", caption=table.note or None, caption_justify="left", width=WIDTH)
    grid.add_column("", ratio=2, overflow="fold")
    columns = list(dict.fromkeys(name for row in table.rows.values() for name in row))
    for name in columns:
        grid.add_column(name, justify="right", ratio=1, overflow="fold")
    for cell, row in table.rows.items():
        grid.add_row(cell, *(_entry(records[table.title, cell, name]) if name in row else "" for name in columns))
    return grid


def _entry(record: Record) -> Text:
    text = Text(record.ours.shown())
    if record.how is None or record.published is None:
        return text
    mark, style = MARKS[record.how]
    text.append(f" {mark}\n", style)
    difference = float(record.ours.shown()) - float(record.published)
    return text.append(record.published if difference == 0 else f"{record.published} {difference:+g}", "dim")


def print_summary(console: Console, records: list[Record], quick: bool) -> None:
    """How many published numbers were met, and those that were not to the digit, with the reason."""
    count = Counter(record.how for record in records if record.how)
    for how in ("within one standard error", "not met"):
        for record in records:
            if record.how == how:
                why = "fewer seeds than published" if quick else record.reason or "no reason known"
                place = f"{record.study}, {record.cell}, {record.column}"
                console.print(
                    f"{how}: {place}: published {record.published}, ours {record.ours.shown()} ({why})", width=WIDTH
                )
    total = sum(count.values())
    console.print(
        f"[bold]{total} published numbers: {count['digit']} to the digit, "
        f"{count['within one standard error']} within one standard error, {count['not met']} not met."
        + (" Quick run: fewer seeds than published." if quick else ""),
        width=WIDTH,
    )
