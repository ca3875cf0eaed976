"""Run the tasks of studies on any executor, and keep finished results in files.

A result is stored under a hash of its task, of the sources and of the versions of the packages that compute it. A run
that was killed continues where it was, and a second run computes nothing.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import as_completed
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import statepool
from statepool.studies.study import Results, Study, Task

PRESENTATION = ("audit/", "cli.py", "client.py", "commands/", "live/", "report/", "studies/report.py",
                "studies/runner.py", "testing")  # fmt: skip
"""Sources that cannot change a number."""


def run_studies(
    studies: Iterable[Study],
    folder: Path,
    executor: Any,
    most_seeds: int | None = None,
    on_task: Callable[[str], None] = lambda study: None,
) -> dict[str, Results]:
    """Run studies, and return their results by name.

    Parameters
    ----------
    studies : iterable of Study
    folder : Path
        Where finished tasks are kept.
    executor : concurrent.futures.Executor or distributed.Client
        Where tasks run. Threads will do: the compiled loop releases the interpreter's lock.
    most_seeds : int, optional
        At most so many seeds of each cell.
    on_task : callable, optional
        Called with the name of the study after each task.
    """
    tasks = [(study.name, sweep.name, task) for study in studies for sweep in study.sweeps
             for task in sweep.tasks(most_seeds)]  # fmt: skip
    found = [read_result(folder, task) for _, _, task in tasks]
    chosen = executor.get_executor(pure=False) if hasattr(executor, "get_executor") else executor
    # Keyed by position: as many tasks as are missing, in any order.
    waiting = {
        chosen.submit(perform, task, fingerprint()): position
        for position, (_, _, task) in enumerate(tasks)
        if found[position] is None
    }
    for (name, _, _), result in zip(tasks, found, strict=True):
        if result is not None:
            on_task(name)
    try:
        for future in as_completed(waiting):
            name, _, task = tasks[waiting[future]]
            found[waiting[future]] = result = future.result()
            write_result(folder, task, result)
            on_task(name)
    finally:
        for future in waiting:
            future.cancel()  # after an error or an interrupt: tasks that run are finished, the others are dropped
    results: dict[str, Results] = {name: Results() for name, _, _ in tasks}
    for (name, sweep, task), result in zip(tasks, found, strict=True):
        results[name].add(sweep, task.cell.label, result or {})
    return results


def perform(task: Task, expected: list[str]) -> dict[str, float]:
    """Run a task, here or on a worker, which must have the sources that the result is stored under."""
    if (own := fingerprint()) != expected:
        differ = ", ".join(sorted({*own} ^ {*expected}))
        raise ValueError(f"cluster: a worker computes with something else ({differ}), expected this release everywhere")
    return task.function(task)


def read_result(folder: Path, task: Task) -> dict[str, float] | None:
    """The stored result of a task; None if there is none, or if it cannot be read."""
    try:
        return dict(json.loads(_path(folder, task).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def write_result(folder: Path, task: Task, result: dict[str, float]) -> None:
    """Store a result: a file is there as a whole, or not at all."""
    path = _path(folder, task)
    with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:
        json.dump(result, file)
    os.replace(file.name, path)


def _path(folder: Path, task: Task) -> Path:
    cell = task.cell
    function = f"{task.function.__module__}:{task.function.__qualname__}"
    plain = [function, cell.family, cell.settings, cell.delay, cell.arms, cell.extra, task.seed, task.stream]
    text = json.dumps([*fingerprint(), *plain], sort_keys=True)
    return folder / f"{hashlib.sha256(text.encode()).hexdigest()[:40]}.json"


@cache
def fingerprint() -> list[str]:
    """The versions of what computes: the sources that can change a number, and the packages they use."""
    package, digest = Path(statepool.__file__).parent, hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if not name.startswith(PRESENTATION):
            digest.update(name.encode() + path.read_bytes())
    packages = [f"{name} {version(name)}" for name in ("llvmlite", "numba", "numpy", "scipy")]
    return [f"sources {digest.hexdigest()[:16]}", *packages]


def check_writable(folder: Path) -> None:
    """Make the folder, or refuse in one sentence."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(f"out: cannot write to {folder} ({error.strerror})") from None
