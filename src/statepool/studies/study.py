"""What a study is: data. What is run, on which seeds and stream, and which numbers are read off.

A `Sweep` is a grid of cells, each run on every seed by one task function (a pure function of plain data, named by
its import path, that returns named numbers). A `Study` holds sweeps and a function from their results to tables.
Running, caching, pairing, tabulating and drawing are written once, elsewhere.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from statepool.checks import Floats
from statepool.report.values import Value

PAIRED = "statepool.studies.tasks:paired"

Arms = Mapping[str, tuple[str, Mapping[str, Any]]]
"""Label → (learner's registry name, its settings)."""


@dataclass(frozen=True)
class Cell:
    """One row of a sweep: an instance family with its settings, a delay, and the arms that are compared on it."""

    label: str
    family: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    delay: int = 0
    arms: Arms = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of the task function."""


@dataclass(frozen=True)
class Task:
    """One unit of work, small enough to lose and to cache: a cell on one seed."""

    function: str
    arguments: Mapping[str, Any]
    rounds: int
    """How many rounds it plays, for the progress bar."""


@dataclass(frozen=True)
class Sweep:
    """Cells × seeds. A pair (a, b) of `instance` or `stream` makes the seed a·seed + b of the instance or the run."""

    name: str
    cells: tuple[Cell, ...]
    seeds: int
    stream: tuple[int, int]
    instance: tuple[int, int] = (1, 0)
    function: str = PAIRED

    def tasks(self, most_seeds: int) -> Iterator[tuple[str, Task]]:
        """Every (cell label, task) of the sweep, on at most so many seeds."""
        for cell in self.cells:
            for seed in range(min(self.seeds, most_seeds)):
                arguments = {
                    "family": cell.family,
                    "settings": dict(cell.settings),
                    "seed": self.instance[0] * seed + self.instance[1],
                    "stream": self.stream[0] * seed + self.stream[1],
                    "delay": cell.delay,
                    "arms": {label: [name, dict(settings)] for label, (name, settings) in cell.arms.items()},
                    **cell.extra,
                }
                rounds = cell.settings.get("horizon", 10_000) * max(len(cell.arms), 1)
                yield cell.label, Task(self.function, arguments, rounds)


class Results:
    """The numbers of a study: by sweep, cell and name, one a seed."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], list[Mapping[str, float]]] = {}

    def add(self, sweep: str, cell: str, numbers: Mapping[str, float]) -> None:
        self._values.setdefault((sweep, cell), []).append(numbers)

    def of(self, sweep: str, cell: str, name: str) -> Floats:
        """One number a seed."""
        return np.array([numbers[name] for numbers in self._values[sweep, cell]])

    def first(self, sweep: str, cell: str, name: str) -> float:
        """The number of the first seed, for what is measured on that alone."""
        return float(self._values[sweep, cell][0][name])

    def mean(self, sweep: str, cell: str, name: str) -> float:
        return float(self.of(sweep, cell, name).mean())


@dataclass(frozen=True)
class Table:
    """Rows of named values; `ours` marks what the paper does not have."""

    title: str
    rows: Mapping[str, Mapping[str, Value]]
    note: str = ""
    ours: bool = False


@dataclass(frozen=True)
class Study:
    """One study of the paper, or one of ours."""

    name: str
    number: str
    title: str
    source: str
    asks: str
    seen: str
    limits: str
    sweeps: tuple[Sweep, ...]
    tables: Callable[[Results], list[Table]]
    beyond: bool = False
    """Beyond the paper: run when named, not with the rest."""
