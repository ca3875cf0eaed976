"""The files of a store under its feet: deleted, renamed, replaced, or opened by another library of the same process.

That last one is done in a process of its own: in this one it would take the locks of every other test.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from journals import append, decide

from live.outside import decided_there
from statepool.live.errors import StoreUnavailable
from statepool.live.stores import sqlite_place
from statepool.live.stores.sqlite import SQLiteStore

ROOT = Path(__file__).parents[3]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SQLiteStore]:
    store = SQLiteStore(tmp_path / "pool.db")
    store.ensure("home")
    decide(store, "before")
    yield store
    store.close()


def delete(file: Path) -> None:
    file.unlink()


def rename(file: Path) -> None:
    file.rename(file.with_name("aside"))


def replace(file: Path) -> None:
    """By a copy, as from a backup that was made while nobody wrote."""
    shutil.copy(file, file.with_name("copy"))
    file.with_name("copy").replace(file)


@pytest.mark.parametrize("ending", ["", "-wal", "-shm"])
@pytest.mark.parametrize("fate", [delete, rename, replace])
def test_what_nobody_would_find_is_not_acknowledged(
    store: SQLiteStore, tmp_path: Path, fate: Callable[[Path], None], ending: str
) -> None:
    fate(tmp_path / f"pool.db{ending}")
    with pytest.raises(StoreUnavailable, match="deleted, renamed or replaced"):
        decide(store, "after")


@pytest.mark.parametrize("fate", [delete, rename, replace])
def test_a_file_that_goes_away_inside_a_batch_is_not_acknowledged(
    store: SQLiteStore, tmp_path: Path, fate: Callable[[Path], None]
) -> None:
    def write() -> None:
        with store.batch("home") as batch:
            append(batch, [("decision", "after", None)])
            fate(tmp_path / "pool.db")

    with pytest.raises(StoreUnavailable, match="deleted, renamed or replaced"):
        write()


def test_a_file_that_is_gone_is_not_made_anew_and_one_that_is_back_is_used(store: SQLiteStore, tmp_path: Path) -> None:
    files = [tmp_path / f"pool.db{ending}" for ending in ("", "-wal", "-shm")]
    for file in files:
        file.rename(file.with_name(f"aside {file.name}"))
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            decide(store, "after")
        with pytest.raises(StoreUnavailable):
            store.pools()
    assert not files[0].exists()
    for file in files:
        file.with_name(f"aside {file.name}").rename(file)
    decide(store, "back")
    assert decided_there(f"sqlite:///{tmp_path}/pool.db", "home") == ["before", "back"]


def test_another_file_is_not_taken_for_the_one_that_was_opened(store: SQLiteStore, tmp_path: Path) -> None:
    SQLiteStore(tmp_path / "other.db").close()
    decide(store, "more")
    (tmp_path / "other.db").replace(tmp_path / "pool.db")
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            decide(store, "after")


OTHER_LIBRARY = """
import sqlite3, sys
from contextlib import closing
sys.path[:0] = sys.argv[2:]
from journals import append, decide
from statepool.live.errors import StoreUnavailable
from statepool.live.stores.sqlite import SQLiteStore

path = sys.argv[1]
def disturb():
    with closing(sqlite3.connect(path)) as other:
        other.execute("SELECT count(*) FROM events").fetchall()

store, told = SQLiteStore(path), []
store.ensure("home")
decide(store, "before")
for n in range(6):
    disturb()
    for again in "ab":
        try:
            decide(store, f"{n}{again}")
            told.append(f"{n}{again}")
        except StoreUnavailable as error:
            assert "-wal" in str(error), error
try:
    with store.batch("home") as batch:
        append(batch, [("decision", "in a batch", None)])
        disturb()
except StoreUnavailable as error:
    assert "lock on the SQLite file was lost" in str(error), error
else:
    told.append("in a batch")
print(*told, sep="\\n", flush=True)
import os
os._exit(0)  # as if it were killed
"""


def test_the_other_library_of_this_process_takes_nothing_acknowledged(tmp_path: Path) -> None:
    folders = [str(Path(__file__).parent), str(ROOT / "tests")]
    command = [sys.executable, "-c", OTHER_LIBRARY, str(tmp_path / "pool.db"), *folders]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = done.stdout.split("\n")[:-1]
    assert told == [f"{n}b" for n in range(6)]  # each first try was refused, and the second one opened anew
    assert decided_there(f"sqlite:///{tmp_path}/pool.db", "home") == ["before", *told]


def test_a_system_that_does_not_tell_of_locks_is_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_place, "WRITE_LOCK", b"never written")
    silent = SQLiteStore(tmp_path / "silent.db")
    monkeypatch.setattr(sqlite_place, "OURS", tmp_path / "none")
    elsewhere = SQLiteStore(tmp_path / "elsewhere.db")
    for store in (silent, elsewhere):
        store.ensure("home")
        assert decide(store, "a")[0].seq == 1
        store.close()


def test_nobody_here_opens_a_store_with_another_library() -> None:
    """Python's own sqlite3 on a file that the process has open drops its locks."""
    asks = re.compile(r"^\s*(import|from) sqlite3\b", re.MULTILINE)
    files = [file for folder in ("src", "tests", "benchmarks", "examples") for file in (ROOT / folder).rglob("*.py")]
    assert len(files) > 200
    assert [file.name for file in files if asks.search(file.read_text())] == [Path(__file__).name]
