"""Heat maps: cells whose strength is opacity, each with its number and its text."""

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from statepool.report.palette import CHILL, HEAT, INK
from statepool.report.sheet import Sheet


def draw_cell(
    sheet: Sheet, ax: Axes, column: int, row: int, strength: float, text: str, tip: str, negative: bool = False,
    size: float = 7,
) -> None:  # fmt: skip
    """A cell of a heat map. Strength is opacity, so that the map sits on a light page and on a dark one."""
    colour = CHILL if negative else HEAT
    opacity = 0.04 + 0.86 * strength
    box = Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=colour, alpha=opacity, linewidth=0, antialiased=False)
    # What lies within the axes has no say in the limits or the layout, which `frame_cells` and its names decide: to ask
    # each of some hundred cells takes half of the time that drawing does.
    box.set_in_layout(False)
    ax.add_artist(box)
    number = ax.text(column, row, text.replace("-", "−"), ha="center", va="center_baseline", fontsize=size, color=INK)
    number.set_in_layout(False)
    sheet.target_box(ax, column - 0.5, row - 0.5, 1, 1, tip)


def short_number(number: float) -> str:
    """A whole number as a cell has room for it."""
    return f"{number:.0f}" if abs(number) < 999.5 else f"{number / 1000:.1f}k"


def frame_cells(ax: Axes, columns: list[str], rows: list[str]) -> None:
    """Axes of a heat map: names, no ticks, no grid, first row on top."""
    ax.grid(False)
    ax.set_xlim(-0.5, len(columns) - 0.5)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
