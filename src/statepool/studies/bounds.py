"""Studies 1, 12, 8, 9 and B: what the bounds say and what is measured, in every quantity that they depend on."""

from dataclasses import replace
from itertools import product
from math import floor, log, sqrt
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from statepool.dimension import bracket, estimate
from statepool.guarantees import theorem_1, theorem_3
from statepool.learners import StateEXP3
from statepool.report import palette
from statepool.report.palette import Look
from statepool.report.sheet import Rows, Sheet, Value, log_axis
from statepool.studies.study import (
    PAIR,
    Arms,
    Cell,
    Figure,
    Results,
    Sweep,
    Table,
    Task,
    add_study,
    ends_of,
    estimate_of,
    estimated_dimension,
    paired,
    paired_with_coverage,
)

SIZES, WAITS, GAIN_HORIZON = (8, 20, 40, 80), (10, 50, 200), 10_000
BAND = {"n_states": 4, "horizon": GAIN_HORIZON, "drift": 0.05}
ALL: Arms = {"interleaved": ("state-exp3", {"copies": "d+1"}), **PAIR}
BY_ACTIONS = Sweep("actions", [Cell(f"K={k}", "band", BAND | {"n_actions": k}, 50, ALL) for k in SIZES], 100, 10_000)
BY_DELAY = Sweep("delay", [Cell(f"d={d}", "band", BAND | {"n_actions": 40}, d, PAIR) for d in WAITS], 40, 10_000)


def _bound(n_actions: int) -> float:
    return theorem_3(n_actions, delay=50, budget=4 * GAIN_HORIZON).value


def _gain_row(results: Results, n_actions: int) -> dict[str, Value]:
    cell = f"K={n_actions}"
    saved = results.of("actions", cell, "action") - results.of("actions", cell, "state")
    above = results.of("actions", cell, "interleaved") > _bound(n_actions)
    return (
        results.means("actions", cell, ALL)
        | results.gain("actions", cell, "state", "action")
        | {"seeds better": Value(float((saved > 0).sum()), None, 0), "bound": Value(_bound(n_actions), None, 0)}
        | {"seeds above bound": Value(float(above.sum()), None, 0)}
    )


def _gain_tables(results: Results) -> list[Table]:
    by_delay = {
        cell: {name: replace(value, number=floor(round(value.number, 1) + 0.5)) for name, value in row.items()}
        for cell, row in results.rows("delay", BY_DELAY.labels, PAIR, digits=0).items()
    }
    note = "whole numbers are rounded as in the paper: to one decimal, then again (698.49, 698.5, 699)"
    return [
        Table("Regret by number of actions", {f"K={k}": _gain_row(results, k) for k in SIZES}),
        Table("Regret by delay, K=40", by_delay, note),
    ]


def _draw_gain(sheet: Sheet, results: Results) -> None:
    left, right = sheet.panels(2, 2.2)
    by_actions, by_delay = (table.rows for table in _gain_tables(results))
    looks = {"interleaved": palette.INTERLEAVED, "action": palette.ACTION, "state": palette.STATE}
    sheet.lines(left, SIZES, by_actions, {"bound": Look(palette.AMBER, "_")}, proved=True)
    sheet.lines(left, SIZES, by_actions, looks, "xy", xlabel="actions $K$", title="Regret at $d=50$")
    looks.pop("interleaved")
    sheet.lines(right, WAITS, by_delay, looks, "x", xlabel="delay $d$", title="Regret at $K=40$", ylim=(0, None))


add_study(
    "bound-and-gain",
    [BY_ACTIONS, BY_DELAY],
    _gain_tables,
    [Figure("bound-and-gain", _draw_gain)],
)

GAP_ACTIONS, GAP_STATES, GAP_HORIZON, GAP_DELAY = (8, 20, 40, 80, 160), 8, 5_000, 50
GAP_ARMS: Arms = {"known": ("state-exp3", {}), "plug-in": ("plug-in", {}), "action": ("action-exp3", {})}
GAP_SETTINGS = {"n_states": GAP_STATES, "horizon": GAP_HORIZON, "drift": 0.05}
BY_SIZE = Sweep(
    "actions", [Cell(f"K={k}", "band", GAP_SETTINGS | {"n_actions": k}, GAP_DELAY, GAP_ARMS) for k in GAP_ACTIONS], 12,
    60_000, paired_with_coverage, instance=5,
)  # fmt: skip
RATIOS = ("plug-in off known %", "action above plug-in %", "Theorem 3 / plug-in", "warm start / plug-in")


def _gap_row(results: Results, n_actions: int) -> dict[str, Value]:
    cell = f"K={n_actions}"
    row = results.means("actions", cell, GAP_ARMS)
    known, plug_in, action = (row[name].number for name in GAP_ARMS)
    kappa = results.value("actions", cell, "kappa", digits=2)
    theorem = theorem_3(n_actions, GAP_DELAY, budget=GAP_STATES * GAP_HORIZON).value
    warm_start = (kappa.number * GAP_STATES) ** 0.4 * n_actions**0.2 * GAP_HORIZON**0.8
    return row | {
        "plug-in off known %": Value(100 * abs(plug_in / known - 1)),
        "action above plug-in %": Value(100 * (action / plug_in - 1)),
        "kappa": kappa,
        "Theorem 3 / plug-in": Value(theorem / plug_in),
        "warm start / plug-in": Value(warm_start / plug_in),
    }


def _gap_tables(results: Results) -> list[Table]:
    rows = {f"K={k}": _gap_row(results, k) for k in GAP_ACTIONS}
    summary = {name: ends_of(row[name].number for row in rows.values()) for name in RATIOS}
    return [Table("Summary over K", summary), Table("Certificates and measurements", rows)]


def _draw_certificates(sheet: Sheet, results: Results) -> None:
    left, right = sheet.panels(2, 2.3)
    rows = _gap_tables(results)[1].rows
    looks = {"action": palette.ACTION, "known": palette.STATE, "plug-in": palette.PLUG_IN}
    sheet.lines(left, GAP_ACTIONS, rows, looks, "xy", ylabel="regret over $T=5\\,000$", title="Measured")
    looks = {"warm start / plug-in": Look(palette.PURPLE, "x"), "Theorem 3 / plug-in": Look(palette.INK, "_")}
    sheet.lines(right, GAP_ACTIONS, rows, looks, "x", proved=True, ylim=(0, 23), title="Certified, over measured")
    for ax in (left, right):
        ax.set_xlabel("actions $K$")


add_study(
    "certificate-gap",
    [BY_SIZE],
    _gap_tables,
    [Figure("certificates", _draw_certificates)],
)


HARD_ACTIONS, HARD_HORIZON = 40, 8_000
DELAYS, AMPLITUDES, DRIFTING = (10, 25, 50, 100, 200), (0.02, 0.05, 0.1, 0.2), (1, 2, 4, 8, 16)
SWEPT: dict[str, list[tuple[int, float, int]]] = {
    "$d$": [(d, 0.1, 4) for d in DELAYS],
    r"$\epsilon$": [(50, eps, 4) for eps in AMPLITUDES],
    "$J$": [(50, 0.1, J) for J in DRIFTING],
}
"""(delay, amplitude, number of drifting actions) by swept parameter."""
SATURATED = [(4_000, 0.1, 4), (4_000, 0.1, 8), (4_000, 0.1, 32), (2_500, 0.1, 16), (2_000, 0.1, 32)]
"""Those with 2 <= T/d < 1 + log J, which the paper does not probe."""
RATE = sqrt(2 * log(HARD_ACTIONS) / (HARD_ACTIONS * HARD_HORIZON))
HARD_ARMS: Arms = {"action": ("action-exp3", {"rate": RATE}), "state": ("state-exp3", {"rate": RATE}),
                   "greedy-stale": ("greedy-stale", {})}  # fmt: skip
LOOKS = {"uniform": palette.UNIFORM, "action": palette.ACTION, "state": palette.STATE, "greedy-stale": palette.ORACLE}


def with_uniform(task: Task) -> dict[str, float]:
    """Paired regrets on a two-draw stream, the regret of uniform actions, and the instance's own E2."""
    instance = task.instance()
    uniform = np.random.default_rng(task.stream).integers(HARD_ACTIONS, size=HARD_HORIZON)
    return {"uniform": instance.regret(uniform), "E2": instance.e2(task.cell.delay), **paired(task)}


def _name(d: int, eps: float, J: int) -> str:
    return f"d={d} eps={eps:g} J={J}"


def hard_cells(grid: Any, arms: Arms) -> list[Cell]:
    """Cells on Theorem 2's construction, each (delay, amplitude, drifting actions) once."""
    size = {"n_actions": HARD_ACTIONS, "horizon": HARD_HORIZON}
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
        scale = sqrt(d * e2 * min(1 + log(J), HARD_HORIZON / d))
        rows[cell.label] = {"E2": Value(e2, None, 0), "scale": Value(scale, None, 0)}
        rows[cell.label] |= {name: results.value(sweep.name, cell.label, name, 3, over=scale) for name in LOOKS}
    return rows


def _drift_tables(results: Results) -> list[Table]:
    rows, ranges = _ratio_rows(results, CELLS), {}
    for name, digits in {"E2": 0, "scale": 0, **dict.fromkeys(LOOKS, 3)}.items():
        numbers = [row[name].number for row in rows.values()]
        ranges[name] = ends_of(numbers, digits)
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
    right.axhspan(min(every), max(every), color=palette.FAINT, alpha=0.45, linewidth=0)
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
    ax.plot(ends, middle * ends, color=palette.INK, linestyle="--", linewidth=0.8, label="slope one")
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

OVERLAPS, HORIZONS = (0, 0.4, 0.7, 0.95), (2_500, 5_000, 10_000, 20_000, 40_000)
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
    scale = sqrt((delay + 1) * vhat * horizon * log(HARD_ACTIONS))
    return results.value("grid", f"overlap {overlap:g} d={delay} T={horizon}", "interleaved", 3, over=scale)


def _spread(ratios: list[Value], digits: int) -> dict[str, Value]:
    ends = ends_of((ratio.number for ratio in ratios), 3)
    factor = Value(ends["largest"].number / ends["smallest"].number, None, digits)
    return {"cells": Value(len(ratios), None, 0), **ends, "largest / smallest": factor}


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
    drawn = (Look(palette.BLUE, "o"), Look(palette.GREEN, "^"), Look(palette.AMBER, "D"), Look(palette.PURPLE, "v"))
    looks = dict(zip(OVERLAPS, drawn, strict=True))
    for ax, delay in zip(sheet.panels(3, 2.0, sharey=True), WAITS, strict=True):
        for overlap, look in looks.items():
            name = f"overlap {overlap:g}"
            rows = {f"d={delay}, T={t}": {name: _ratio(results, overlap, delay, t)} for t in HORIZONS}
            sheet.lines(ax, HORIZONS, rows, {name: look}, "xy", legend=delay == WAITS[0])
        ax.set_xticks(HORIZONS, [f"{t / 1000:g}k" for t in HORIZONS])
        ax.set(ylim=(0.005, 0.8), xlabel="horizon $T$", title=f"$d={delay}$")
        if delay == WAITS[0]:
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

KINDS = ("deterministic", "misleading", "near-unreachable", "rare-optimal", "unbalanced")
PROMISED: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in ("band", "clustered", "funnel", "hard", "matched", "overlap", "scarce", "spread",
                                     "switching")},
    **{f"hostile, {kind}": ("hostile", {"kind": kind}) for kind in KINDS},
}  # fmt: skip


def bracketed(task: Task) -> dict[str, float]:
    """The proved bracket of a map's dimension, and the paper's random search on it."""
    P = task.instance().P
    found = bracket(P, gap=task.cell.extra["gap"])
    return {"vhat": estimate(P, np.random.default_rng(task.stream), 4_000), "lower": found.lower, "upper": found.upper}


def promised(task: Task) -> dict[str, float]:
    """The regret of State-EXP3 at Theorem 1's own rate and budget (upper - 1) T, and the bound."""
    instance = task.instance()
    upper = bracket(instance.P, gap=0.5).upper
    bound = theorem_1(instance.n_actions, instance.horizon, task.cell.delay, (upper - 1) * instance.horizon)
    return {"upper": upper, "bound": bound.value, "regret": task.run(instance, StateEXP3(rate=bound.rate)).regret}


def _maps(family: str, name: str, *values: float) -> list[Cell]:
    return [Cell(f"{name} {value:g}", family, {name: value, "horizon": 2}, extra={"gap": 0.05}) for value in values]


SEED_0 = [Cell("K=200", "funnel", {"horizon": 2}, extra={"gap": 0.01})]
BRACKETS = {
    "The funnel, seed 0": Sweep("funnel", SEED_0, 1, 0, bracketed),
    "The funnel by catalogue size, five maps each": Sweep(
        "catalogue", _maps("funnel", "n_actions", 25, 50, 100, 200, 400, 800), 5, 1, bracketed),
    "The matched control, seed 0": Sweep(
        "matched", _maps("matched", "overlap", 0.0, 0.35, 0.65, 0.85, 0.95), 1, 11, bracketed),
    "The overlap family (studies 6, 9 and the phase diagram), seed 0": Sweep(
        "overlap", _maps("overlap", "overlap", 0.0, 0.2, 0.4, 0.6, 0.8, 0.95), 1, 1, bracketed),
}  # fmt: skip


def _bracket_row(results: Results, sweep: str, cell: str) -> dict[str, Value]:
    vhat, lower, upper = (results.of(sweep, cell, name) for name in ("vhat", "lower", "upper"))
    return {
        "vhat, random search": Value(float(vhat.mean()), None, 3),
        "proved lower": Value(float(lower.mean()), None, 3),
        "proved upper": Value(float(upper.mean()), None, 3),
        "vhat too low by at least %": Value(100 * float((lower / vhat - 1).mean())),
    }


def _promise_row(results: Results, cell: str) -> dict[str, Value]:
    regret, bound = results.of("promised", cell, "regret"), results.of("promised", cell, "bound")
    return {
        "upper": Value(results.mean("promised", cell, "upper"), None, 2),
        "Theorem 1": Value(float(bound.mean()), None, 0),
        "regret": results.value("promised", cell, "regret", digits=0),
        "largest / bound": Value(float((regret / bound).max()), None, 2),
    }


def _dimension_tables(results: Results) -> list[Table]:
    brackets = [
        Table(title, {cell: _bracket_row(results, sweep.name, cell) for cell in sweep.labels}, ours=True)
        for title, sweep in BRACKETS.items()
    ]
    note = "means over seeds; largest / bound: of the seed that came closest to its own bound"
    rows = {cell: _promise_row(results, cell) for cell in PROMISED}
    return [*brackets, Table("Theorem 1 at its own rate, d=50", rows, note, ours=True)]


add_study(
    "certified-dimension",
    [
        *BRACKETS.values(),
        Sweep("promised", [Cell(label, *cell, 50) for label, cell in PROMISED.items()], 5, 10_000, promised),
    ],
    _dimension_tables,
    beyond=True,
)  # fmt: skip
