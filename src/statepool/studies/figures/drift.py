"""The drift channel: regret on the hard family against the scale of Theorem 2."""

from collections.abc import Mapping

from matplotlib.axes import Axes

from statepool.report.palette import ACTION, FAINT, INK, MUTED, ORACLE, STATE, SURFACE, UNIFORM
from statepool.report.sheet import Sheet, label, log_axis, told
from statepool.report.values import Value
from statepool.studies.paper import drift_scaling as study
from statepool.studies.study import Results

LOOKS = {"uniform": UNIFORM, "action": ACTION, "state": STATE, "greedy-stale": ORACLE}
NAMES = {
    "uniform": "uniform",
    "action": "action-level",
    "state": "State-EXP3",
    "greedy-stale": "greedy on the stale losses",
}
GROUPS: tuple[tuple[str, tuple[float, ...], str], ...] = (
    ("$d$", study.DELAYS, "d={} eps=0.1 J=4"),
    (r"$\epsilon$", study.AMPLITUDES, "d=50 eps={} J=4"),
    ("$J$", study.DRIFTING, "d=50 eps=0.1 J={}"),
)
Rows = Mapping[str, Mapping[str, Value]]


def draw_drift_scaling(sheet: Sheet, results: Mapping[str, Results]) -> None:
    left, right = sheet.panels(2, 2.5, widths=(1, 1.5))
    found = results["drift-scaling"]
    rows, saturated = study.rows_of(found, "cells", study.GRID), study.rows_of(found, "saturated", study.SATURATED_GRID)
    _draw_regret(sheet, left, rows, saturated)
    _draw_ratios(sheet, right, rows)


def _draw_regret(sheet: Sheet, ax: Axes, rows: Rows, saturated: Rows) -> None:
    log_axis(ax.xaxis, [50, 100, 200, 400, 800])
    log_axis(ax.yaxis, [10, 20, 50, 100, 200, 500])
    scales = [row["scale"].number for row in (*rows.values(), *saturated.values())]
    lowest, highest = min(scales) * 0.9, max(scales) * 1.1
    middle = sum(row["uniform"].number for row in rows.values()) / len(rows)
    ax.plot([lowest, highest], [middle * lowest, middle * highest], color=INK, linestyle="--", linewidth=0.8)
    label(ax, 450, middle * 450, "slope one", INK, (10, -5))
    for policy, look in LOOKS.items():
        for cells, fill in ((rows, look.colour), (saturated, SURFACE)):
            xs = [row["scale"].number for row in cells.values()]
            ys = [row[policy].number * x for row, x in zip(cells.values(), xs, strict=True)]
            ax.plot(xs, ys, look.marker, markerfacecolor=fill, markeredgecolor=look.colour, markersize=3.2,
                    markeredgewidth=0.7)  # fmt: skip
            for cell, x, y in zip(cells, xs, ys, strict=True):
                sheet.target(ax, x, y, f"{NAMES[policy]}, {cell}: regret {y:.1f}, scale {x:.0f}", 6)
    ax.set(xlabel=r"$\sqrt{d\,E_2\,\min\{1+\log J,\,T/d\}}$", ylabel="regret", title="Regret follows the scale")
    ax.text(
        0.97, 0.04, "hollow: saturated branch (ours)", transform=ax.transAxes, fontsize=6.8, color=MUTED, ha="right"
    )


def _draw_ratios(sheet: Sheet, ax: Axes, rows: Rows) -> None:
    every = [row[policy].number for row in rows.values() for policy in LOOKS]
    ax.axhspan(min(every), max(every), color=FAINT, alpha=0.45, linewidth=0)
    start, ticks, names = 0.0, [], []
    for symbol, numbers, template in GROUPS:
        ax.text(
            start + (len(numbers) - 1) / 2, 1.0, symbol, transform=ax.get_xaxis_transform(), ha="center", va="bottom"
        )
        for i, number in enumerate(numbers):
            cell = template.format(f"{number:g}")
            for j, (policy, look) in enumerate(LOOKS.items()):
                value, x = rows[cell][policy], start + i + (j - 1.5) * 0.16
                ax.plot([x], [value.number], look.marker, color=look.colour, markersize=3.4, markeredgewidth=0.4)
                sheet.target(ax, x, value.number, f"{NAMES[policy]}, {cell}: {told(value)} of the scale", 6)
            ticks.append(start + i)
            names.append(f"{number:g}".removeprefix("0"))
        start += len(numbers) + 0.8
    ax.set_xticks(ticks, names, fontsize=7)
    ax.tick_params(axis="x", length=0)
    ax.set(ylim=(0, 0.72), xlabel="value of the swept parameter", ylabel="regret / scale")
    handles = [
        ax.plot([], [], look.marker, color=look.colour, markersize=3.4, markeredgewidth=0.4)[0]
        for look in LOOKS.values()
    ]
    ax.legend(handles, list(NAMES.values()), fontsize=6.8, loc="upper left", ncols=2, handlelength=1,
              columnspacing=1, handletextpad=0.3)  # fmt: skip
