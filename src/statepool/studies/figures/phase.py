"""The phase diagram: gain over overlap and delay, for three ways of pooling."""

from collections.abc import Mapping
from math import sqrt

from statepool.report.heat_map import draw_cell, frame_cells
from statepool.report.sheet import Sheet, told
from statepool.report.values import Value
from statepool.studies.paper import phase_diagram as study
from statepool.studies.statistics import mean_of
from statepool.studies.study import Results

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
        ax.set(xlabel="delay $d$", title=title)
        if sheet.narrow or arm == "known":
            ax.set_ylabel("overlap")


def _gains(results: Results, arm: str) -> dict[tuple[int, int], Value]:
    found = {}
    for row, overlap in enumerate(study.OVERLAPS):
        for column, delay in enumerate(study.DELAYS):
            cell = f"overlap {overlap:g} d={delay}"
            found[column, row] = mean_of(results.of("grid", cell, "action") - results.of("grid", cell, arm))
    return found
