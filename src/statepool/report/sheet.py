"""Figures: the surface they are drawn on, their style, and the texts shown when a reader points at a value.

Every value carries an invisible target whose gid leads from the SVG to its text.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

from statepool.report.palette import CHILL, FAINT, HEAT, INK, MUTED, SURFACE, Look

TEXT_WIDTH = 5.5
"""Inches: the text width of the paper."""

STYLE: dict[str, Any] = {
    "font.family": "STIXGeneral", "mathtext.fontset": "stix", "font.size": 8, "axes.titlesize": 8.5,
    "axes.labelsize": 8, "xtick.labelsize": 7.5, "ytick.labelsize": 7.5, "axes.titlelocation": "left",
    "axes.titlepad": 5, "text.color": INK, "axes.labelcolor": INK, "axes.titlecolor": INK,
    "axes.edgecolor": MUTED, "xtick.color": MUTED, "ytick.color": MUTED, "xtick.labelcolor": INK,
    "ytick.labelcolor": INK, "axes.facecolor": SURFACE, "figure.facecolor": SURFACE,
    "savefig.facecolor": SURFACE, "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6,
    "xtick.major.width": 0.6, "ytick.major.width": 0.6, "xtick.major.size": 2.5, "ytick.major.size": 2.5,
    "axes.grid": True, "axes.grid.axis": "y", "grid.color": FAINT, "grid.linewidth": 0.5,
    "axes.axisbelow": True, "lines.linewidth": 1.3, "lines.markersize": 4.2, "axes.unicode_minus": True,
    "figure.constrained_layout.h_pad": 0.03, "figure.constrained_layout.w_pad": 0.03,
    "figure.constrained_layout.hspace": 0.05, "legend.fancybox": False, "legend.frameon": False,
    "legend.fontsize": 7, "legend.title_fontsize": 7, "legend.handlelength": 1.6, "legend.handletextpad": 0.4,
    "legend.columnspacing": 1.2, "legend.labelspacing": 0.3, "legend.borderpad": 0.1,
    # Identical bytes on every run; fonts are embedded.
    "svg.hashsalt": "statepool", "svg.fonttype": "path", "pdf.fonttype": 42,
}  # fmt: skip
_NO_DATES = {"svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None, "ModDate": None}}


@dataclass(frozen=True)
class Value:
    """A number, with the standard error of its mean over seeds where it has one."""

    number: float
    se: float | None = None
    digits: int = 1

    def shown(self) -> str:
        return f"{self.number:.{self.digits}f}"

    def with_error(self) -> str:
        """The number with its standard error, for a sentence."""
        return self.shown() if self.se is None else f"{self.shown()}\u00a0±\u00a0{self.se:.{self.digits}f}"


Rows = dict[str, dict[str, Value]]
"""A table: values by row and column."""


class Sheet:
    """One figure. `tips[i]` is the text of the target with gid `tip-i`."""

    def __init__(self) -> None:
        self.tips: list[str] = []
        self.figure = Figure(layout="constrained")

    def panels(
        self, count: int, height: float, widths: Sequence[float] | None = None, rows: int = 1, **sharing: Any
    ) -> list[Axes]:
        """Panels in so many rows, each `height` inches tall."""
        self.figure.set_size_inches(TEXT_WIDTH, height * rows)
        return list(self.figure.subplots(rows, count // rows, squeeze=False, width_ratios=widths, **sharing).flat)

    def target(self, ax: Axes, x: float, y: float, text: str, size: float = 11) -> None:
        """A spot around a value that shows `text` when pointed at."""
        ax.plot([x], [y], "o", color="none", markersize=size, gid=self._gid(text), zorder=10, in_layout=False)

    def _gid(self, text: str) -> str:
        self.tips.append(text)
        return f"tip-{len(self.tips) - 1}"

    def lines(
        self, ax: Axes, xs: Sequence[float], rows: Rows, looks: Mapping[str, Look], log: str = "", proved: bool = False,
        legend: bool = True, **axes: Any,
    ) -> None:  # fmt: skip
        """A line for each column named in `looks` through the rows of a table, with bars of one standard error.

        `log` names the logarithmic axes ("x", "y" or "xy"); lines that are `proved` are dashed; `axes` are set on `ax`.
        """
        for name, look in looks.items():
            values = [row[name] for row in rows.values()]
            errors = [value.se or 0.0 for value in values]
            style: dict[str, Any] = {"marker": look.marker, "markeredgecolor": SURFACE, "markeredgewidth": 0.5}
            if proved:
                style |= {"linestyle": "--", "markeredgecolor": look.colour, "markeredgewidth": 1}
            bars = errors if any(errors) else None
            ys = [value.number for value in values]
            ax.errorbar(xs, ys, yerr=bars, color=look.colour, elinewidth=0.9, label=name, **style)
            for x, value, place in zip(xs, values, rows, strict=True):
                self.target(ax, x, value.number, f"{name}, {place}: {value.with_error()}")
        if "x" in log:
            log_axis(ax.xaxis, xs)
        if "y" in log:
            log_axis(ax.yaxis)
        ax.set(**axes)
        if legend:
            ax.legend()

    def heat_map(
        self, ax: Axes, rows: Rows, strength: Callable[[Value], float], text: Callable[[Value], str] | None = None,
        size: float = 7,
    ) -> None:  # fmt: skip
        """A table as a heat map: blue where `strength` (-1 to 1) is above 0, orange below."""
        columns = list(next(iter(rows.values())))
        cell: dict[str, Any] = {"linewidth": 0, "antialiased": False, "in_layout": False}
        # Column by column, so that a map in two parts has its values in the order of the whole.
        for j, column in enumerate(columns):
            for i, (row, values) in enumerate(rows.items()):
                value = values[column]
                power, shown = strength(value), value.shown() if text is None else text(value)
                # Strength is opacity, so that the map fits a light page and a dark one.
                look: dict[str, Any] = {"facecolor": CHILL if power < 0 else HEAT, "alpha": 0.04 + 0.86 * abs(power)}
                ax.add_artist(Rectangle((j - 0.5, i - 0.5), 1, 1, **cell, **look))
                number = ax.text(j, i, shown.replace("-", "−"), ha="center", va="center_baseline", fontsize=size)
                # Cells need no place in the layout: measuring some hundreds would take half of the time.
                number.set(color=INK, in_layout=False)
                gid = self._gid(f"{row}, {column}: {value.with_error()}")
                ax.add_artist(Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor="none", zorder=10, gid=gid, **cell))
        ax.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5))
        ax.set_xticks(range(len(columns)), columns)
        ax.set_yticks(range(len(rows)), list(rows))
        ax.grid(False)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)

    def saved(self, kind: str) -> bytes:
        """The figure as the bytes of an SVG or PDF file."""
        buffer = BytesIO()
        with styled():
            self.figure.savefig(buffer, format=kind, metadata=_NO_DATES[kind])
        return buffer.getvalue()


def log_axis(axis: Any, ticks: Sequence[float] = ()) -> None:
    """A logarithmic axis with these ticks only, or with 1, 2 and 5 of each power of ten."""
    (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")
    axis.set_major_locator(FixedLocator(ticks) if ticks else LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(lambda x, _: f"{x:g}" if x < 1e4 else f"{x / 1e3:g}k" if x < 1e6 else f"{x / 1e6:g}M")
    axis.set_minor_locator(NullLocator())


def styled() -> Any:
    """The style, for as long as a figure is drawn and saved."""
    return mpl.rc_context(STYLE)  # type: ignore[arg-type]
