"""Run the tasks of studies: from the store where they are there, else here or on a cluster, in any order."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from importlib import import_module
from os import cpu_count
from socket import gethostname
from typing import Any, Protocol

from statepool.studies.cells import CellStore, fingerprint
from statepool.studies.study import Results, Study, Task

ALL_SEEDS = 1_000_000


Done = tuple[int, dict[str, float]]
Executor = Callable[[list[Task]], Iterator[Done]]
"""Yields (position, result) of every task, as they finish."""


class Watcher(Protocol):
    """Told what happens, for a progress bar."""

    def started(self, study: str, rounds: int) -> None: ...
    def finished(self, study: str, rounds: int, stored: bool) -> None: ...


def perform(position: int, task: Task) -> Done:
    """Call a task's function."""
    module, name = task.function.split(":")
    return position, getattr(import_module(module), name)(**task.arguments)


def perform_alike(position: int, task: Task, expected: tuple[str, list[str]]) -> Done:
    """Call a task's function on a worker, if it computes with what the results will be stored under."""
    own = fingerprint()
    if own != expected:
        differ = sorted({*own[1]} ^ {*expected[1]}) or [f"sources {own[0][:8]} and {expected[0][:8]}"]
        raise ValueError(
            f"cluster: the worker on {gethostname()} computes with something else ({', '.join(differ)}), "
            "expected this release and its packages on every worker"
        )
    return perform(position, task)


@dataclass(frozen=True)
class LocalExecutor:
    """On this machine's cores. Threads: the compiled loop holds no lock, and nothing is compiled or loaded twice."""

    jobs: int

    def __call__(self, tasks: list[Task]) -> Iterator[Done]:
        with ThreadPoolExecutor(cpu_count() if self.jobs == -1 else self.jobs) as pool:
            futures = [pool.submit(perform, i, task) for i, task in enumerate(tasks)]
            try:
                for future in as_completed(futures):
                    yield future.result()
            finally:
                pool.shutdown(cancel_futures=True)  # interrupted: what runs is finished, what waits is left


class ClusterExecutor:
    """On the workers of a Dask scheduler, which runs a lost worker's tasks again elsewhere; `with` lets go of them."""

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise ValueError('cluster: needs the extra, pip install "statepool[cluster]"') from None
        try:
            self.client = Client(address, timeout="5s")
        except (OSError, ValueError, TimeoutError) as error:
            raise ValueError(f"cluster: no scheduler answers at {address} ({type(error).__name__})") from None

    def __enter__(self) -> "ClusterExecutor":
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()  # what still waits on a worker is cancelled

    def __call__(self, tasks: list[Task]) -> Iterator[Done]:
        from distributed import as_completed as as_they_come

        futures = self.client.map(perform_alike, range(len(tasks)), tasks, expected=fingerprint(), pure=False)
        for future in as_they_come(futures):
            try:
                yield future.result()
            except (AttributeError, ImportError) as error:  # no statepool there, or a release without these names
                raise ValueError(f"cluster: a worker cannot run this release of statepool ({error})") from None


def run_studies(
    studies: Iterable[Study], execute: Executor, store: CellStore, watcher: Watcher, most_seeds: int = ALL_SEEDS
) -> dict[str, Results]:
    """The results of each study by name."""
    studies = list(studies)
    places = [
        (study.name, sweep.name, cell, task)
        for study in studies
        for sweep in study.sweeps
        for cell, task in sweep.tasks(most_seeds)
    ]
    for study in studies:
        watcher.started(study.name, sum(task.rounds for name, _, _, task in places if name == study.name))
    found: list[dict[str, float] | None] = []
    for name, _, _, task in places:
        found.append(store.get(task))
        if found[-1] is not None:
            watcher.finished(name, task.rounds, stored=True)
    missing = [i for i, result in enumerate(found) if result is None]
    for position, result in execute([places[i][3] for i in missing]):
        name, _, _, task = places[missing[position]]
        store.put(task, result)
        found[missing[position]] = result
        watcher.finished(name, task.rounds, stored=False)
    return _gather(studies, places, found)


def _gather(studies: list[Study], places: list[Any], found: list[Any]) -> dict[str, Results]:
    results = {study.name: Results() for study in studies}
    for (name, sweep, cell, _), numbers in zip(places, found, strict=True):
        results[name].add(sweep, cell, numbers)
    return results
