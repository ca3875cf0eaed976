"""A disk that can lose power: of what SQLite wrote, only what it also synced is sure to survive.

The layer passes everything on to real files and keeps a list of what was done; what would be left on the disk at any
moment is found afterwards, from the part of the list before it. The WAL-index (shared memory) never survives.
"""

import os
import random
from pathlib import Path
from typing import NamedTuple

import apsw


class Step(NamedTuple):
    """`what`: write (data at `place`), truncate (to `place`), sync, delete, or folder (its entries are synced)."""

    what: str
    file: str = ""
    place: int = 0
    data: bytes = b""


class Disk(apsw.VFS):
    """SQLite's way to its files, written down; while `broken`, syncing fails."""

    def __init__(self, name: str) -> None:
        super().__init__(name, base="")
        self.name = name
        self.steps: list[Step] = []
        self.broken = False

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return File(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(filename, syncdir)
        self.steps.append(Step("delete", os.path.basename(filename)))
        if syncdir:
            self.steps.append(Step("folder"))


class File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk = disk
        self._name = os.path.basename(name.filename() if isinstance(name, apsw.URIFilename) else name or "temporary")
        # As SQLite's own layer does: the first sync of a journal or a WAL also syncs the folder it was made in.
        self._syncs_folder = bool(flags[0] & (apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_WAL))

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        super().xWrite(data, offset)
        self._disk.steps.append(Step("write", self._name, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        super().xTruncate(newsize)
        self._disk.steps.append(Step("truncate", self._name, newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802
        if self._disk.broken:
            raise apsw.IOError("the disk does not answer")
        super().xSync(flags)
        self._disk.steps.append(Step("sync", self._name))
        if self._syncs_folder:
            self._disk.steps.append(Step("folder"))
        self._syncs_folder = False


class Content:
    """What of a file has reached the disk for good, and what is under way to it."""

    def __init__(self) -> None:
        self.safe = bytearray()
        self.waiting: list[Step] = []

    def sync(self) -> None:
        for step in self.waiting:
            change(self.safe, step)
        self.waiting.clear()

    def left(self, chance: random.Random | None) -> bytes:
        content = bytearray(self.safe)
        for step in self.waiting if chance else []:
            if chance and chance.random() < 0.5:
                change(content, step)
        return bytes(content)


class Platter:
    """The files by name: as they are now, and as the folder on the disk says."""

    def __init__(self) -> None:
        self._now: dict[str, Content] = {}
        self._kept: dict[str, Content] = {}

    def take(self, step: Step) -> None:
        if step.what == "folder":
            self._kept = dict(self._now)
        elif step.what == "delete":
            self._now.pop(step.file, None)
        elif step.what == "sync":
            self._now.setdefault(step.file, Content()).sync()
        else:
            self._now.setdefault(step.file, Content()).waiting.append(step)

    def lose_power(self, folder: Path, chance: random.Random | None) -> None:
        """Write the files that are left; of what was under way each piece survives by `chance`, or none does."""
        files = self._now if chance and chance.random() < 0.5 else self._kept
        for name, content in files.items():
            (folder / name).write_bytes(content.left(chance))


def change(content: bytearray, step: Step) -> None:
    if step.what == "truncate":
        del content[step.place :]
        return
    content.extend(bytes(max(0, step.place - len(content))))
    content[step.place : step.place + len(step.data)] = step.data
