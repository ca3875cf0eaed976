"""Studies 15 and 16: simple rules on nine settings, and both methods with their rates chosen in hindsight."""

from math import log
from typing import Any

import numpy as np

from statepool.learners import StateEXP3
from statepool.rates import default_rate
from statepool.report.palette import ACTION, BEST_STATE, HYBRID, MUTED, STATE
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
    growth_exponent,
    paired,
    standard_error,
)

FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "dirichlet": ("band", {"drift": 0.05, "horizon": 10_000}),
    "funnel": ("funnel", {"horizon": 10_000}),
    "spread": ("spread", {"horizon": 10_000}),
    "switching": ("switching", {"horizon": 10_000}),
}
HARD = ("hard", {"n_drifting": 8, "n_states": 17, "horizon": 8_000, "block": 50, "amplitude": 0.1})
SETTINGS = {f"{name} d={d}": (family, settings, d) for name, (family, settings) in FAMILIES.items() for d in (10, 50)}
SETTINGS["hard d=50"] = (*HARD, 50)
PAPER: Arms = {"action": ("action-exp3", {}), "IX": ("exp3-ix", {}), "naive": ("naive-sharing", {}),
               "best-state": ("best-state", {}), "state": ("state-exp3", {})}  # fmt: skip
ARMS: Arms = {**PAPER, "pooled greedy": ("pooled-greedy", {}), "pooled Thompson": ("pooled-thompson", {})}
GROWING: Arms = {name: PAPER[name] for name in ("best-state", "state", "action")}
HORIZONS = (2_500, 5_000, 10_000, 20_000, 40_000)
WORST = 12.0
"""The ratio that is drawn at full strength."""


def _tables(results: Results) -> list[Table]:
    rows, pair = results.rows("settings", SETTINGS, ARMS), ("best-state", "state")
    errors = {
        cell: {name: standard_error(results.of("settings", cell, name)) or np.nan for name in pair} for cell in SETTINGS
    }
    spreads = {cell: {f"{name} ±": Value(found[name], None, 0) for name in pair} for cell, found in errors.items()}
    average = [float(np.mean([found[name] for found in errors.values()])) for name in pair]
    leads = [min(PAPER, key=lambda name: row[name].number) for row in rows.values()]
    summary = {f"{name} leads": {"settings": Value(float(leads.count(name)), None, 0)} for name in pair}
    summary["average ±, best-state / state"] = {"ratio": Value(average[0] / average[1])}
    growth: Rows = {}
    for name in GROWING:
        regrets = [results.mean("growth", f"T={t}", name) for t in HORIZONS]
        growth[name] = {f"T={t}": Value(r, None, 0) for t, r in zip(HORIZONS, regrets, strict=True)}
        growth[name]["exponent"] = Value(growth_exponent(HORIZONS, regrets), None, 2)
    return [
        Table("Regret on nine settings", rows, "pooled greedy and pooled Thompson are ours"),
        Table("Standard errors over seeds", spreads),
        Table("Who leads, and how steadily", summary),
        Table("Growth on spread, d=10", growth),
    ]


def _draw_baselines(sheet: Sheet, results: Results) -> None:
    left, right = sheet.panels(2, 2.35, widths=(1.75, 1))
    ratios: Rows = {arm: {} for arm in ARMS}
    for cell in SETTINGS:
        best = min(results.mean("settings", cell, arm) for arm in PAPER)
        for arm, row in ratios.items():
            ratio = results.mean("settings", cell, arm) / best
            row[cell] = Value(ratio, None, 1 if ratio >= 0.95 else 2)
    # Regret, hence a ratio, can be below zero: losses drift, and the comparator is a fixed action.
    sheet.heat_map(left, ratios, lambda value: max(-log(max(value.number, 1 / WORST)) / log(WORST), -1.0))
    left.axhline(len(PAPER) - 0.5, color=MUTED, linewidth=0.6)
    left.tick_params(axis="x", rotation=90)
    left.set_title("Regret, in multiples of the paper's best rule")
    rows = results.rows("growth", [f"T={t}" for t in HORIZONS], GROWING)
    looks = {"best-state": BEST_STATE, "action": ACTION, "state": STATE}
    sheet.lines(right, HORIZONS, rows, looks, "xy", xlabel="horizon $T$", title="Growth on spread, $d=10$")
    right.set_xticks(HORIZONS, [f"{t / 1000:g}k" for t in HORIZONS])


add_study(
    "baselines",
    [
        Sweep("settings", [Cell(label, *cell, ARMS) for label, cell in SETTINGS.items()], 10, 90_000),
        Sweep("growth", [Cell(f"T={t}", "spread", {"horizon": t}, 10, GROWING) for t in HORIZONS], 6, 90_000),
    ],
    _tables,
    [Figure("baselines", _draw_baselines)],
)  # fmt: skip

DELAYS, PAPER_SCALES, ORACLE_SCALES = (10, 50, 200), (0.5, 1.0, 2.0), (2, 4, 8, 16, 32, 64, 128)
MULTIPLIERS = (1, 2, 4, 8, 16, 32)
HYBRIDS: Arms = {f"k={k:g}{' shifted' if shift else ''}": ("zimmert-seldin", {"scale": k, "shift": shift})
                 for k in PAPER_SCALES for shift in (False, True)}  # fmt: skip
ORACLE: Arms = {f"k={k:g}": ("zimmert-seldin", {"scale": float(k)}) for k in ORACLE_SCALES}
TUNED: Arms = {**HYBRIDS, **ORACLE}
ON_FUNNEL = [f"funnel d={d}" for d in DELAYS]
MATCHED = {f"matched overlap {o:g}": {"overlap": float(o), "horizon": 10_000} for o in (0, 0.65, 0.95)}


def multiplied(task: Task) -> dict[str, float]:
    """State-EXP3 at multiples of its default rate, and the other arms."""
    instance = task.instance()
    rate = default_rate(instance.n_actions, instance.n_states, instance.horizon, task.cell.delay)
    return {f"×{m}": task.run(instance, StateEXP3(rate=m * rate)).regret for m in MULTIPLIERS} | paired(task)


def _tuned_row(results: Results, sweep: str, cell: str) -> dict[str, Value]:
    """The best of each grid, chosen by the mean regret on the benchmark itself."""
    multiples = [f"×{m}" for m in MULTIPLIERS]
    grids = {"hybrid, six-point grid": HYBRIDS, "hybrid, oracle": ORACLE, "state, oracle": multiples}
    best = {name: min(grid, key=lambda arm: results.mean(sweep, cell, arm)) for name, grid in grids.items()}
    row = {"state": results.value(sweep, cell, "×1")}
    row |= {name: results.value(sweep, cell, arm) for name, arm in best.items()}
    row["cut vs tuned %"] = results.saved_share(sweep, cell, "×1", best["hybrid, six-point grid"])
    return row


def _tuned_tables(results: Results) -> list[Table]:
    matched = {cell: _tuned_row(results, "matched", cell) for cell in MATCHED}
    return [
        Table("Three tunings on the funnel", {cell: _tuned_row(results, "funnel", cell) for cell in ON_FUNNEL}),
        Table("The same at matched difficulty, d=50", matched, ours=True),
    ]


def _draw_tuning(sheet: Sheet, results: Results) -> None:
    for ax, cell in zip(sheet.panels(3, 2.1, sharey=not sheet.narrow), ON_FUNNEL, strict=True):
        scales = (*PAPER_SCALES[:2], *ORACLE_SCALES)
        hybrid = {f"{cell}, k={k:g}": {"hybrid": results.value("funnel", cell, f"k={k:g}")} for k in scales}
        state = {f"{cell}, ×{m}": {"State-EXP3": results.value("funnel", cell, f"×{m}")} for m in MULTIPLIERS}
        sheet.lines(ax, scales, hybrid, {"hybrid": HYBRID}, "y", legend=False)
        sheet.lines(ax, MULTIPLIERS, state, {"State-EXP3": STATE}, legend=cell == ON_FUNNEL[0])
        log_axis(ax.xaxis, (0.5, 2, 8, 32, 128))
        ax.set(xlabel="multiple of the default rate", title=cell.replace("funnel ", "Funnel, $") + "$")
        if sheet.narrow or cell == ON_FUNNEL[0]:
            ax.set_ylabel("regret")


add_study(
    "tuned-baseline",
    [
        Sweep("funnel", [Cell(f"funnel d={d}", "funnel", {"horizon": 20_000}, d, TUNED) for d in DELAYS], 8, 80_000,
              multiplied),
        Sweep("matched", [Cell(label, "matched", cell, 50, TUNED) for label, cell in MATCHED.items()], 10, 20_000,
              multiplied),
    ],
    _tuned_tables,
    [Figure("tuning", _draw_tuning)],
)  # fmt: skip
