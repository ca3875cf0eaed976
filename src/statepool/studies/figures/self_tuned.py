"""SelfTuned: regret over time beside the best simple rules, every arm on every setting, and what is proved of it."""

from collections.abc import Mapping
from math import log1p

import numpy as np
from matplotlib.axes import Axes

from statepool.guarantees import theorem_a, theorem_g
from statepool.report.heat_map import draw_cell, frame_cells, short_number
from statepool.report.palette import BLUE, GREEDY, GREEN, MUTED, SELF_TUNED, STATE, SURFACE, THOMPSON, Look
from statepool.report.sheet import Sheet, label, log_axis, told
from statepool.studies.beyond import self_tuned_sweeps as study
from statepool.studies.statistics import mean_of
from statepool.studies.study import Arms, Results

KINDS: dict[str, tuple[Arms, Look]] = {
    "State-EXP3": (study.STATE, STATE),
    "best pooled greedy": (study.GREEDY, GREEDY),
    "best pooled Thompson": (study.THOMPSON, THOMPSON),
    "SelfTuned": (study.SELF, SELF_TUNED),
}
BAND = (0.1, 0.9)
TOLD = 10
"""Every so many checkpoints a value can be pointed at."""

GROUPS = ("settings", "hostile", "delays", "locked", "shifting", "resonance", "hard")
"""The sweeps of the heat map: those of about ten thousand rounds, whose excesses can be compared."""
WORST = 1_000.0
"""The excess that is drawn at full strength."""


def draw_paths(sheet: Sheet, results: Mapping[str, Results]) -> None:
    found = results["self-tuned"]
    for ax, (cell, (_, settings, _)) in zip(sheet.panels(6, 1.6, rows=2), study.PATHS.items(), strict=True):
        last = settings["horizon"]
        for name, (arms, look) in KINDS.items():
            best = min(arms, key=lambda arm: found.mean("paths", cell, study.at(arm, last)))
            _draw_path(sheet, ax, found, cell, best, name if len(arms) == 1 else f"{name}, {best}", look)
        ax.axhline(0, color=MUTED, linewidth=0.6, zorder=1)
        ax.set_xlim(0, last)
        ax.set_xticks([0, last // 2, last], ["0", f"{last / 2000:g}k", f"{last / 1000:g}k"])
        ax.set_title(cell.capitalize())
    first = sheet.figure.axes[0]
    handles = [first.plot([], [], color=look.colour, marker=look.marker)[0] for _, look in KINDS.values()]
    sheet.figure.legend(handles, list(KINDS), loc="outside upper center", ncols=2 if sheet.narrow else 4, frameon=False,
                        fontsize=7.5, handlelength=1.6, handletextpad=0.4, columnspacing=1.4)  # fmt: skip
    sheet.figure.supxlabel("round", fontsize=8)
    sheet.figure.supylabel("regret", fontsize=8)


def _draw_path(sheet: Sheet, ax: Axes, results: Results, cell: str, arm: str, name: str, look: Look) -> None:
    rounds = study.checkpoints(study.PATHS[cell][1]["horizon"])
    regrets = [results.of("paths", cell, study.at(arm, t)) for t in rounds]
    low, high = np.quantile(regrets, BAND, axis=1)
    ax.fill_between(rounds, low, high, color=look.colour, alpha=0.16, linewidth=0)
    values = [mean_of(regret) for regret in regrets]
    ax.plot(rounds, [value.number for value in values], color=look.colour, marker=look.marker, markevery=[-1],
            markersize=5, markeredgecolor=SURFACE, markeredgewidth=0.4, clip_on=False)  # fmt: skip
    for t, value in list(zip(rounds, values, strict=True))[TOLD - 1 :: TOLD]:
        sheet.target(ax, float(t), value.number, f"{name}, {cell}, after {t} rounds: {told(value)}", 9)


def draw_excess(sheet: Sheet, results: Mapping[str, Results]) -> None:
    cells = [(sweep, cell) for sweep in GROUPS for cell in study.CELLS[sweep] if "80000" not in cell]
    (ax,) = sheet.panels(1, 0.155 * len(cells) + 0.75)
    for row, (sweep, cell) in enumerate(cells):
        means = {arm: results["self-tuned"].mean(sweep, cell, arm) for arm in study.ARMS}
        best = min(means.values())
        for column, (arm, mean) in enumerate(means.items()):
            excess = mean - best
            tip = f"{arm}, {cell}: regret {mean:.1f}, {excess:.1f} above the best arm"
            strength = min(log1p(excess) / log1p(WORST), 1.0)
            size = 5.2 if sheet.narrow else 6.5
            draw_cell(sheet, ax, column, row, strength, short_number(excess), tip, negative=True, size=size)
    frame_cells(ax, list(study.ARMS), [_row_name(cell) for _, cell in cells])
    ax.tick_params(axis="x", rotation=90, top=True, labeltop=True, bottom=False, labelbottom=False)
    ax.tick_params(axis="y", labelsize=5.8 if sheet.narrow else 7)
    _rule_off(ax, cells)


def _row_name(cell: str) -> str:
    return cell.replace("half-period ", "resonance ").replace(", T=8000", "").replace(" delays", "")


def _rule_off(ax: Axes, cells: list[tuple[str, str]]) -> None:
    """A line between sweeps, and one before SelfTuned's column."""
    for row in range(1, len(cells)):
        if cells[row][0] != cells[row - 1][0]:
            ax.axhline(row - 0.5, color=MUTED, linewidth=0.5)
    ax.axvline(len(study.RULES) - 0.5, color=MUTED, linewidth=0.5)


def draw_bound(sheet: Sheet, results: Mapping[str, Results]) -> None:
    """Bounds over the horizon, on the funnel's sizes: what of "every round may be lost" is left."""
    K, S, d = 200, 6, 50
    horizons = np.geomspace(1e4, 1e8, 401).astype(int)
    bounds = {
        # name: its colour, its values, and where its name ends
        "SelfTuned (G)": (GREEN, [theorem_g(K, S, int(t), d) for t in horizons], (1.4e6, 0.25)),
        "State-EXP3 (A)": (BLUE, [theorem_a(K, int(t), d, (S - 1.0) * t).value for t in horizons], (1.4e6, 0.018)),
    }
    (ax,) = sheet.panels(1, 2.6)
    log_axis(ax.xaxis, [1e4, 1e5, 1e6, 1e7, 1e8], [f"$10^{power}$" for power in range(4, 9)])
    log_axis(ax.yaxis, [0.01, 0.1, 1], ["1 %", "10 %", "100 %"])
    for name, (colour, values, place) in bounds.items():
        shares = np.minimum(np.array(values) / horizons, 1.0)
        ax.plot(horizons, shares, color=colour)
        for i in range(0, horizons.size, 50):
            sheet.target(ax, horizons[i], shares[i], f"{name}, T={horizons[i]}: {values[i]:.0f}", 9)
        label(ax, *place, name, colour, (0, 0), ha="right")
    ax.set(xlim=(1e4, 1e8), ylim=(2e-3, 1.6), xlabel="horizon $T$", ylabel="bound over $T$")
