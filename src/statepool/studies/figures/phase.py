"""The phase diagram: gain over overlap and delay, for three ways of pooling."""

from collections.abc import Mapping
from math import sqrt

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from statepool.studies import phase_diagram as study
from statepool.studies.figures.palette import CHILL, HEAT, INK
from statepool.studies.figures.sheet import Sheet, told
from statepool.studies.statistics import mean_of
from statepool.studies.study import Results, Value

TITLES = {"known": "Map known", "plug-in": "Map estimated", "grouped": "States merged in pairs"}


def draw_phase_diagram(sheet: Sheet, results: Mapping[str, Results]) -> None:
    found = results["phase-diagram"]
    gains = {arm: _gains(found, arm) for arm in TITLES}
    most = max(abs(value.number) for values in gains.values() for value in values.values())
    for ax, (arm, title) in zip(sheet.panels(3, 2.0), TITLES.items(), strict=True):
        for (column, row), value in gains[arm].items():
            overlap, delay = study.OVERLAPS[row], study.DELAYS[column]
            text = f"{title.lower()}, overlap {overlap:g}, d={delay}: gain {told(value)}"
            # The square root keeps small gains visible; the number says the rest.
            draw_cell(
                sheet, ax, column, row, sqrt(abs(value.number) / most), f"{value.number:.0f}", text, value.number < 0
            )
        frame_cells(ax, [f"{d}" for d in study.DELAYS], [f"{o:g}" for o in study.OVERLAPS])
        ax.set_xlabel("delay $d$")
        ax.set_title(title)
        if sheet.narrow or arm == "known":
            ax.set_ylabel("overlap")


def _gains(results: Results, arm: str) -> dict[tuple[int, int], Value]:
    found = {}
    for row, overlap in enumerate(study.OVERLAPS):
        for column, delay in enumerate(study.DELAYS):
            cell = f"overlap {overlap:g} d={delay}"
            found[column, row] = mean_of(results.of("grid", cell, "action") - results.of("grid", cell, arm))
    return found


def draw_cell(
    sheet: Sheet, ax: Axes, column: int, row: int, strength: float, text: str, tip: str, negative: bool = False,
    size: float = 7,
) -> None:  # fmt: skip
    """A cell of a heat map. Strength is opacity, so that the map sits on a light page and on a dark one."""
    colour = CHILL if negative else HEAT
    box = Rectangle(
        (column - 0.5, row - 0.5), 1, 1, facecolor=colour, alpha=0.04 + 0.86 * strength, linewidth=0, antialiased=False
    )
    ax.add_patch(box)
    ax.text(column, row, text.replace("-", "−"), ha="center", va="center_baseline", fontsize=size, color=INK)
    sheet.target_box(ax, column - 0.5, row - 0.5, 1, 1, tip)


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
