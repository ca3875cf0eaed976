"""Where sealed segments lie: a folder of this machine, or an object store that fsspec knows (s3://bucket/path)."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from statepool.live.errors import StoreUnavailable
from statepool.live.stores.owners import follow_owner


class Folder:
    """Files that are written once, whole, and read in parts."""

    def __init__(self, place: str) -> None:
        self._place = _without_file(place)
        self._remote: Any = None
        if "://" in self._place:
            self._remote, self._root = _remote(self._place)

    def __str__(self) -> str:
        return self._place

    def read(self, name: str, offset: int, size: int) -> bytes:
        try:
            if self._remote is not None:
                return bytes(self._remote.cat_file(f"{self._root}/{name}", offset, offset + size))
            with open(Path(self._place) / name, "rb") as file:
                return os.pread(file.fileno(), size, offset)
        except FileNotFoundError:
            raise StoreUnavailable(
                f"segment {name} is not in {self}: it holds events of the journal; put it back there, "
                "or restore a backup with --place where it lies now"
            ) from None
        except Exception as error:
            if isinstance(error, MemoryError):
                raise
            raise StoreUnavailable(f"segment {name} in {self} cannot be read: {error}") from None

    def write(self, name: str, data: bytes) -> None:
        """The file is there, whole and on disk, when this returns."""
        try:
            if self._remote is not None:
                self._remote.makedirs(self._root, exist_ok=True)
                self._remote.pipe_file(f"{self._root}/{name}", data)
                return
            self._write_file(Path(self._place) / name, data)
        except Exception as error:
            if isinstance(error, MemoryError):
                raise
            raise StoreUnavailable(f"segment {name} cannot be written to {self}: {error}") from None

    def _write_file(self, path: Path, data: bytes) -> None:
        """In a file beside it first: what has its name is whole. Whoever removes the one removes the other."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = _part(path)
        number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(number, "wb") as file:
                follow_owner(number, path.parent)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
        finally:
            with suppress(OSError):
                os.unlink(part)
        to_disk(path.parent)

    def remove(self, name: str) -> bool:
        """It is not there when this returns, nor a part of it; whether there was one."""
        try:
            if self._remote is None:
                return _remove_file(Path(self._place) / name)
            if not self._remote.exists(f"{self._root}/{name}"):  # some remove what is not there, and say nothing
                return False
            self._remote.rm_file(f"{self._root}/{name}")
            return True
        except FileNotFoundError:
            return False
        except Exception as error:
            if isinstance(error, MemoryError):
                raise
            raise StoreUnavailable(f"segment {name} cannot be removed from {self}: {error}") from None


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _remove_file(path: Path) -> bool:
    there = [each for each in (_part(path), path) if each.exists()]
    for each in there:
        each.unlink(missing_ok=True)
    if there:
        to_disk(path.parent)
    return bool(there)


def to_disk(path: Path) -> None:
    """The bytes of a file; or of a folder, what was put there or removed: it is so after a loss of power, too."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def check_place(place: str) -> str:
    """The place as the store keeps it: a folder by its whole path."""
    if "memory" in (part.partition("://")[0] for part in place.split("::")):
        raise ValueError("place: memory://… is gone when this process ends, expected a folder or an object store")
    folder = _without_file(place)
    if "://" in folder:
        _remote(folder)
        return folder.rstrip("/")
    if folder != place and not folder.startswith("/"):
        raise ValueError(f"place: {place} names no folder, expected file:///absolute/path, or the path itself")
    path = Path(folder).absolute()
    if path.exists() and not path.is_dir():
        raise ValueError(f"place: {path} is no folder, expected one for segments")
    return str(path)


def _without_file(place: str) -> str:
    """A folder of this machine by its path, however it was named: object stores know neither modes nor the disk."""
    scheme, separator, path = place.partition("://")
    return path if separator and scheme in ("file", "local") else place


def _remote(place: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise ValueError("place: an object store needs fsspec, expected `pip install fsspec`, or a folder") from None
    try:
        found, root = url_to_fs(place)
    except Exception as error:
        raise ValueError(f"place: {place.partition('://')[0]}://… cannot be used ({error})") from None
    return found, str(root).rstrip("/")
