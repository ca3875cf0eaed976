"""Where a SQLite file may lie, and whether the files that a connection has open still lie there.

SQLite works on in a file that was deleted or renamed, and says that all is well. The same happens to its WAL when
another SQLite library in this process (Python's own `sqlite3` is one) opens and closes the file: closing a descriptor
of a file drops all locks that the process has on it, so the other library believes itself alone and tidies up.
"""

import ctypes
import os
import re
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp

import apsw

from statepool.live.errors import StoreUnavailable

OLDEST = (3, 51, 3)  # before it, a checkpoint beside a writer could corrupt a WAL database
NETWORKS = (  # file systems whose locks and shared memory do not hold between machines
    *("afs", "ceph", "cifs", "coda", "davfs", "glusterfs", "gfs2", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2"),
    *("smb2", "smb3", "smbfs", "fuse.ceph", "fuse.gcsfuse", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs"),
)
MOUNTS = Path("/proc/self/mountinfo")
OURS = Path("/proc/self")
WRITE_LOCK = b" 120 120\n"  # the byte of the -shm file that SQLite's writer locks, as Linux writes it

Identity = tuple[int, int]
WITH_WAL = ("", "-wal", "-shm")


class Moved(StoreUnavailable):
    """The files at the paths are not the ones that are open."""


class Files:
    """The files of a database, as they were when a connection had just opened them; one at rest has no WAL."""

    def __init__(self, connection: apsw.Connection, path: str, endings: tuple[str, ...] = WITH_WAL) -> None:
        self._path = path
        self._paths = tuple(f"{path}{ending}" for ending in endings)
        self._known = self._now()
        if self._known is None or _has_moved(connection):
            raise self._moved()

    @property
    def main(self) -> Identity:
        assert self._known is not None
        return self._known[0]

    def check(self) -> None:
        """Refuse to acknowledge what nobody else would find."""
        if self._now() != self._known:
            raise self._moved()

    def check_wal(self) -> None:
        """Refuse to write into a WAL that is no longer the one of the file: moving it over would spoil the file."""
        assert self._known is not None
        try:
            found = _identity(self._paths[1])
        except OSError:
            raise self._moved() from None
        if found != self._known[1]:
            raise self._moved()

    def _now(self) -> tuple[Identity, ...] | None:
        try:
            return tuple(map(_identity, self._paths))
        except OSError:
            return None

    def _moved(self) -> Moved:
        return Moved(
            f"{self._path} or its -wal or -shm file was deleted, renamed or replaced while this process had it open: "
            "nothing that cannot be found there is acknowledged"
        )


def _identity(path: str) -> Identity:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _has_moved(connection: apsw.Connection) -> bool:
    """What SQLite itself says about the main file: its descriptor against its path."""
    answer = ctypes.c_int(0)
    connection.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(answer))
    return bool(answer.value)


class LockWatch:
    """Whether the system still holds SQLite's write lock for this process, where the system tells."""

    def __init__(self, path: str) -> None:
        self._descriptor = _lock_table(f"{path}-shm")
        self._proven = False

    def prove(self) -> None:
        """Right after the lock was taken it must be there; where it is not, this system does not tell."""
        if self._descriptor is not None and not self._proven:
            self._proven = self._is_there()
            if not self._proven:
                self.close()

    def check(self) -> None:
        """Refuse a batch whose lock has been dropped under it: others may have written meanwhile."""
        if self._descriptor is not None and not self._is_there():
            raise StoreUnavailable(
                "the lock on the SQLite file was lost in the middle of a batch, of which nothing was kept: something "
                "else in this process opens the same file (Python's own sqlite3, a copy); let another process do that"
            )

    def _is_there(self) -> bool:
        assert self._descriptor is not None
        return WRITE_LOCK in os.pread(self._descriptor, 4096, 0)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = None


def _lock_table(path: str) -> int | None:
    """A descriptor that tells of the locks which this process has on one of its open files, where there is such."""
    for name in os.listdir(OURS / "fd") if OURS.exists() else []:
        with suppress(OSError):  # of a file that was closed meanwhile
            if os.readlink(OURS / "fd" / name) == path:
                return os.open(OURS / "fdinfo" / name, os.O_RDONLY)
    return None


def check_version(version: str) -> None:
    """Refuse a SQLite that is too old."""
    if tuple(map(int, version.split("."))) < OLDEST:
        raise ValueError(f"SQLite {version} is too old: {'.'.join(map(str, OLDEST))} or later is needed")


def check_folder(folder: str) -> None:
    """Refuse a folder that is missing, or on another machine."""
    if not os.path.isdir(folder):
        raise ValueError(f"there is no folder {folder} for the SQLite file")
    kind = file_system(folder, MOUNTS.read_text()) if MOUNTS.exists() else ""
    if kind in NETWORKS:
        raise ValueError(f"{folder} is on a network file system ({kind}), where SQLite is not safe: use a local disk")


def keep_private(path: str) -> None:
    """Journals and the hashes of keys are nobody else's: the file is made for its owner alone, and SQLite gives its WAL
    the same mode. A group that was let in stays; the world does not."""
    if not os.path.exists(path):
        _make_private(path)
    for each in (path, f"{path}-wal", f"{path}-shm"):
        with suppress(OSError):  # gone meanwhile, or another owner's
            mode = os.stat(each).st_mode
            if mode & 0o007:
                os.chmod(each, mode & 0o770)


def _make_private(path: str) -> None:
    """An empty file, made elsewhere and closed before it gets its name: closing a file drops every lock that this
    process has on it, another connection's too."""
    made = ""
    with suppress(OSError):  # someone was faster, or SQLite will say what is wrong
        number, made = mkstemp(dir=os.path.dirname(path))  # mode 0600
        os.close(number)
        os.link(made, path)
    with suppress(OSError):
        os.unlink(made)


def file_system(folder: str, mounts: str) -> str:
    """The kind of the mount that holds a folder; the last one wins where mounts lie on each other."""
    best, kind = "", ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        point = re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), left.split()[4])
        if len(point) >= len(best) and (folder + "/").startswith(point.rstrip("/") + "/"):
            best, kind = point, right.split()[0]
    return kind
