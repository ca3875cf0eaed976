"""Finished tasks, kept on disk one file each, under a key of everything that determines the result.

A run that was killed goes on where it was; a second run is instant. A damaged entry is noticed by its checksum
and computed again.
"""

import hashlib
import json
import os
import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import statepool
from statepool.studies.study import Task

# What only shows results cannot change them.
_PRESENTATION = ("audit/", "cli.py", "commands/", "live/", "report/", "studies/cells.py", "studies/figures/",
                 "studies/published.py", "studies/report/", "studies/runner.py", "studies/terminal.py")  # fmt: skip


class CellStore:
    """Results by task in a folder. `damaged` counts the entries that could not be trusted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damaged = 0
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise ValueError(f"out: cannot write to {folder} ({error.strerror})") from None

    def get(self, task: Task) -> dict[str, float] | None:
        """The stored result, or None."""
        key = key_of(task)
        try:
            entry = json.loads(self._path(key).read_text())
            if entry["key"] == key and entry["check"] == _checksum(entry["result"]):
                return dict(entry["result"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            pass
        self.damaged += 1
        return None

    def put(self, task: Task, result: dict[str, float]) -> None:
        """Store a result: whole or not at all."""
        key = key_of(task)
        path = self._path(key)
        path.parent.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
            json.dump({"key": key, "check": _checksum(result), "result": result}, file)
        os.replace(file.name, path)

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key[2:]}.json"


def key_of(task: Task) -> str:
    """A hash of the task, the sources and the versions of what computes."""
    text = json.dumps([*fingerprint(), task.function, task.arguments], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def fingerprint() -> tuple[str, list[str]]:
    """The sources and the versions of what computes, here: another one, and results may differ."""
    return source_hash(), _versions()


def _checksum(result: Any) -> str:
    return hashlib.sha256(json.dumps(result, sort_keys=True).encode()).hexdigest()[:16]


@cache
def _versions() -> list[str]:
    return [f"{name} {version(name)}" for name in ("llvmlite", "numba", "numpy", "scipy")]


@cache
def source_hash() -> str:
    """Of every source that can change a number."""
    package = Path(statepool.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if not name.startswith(_PRESENTATION):
            digest.update(name.encode() + path.read_bytes())
    return digest.hexdigest()
