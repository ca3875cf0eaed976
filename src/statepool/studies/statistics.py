"""The few statistics that the studies report."""

import numpy as np

from statepool.checks import Floats
from statepool.report.values import Value
from statepool.studies.study import Results


def standard_error(numbers: Floats) -> float | None:
    """Of the mean over seeds; None where one seed leaves it unknown."""
    return float(numbers.std(ddof=1) / np.sqrt(numbers.size)) if numbers.size > 1 else None


def mean_of(numbers: Floats, digits: int = 1, over: float = 1.0) -> Value:
    """The mean over seeds, divided by a scale."""
    error = standard_error(numbers)
    return Value(float(numbers.mean()) / over, None if error is None else error / over, digits)


def means(results: Results, sweep: str, cell: str, names: tuple[str, ...], digits: int = 1) -> dict[str, Value]:
    """The mean over seeds of several named numbers."""
    return {name: mean_of(results.of(sweep, cell, name), digits) for name in names}


def gain(results: Results, sweep: str, cell: str, better: str, worse: str, name: str = "gain") -> dict[str, Value]:
    """How much less regret one arm has, with the standard error of the paired difference as a column of its own."""
    saved = mean_of(results.of(sweep, cell, worse) - results.of(sweep, cell, better))
    return {name: saved} | ({} if saved.se is None else {f"{name} ±": Value(saved.se)})


def percent_saved(results: Results, sweep: str, cell: str, better: str, worse: str) -> Value:
    """The mean gain in per cent of the worse arm's mean regret, its error that of the paired difference."""
    high = results.of(sweep, cell, worse)
    return mean_of(high - results.of(sweep, cell, better), over=float(high.mean()) / 100)


def saved_share(results: Results, sweep: str, cell: str, better: str, worse: str) -> Value:
    """The mean gain as a percentage of the worse arm's mean regret: of the printed figures, as the paper takes it."""
    high, low = results.of(sweep, cell, worse), results.of(sweep, cell, better)
    share = 100 * round(float(high.mean() - low.mean()), 1) / round(float(high.mean()), 1)
    return Value(share, _share_error(high, low))


def _share_error(high: Floats, low: Floats) -> float | None:
    # The jackknife: a ratio of means has no plain standard error.
    n = high.size
    if n < 2:
        return None
    left_out = 100 * (1 - (low.sum() - low) / (high.sum() - high))
    return float(np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum()))


def growth_exponent(horizons: list[int], regrets: list[float]) -> float:
    """The power of the horizon that mean regret grows with: a straight line through the logarithms."""
    return float(np.polyfit(np.log(horizons), np.log(regrets), 1)[0])
