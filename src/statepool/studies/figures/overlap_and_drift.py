"""Overlap and drift: what hints save over periods, delays, overlap and horizons, with the bounds."""

from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np
from matplotlib.axes import Axes

from statepool.report.heat_map import draw_cell, frame_cells
from statepool.report.palette import GREEN, MUTED, STATE, Look
from statepool.report.sheet import Sheet, label, log_axis, told
from statepool.studies.beyond import overlap_and_drift as study
from statepool.studies.statistics import mean_of
from statepool.studies.study import Results

HINTED = Look(GREEN, "^")
LOOKS = {"state": ("State-EXP3", STATE), "hinted": ("Hinted State-EXP3", HINTED)}
FAR = 1e9
"""How far the bounds are drawn."""


def draw_overlap_and_drift(sheet: Sheet, results: Mapping[str, Results]) -> None:
    found = results["overlap-and-drift"]
    periods, delays, overlap, horizons = sheet.panels(4, 2.15, rows=2)
    _draw_periods(sheet, periods, found)
    _draw_delays(sheet, delays, found)
    _draw_overlap(sheet, overlap, found)
    _draw_horizons(sheet, horizons, found)


def _draw_arms(
    sheet: Sheet, ax: Axes, results: Results, sweep: str, xs: Sequence[float], places: Sequence[str],
    scale: Sequence[float] | None = None,
) -> None:  # fmt: skip
    ax.axhline(0, color=MUTED, linewidth=0.6)
    for name, (title, look) in LOOKS.items():
        over = scale or [1.0] * len(xs)
        values = [
            mean_of(results.of(sweep, place, name), 0 if scale is None else 2, s)
            for place, s in zip(places, over, strict=True)
        ]
        sheet.series(ax, xs, values, look, title, places)


def _draw_periods(sheet: Sheet, ax: Axes, results: Results) -> None:
    ax.axvspan(min(study.PERIODS) * 0.85, 8, color=MUTED, alpha=0.09, linewidth=0)
    _draw_arms(sheet, ax, results, "periods", study.PERIODS, [study.place(p) for p in study.PERIODS])
    log_axis(ax.xaxis, (4, 8, 16, 50, 200), ("$4d$", "$8d$", "$16d$", "$50d$", "$200d$"))
    ax.set_xlim(min(study.PERIODS) * 0.85, max(study.PERIODS) * 1.2)
    ax.set(title="(a) Slow drift: hints pay", xlabel="period of the losses", ylabel="regret")
    label(ax, 50, 2000, "State-EXP3", STATE.colour, (-2, 9), ha="center")
    label(ax, 50, 200, "with hints", GREEN, (0, 14), ha="center")
    label(ax, 4.7, 480, "too fast\nto guess", MUTED, (0, 0), ha="center", bbox=None)


def _draw_delays(sheet: Sheet, ax: Axes, results: Results) -> None:
    _draw_arms(sheet, ax, results, "delays", study.DELAYS, [f"d={d}" for d in study.DELAYS])
    log_axis(ax.xaxis, (5, 20, 100, 500))
    ax.set(title=f"(b) Every delay, period ${study.SLOW}d$", xlabel="delay $d$")
    ax.set_ylim(-250, 2400)


def _draw_overlap(sheet: Sheet, ax: Axes, results: Results) -> None:
    for row, spread in enumerate(study.SPREADS):
        for column, period in enumerate(study.COLUMNS):
            place = study.place(period, spread)
            saved = mean_of(results.of("overlap", place, "state") - results.of("overlap", place, "hinted"), 0)
            strength = sqrt(min(1.0, abs(saved.number) / 1_800))
            text = f"{place}: hints save {told(saved)}"
            draw_cell(sheet, ax, column, row, strength, f"{saved.number:.0f}", text, saved.number < 0, 6.5)
    frame_cells(ax, [f"${p}d$" for p in study.COLUMNS], [f"{1 + v:g}" for v in study.SPREADS])
    ax.set(title="(c) Regret saved by hints", xlabel="period of the losses", ylabel="largest dimension $v$")


def _draw_horizons(sheet: Sheet, ax: Axes, results: Results) -> None:
    places = [f"T={t}" for t in study.HORIZONS]
    _draw_arms(sheet, ax, results, "horizons", study.HORIZONS, places, [sqrt(t) for t in study.HORIZONS])
    xs = np.geomspace(study.HORIZONS[0], FAR, 60)
    period = study.LONG_PERIOD * study.LONG_DELAY
    curves = [[b.value / sqrt(t) for b in study.bounds(int(t), period, 1.0, study.LONG_DELAY)] for t in xs]
    for values, look in zip(zip(*curves, strict=True), (STATE, HINTED), strict=True):
        ax.plot(xs, values, "--", color=look.colour, linewidth=1.1)
    log_axis(ax.xaxis, (1e4, 1e5, 1e6, 1e7, 1e8, 1e9), ("$10^4$", "", "$10^6$", "", "$10^8$", ""))
    ax.set(title="(d) At each theorem's rate", xlabel="horizon $T$", ylabel=r"regret / $\sqrt{T}$", ylim=(-0.9, 10))
    label(ax, 3e7, curves[-1][0], "bound, State-EXP3 (B)", STATE.colour, (0, 7), ha="center")
    label(ax, 1.4e7, curves[-1][1], "bound, hinted (F)", GREEN, (0, -9), ha="center")
    label(ax, study.HORIZONS[-1], 1.08, "measured, State-EXP3", STATE.colour, (6, 4))
    label(ax, study.HORIZONS[-1], 0.0, "measured, hinted", GREEN, (6, -5), bbox=None)
