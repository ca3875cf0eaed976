"""Studies 14, 15 and 16: the funnel, simple rules on nine settings, and both methods with rates chosen in hindsight."""

from math import log
from typing import Any

import numpy as np

from statepool.comparison import standard_error
from statepool.guarantees import drift_lemma, interleaving_pays
from statepool.rates import default_rate, largest_covered_rate
from statepool.report.palette import ACTION, BEST_STATE, GREEDY, HYBRID, MUTED, PLUG_IN, STATE, THOMPSON, Look
from statepool.report.sheet import Rows, Sheet, Value, log_axis
from statepool.studies.study import (
    Arms,
    Cell,
    Figure,
    Results,
    Sweep,
    Table,
    Task,
    add_study,
    ends_of,
    estimated_dimension,
    growth_exponent,
)

DELAYS, CATALOGUES, HORIZON, N_ITEMS = (10, 50, 200), (25, 50, 100, 200, 400, 800), 20_000, 200
PLACES = [f"d={d}" for d in DELAYS]
FUNNEL_ARMS: Arms = {"action": ("action-exp3", {}), "state": ("state-exp3", {}), "plug-in": ("plug-in", {}),
              "pooled greedy": ("pooled-greedy", {}), "pooled Thompson": ("pooled-thompson", {})}  # fmt: skip
SEARCHED = (
    "vhat: the largest dimension among 4 000 random policies, a value from below. The largest of all is proved to lie "
    "between 2.24 and 2.27 (dimension.bracket)"
)


def step_ratio(task: Task) -> dict[str, float]:
    """The largest one-step growth of any action's probability, which the drift lemma bounds by 1 + 1/d."""
    return {"ratio": drift_lemma(task.instance(), task.cell.delay, task.stream)}


def shares(task: Task) -> dict[str, float]:
    """The mean share of the first and the last depth over the catalogue, in per cent."""
    P = task.instance(horizon=1).P
    return {"no engagement %": 100 * float(P[:, 0].mean()), "deepest %": 100 * float(P[:, -1].mean())}


def _regret_row(results: Results, cell: str) -> dict[str, Value]:
    row = {"action": results.value("funnel", cell, "action", digits=0), "state": results.value("funnel", cell, "state")}
    row["cut vs action %"] = results.saved_share("funnel", cell, "state", "action")
    row |= results.means("funnel", cell, ("plug-in", "pooled greedy", "pooled Thompson"))
    gap = results.saved("funnel", cell, "state", "plug-in")
    return row | ({"plug-in off state, in se": Value(abs(gap.number) / gap.se)} if gap.se else {})


def _lemma_row(results: Results, delay: int) -> dict[str, Value]:
    vhat = results.mean("vhat", "seed 0", "vhat")
    return {
        "largest step": Value(float(results.of("lemma", f"d={delay}", "ratio").max()), None, 3),
        "allowed": Value(1 + 1 / delay, None, 3),
        "rate": Value(default_rate(N_ITEMS, 6, HORIZON, delay), None, 4),
        "largest covered rate": Value(largest_covered_rate(delay), None, 4),
        "d+1 copies cost": Value(vhat * (delay + 1) * log(N_ITEMS), None, 0),
        "they pay below": Value(N_ITEMS + delay, None, 0),
    }


def _catalogue_rows(results: Results) -> Rows:
    return results.rows("catalogue", [f"K={k}" for k in CATALOGUES], ["vhat"], digits=2)


def _funnel_tables(results: Results) -> list[Table]:
    seed_0 = {"vhat": Value(results.mean("vhat", "seed 0", "vhat"), None, 2)}
    for name, digits in (("no engagement %", 0), ("deepest %", 1)):
        seed_0[name] = Value(results.mean("shares", "seed 0", name), None, digits)
    catalogue = _catalogue_rows(results)
    catalogue["all"] = ends_of((row["vhat"].number for row in catalogue.values()), 2)
    regret = {cell: _regret_row(results, cell) for cell in PLACES}
    return [
        Table("Regret on the funnel", regret, "pooled greedy and pooled Thompson are ours"),
        Table("The map of seed 0", {"seed 0": seed_0}, SEARCHED),
        Table("Estimated dimension by catalogue size", catalogue, "vhat: mean over seeds"),
        Table("The drift lemma", {f"d={d}": _lemma_row(results, d) for d in DELAYS},
              "d+1 copies pay where their cost, vhat (d+1) log K, is at most K + d"),
    ]  # fmt: skip


def _draw_funnel(sheet: Sheet, results: Results) -> None:
    left, right = sheet.panels(2, 2.3, widths=(1, 1.7))
    rows = _catalogue_rows(results)
    sheet.lines(left, CATALOGUES, rows, {"vhat": STATE}, "xy", xlabel="items in the catalogue, $K$")
    left.plot(CATALOGUES, CATALOGUES, color=MUTED, linestyle="--", linewidth=0.9, label="number of items")
    left.set(title="Items and dimension", ylim=(0.9, 1500))
    left.legend()
    looks = {"action": ACTION, "state": STATE, "plug-in": PLUG_IN, "pooled greedy": GREEDY, "pooled Thompson": THOMPSON}
    regrets = {cell: _regret_row(results, cell) for cell in PLACES}
    sheet.lines(right, range(3), regrets, looks, "y", legend=False, title=r"Regret, $T=20\,000$", ylim=(3, 400_000))
    vhat = results.mean("vhat", "seed 0", "vhat")
    holds = ["holds" if interleaving_pays(vhat, N_ITEMS, d) else "fails" for d in DELAYS]
    right.set_xticks(range(3), [f"$d={d}$\n{word}" for d, word in zip(DELAYS, holds, strict=True)])
    right.set_xlabel(r"whether $\hat v(d+1)\log K\leq K+d$")
    right.legend(ncols=2, loc="upper left")


def _draw_dimension_not_count(sheet: Sheet, results: Results, matched: Results) -> None:
    left, right = sheet.panels(2, 2.15)
    points = {"first": ("K=40, |S|=8, d=50", "o"), "second": ("K=20, |S|=12, d=20", "D")}
    for point, (name, marker) in points.items():
        places = [f"overlap {o:g}" for o in (0, 0.35, 0.65, 0.85, 0.95)]
        dimensions = [matched.first(point, place, "vhat") for place in places]
        rows = {place: {name: matched.percent_saved(point, place, "state", "action")} for place in places}
        sheet.lines(left, dimensions, rows, {name: Look(STATE.colour, marker)})
    dimension = r"effective dimension $\hat v$"
    left.set(ylim=(0, None), xlabel=dimension, ylabel="regret saved, %", title="Gain at fixed difficulty")
    sheet.lines(right, CATALOGUES, _catalogue_rows(results), {"vhat": STATE}, "x", legend=False)
    right.set(ylim=(1, 2.2), xlabel="items in the catalogue, $K$", ylabel=dimension,
              title="The catalogue grows, the dimension does not")  # fmt: skip


add_study(
    "funnel",
    [
        Sweep("funnel", [Cell(f"d={d}", "funnel", {"horizon": HORIZON}, d, FUNNEL_ARMS) for d in DELAYS], 8, 80_000),
        Sweep("lemma", [Cell(f"d={d}", "funnel", {"horizon": HORIZON}, d) for d in DELAYS], 3, 80_000, step_ratio),
        Sweep("vhat", [Cell("seed 0", "funnel")], 1, 0, estimated_dimension),
        Sweep("shares", [Cell("seed 0", "funnel")], 1, 0, shares),
        Sweep("catalogue", [Cell(f"K={k}", "funnel", {"n_actions": k}) for k in CATALOGUES], 5, 1, estimated_dimension),
    ],
    _funnel_tables,
    [
        Figure("figure-2", _draw_dimension_not_count, ("matched-difficulty",), up_front=True),
        Figure("funnel", _draw_funnel),
    ],
)  # fmt: skip


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


def _baseline_tables(results: Results) -> list[Table]:
    rows, pair = results.rows("settings", SETTINGS, ARMS), ("best-state", "state")
    errors = {cell: {name: standard_error(results.of("settings", cell, name)) for name in pair} for cell in SETTINGS}
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
    _baseline_tables,
    [Figure("baselines", _draw_baselines)],
)  # fmt: skip

PAPER_SCALES, ORACLE_SCALES = (0.5, 1.0, 2.0), (2, 4, 8, 16, 32, 64, 128)
MULTIPLIERS = (1, 2, 4, 8, 16, 32)
HYBRIDS: Arms = {f"k={k:g}{' shifted' if shift else ''}": ("zimmert-seldin", {"scale": k, "shift": shift})
                 for k in PAPER_SCALES for shift in (False, True)}  # fmt: skip
ORACLE: Arms = {f"k={k:g}": ("zimmert-seldin", {"scale": float(k)}) for k in ORACLE_SCALES}
ON_FUNNEL = [f"funnel d={d}" for d in DELAYS]
MATCHED = {f"matched overlap {o:g}": {"overlap": float(o), "horizon": 10_000} for o in (0, 0.65, 0.95)}


def tuned(rate: float) -> Arms:
    """State-EXP3 at multiples of its default rate, and the hybrids."""
    return {f"×{m}": ("state-exp3", {"rate": m * rate}) for m in MULTIPLIERS} | {**HYBRIDS, **ORACLE}


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
    for ax, cell in zip(sheet.panels(3, 2.1, sharey=True), ON_FUNNEL, strict=True):
        scales = (*PAPER_SCALES[:2], *ORACLE_SCALES)
        hybrid = {f"{cell}, k={k:g}": {"hybrid": results.value("funnel", cell, f"k={k:g}")} for k in scales}
        state = {f"{cell}, ×{m}": {"State-EXP3": results.value("funnel", cell, f"×{m}")} for m in MULTIPLIERS}
        sheet.lines(ax, scales, hybrid, {"hybrid": HYBRID}, "y", legend=False)
        sheet.lines(ax, MULTIPLIERS, state, {"State-EXP3": STATE}, legend=cell == ON_FUNNEL[0])
        log_axis(ax.xaxis, (0.5, 2, 8, 32, 128))
        ax.set(xlabel="multiple of the default rate", title=cell.replace("funnel ", "Funnel, $") + "$")
        if cell == ON_FUNNEL[0]:
            ax.set_ylabel("regret")


add_study(
    "tuned-baseline",
    [
        Sweep("funnel", [Cell(f"funnel d={d}", "funnel", {"horizon": HORIZON}, d,
                              tuned(default_rate(N_ITEMS, 6, HORIZON, d))) for d in DELAYS], 8, 80_000),
        Sweep("matched", [Cell(label, "matched", cell, 50, tuned(default_rate(40, 8, 10_000, 50)))
                          for label, cell in MATCHED.items()], 10, 20_000),
    ],
    _tuned_tables,
    [Figure("tuning", _draw_tuning)],
)  # fmt: skip
