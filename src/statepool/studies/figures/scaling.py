"""Three curves people would rather see than read: groups (study 7), the scale (9) and the rate (16)."""

from collections.abc import Mapping

from statepool.report.palette import AMBER, BLUE, GREEN, HYBRID, INK, PURPLE, STATE, Look
from statepool.report.sheet import Sheet, label, log_axis
from statepool.studies.paper import dependence, representation, tuned_baseline
from statepool.studies.statistics import mean_of
from statepool.studies.study import Results


def draw_groups(sheet: Sheet, results: Mapping[str, Results]) -> None:
    found = results["representation"]
    titles = {0: "States of a group alike", 0.12: "States of a group differ a little"}
    for ax, heterogeneity in zip(
        sheet.panels(2, 2.2, sharey=not sheet.narrow), representation.HETEROGENEITIES, strict=True
    ):
        rows = next(
            t.rows for t in representation.tables(found) if t.title.endswith(f"heterogeneity {heterogeneity:g}")
        )
        xs = representation.GROUPS
        log_axis(ax.xaxis, xs)
        log_axis(ax.yaxis, [1000, 2000, 5000, 10000], ["1 000", "2 000", "5 000", "10 000"])
        regrets, bounds = ([row[name] for row in rows.values()] for name in ("regret", "Theorem 4"))
        sheet.series(ax, xs, regrets, STATE, "regret", list(rows))
        sheet.bound(ax, xs, bounds, Look(INK, "_"), "Theorem 4", list(rows))
        label(ax, xs[1], regrets[1].number, "regret, measured", STATE.colour, (4, -13), ha="left")
        label(ax, xs[1], bounds[1].number, "Theorem 4", INK, (6, 7))
        ax.set(ylim=(500, 14_000), xlabel="groups the 16 states are merged into", title=titles[heterogeneity])


def draw_dependence(sheet: Sheet, results: Mapping[str, Results]) -> None:
    ratios = dependence.ratios_of(results["dependence"])
    colours = dict(zip(dependence.OVERLAPS, (BLUE, GREEN, AMBER, PURPLE), strict=True))
    markers = dict(zip(dependence.OVERLAPS, "o^Dv", strict=True))
    for ax, delay in zip(sheet.panels(3, 2.0, sharey=not sheet.narrow), dependence.DELAYS, strict=True):
        log_axis(ax.xaxis, dependence.HORIZONS, [f"{t / 1000:g}k" for t in dependence.HORIZONS])
        log_axis(ax.yaxis, [0.02, 0.05, 0.1, 0.2, 0.5])
        for overlap in dependence.OVERLAPS:
            values = [ratios[overlap, delay, horizon] for horizon in dependence.HORIZONS]
            places = [f"overlap {overlap:g}, d={delay}, T={horizon}" for horizon in dependence.HORIZONS]
            look = Look(colours[overlap], markers[overlap])
            sheet.series(ax, dependence.HORIZONS, values, look, "ratio", places, label=f"{overlap:g}")
        ax.set(ylim=(0.01, 0.8), xlabel="horizon $T$", title=f"$d={delay}$")
        if sheet.narrow or delay == dependence.DELAYS[0]:
            ax.set_ylabel(r"regret / $\sqrt{(d+1)\,\hat v\,T\log K}$")
        if delay == dependence.DELAYS[0]:
            # The lines lie too close to be named one by one.
            ax.legend(title="overlap", ncols=2, loc="lower right", fontsize=7, title_fontsize=7,
                      handlelength=1.4, columnspacing=1, borderpad=0)  # fmt: skip


def draw_tuning(sheet: Sheet, results: Mapping[str, Results]) -> None:
    found, study = results["tuned-baseline"], tuned_baseline
    scales = [*study.ORACLE_SCALES, *study.WIDER_SCALES]
    multipliers = [*study.MULTIPLIERS, *study.WIDER_MULTIPLIERS]
    sweeps = (("hybrid", HYBRID, [*study.PAPER_SCALES[:2], *scales], "k={:g}"), ("state", STATE, multipliers, "×{:g}"))
    for ax, cell in zip(sheet.panels(3, 2.1, sharey=not sheet.narrow), study.CELLS, strict=True):
        log_axis(ax.xaxis, [1, 100, 1e4, 1e6, 1e8], ["1", "100", "10k", "1M", "100M"])
        log_axis(ax.yaxis, [20, 50, 100, 200, 500, 1000, 2000, 5000])
        for name, look, numbers, template in sweeps:
            values = [mean_of(found.of("funnel", cell, template.format(number))) for number in numbers]
            places = [f"{cell}, multiplier {number:g}" for number in numbers]
            sheet.series(ax, numbers, values, look, name, places, markersize=3)
            if sheet.narrow or cell == next(iter(study.CELLS)):
                title = "hybrid (Zimmert, Seldin)" if name == "hybrid" else "State-EXP3"
                spot, shift, side = (-1, (0, 8), "right") if name == "hybrid" else (3, (7, 3), "left")
                label(ax, numbers[spot], values[spot].number, title, look.colour, shift, ha=side)
        ax.set(xlabel="rate, in multiples of the default", title=cell.replace("funnel d=", "Funnel, $d=") + "$")
        if sheet.narrow or cell == next(iter(study.CELLS)):
            ax.set_ylabel("regret")
