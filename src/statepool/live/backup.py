"""Backups: all pools and keys of a store as they were at one moment, in one SQLite file that is a store itself.

A backup is taken beside writers and holds everything that was acknowledged before it began. It can be replayed and
opened as any store (`sqlite:///FILE`), and be restored into a new SQLite file or into an empty PostgreSQL database,
whichever it was taken from. The file gets its name when it is whole and on disk, never before.
"""

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import apsw

from statepool.live.errors import Damaged, NoStore, OlderTables, StoreUnavailable
from statepool.live.hash_chain import follows
from statepool.live.lanes import decisions_in
from statepool.live.replay import replay
from statepool.live.stores import open_store
from statepool.live.stores.contents import refuse_unless_empty
from statepool.live.stores.folders import Folder, check_place, to_disk
from statepool.live.stores.segments import Segment
from statepool.live.stores.sqlite import SQLiteStore, copy_as_it_is, is_of_this_release, version_of
from statepool.live.stores.sqlite_file import copy_file
from statepool.live.stores.store import Head, Store, View

BESIDE = ("-wal", "-shm", "-journal")


@dataclass(frozen=True)
class Held:
    """A pool of a backup: where its journal ends, to be noted elsewhere, segments that cannot be read, and the faults
    that replaying it showed."""

    pool: str
    head: Head
    faults: tuple[str, ...] = ()
    in_lanes: int = 0
    """Decisions that the journal has not taken over yet."""
    in_segments: int = 0
    """Events that are in none of the store's tables, but in segments at these places."""
    places: tuple[str, ...] = ()

    @property
    def decisions(self) -> int:
        return self.head.decisions + self.in_lanes

    def as_json(self) -> dict[str, Any]:
        return {
            "pool": self.pool, "events": self.head.seq, "decisions": self.decisions, "hash": self.head.hash.hex(),
            "faults": list(self.faults), "in_segments": self.in_segments, "places": list(self.places),
        }  # fmt: skip


def backup(url: str, file: Path, verify: bool = False) -> list[Held]:
    """Copy a store, which may be in use, to a new file; with `verify`, every journal of the copy is replayed.

    A copy that has faults is kept: it may be all that is left.
    """
    _check_path(file)
    _check_new(file, "file")
    with _source(url) as copy_to, _new_file(file) as made:
        copy_to(str(made))
        return _look_at_backup(made, verify)


@contextmanager
def _source(url: str) -> Iterator[Callable[[str], None]]:
    """What copies a store, which stays as it is: a backup is also the way back from a release that changes tables."""
    try:
        store = open_store(url, create=False, to_read=True)
    except OlderTables:
        if not url.startswith("sqlite://"):
            raise
        yield partial(copy_as_it_is, os.path.realpath(_path_of(url)))
        return
    with closing(store):
        yield store.copy_to


def _look_at_backup(made: Path, verify: bool) -> list[Held]:
    """Tables of an earlier release are looked at in another copy, which is brought up to date."""
    if is_of_this_release(str(made)):
        return _look(made, verify)
    with tempfile.TemporaryDirectory(prefix=f"{made.name}-", dir=made.parent) as folder:
        copy = Path(folder) / "copy.db"
        copy_file(str(made), str(copy))
        held = _look(copy, verify)
    _make_single(made)
    return held


def restore(file: Path, url: str, verify: bool = False, place: str | None = None) -> list[Held]:
    """Put a backup into a store that is empty; nothing is there until all of it is, and nothing if it has a fault.

    `place` is where its segments lie now; None: where they lay when it was taken.
    """
    _check_path(file)
    place = None if place is None else check_place(place)
    _check_backup(file)
    if not url.startswith("sqlite://"):
        return _restore_into(url, file, verify, place)
    target = Path(_path_of(url))
    _check_new(target, "store")
    with _new_file(target) as made:
        _copy(file, made)
        return _look(made, verify, restoring=True, place=place)


def _check_path(file: Path) -> None:
    """A URL that became a path has lost a slash or two; only one of a file can be said again, without a password."""
    kind, colon, rest = str(file).partition(":/")
    if colon and (kind in ("sqlite", "postgresql", "postgres", "file") or "@" in rest):
        path = rest.lstrip("/") if kind in ("sqlite", "file") else ""
        raise ValueError(f"file: is a URL, expected a path, not a URL: {path or '…'}")


def _check_backup(file: Path) -> None:
    if not os.path.isfile(file):
        raise ValueError(f"file: there is no file {file}, expected one that `statepool backup` wrote")
    try:
        found = version_of(os.path.realpath(file))
    except (ValueError, StoreUnavailable) as error:
        raise ValueError(f"file: {error}") from None
    if not found:
        raise ValueError(f"file: {file} holds nothing of statepool, expected one that `statepool backup` wrote")


def _restore_into(url: str, file: Path, verify: bool, place: str | None) -> list[Held]:
    """The copy is checked before the database is touched."""
    _check_empty(url)
    with _telling_of("the temporary copy"), tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "backup.db"
        _copy(file, made)
        held = _look(made, verify, restoring=True, place=place)
        with closing(open_store(url)) as target, closing(SQLiteStore(made)) as source, source.contents() as contents:
            target.fill(contents)
        return held


def _check_empty(url: str) -> None:
    """Checking a large backup takes long: a database that cannot take it is told before that."""
    try:
        store = open_store(url, create=False, to_read=True)
    except (NoStore, OlderTables):  # whoever fills it brings its tables up to date, and looks again
        return
    with closing(store):
        refuse_unless_empty(len(store.pools()) + len(store.keys()))


def _path_of(url: str) -> str:
    scheme, _, rest = url.partition("://")
    if not rest.startswith("/") or len(rest) < 2 or "?" in rest:
        raise ValueError(f"store: {scheme}://{rest} names no file, expected sqlite:///relative.db")
    return rest.removeprefix("/")


def _check_new(file: Path, what: str) -> None:
    if not os.path.isdir(file.absolute().parent):
        raise ValueError(f"{what}: there is no folder {file.absolute().parent}, expected one to put {file.name} into")
    for each in (file, *(Path(f"{file}{end}") for end in BESIDE)):
        if os.path.lexists(each):
            # A -wal of another database would be taken for this one's.
            raise ValueError(f"{what}: {each} is there already, expected a new file: move it away first")


@contextmanager
def _new_file(file: Path) -> Iterator[Path]:
    """A file under another name, which gets its own at the end; nothing is left of it after an error."""
    with _telling_of(file):
        number, name = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.absolute().parent)  # mode 0600
        os.close(number)
        made = Path(name)
        try:
            yield made
            to_disk(made)
            _check_new(file, "file")
            os.link(made, file)  # fails where somebody was faster
            to_disk(file.absolute().parent)
        finally:
            for each in (made, *(Path(f"{made}{end}") for end in BESIDE)):
                with suppress(OSError):
                    each.unlink()


@contextmanager
def _telling_of(file: Path | str) -> Iterator[None]:
    """What the disk refuses, as the package's error."""
    try:
        yield
    except apsw.Error as error:
        raise StoreUnavailable(f"{file} cannot be written: {error}") from error
    except StoreUnavailable as error:
        if not isinstance(error.__cause__, apsw.FullError):
            raise
        raise StoreUnavailable(f"{file} cannot be written: {os.strerror(errno.ENOSPC)}") from error
    except OSError as error:
        raise StoreUnavailable(f"{file} cannot be written: {error.strerror or error}") from error


def _copy(file: Path, made: Path) -> None:
    """The database of a file, which is only read, in another."""
    try:
        copy_file(str(file), str(made))
    except (apsw.CantOpenError, StoreUnavailable) as error:
        raise ValueError(f"file: {file} cannot be read ({error}): nothing was restored") from None


def _look(made: Path, verify: bool, restoring: bool = False, place: str | None = None) -> list[Held]:
    """What a copy holds; refuses one whose pages or whose ends are damaged, and before it is put anywhere also one with
    a damaged event."""
    _check_pages(made, restoring)
    store = SQLiteStore(made)
    try:
        if place is not None:
            _move_segments(store, place)
        held = [_held(store, name, verify, restoring) for name in store.pools()]
    finally:
        store.close()
    _make_single(made)
    return held


def _move_segments(store: Store, place: str) -> None:
    """Every event is read afterwards, so that a segment that is not there is noticed before anything is kept."""
    for name in store.pools():
        with store.batch(name) as batch:
            for segment in batch.sealed():
                batch.replace_segment(segment, segment._replace(place=place))


def _check_pages(made: Path, restoring: bool) -> None:
    connection = apsw.Connection(str(made))
    try:
        found = [line for (line,) in connection.execute(f"PRAGMA {'integrity' if restoring else 'quick'}_check")]
    except apsw.CorruptError as error:
        found = [str(error)]
    finally:
        connection.close(force=True)
    if found != ["ok"]:
        raise ValueError(f"file: the {'backup' if restoring else 'store'} is damaged ({found[0]}): nothing was kept")


def _held(store: Store, name: str, verify: bool, restoring: bool) -> Held:
    with store.view(name) as view:
        head, before = view.head(), b""
        for entry in view.entries() if restoring else ():
            sound, before = follows(before, entry.body, entry.hash), entry.hash
            if not sound:
                raise ValueError(f"file: event {entry.seq} of {name!r} is damaged: nothing was kept")
        faults = _unreadable(view)
        if head.seq and not faults and view.linked(head.seq)[1].hash != head.hash:
            raise ValueError(f"file: the journal of {name!r} does not end where the copy says: nothing was kept")
        try:
            in_lanes = len(decisions_in(view.lane_rows(), None))
        except Damaged as error:
            raise ValueError(f"file: {error} (pool {name!r}): nothing was kept") from None
        in_segments, places = view.n_sealed(), tuple(dict.fromkeys(segment.place for segment in view.sealed()))
    if verify and head.seq and not faults:
        faults = _replayed(store, name)
    if faults and restoring:
        more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
        raise ValueError(f"file: replaying {name!r} found a fault ({faults[0]}){more}: nothing was restored")
    return Held(name, head, tuple(faults), in_lanes, in_segments, places)


def _unreadable(view: View) -> list[str]:
    """A sentence for each segment that is missing, or does not begin as its name says; the rest of it is not read."""
    found = []
    for segment in view.sealed():
        try:
            Segment(Folder(segment.place), segment.digest)
        except StoreUnavailable as error:
            found.append(str(error))
    return found


def _replayed(store: Store, name: str) -> list[str]:
    try:
        return replay(store, name)[0].faults
    except ValueError as error:  # not even its first event can be read
        return [str(error)]


def _make_single(made: Path) -> None:
    """Without a WAL beside it: a backup is one file."""
    connection = apsw.Connection(str(made))
    try:
        connection.pragma("journal_mode", "delete")
    finally:
        connection.close(force=True)
