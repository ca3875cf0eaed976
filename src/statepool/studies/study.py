"""What a study is: data. What is run, on which seeds, and which numbers, tables and figures come out of it.

A `Sweep` is a list of cells. One function runs each cell on each seed: it gets a `Task`, which is plain data, and
returns named numbers. A `Study` holds sweeps, a function from their results to tables, and figures. Running and caching
(`runner`), and comparing with published numbers and reporting (`report`), are written once.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from statepool import delays, dimension, families, learners
from statepool.checks import Floats
from statepool.comparison import standard_error
from statepool.engine import Run, simulate
from statepool.learners import Learner
from statepool.learners.neighbours.impatient_thompson import prior_of
from statepool.model import Instance
from statepool.report.sheet import Rows, Value

Arms = Mapping[str, tuple[str, Mapping[str, Any]]]
"""Label → (name of a learner, its settings)."""
PAIR: Arms = {"state": ("state-exp3", {}), "action": ("action-exp3", {})}


@dataclass(frozen=True)
class Cell:
    """A family with its settings, a delay, and the learners that are compared on it."""

    label: str
    family: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    delay: int = 0
    arms: Arms = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What else the task's function reads."""


@dataclass(frozen=True)
class Task:
    """A cell on one seed: the unit that is run, cached and sent to a worker."""

    function: Callable[[Task], dict[str, float]]
    cell: Cell
    seed: int
    stream: int
    """The seed of the run's random numbers."""

    def instance(self, shift: int = 0, **changes: Any) -> Instance:
        """The instance, or that of another seed or of other settings."""
        return families.find(self.cell.family)(seed=self.seed + shift, **{**self.cell.settings, **changes})

    def learner(self, label: str) -> Learner:
        """The learner of an arm: a base is named, and a prior comes from another instance of the family."""
        name, given = self.cell.arms[label]
        settings = dict(given)
        if "base" in settings:
            base, its_settings = settings["base"]
            settings["base"] = learners.find(base)(**its_settings)
        if "prior" in settings:
            sibling = self.instance(shift=5_000)
            settings["prior"] = prior_of(sibling.P if sibling.given_map is None else sibling.given_map, sibling.theta)
        return learners.find(name)(**settings)

    def run(self, instance: Instance, learner: Learner) -> Run:
        return simulate(instance, learner, self.cell.delay, self.stream)


def paired(task: Task) -> dict[str, float]:
    """The regret of every arm on one instance and the same random numbers.

    `extra` may hold `dimension` (arms whose mean dimension is wanted), `draws`, and the `kind` of random delays.
    """
    instance, extra = task.instance(), task.cell.extra
    delay: Any = task.cell.delay
    if "kind" in extra:
        delay = delays.KINDS[extra["kind"]](task.seed, instance.horizon, delay)
    numbers = {}
    for label in task.cell.arms:
        run = simulate(instance, task.learner(label), delay, task.stream, extra.get("draws", 3))
        numbers[label] = run.regret
        if label in extra.get("dimension", ()):
            numbers[f"{label} dimension"] = run.dimension
    return numbers


def paired_with_coverage(task: Task) -> dict[str, float]:
    """The paired regrets, and kappa = 1/(|S| min_s mean_a P(s|a)), how rare the rarest state is."""
    P = task.instance(horizon=1).P
    return {"kappa": float(1 / (P.shape[1] * P.mean(axis=0).min())), **paired(task)}


def estimated_dimension(task: Task) -> dict[str, float]:
    """The Monte Carlo estimate of the dimension of an instance's map, from 4 000 policies."""
    return {"vhat": estimate_of(task.cell, task.seed, task.stream)}


def estimate_of(cell: Cell, seed: int, stream: int) -> float:
    """The same for a cell and two seeds."""
    settings = {name: value for name, value in cell.settings.items() if name != "horizon"}
    return _estimate(cell.family, tuple(sorted(settings.items())), seed, stream)


@cache
def _estimate(family: str, settings: tuple[tuple[str, Any], ...], seed: int, stream: int) -> float:
    # One map serves many cells: it does not depend on the horizon.
    P = families.find(family)(seed=seed, **dict(settings), horizon=1).P
    return dimension.estimate(P, np.random.default_rng(stream), 4_000)


@dataclass(frozen=True)
class Sweep:
    """Cells × seeds. A run is seeded with scale · seed + stream, its instance with scale · seed + instance."""

    name: str
    cells: Sequence[Cell]
    seeds: int
    stream: int
    function: Callable[[Task], dict[str, float]] = paired
    instance: int = 0
    scale: int = 1

    @property
    def labels(self) -> list[str]:
        return [cell.label for cell in self.cells]

    def tasks(self, most_seeds: int | None = None) -> Iterator[Task]:
        """Every task of the sweep, on at most so many seeds."""
        for cell in self.cells:
            for seed in range(min(self.seeds, most_seeds or self.seeds)):
                shift = self.scale * seed
                yield Task(self.function, cell, shift + self.instance, shift + self.stream)


def mean_of(numbers: Floats, digits: int = 1, over: float = 1.0) -> Value:
    """The mean over seeds, divided by a scale."""
    error = standard_error(numbers) / over if numbers.size > 1 else None
    return Value(float(numbers.mean()) / over, error, digits)


def ends_of(numbers: Iterable[float], digits: int = 1) -> dict[str, Value]:
    """The smallest and the largest of some numbers, as two columns."""
    found = list(numbers)
    return {"smallest": Value(min(found), None, digits), "largest": Value(max(found), None, digits)}


def growth_exponent(horizons: Sequence[int], regrets: Sequence[float]) -> float:
    """The power of the horizon that mean regret grows with: the slope of a line through the logarithms."""
    return float(np.polyfit(np.log(horizons), np.log(regrets), 1)[0])


class Results:
    """The numbers of a study by sweep, cell and name, one for each seed; and the statistics that studies report."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], list[Mapping[str, float]]] = {}

    def add(self, sweep: str, cell: str, numbers: Mapping[str, float]) -> None:
        self._values.setdefault((sweep, cell), []).append(numbers)

    def of(self, sweep: str, cell: str, name: str) -> Floats:
        """One number for each seed."""
        return np.array([numbers[name] for numbers in self._values[sweep, cell]])

    def first(self, sweep: str, cell: str, name: str) -> float:
        """The number of the first seed, for what is measured on that seed only."""
        return float(self._values[sweep, cell][0][name])

    def mean(self, sweep: str, cell: str, name: str) -> float:
        return float(self.of(sweep, cell, name).mean())

    def value(self, sweep: str, cell: str, name: str, digits: int = 1, over: float = 1.0) -> Value:
        """The mean over seeds with its standard error, divided by a scale."""
        return mean_of(self.of(sweep, cell, name), digits, over)

    def means(self, sweep: str, cell: str, names: Iterable[str], digits: int = 1) -> dict[str, Value]:
        """The means of several numbers in one cell."""
        return {name: self.value(sweep, cell, name, digits) for name in names}

    def rows(self, sweep: str, cells: Iterable[str], names: Iterable[str], digits: int = 1) -> Rows:
        """The means of several numbers in several cells."""
        chosen = tuple(names)
        return {cell: self.means(sweep, cell, chosen, digits) for cell in cells}

    def saved(self, sweep: str, cell: str, better: str, worse: str, digits: int = 1, over: float = 1.0) -> Value:
        """How much less regret one arm has, with the standard error of the paired difference."""
        return mean_of(self.of(sweep, cell, worse) - self.of(sweep, cell, better), digits, over)

    def gain(self, sweep: str, cell: str, better: str, worse: str, name: str = "gain") -> dict[str, Value]:
        """The same, with the standard error as a column of its own."""
        saved = self.saved(sweep, cell, better, worse)
        return {name: saved} | ({} if saved.se is None else {f"{name} ±": Value(saved.se)})

    def percent_saved(self, sweep: str, cell: str, better: str, worse: str) -> Value:
        """The mean gain in per cent of the worse arm's mean regret."""
        return self.saved(sweep, cell, better, worse, over=self.mean(sweep, cell, worse) / 100)

    def saved_share(self, sweep: str, cell: str, better: str, worse: str) -> Value:
        """The same from rounded figures, as the paper computes it; its standard error is the jackknife's."""
        high, low = self.of(sweep, cell, worse), self.of(sweep, cell, better)
        share = 100 * round(float(high.mean() - low.mean()), 1) / round(float(high.mean()), 1)
        if (n := high.size) < 2:
            return Value(share)
        left_out = 100 * (1 - (low.sum() - low) / (high.sum() - high))
        return Value(share, float(np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum())))


@dataclass(frozen=True)
class Table:
    """Rows of named values. `ours` marks tables that the paper does not have."""

    title: str
    rows: Rows
    note: str = ""
    ours: bool = False

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows.values() for name in row))


@dataclass(frozen=True)
class Figure:
    """`draw` gets a sheet, the results of the figure's own study, and those of the studies in `others`."""

    name: str
    draw: Callable[..., None]
    others: tuple[str, ...] = ()
    up_front: bool = False
    """Shown at the beginning of the report rather than with its study."""
    title: str = ""
    caption: str = ""


@dataclass(frozen=True)
class Study:
    """A study of the paper, or one of ours."""

    name: str
    number: str
    title: str
    source: str
    asks: str
    seen: str
    limits: str
    sweeps: Sequence[Sweep]
    tables: Callable[[Results], list[Table]]
    figures: Sequence[Figure] = ()
    beyond: bool = False
    """Beyond the paper: run only when named."""


STUDIES: dict[str, Study] = {}


def add_study(
    name: str, sweeps: Sequence[Sweep], tables: Callable[[Results], list[Table]], figures: Sequence[Figure] = (),
    beyond: bool = False,
) -> None:  # fmt: skip
    """Add a study. Its words and those of its figures are in texts.toml."""
    words = dict(texts()[name])
    captions = words.pop("figures", {})
    drawn = [replace(figure, **captions[figure.name]) for figure in figures]
    STUDIES[name] = Study(name=name, **words, sweeps=sweeps, tables=tables, figures=drawn, beyond=beyond)


@cache
def texts() -> dict[str, Any]:
    """texts.toml: the words of each study, in the order of the report."""
    return tomllib.loads(resources.files(__package__).joinpath("texts.toml").read_text(encoding="utf-8"))
