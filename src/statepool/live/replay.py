"""Rebuild a pool from its journal and check every link: the chain of hashes, the stored state, and each draw.

Nothing that was computed live is trusted: the fold starts from the first event, and what the store keeps beside the
journal (columns, head, snapshot) is compared with it bit for bit.
"""

import csv
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from statepool.live.events import AnyEvent, Decided, Lesson, Opened, Refreshed, decode
from statepool.live.fold import Fold, Records
from statepool.live.journal import chain
from statepool.live.luck import uniform_of
from statepool.live.stores.store import Entry, Store, View
from statepool.live.versions import Version

TYPES = {
    "ticket": "VARCHAR", "action": "VARCHAR", "probability": "DOUBLE", "state": "VARCHAR", "loss": "DOUBLE",
    "decided_at": "TIMESTAMPTZ", "observed_at": "TIMESTAMPTZ", "resolved_at": "TIMESTAMPTZ", "held": "BOOLEAN",
    "expired": "BOOLEAN", "version": "BIGINT",
}  # fmt: skip


@dataclass
class Replay:
    """What was found; `faults` is empty when the journal and all that is stored beside it agree."""

    pool: str
    events: int = 0
    decisions: int = 0
    redrawn: int = 0
    snapshot_at: int | None = None
    broken_at: int | None = None
    """The first event that does not follow from the one before: nothing is rebuilt past it."""
    faults: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"agrees": not self.faults}


def replay(
    store: Store, name: str, redraw: bool = False, on_event: Callable[[int], None] | None = None
) -> tuple[Replay, Fold]:
    """Read the whole journal of a pool. With `redraw`, every version is made again, and every action drawn again."""
    if name not in store.pools():
        raise ValueError(f"pool: {name!r} is not in this store, expected one of {', '.join(store.pools()) or 'none'}")
    found = Replay(name)
    with store.view(name) as view:
        saved = view.snapshot()
        found.snapshot_at = saved[0] if saved else None
        entries = _linked(view.entries(), found)
        first = next(entries, None)
        if first is None:
            raise ValueError(f"pool: {name!r} has no events")
        opened = decode(first.body)
        if not isinstance(opened, Opened):
            raise ValueError(f"pool: {name!r} does not begin with a catalogue")
        fold = Fold(opened, Records(view.body))
        fold.apply(opened, 1)
        again = _Redrawing(fold, found) if redraw else None
        _compare_snapshot(fold, saved, found)
        for entry in entries:
            if found.broken_at:
                continue
            event = decode(entry.body)
            if again:
                again.check(event, entry.seq)
            fold.apply(event, entry.seq)
            found.decisions += isinstance(event, Decided)
            _compare_snapshot(fold, saved, found)
            if on_event:
                on_event(entry.seq)
        if not found.broken_at:
            _compare_head(view, fold, found)
    return found, fold


def _linked(entries: Iterable[Entry], found: Replay) -> Iterator[Entry]:
    """The entries, each checked against the one before and against its own columns."""
    before = b""
    for entry in entries:
        found.events += 1
        if entry.seq != found.events:
            found.faults.append(f"event {found.events} is missing, the next is {entry.seq}")
            found.events = entry.seq
            found.broken_at = found.broken_at or entry.seq
        before = chain(before, entry.body)
        if before != entry.hash:
            found.faults.append(f"event {entry.seq}: its hash is not that of its bytes and of the event before")
            before = entry.hash
            found.broken_at = found.broken_at or entry.seq
        if _columns(_read(entry)) != (entry.kind, entry.ticket, entry.play, entry.at):
            found.faults.append(f"event {entry.seq}: its columns are not those of its bytes")
        yield entry


def _read(entry: Entry) -> AnyEvent:
    try:
        return decode(entry.body)
    except msgspec.MsgspecError as error:
        raise ValueError(f"event {entry.seq}: its bytes cannot be read ({error})") from None


def _columns(event: AnyEvent) -> tuple[Any, ...]:
    of_ticket = (event.ticket, event.play) if isinstance(event, Decided | Lesson) else (None, None)
    return event.kind, *of_ticket, event.at


def _compare_snapshot(fold: Fold, saved: tuple[int, bytes] | None, found: Replay) -> None:
    if saved and saved[0] == fold.seq and fold.dump() != saved[1]:
        found.faults.append(f"the stored state after event {fold.seq} is not what the journal adds up to")


def _compare_head(view: View, fold: Fold, found: Replay) -> None:
    head = view.head()
    if (head.seq, head.plays) != (fold.seq, fold.plays):
        found.faults.append(f"the store says {head.seq} events and {head.plays} plays, not {fold.seq} and {fold.plays}")


class _Redrawing:
    """Makes each version again and draws from it, as long as it is the latest.

    A process may go on playing from its own version after another has made one; those few draws are not repeated.
    """

    def __init__(self, fold: Fold, found: Replay) -> None:
        self._fold, self._found = fold, found
        self._seq = 0
        self._version: Version | None = None

    def check(self, event: AnyEvent, seq: int) -> None:
        if isinstance(event, Refreshed):
            self._version, record = self._fold.make_version()
            self._seq = seq
            if record != event.record:
                self._found.faults.append(f"event {seq}: another version of the play comes out of the events before")
        elif isinstance(event, Decided) and event.version == self._seq and self._version:
            self._draw(self._version, event, seq)

    def _draw(self, version: Version, event: Decided, seq: int) -> None:
        uniform = uniform_of(self._fold.seed, event.ticket) if event.uniform is None else event.uniform
        place, probability, held = version.draw(uniform)
        self._found.redrawn += 1
        if (self._fold.ledger.ids[place], probability, held) != (event.action, event.probability, event.held):
            self._found.faults.append(f"event {seq}: the ticket draws another action or probability")


def export(rows: Iterable[dict[str, Any]], path: Path) -> int:
    """Flat rows to a CSV or Parquet file; how many."""
    check_export(path)
    try:
        return _export(rows, path)
    except OSError as error:
        raise ValueError(f"export: {str(path)!r} cannot be written ({error.strerror or error})") from None


def check_export(path: Path) -> None:
    """Refuse a file that nothing can be written to."""
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise ValueError(f"export: is {str(path)!r}, expected a file that ends in .csv or .parquet")
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"export: is {str(path)!r}, expected a file in a folder that is there")


def _export(rows: Iterable[dict[str, Any]], path: Path) -> int:
    if path.suffix.lower() == ".csv":
        return _write_csv(rows, path)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        flat = Path(folder) / "rows.csv"
        count = _write_csv(rows, flat)
        _csv_to_parquet(flat, path)
    return count


def _write_csv(rows: Iterable[dict[str, Any]], path: Path) -> int:
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(TYPES)
        for count, row in enumerate(rows, start=1):  # noqa: B007
            writer.writerow([_text(row[name]) for name in TYPES])
    return count


def _text(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value


def _csv_to_parquet(source: Path, path: Path) -> None:
    try:
        import duckdb
    except ImportError:
        raise ValueError("export: Parquet needs duckdb, expected `pip install statepool[audit]`, or a .csv") from None
    with duckdb.connect() as database:
        database.read_csv(str(source), header=True, columns=TYPES).write_parquet(str(path))
