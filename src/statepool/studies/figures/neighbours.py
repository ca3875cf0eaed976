"""The neighbourhood: every learner on every setting against State-EXP3, and regrets against what is proved of them."""

from collections.abc import Mapping
from math import log2

from matplotlib.axes import Axes

from statepool.report.heat_map import draw_cell, frame_cells, short_number
from statepool.report.palette import INK, MUTED, STATE
from statepool.report.sheet import Sheet, log_axis
from statepool.studies.beyond import neighbours as study
from statepool.studies.study import Results

FULL_STRENGTH = 4.0
"""Doublings (or halvings) of State-EXP3's regret that are drawn at full strength."""

SHORT = {
    "dirichlet": "dir.", "switching": "switch", "hostile, ": "", "funnel 20k, ": "funnel 20k ",
    "near-unreachable": "near-unreach.", "heavy-tailed": "heavy", "moving map, ": "map ",
}  # fmt: skip


def draw_heat_map(sheet: Sheet, results: Mapping[str, Results]) -> None:
    """Rows are learners, columns settings, the number in a cell the regret; two maps on a phone, to be legible."""
    found, cells = results["neighbours"], study.all_cells()
    parts = [cells[: len(cells) // 2], cells[len(cells) // 2 :]] if sheet.narrow else [cells]
    for ax, part in zip(sheet.panels(len(parts), 0.17 * len(study.ARMS) + 0.95), parts, strict=True):
        _draw_cells(sheet, ax, found, part)


def _draw_cells(sheet: Sheet, ax: Axes, found: Results, cells: list[tuple[str, str]]) -> None:
    for column, (sweep, cell) in enumerate(cells):
        state = found.mean(sweep, cell, "State-EXP3")
        for row, arm in enumerate(study.ARMS):
            regret = found.mean(sweep, cell, arm)
            doublings = log2(study.ratio_to_state(regret, state))
            tip = f"{arm}, {cell}: regret {regret:.0f}, State-EXP3's {state:.0f}"
            strength = min(abs(doublings) / FULL_STRENGTH, 1.0)
            draw_cell(sheet, ax, column, row, strength, short_number(regret), tip, doublings > 0, 4.4)
    frame_cells(ax, [_name(cell) for _, cell in cells], list(study.ARMS))
    ax.tick_params(axis="x", rotation=90, top=True, labeltop=True, bottom=False, labelbottom=False, labelsize=6)
    ax.tick_params(axis="y", labelsize=5.5 if sheet.narrow else 6.5)
    ax.axhline(study.OF_ACTIONS - 0.5, color=MUTED, linewidth=0.6)


def _name(cell: str) -> str:
    for long, short in SHORT.items():
        cell = cell.replace(long, short)
    return cell.replace("d=", "")


def draw_bounds(sheet: Sheet, results: Mapping[str, Results]) -> None:
    """One panel a learner: its mean regret, and what is proved of it, on each setting."""
    found = results["neighbours"]
    axes = sheet.panels(len(study.COVERED), 2.0, sharey=True)
    marks = ("_", "x", "+")
    for ax, (arm, covered) in zip(axes, study.COVERED.items(), strict=True):
        log_axis(ax.yaxis, [10, 100, 1_000, 10_000], ["10", "100", "1 000", "10 000"])
        for x, cell in enumerate(study.BOUNDED):
            regret = found.mean("bounds", cell, arm)
            ax.plot([x], [max(regret, 1.0)], STATE.marker, color=STATE.colour)
            sheet.target(ax, x, max(regret, 1.0), f"{arm}, {cell}: regret {regret:.0f}")
            for mark, bound in zip(marks, covered, strict=False):
                value = found.mean("bounds", cell, bound)
                ax.plot([x], [value], mark, color=INK, markersize=6)
                sheet.target(ax, x, value, f"{bound}, {cell}: {value:.0f}")
        ax.set_xticks(
            range(len(study.BOUNDED)), [_name(cell).replace("20k ", "") for cell in study.BOUNDED], rotation=90
        )
        ax.set_xlim(-0.6, len(study.BOUNDED) - 0.4)
        ax.set_title(arm, fontsize=7.5)
        names = [bound.replace("Theorem ", "") if len(covered) > 1 else bound for bound in covered]
        ax.set_xlabel("  ".join(f"{_SYMBOL[m]} {name}" for m, name in zip(marks, names, strict=False)), fontsize=6.5)


_SYMBOL = {"_": "–", "x": "×", "+": "+"}
