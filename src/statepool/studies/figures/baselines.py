"""Seven rules on nine settings, relative to the best of each, and how regret grows where one of them fails."""

from collections.abc import Mapping
from math import log

from matplotlib.axes import Axes

from statepool.report.heat_map import draw_cell, frame_cells
from statepool.report.palette import ACTION, BEST_STATE, INK, MUTED, STATE
from statepool.report.sheet import Sheet, label, leave_room, log_axis
from statepool.studies.paper import baselines as study
from statepool.studies.statistics import growth_exponent, mean_of
from statepool.studies.study import Results

LOOKS = {"best-state": BEST_STATE, "action": ACTION, "state": STATE}
WORST = 12.0
"""The ratio that is drawn at full strength."""


def draw_baselines(sheet: Sheet, results: Mapping[str, Results]) -> None:
    left, right = sheet.panels(2, 2.35, widths=(1.75, 1))
    _draw_settings(sheet, left, results["baselines"])
    _draw_growth(sheet, right, results["baselines"])


def _draw_settings(sheet: Sheet, ax: Axes, results: Results) -> None:
    arms = dict.fromkeys(study.ARMS, "settings") | dict.fromkeys(study.SIMPLE, "simple")
    for column, setting in enumerate(study.SETTINGS):
        best = min(results.mean("settings", setting, arm) for arm in study.ARMS)
        for row, (arm, sweep) in enumerate(arms.items()):
            regret = results.mean(sweep, setting, arm)
            ratio = regret / best
            tip = f"{arm}, {setting}: regret {regret:.1f}, {ratio:.2f} times the best of the paper's rules"
            # Regret below zero is possible: losses drift, and the comparator may not.
            strength = min(abs(log(max(ratio, 1 / WORST))) / log(WORST), 1)
            draw_cell(sheet, ax, column, row, strength, f"{ratio:.{1 if ratio >= 0.95 else 2}f}", tip, ratio > 1)
    names = [arm + (" (ours)" if arm in study.SIMPLE else "") for arm in arms]
    frame_cells(ax, [str(delay) for _, _, delay in study.SETTINGS.values()], names)
    ax.axhline(len(study.ARMS) - 0.5, color=MUTED, linewidth=0.6)
    families = list(dict.fromkeys(setting.split()[0] for setting in study.SETTINGS))
    for family in families:
        columns = [i for i, setting in enumerate(study.SETTINGS) if setting.startswith(family)]
        ax.text(sum(columns) / len(columns), -0.62, family, ha="center", va="bottom", fontsize=7.2, color=INK)
    ax.set_xlabel("family (above) and delay (below)")
    ax.set_title("Regret, in multiples of the paper's best rule", pad=15)


def _draw_growth(sheet: Sheet, ax: Axes, results: Results) -> None:
    horizons = study.HORIZONS
    log_axis(ax.xaxis, horizons, [f"{t / 1000:g}k" if t != 5_000 else "" for t in horizons])
    log_axis(ax.yaxis, [200, 500, 1000, 2000, 5000])
    places = [f"T={t}" for t in horizons]
    for arm, look in LOOKS.items():
        values = [mean_of(results.of("growth", place, arm)) for place in places]
        sheet.series(ax, horizons, values, look, arm, places)
        exponent = growth_exponent(list(horizons), [value.number for value in values])
        shift = {"action": 3, "state": -5}.get(arm, 0)
        text = f"{arm}\n$T^{{\\,{exponent:.2f}}}$"
        label(ax, horizons[-1], values[-1].number, text, look.colour, (5, shift), linespacing=0.95)
    leave_room(ax, 2_000, horizons[-1] * 1.2, 200_000)
    ax.set_xlabel("horizon $T$", loc="left")
    ax.set_title("Growth on spread, $d=10$", pad=15 if not sheet.narrow else None)
