"""Regret over the size of direct effects, one panel for each base family."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from statepool.report.palette import ACTION, SELF_TUNED, STATE, THOMPSON
from statepool.report.sheet import Sheet, label
from statepool.studies.beyond import direct_effects as study
from statepool.studies.statistics import mean_of
from statepool.studies.study import Results

LOOKS = {
    "action": ("action EXP3", ACTION),
    "state": ("State-EXP3", STATE),
    "self-tuned": ("SelfTuned", SELF_TUNED),
    "action Thompson": ("action Thompson", THOMPSON),
}
LABELS = {
    "action": (1, (12, 12)),
    "state": (1, (14, -10)),
    "self-tuned": (5, (-6, 10)),
    "action Thompson": (5, (0, -11)),
}
"""Which value a name stands at, and how far from it."""


def draw_direct_effects(sheet: Sheet, results: Mapping[str, Results]) -> None:
    for i, (ax, base) in enumerate(zip(sheet.panels(3, 2.3), study.BASES, strict=True)):
        _draw_base(sheet, ax, results["direct-effects"], base)
        ax.set(title=base.capitalize(), xlabel="size of direct effects")
        ax.set_xticks((0, 0.05, 0.1, 0.15, 0.2), ("0", ".05", ".1", ".15", ".2"))
        ax.set_ylim(min(ax.get_ylim()[0], 0), None)
        if sheet.narrow or i == 0:
            ax.set_ylabel("regret")


def _draw_base(sheet: Sheet, ax: Axes, results: Results, base: str) -> None:
    places = [study.place(base, size) for size in study.SIZES]
    for name, (title, look) in LOOKS.items():
        seeds = np.array([results.of("sizes", place, name) for place in places])
        low, high = np.quantile(seeds, (0.25, 0.75), axis=1)
        ax.fill_between(study.SIZES, low, high, color=look.colour, alpha=0.15, linewidth=0)
        values = [mean_of(regrets) for regrets in seeds]
        sheet.series(ax, study.SIZES, values, look, title, places, markersize=3.5)
        if base == study.BASES[0]:
            at, shift = LABELS[name]
            label(ax, study.SIZES[at], values[at].number, title, look.colour, shift, ha="center")
