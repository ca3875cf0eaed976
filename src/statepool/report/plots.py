"""Regret over time, for `Run.plot` and `Comparison.plot`, in the report's colours and on any axes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from statepool.checks import Floats
from statepool.extras import explained
from statepool.report.palette import AMBER, BLUE, GREEN, INK, MUTED, PURPLE, VERMILLION

try:
    from statepool.report.sheet import TEXT_WIDTH, styled
except ImportError as error:
    raise explained("plot", error) from None

CYCLE = (GREEN, BLUE, VERMILLION, PURPLE, AMBER, MUTED, INK)
DASHES = ("-", "--", "-.", ":")
BAND = 2.0
"""Standard errors to either side."""
ON_ZERO = 0.05
"""A line that ends below this share of the highest one would lie on zero: the axis becomes logarithmic."""


def make_axes(rows: int, columns: int) -> Any:
    """New axes, an array of them where there are several."""
    from matplotlib import pyplot as plt

    width = TEXT_WIDTH * min(1 + 0.5 * (columns - 1), 2.5)
    with styled():
        size = width, rows * 0.6 * TEXT_WIDTH
        return plt.subplots(rows, columns, figsize=size, layout="constrained", sharey="row")[1]


def draw_paths(
    paths: Mapping[str, Floats], times: Any, ax: Any = None, xlabel: str = "rounds", title: str | None = None,
    ends: Sequence[float] = (),
) -> Any:  # fmt: skip
    """A line for each name, the mean of its rows, with a band where there are several.

    `ends` are where the lines of all panels of the figure end, so that they have one scale.
    """
    ax = make_axes(1, 1) if ax is None else ax
    with styled():
        for i, (name, rows) in enumerate(paths.items()):
            mean, style = rows.mean(axis=0), {"color": CYCLE[i % len(CYCLE)]}
            ax.plot(times, mean, label=name, linestyle=DASHES[i // len(CYCLE) % len(DASHES)], **style)
            if rows.shape[0] > 1:
                error = BAND * rows.std(axis=0, ddof=1) / np.sqrt(rows.shape[0])
                ax.fill_between(times, mean - error, mean + error, alpha=0.18, linewidth=0, **style)
        sizes = np.abs(ends or [rows[:, -1].mean() for rows in paths.values()])
        if sizes.min() < ON_ZERO * sizes.max():
            # Linear around zero, since regret can be negative; up to a power of ten, or ticks lie on each other.
            ax.set_yscale("symlog", linthresh=10 ** np.floor(np.log10(max(sizes.min(), 1e-3 * sizes.max()))))
        ax.set(xlabel=xlabel, ylabel="regret")
        ax.label_outer()
        ax.margins(x=0.01)
        if title is not None:
            ax.set_title(title)
        ax.legend()
    return ax
