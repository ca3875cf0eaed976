"""Learners side by side, on the same instances and with common random numbers: differences are due to the learners."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from os import cpu_count
from time import thread_time
from typing import Any

import numpy as np

from statepool import families as known_families
from statepool.checks import Floats, check_count, check_whole, shown, unknown_name
from statepool.delays import Conversions
from statepool.engine import DEFAULT_DELAY, POINTS, simulate
from statepool.frames import html_table, make_frame, text_table
from statepool.learners import make_learner
from statepool.learners.contract import Learner, short_name
from statepool.model import Instance
from statepool.stream import SEED_GAP

_NUMBER = int | np.integer


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """The runs of a paired grid; printed, it is a table of regrets.

    Attributes
    ----------
    families, delays, learners, seeds : tuple
        The names of the axes of the arrays, in this order.
    settings : tuple of str
        The learners as they were run.
    regret, loss, seconds : numpy.ndarray
        Regret, summed mean loss and processor time of each run; the first run of a learner may include compiling it.
    paths : numpy.ndarray
        With one more axis, the regret at the shares `times` of each horizon.
    times : numpy.ndarray
        From 0 to 1.

    Examples
    --------
    >>> import statepool as sp
    >>> grid = sp.compare(sp.families.spread(seed=0, horizon=500), ["self-tuned", "uniform"], delays=[5], seeds=[1])
    >>> grid.regret.shape
    (1, 1, 2, 1)
    """

    families: tuple[str, ...]
    delays: tuple[Any, ...]
    learners: tuple[str, ...]
    seeds: tuple[int, ...]
    settings: tuple[str, ...]
    regret: Floats
    loss: Floats
    seconds: Floats
    paths: Floats
    times: Floats = field(default_factory=lambda: np.linspace(0, 1, POINTS))

    def mean(self, family: str, learner: str, delay: Any) -> float:
        """Mean regret over seeds."""
        return float(self.of(family, learner, delay).mean())

    def of(self, family: str, learner: str, delay: Any) -> Floats:
        """Regret of each seed."""
        return np.asarray(self.regret[self._cell(family, learner, delay)])

    def _cell(self, family: str, learner: str, delay: Any) -> tuple[int, int, int]:
        given = (("family", family, self.families), ("delay", delay, self.delays), ("learner", learner, self.learners))
        for kind, name, known in given:
            if not isinstance(name, str | int | np.integer) or name not in known:
                raise ValueError(unknown_name(kind, name, map(str, known)))
        return self.families.index(family), self.delays.index(delay), self.learners.index(learner)

    def gain(self, family: str, learner: str, over: str, delay: Any) -> tuple[float, float]:
        """How much less regret than another learner, and the standard error of the paired difference."""
        difference = self.of(family, over, delay) - self.of(family, learner, delay)
        return float(difference.mean()), standard_error(difference)

    def rows(self, over: str | None = None) -> list[tuple[str, ...]]:
        """A row of text for each family, delay and learner: regret, and what it saves over one of the learners."""
        over, found = over or self.learners[0], []
        for family, delay, learner in product(self.families, self.delays, self.learners):
            regrets = self.of(family, learner, delay)
            saved = self.gain(family, learner, over, delay) if learner != over else (np.nan, np.nan)
            numbers = float(regrets.mean()), standard_error(regrets), *saved
            found.append((family, str(delay), learner, *("" if np.isnan(n) else f"{n:.1f}" for n in numbers)))
        return found

    def table(self, over: str | None = None) -> str:
        """Mean regret with its standard error, and what each learner saves over the first (or `over`), as text."""
        return text_table(self._headings(over), self.rows(over))

    def _headings(self, over: str | None) -> tuple[str, ...]:
        return ("family", "delay", "learner", "regret", "±", f"saved over {over or self.learners[0]}", "±")

    def frame(self, library: str = "pandas") -> Any:
        """A pandas or polars frame with one row per run.

        Columns: family, delay, learner, settings, seed, regret, loss and seconds (of processor time).
        """
        axes = self.families, self.delays, zip(self.learners, self.settings, strict=True), self.seeds
        cells = [(family, delay, name, seed, settings) for family, delay, (name, settings), seed in product(*axes)]
        names = ("family", "delay", "learner", "seed", "settings")
        columns = dict(zip(names, map(list, zip(*cells, strict=True)), strict=True))
        measured = {name: getattr(self, name).ravel() for name in ("regret", "loss", "seconds")}
        return make_frame(columns | measured, library)

    def plot(self, family: str | None = None, delay: Any = None, ax: Any = None) -> Any:
        """Plot regret over time: a line for each learner, with a band of two standard errors over seeds.

        Needs matplotlib. The axis is logarithmic where a line would lie on zero.

        Parameters
        ----------
        family, delay : optional
            One family and one delay; by default all, in one panel each.
        ax : matplotlib.axes.Axes, optional
            Where to draw one family and delay, the first ones by default.

        Returns
        -------
        Axes or Figure
            One panel's axes, or the figure of several (`.axes`): families are rows, delays are columns. Both have
            `.figure.savefig`.
        """
        from statepool.report.plots import draw_paths, make_axes

        families = self.families if family is None else (family,)
        delays = self.delays if delay is None else (delay,)
        if ax is not None:
            families, delays = families[:1], delays[:1]
        axes = np.ravel(make_axes(len(families), len(delays)) if ax is None else ax)
        cells = list(product(families, delays))
        paths = [{name: self.paths[self._cell(each, name, wait)] for name in self.learners} for each, wait in cells]
        ends = [float(rows[:, -1].mean()) for panel in paths for rows in panel.values()]
        for panel, given, (each, wait) in zip(axes, paths, cells, strict=True):
            draw_paths(given, self.times, panel, "share of the rounds", f"{each}, delay {wait}", ends)
        return axes[0] if axes.size == 1 else axes[0].figure

    def __repr__(self) -> str:
        seeds = f"{len(self.seeds)} seed{'s' if len(self.seeds) > 1 else ''}"
        return f"Comparison over {seeds}, mean regret\n{self.table()}"

    def _repr_html_(self) -> str:
        return html_table(self._headings(None), self.rows())


def standard_error(values: Floats) -> float:
    """Of the mean; not a number where there is one value only."""
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else float("nan")


def threads(jobs: int) -> ThreadPoolExecutor:
    """An executor of so many threads; -1 for one per core."""
    if not isinstance(jobs, int) or (jobs < 1 and jobs != -1):
        raise ValueError(f"jobs: is {shown(jobs)}, expected a positive number, or -1 for one per core")
    return ThreadPoolExecutor(cpu_count() if jobs == -1 else jobs)


def compare(
    families: Any,
    learners: Any,
    delays: Any = (DEFAULT_DELAY,),
    seeds: Iterable[int] = range(10),
    stream: int = SEED_GAP,
    jobs: int = -1,
) -> Comparison:
    """Run every learner on the same instances and with common random numbers, on all cores.

    Parameters
    ----------
    families : Instance, callable, str, list or dict
        Instances, families (functions of a seed) or names of families: one, a list, or a dict by name. Instances
        without a name are called "instance 0", "instance 1", and so on.
    learners : Learner, str, list or dict
        Learners or names of learners: one, a list, or a dict by name.
    delays : int, array_like, Conversions, callable, list or dict
        Whole numbers, arrays of one for each round, conversions, or functions of (seed, horizon) such as
        `delays.geometric` with its mean: one, a list, or a dict by name.
    seeds : iterable of int
        Each seed makes an instance; the run's random numbers are seeded with seed + `stream`.
    stream : int
        Difference between the seeds of runs and those of instances.
    jobs : int
        How many threads; -1 for one per core.

    Returns
    -------
    Comparison
        The regret of every run, with tables and plots.

    Examples
    --------
    >>> import statepool as sp
    >>> found = sp.compare("spread", [sp.SelfTuned(), sp.ActionEXP3()], delays=[10], seeds=range(3))
    >>> found.mean("spread", "SelfTuned", 10) < found.mean("spread", "ActionEXP3", 10)
    True
    """
    makers, arms, waits = _families(families), _learners(learners), _delays(delays)
    if isinstance(seeds, str) or not isinstance(seeds, Iterable):
        raise ValueError(f"seeds: is {shown(seeds)}, expected whole numbers such as range(10)")
    numbers = tuple(check_whole(seed, "seeds") for seed in seeds)
    check_count(stream, "stream", lowest=0)
    for name, axis in (("families", makers), ("learners", arms), ("delays", waits), ("seeds", numbers)):
        if not axis:
            raise ValueError(f"{name}: is empty, expected at least one")

    def cell(family: str, seed: int) -> Floats:
        instance = makers[family](seed)
        points = np.linspace(0, instance.horizon - 1, POINTS).round().astype(int)
        found = np.empty((len(waits), len(arms), 3 + POINTS))
        for (i, wait), (j, learner) in product(enumerate(waits.values()), enumerate(arms.values())):
            begun = thread_time()
            run = simulate(instance, learner, wait(seed, instance.horizon), seed + stream)
            found[i, j, :3] = run.regret, run.loss, thread_time() - begun
            found[i, j, 3:] = run.regret_path[points]
        return found

    # Threads: the compiled loop releases the interpreter's lock, and instances need not be copied.
    with threads(jobs) as pool:
        cells = list(pool.map(lambda each: cell(*each), product(makers, numbers)))
    grid = np.array(cells).reshape(len(makers), len(numbers), len(waits), len(arms), 3 + POINTS)
    regret, loss, seconds, *paths = np.ascontiguousarray(grid.transpose(4, 0, 2, 3, 1))
    return Comparison(
        tuple(makers), tuple(waits), tuple(arms), numbers, tuple(map(repr, arms.values())), regret, loss,
        seconds, np.stack(paths, axis=-1),
    )  # fmt: skip


def _families(given: Any) -> dict[str, Callable[[int], Instance]]:
    named = _named(given, "families", "instance", str | Instance)
    return {str(name): partial(_instance, str(name), family) for name, family in named.items()}


def _instance(name: str, family: Any, seed: int) -> Instance:
    if isinstance(family, str):
        family = known_families.find(family)
    made = family(seed=seed) if callable(family) and not isinstance(family, Instance) else family
    if not isinstance(made, Instance):
        wanted = "an Instance, a function of a seed, or a name"
        raise ValueError(f"families: {name!r} gives {shown(made)}, expected {wanted}")
    return made


def _learners(given: Any) -> dict[str, Learner]:
    found = {}
    for name, learner in _named(given, "learners", "learner", str | Learner).items():
        if not isinstance(learner, Learner | str):
            raise ValueError(f"learners: {name!r} is {shown(learner)}, expected a learner such as StateEXP3()")
        found[str(name)] = make_learner(learner)
    return found


def _delays(given: Any) -> dict[Any, Callable[[int, int], Any]]:
    named = _named(given, "delays", "delays", _NUMBER | Conversions | np.ndarray)
    return {name: _waiting(delay) for name, delay in named.items()}


def _waiting(delay: Any) -> Callable[[int, int], Any]:
    if callable(delay):
        return lambda seed, horizon: delay(seed=seed, horizon=horizon)
    if not isinstance(delay, Conversions) and (not hasattr(delay, "__len__") or isinstance(delay, str)):
        check_count(delay, "delays", lowest=0)
    return lambda seed, horizon: delay


def _named(given: Any, axis: str, noun: str, single: Any) -> dict[Any, Any]:
    """One or several of something by name: the caller's names, or their own."""
    if isinstance(given, Mapping):
        return dict(given)
    several = [given] if isinstance(given, single) or callable(given) else given
    if isinstance(several, str) or not isinstance(several, Iterable):
        raise ValueError(f"{axis}: is {shown(given)}, expected one {noun}, a list of them, or a dict by name")
    found: dict[Any, Any] = {}
    for place, value in enumerate(several):
        name = _name_of(value, noun, place)
        if name in found:
            raise ValueError(f"{axis}: {name!r} is given twice, expected different ones, or a dict by name")
        found[name] = value
    return found


def _name_of(value: Any, noun: str, place: int) -> Any:
    """Strings and numbers name themselves, learners and functions (or partials) have a name; else it is the place."""
    if isinstance(value, Learner):
        return short_name(value)
    if isinstance(value, str | _NUMBER):
        return value
    named = getattr(getattr(value, "func", value), "__name__", "")
    return named if named and named != "<lambda>" else f"{noun} {place}"
