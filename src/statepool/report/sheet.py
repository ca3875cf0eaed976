"""The surface a figure is drawn on: its shape, its style, and what a reader sees on pointing at a value.

A figure is drawn in two shapes, with its panels side by side at the paper's width or stacked for a phone, by the same
function. Every value carries an invisible target whose gid leads from the SVG back to its text.
"""

from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from statepool.report.palette import FAINT, INK, MUTED, SURFACE, Look
from statepool.report.values import Value

TEXT_WIDTH, PHONE_WIDTH = 5.5, 3.5
"""Inches: the text width of the paper, and of a phone held upright at the same size of type."""

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
    "figure.constrained_layout.hspace": 0.05, "legend.fancybox": False, "legend.framealpha": 1,
    "legend.edgecolor": "none",
    # The same bytes every time; fonts travel with the file.
    "svg.hashsalt": "statepool", "svg.fonttype": "path", "pdf.fonttype": 42,
}  # fmt: skip
_CANVASES = {"svg": FigureCanvasSVG, "pdf": FigureCanvasPdf, "png": FigureCanvasAgg}
_ANONYMOUS: dict[str, dict[str, None]] = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "ModDate": None},
    "png": {"Software": None},
}


class Sheet:
    """One figure in one shape. `tips[i]` is the text of the target with gid `tip-i`."""

    def __init__(self, narrow: bool = False) -> None:
        self.narrow = narrow
        self.tips: list[str] = []
        self.figure = Figure(layout="constrained")

    def panels(
        self, count: int, height: float, widths: Sequence[float] | None = None, rows: int = 1, **sharing: Any
    ) -> list[Axes]:
        """Panels in so many rows, or one above the other, each `height` inches tall."""
        rows, columns = (count, 1) if self.narrow else (rows, -(-count // rows))
        self.figure.set_size_inches(PHONE_WIDTH if self.narrow else TEXT_WIDTH, height * rows)
        ratios = None if self.narrow else widths
        return list(self.figure.subplots(rows, columns, squeeze=False, width_ratios=ratios, **sharing).flat)

    def target(self, ax: Axes, x: float, y: float, text: str, size: float = 11) -> None:
        """A spot around a value that shows `text` when pointed at."""
        ax.plot([x], [y], "o", color="none", markersize=size, gid=self._gid(text), zorder=10, in_layout=False)

    def target_box(self, ax: Axes, x: float, y: float, width: float, height: float, text: str) -> None:
        """A rectangle, in data units, that shows `text` when pointed at."""
        style: dict[str, Any] = {"facecolor": "none", "edgecolor": "none", "zorder": 10, "in_layout": False}
        ax.add_artist(Rectangle((x, y), width, height, gid=self._gid(text), **style))

    def _gid(self, text: str) -> str:
        self.tips.append(text)
        return f"tip-{len(self.tips) - 1}"

    def series(
        self,
        ax: Axes,
        xs: Sequence[float],
        values: Sequence[Value],
        look: Look,
        name: str,
        at: Iterable[str],
        **style: Any,
    ) -> None:
        """A line through values with bars of one standard error; `name` and `at` tell what a value is."""
        ys, errors = [value.number for value in values], [value.se or 0.0 for value in values]
        plain: dict[str, Any] = {"marker": look.marker, "markeredgecolor": SURFACE, "markeredgewidth": 0.5}
        ax.errorbar(xs, ys, yerr=errors if any(errors) else None, color=look.colour, elinewidth=0.9, **(plain | style))
        for x, value, place in zip(xs, values, at, strict=True):
            self.target(ax, x, value.number, f"{name}, {place}: {told(value)}")

    def bound(
        self, ax: Axes, xs: Sequence[float], values: Sequence[Value], look: Look, name: str, at: Iterable[str]
    ) -> None:
        """The same for what is proved and not measured: dashed."""
        edge = {"markeredgecolor": look.colour, "markeredgewidth": 1}
        self.series(ax, xs, values, look, name, at, linestyle="--", **edge)

    def saved(self, kind: str) -> bytes:
        """The figure as the bytes of an SVG, PDF or PNG file."""
        engine, buffer = self.figure.get_layout_engine(), BytesIO()
        if engine is not None:
            # Space is shared out once, not again for every kind of file.
            engine.execute(self.figure)
            self.figure.set_layout_engine("none")
        # Straight to the canvas: `savefig` would draw everything twice.
        canvas = _CANVASES[kind](self.figure)
        getattr(canvas, f"print_{kind}")(buffer, metadata=_ANONYMOUS[kind])
        return buffer.getvalue()


def told(value: Value) -> str:
    """A value with its standard error, as a sentence would have it."""
    return value.shown() if value.se is None else f"{value.shown()}\u00a0±\u00a0{value.se:.{value.digits}f}"


def label(
    ax: Axes, x: float, y: float, text: str, colour: str, shift: tuple[float, float] = (5, 0), **style: Any
) -> None:
    """Text beside a point, shifted by so many typographic points: a line's name, in its colour."""
    plain: dict[str, Any] = {"va": "center", "ha": "left" if shift[0] >= 0 else "right", "fontsize": 7.5}
    # Above the grid, of which it shows nothing, and below what is drawn, of which it hides nothing.
    plain |= {"zorder": 1.5, "bbox": {"facecolor": SURFACE, "edgecolor": "none", "pad": 0.8}}
    # Left out of the layout: a label must not squeeze its own axes.
    ax.annotate(
        text, (x, y), xytext=shift, textcoords="offset points", color=colour, in_layout=False, **(plain | style)
    )


def leave_room(ax: Axes, left: float, right: float, far: float) -> None:
    """Leave room for the names of lines: x goes on to `far`, its axis and the lines of the grid end at `right`."""
    ax.set_xlim(left, far)
    ax.grid(False)
    ax.hlines(ax.get_yticks(), left, right, color=FAINT, linewidth=0.5, zorder=0)
    ax.spines["bottom"].set_bounds(left, right)


def log_axis(axis: Any, ticks: Sequence[float], names: Sequence[str] | None = None) -> None:
    """A logarithmic axis that marks these values and nothing between."""
    (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter(names or [f"{tick:g}" for tick in ticks]))
    axis.set_minor_locator(NullLocator())


def styled() -> Any:
    """The style, for as long as a figure is drawn and saved."""
    return mpl.rc_context(STYLE)  # type: ignore[arg-type]
