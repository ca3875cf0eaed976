"""Studies 8 and 9: does regret scale with drift, delay, horizon and dimension as the theorems say?"""

from itertools import product
from math import log, sqrt
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from statepool.learners import StateEXP3
from statepool.report.palette import ACTION, AMBER, BLUE, FAINT, GREEN, INK, ORACLE, PURPLE, STATE, UNIFORM, Look
from statepool.report.sheet import Sheet, Value, log_axis
from statepool.studies.study import (
    Arms,
    Cell,
    Figure,
    Results,
    Rows,
    Sweep,
    Table,
    Task,
    add_study,
    estimate_of,
    estimated_dimension,
    paired,
)

K, T = 40, 8_000
DELAYS, AMPLITUDES, DRIFTING = (10, 25, 50, 100, 200), (0.02, 0.05, 0.1, 0.2), (1, 2, 4, 8, 16)
SWEPT: dict[str, list[tuple[int, float, int]]] = {
    "$d$": [(d, 0.1, 4) for d in DELAYS],
    r"$\epsilon$": [(50, eps, 4) for eps in AMPLITUDES],
    "$J$": [(50, 0.1, J) for J in DRIFTING],
}
"""(delay, amplitude, number of drifting actions) by swept parameter."""
SATURATED = [(4_000, 0.1, 4), (4_000, 0.1, 8), (4_000, 0.1, 32), (2_500, 0.1, 16), (2_000, 0.1, 32)]
"""Those with 2 <= T/d < 1 + log J, which the paper does not probe."""
RATE = sqrt(2 * log(K) / (K * T))
HARD_ARMS: Arms = {"action": ("action-exp3", {"rate": RATE}), "state": ("state-exp3", {"rate": RATE}),
                   "greedy-stale": ("greedy-stale", {})}  # fmt: skip
LOOKS = {"uniform": UNIFORM, "action": ACTION, "state": STATE, "greedy-stale": ORACLE}


def with_uniform(task: Task) -> dict[str, float]:
    """Paired regrets on a two-draw stream, the regret of uniform actions, and the instance's own E2."""
    instance = task.instance()
    uniform = np.random.default_rng(task.stream).integers(K, size=T)
    return {"uniform": instance.regret(uniform), "E2": instance.e2(task.cell.delay), **paired(task)}


def _name(d: int, eps: float, J: int) -> str:
    return f"d={d} eps={eps:g} J={J}"


def hard_cells(grid: Any, arms: Arms) -> list[Cell]:
    """Cells on Theorem 2's construction, each (delay, amplitude, drifting actions) once."""
    size = {"n_actions": K, "horizon": T}
    return [
        Cell(_name(d, eps, J), "hard", size | {"n_drifting": J, "block": d, "amplitude": eps}, d, arms, {"draws": 2})
        for d, eps, J in dict.fromkeys(grid)
    ]


GRID = [place for places in SWEPT.values() for place in places]
CELLS = Sweep("cells", hard_cells(GRID, HARD_ARMS), 12, 13, with_uniform, instance=7, scale=1000)
SATURATED_CELLS = Sweep("saturated", hard_cells(SATURATED, HARD_ARMS), 12, 13, with_uniform, instance=7, scale=1000)


def _ratio_rows(results: Results, sweep: Sweep) -> Rows:
    """E2, the predicted scale, and each policy's mean regret over it."""
    rows = {}
    for cell in sweep.cells:
        d, J = cell.delay, cell.settings["n_drifting"]
        e2 = results.mean(sweep.name, cell.label, "E2")
        scale = sqrt(d * e2 * min(1 + log(J), T / d))
        rows[cell.label] = {"E2": Value(e2, None, 0), "scale": Value(scale, None, 0)}
        rows[cell.label] |= {name: results.value(sweep.name, cell.label, name, 3, over=scale) for name in LOOKS}
    return rows


def _drift_tables(results: Results) -> list[Table]:
    rows, ranges = _ratio_rows(results, CELLS), {}
    for name, digits in {"E2": 0, "scale": 0, **dict.fromkeys(LOOKS, 3)}.items():
        numbers = [row[name].number for row in rows.values()]
        ranges[name] = {"smallest": Value(min(numbers), None, digits), "largest": Value(max(numbers), None, digits)}
        if name in LOOKS:
            ranges[name]["mean"] = Value(float(np.mean(numbers)), None, digits)
    saturated = _ratio_rows(results, SATURATED_CELLS)
    return [
        Table("Ranges over the twelve cells", ranges, "policies: mean regret over seeds, divided by the scale"),
        Table("Regret over the predicted scale, by cell", rows),
        Table("The saturated branch, 2 <= T/d < 1 + log J", saturated, ours=True),
    ]


def _draw_drift_scaling(sheet: Sheet, results: Results) -> None:
    left, right = sheet.panels(2, 2.5, widths=(1, 1.5))
    rows = _ratio_rows(results, CELLS)
    _draw_regret(sheet, left, rows)
    every = [row[policy].number for row in rows.values() for policy in LOOKS]
    right.axhspan(min(every), max(every), color=FAINT, alpha=0.45, linewidth=0)
    places = list(enumerate(GRID))
    for (x, place), (j, policy) in product(places, enumerate(LOOKS)):
        value, at = rows[_name(*place)][policy], x + (j - 1.5) * 0.16
        right.plot([at], [value.number], LOOKS[policy].marker, color=LOOKS[policy].colour, markersize=3.4)
        sheet.target(right, at, value.number, f"{policy}, {_name(*place)}: {value.with_error()} of the scale", 6)
    swept = [f"{place[i]:g}".removeprefix("0") for i, places_ in enumerate(SWEPT.values()) for place in places_]
    right.set_xticks(range(len(GRID)), swept, fontsize=7)
    start = 0
    for symbol, chosen in SWEPT.items():
        middle = start + (len(chosen) - 1) / 2
        right.text(middle, 1.0, symbol, transform=right.get_xaxis_transform(), ha="center", va="bottom")
        start += len(chosen)
    right.set(ylim=(0, 0.72), xlabel="value of the swept parameter", ylabel="regret / scale")


def _draw_regret(sheet: Sheet, ax: Axes, rows: Rows) -> None:
    scales = [row["scale"].number for row in rows.values()]
    middle = sum(row["uniform"].number for row in rows.values()) / len(rows)
    ends = np.array([min(scales), max(scales)])
    ax.plot(ends, middle * ends, color=INK, linestyle="--", linewidth=0.8, label="slope one")
    for policy, look in LOOKS.items():
        regrets = [row[policy].number * row["scale"].number for row in rows.values()]
        ax.plot(scales, regrets, look.marker, color=look.colour, markersize=3.2, label=policy)
        for place, x, y in zip(rows, scales, regrets, strict=True):
            sheet.target(ax, x, y, f"{policy}, {place}: regret {y:.1f}, scale {x:.0f}", 6)
    log_axis(ax.xaxis)
    log_axis(ax.yaxis)
    ax.set(xlabel=r"$\sqrt{d\,E_2\,\min\{1+\log J,\,T/d\}}$", ylabel="regret", title="Regret follows the scale")
    ax.legend()


add_study(
    "drift-scaling",
    [CELLS, SATURATED_CELLS],
    _drift_tables,
    [Figure("drift-scaling", _draw_drift_scaling)],
)

OVERLAPS, WAITS, HORIZONS = (0, 0.4, 0.7, 0.95), (10, 50, 200), (2_500, 5_000, 10_000, 20_000, 40_000)
EASIEST = 0.95


def interleaved(task: Task) -> dict[str, float]:
    """Interleaved State-EXP3, its rate set by the estimated dimension of the first seed's map."""
    instance, delay = task.instance(), task.cell.delay
    vhat = estimate_of(task.cell, seed=0, stream=1)
    rate = sqrt(2 * log(instance.n_actions) / (vhat * instance.horizon / (delay + 1)))
    return {"interleaved": task.run(instance, StateEXP3(rate=rate, copies="d+1")).regret}


def _ratio(results: Results, overlap: float, delay: int, horizon: int) -> Value:
    """Mean regret over its predicted scale."""
    vhat = results.mean("vhat", f"overlap {overlap:g}", "vhat")
    scale = sqrt((delay + 1) * vhat * horizon * log(K))
    return results.value("grid", f"overlap {overlap:g} d={delay} T={horizon}", "interleaved", 3, over=scale)


def _spread(ratios: list[Value], digits: int) -> dict[str, Value]:
    smallest, largest = (end(ratio.number for ratio in ratios) for end in (min, max))
    return {
        "cells": Value(len(ratios), None, 0), "smallest": Value(smallest, None, 3), "largest": Value(largest, None, 3),
        "largest / smallest": Value(largest / smallest, None, digits),
    }  # fmt: skip


def _dependence_tables(results: Results) -> list[Table]:
    ratios = {place: _ratio(results, *place) for place in product(OVERLAPS, WAITS, HORIZONS)}
    rows: Rows = {}
    for (overlap, delay, horizon), ratio in ratios.items():
        rows.setdefault(f"overlap {overlap:g} d={delay}", {})[f"T={horizon}"] = ratio
    spreads = {
        "all": _spread(list(ratios.values()), 1),
        "without overlap 0.95": _spread([ratio for (o, _, _), ratio in ratios.items() if o != EASIEST], 1),
        "overlap 0, d=10": _spread(list(rows["overlap 0 d=10"].values()), 2),
        "overlap 0, d=200": _spread(list(rows["overlap 0 d=200"].values()), 2),
    }
    vhats = {
        f"overlap {o:g}": {"vhat": Value(results.mean("vhat", f"overlap {o:g}", "vhat"), None, 3)} for o in OVERLAPS
    }
    return [
        Table("How far the ratio R / sqrt((d+1) vhat T log K) varies", spreads),
        Table("Dimension of the first seed's map", vhats),
        Table("The ratio, by cell", rows),
    ]


def _draw_dependence(sheet: Sheet, results: Results) -> None:
    looks = dict(zip(OVERLAPS, (Look(BLUE, "o"), Look(GREEN, "^"), Look(AMBER, "D"), Look(PURPLE, "v")), strict=True))
    for ax, delay in zip(sheet.panels(3, 2.0, sharey=not sheet.narrow), WAITS, strict=True):
        for overlap, look in looks.items():
            name = f"overlap {overlap:g}"
            rows = {f"d={delay}, T={t}": {name: _ratio(results, overlap, delay, t)} for t in HORIZONS}
            sheet.lines(ax, HORIZONS, rows, {name: look}, "xy", legend=delay == WAITS[0])
        ax.set_xticks(HORIZONS, [f"{t / 1000:g}k" for t in HORIZONS])
        ax.set(ylim=(0.005, 0.8), xlabel="horizon $T$", title=f"$d={delay}$")
        if sheet.narrow or delay == WAITS[0]:
            ax.set_ylabel(r"regret / $\sqrt{(d+1)\,\hat v\,T\log K}$")


add_study(
    "dependence",
    [
        Sweep(
            "grid",
            [Cell(f"overlap {o:g} d={d} T={t}", "overlap", {"overlap": float(o), "horizon": t}, d)
             for o, d, t in product(OVERLAPS, WAITS, HORIZONS)],
            5, 10_000, interleaved,
        ),
        Sweep("vhat", [Cell(f"overlap {o:g}", "overlap", {"overlap": float(o)}) for o in OVERLAPS], 1, 1,
              estimated_dimension),
    ],
    _dependence_tables,
    [Figure("dependence", _draw_dependence)],
)  # fmt: skip
