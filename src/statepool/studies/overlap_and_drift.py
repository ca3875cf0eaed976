"""Study F (ours): hints against State-EXP3 where losses swing, over periods, delays, overlap and horizons.

Two actions lead to two states. The means of the states swing against each other, .5 ± .5 sin(2π t/period), and rows
overlap so that the effective dimension is at most 1 + spread. Both actions are equally good on average.
"""

from math import copysign, pi, sin, sqrt
from typing import Any

import numpy as np

from statepool.guarantees import theorem_b, theorem_f
from statepool.learners import HintedStateEXP3, StateEXP3
from statepool.model import Instance
from statepool.rates import default_rate
from statepool.report.palette import GREEN, MUTED, STATE, Look
from statepool.report.sheet import Sheet, log_axis
from statepool.studies.study import Cell, Figure, Results, Rows, Sweep, Table, Task, add_study

SEEDS, DELAY, HORIZON = 12, 100, 200_000
PERIODS = (3.2, 4, 5, 8, 10, 16, 25, 50, 100, 200)
"""In delays; horizons are whole numbers of periods, so that neither action is better on average."""
DELAYS, SLOW = (5, 10, 20, 50, 100, 200, 500), 50
SPREADS, COLUMNS = (1.0, 0.5, 0.2, 0.05), (4, 8, 10, 20, 50, 100)
HORIZONS, LONG_DELAY, LONG_PERIOD = (10_000, 30_000, 100_000, 300_000, 1_000_000), 50, 100
LOOKS = {"state": STATE, "hinted": Look(GREEN, "^")}


def swing(horizon: int, period: int, spread: float = 1.0, phase: float = 0.0) -> Instance:
    """Two actions whose losses swing against each other; `spread` is the largest effective dimension less one."""
    kept = sqrt(spread)
    P = kept * np.eye(2) + (1 - kept) / 2
    wave = 0.5 * np.sin(2 * np.pi * np.arange(horizon) / period + phase)
    return Instance(P, np.stack([0.5 + wave, 0.5 - wave], axis=1))


def drift_of(horizon: int, period: int, spread: float, delay: int) -> float:
    """The drift between actions of a swing over whole periods, from its formula (never below the exact sum)."""
    lag = min(3 * max(delay, 1) - 1, period / 2)
    return horizon / 2 * spread * sin(pi * lag / period) ** 2


def bounds(horizon: int, period: int, spread: float, delay: int, rate: float | None = None) -> tuple[Any, Any]:
    """Theorem B for State-EXP3 and Theorem F for the hinted learner, at a rate or each at its best."""
    budget, drift = spread * horizon, drift_of(horizon, period, spread, delay)
    return theorem_b(2, horizon, delay, budget, rate), theorem_f(2, horizon, delay, budget, drift, rate)


def swinging(task: Task) -> dict[str, float]:
    """Regrets on one swing from a random phase, at the rate 1/(12 d) or at each theorem's own."""
    delay, tuned = task.cell.delay, task.cell.extra["tuned"]
    instance = swing(**task.cell.settings, phase=2 * pi * float(np.random.default_rng(task.seed).random()))
    state, hinted = bounds(**task.cell.settings, delay=delay, rate=None if tuned else 1 / (12 * delay))
    learners = {"state": StateEXP3(state.rate), "hinted": HintedStateEXP3(hinted.rate)}
    if tuned:
        learners["free"] = HintedStateEXP3()
    regrets = {label: task.run(instance, learner).regret for label, learner in learners.items()}
    return regrets | {"bound state": state.value, "bound hinted": hinted.value}


def on_funnel(task: Task) -> dict[str, float]:
    """Regrets on the funnel, both at the paper's rate."""
    instance = task.instance()
    rate = default_rate(instance.n_actions, instance.n_states, instance.horizon, task.cell.delay)
    learners = {"state": StateEXP3(rate), "hinted": HintedStateEXP3(rate)}
    return {label: task.run(instance, learner).regret for label, learner in learners.items()}


def _cell(label: str, period: float, spread: float, delay: int, horizon: int = HORIZON, tuned: bool = False) -> Cell:
    settings = {"horizon": horizon, "period": round(period * delay), "spread": spread}
    return Cell(label, "swing", settings, delay, extra={"tuned": tuned})


def _place(period: float, spread: float) -> str:
    return f"spread {spread:g}, period {period:g} d"


SWEEPS = {
    "periods": [_cell(f"period {p:g} d", p, 1.0, DELAY) for p in PERIODS],
    "delays": [_cell(f"d={d}", SLOW, 1.0, d) for d in DELAYS],
    "overlap": [_cell(_place(p, v), p, v, DELAY) for v in SPREADS for p in COLUMNS],
    "horizons": [_cell(f"T={t}", LONG_PERIOD, 1.0, LONG_DELAY, t, tuned=True) for t in HORIZONS],
    "funnel": [Cell(f"d={d}", "funnel", {"horizon": 20_000}, d) for d in (10, 50, 200)],
}


def _rows(results: Results, sweep: str, *more: str, digits: int = 0) -> Rows:
    rows = results.rows(sweep, [cell.label for cell in SWEEPS[sweep]], ("state", "hinted", *more), digits)
    for cell, row in rows.items():
        row |= results.gain(sweep, cell, "hinted", "state", "saved")
        row["saved %"] = results.percent_saved(sweep, cell, "hinted", "state")
    return rows


def _tables(results: Results) -> list[Table]:
    setting = f"d={DELAY}, T={HORIZON}, both at rate 1/(12d)"
    titles = {
        "periods": (f"Periods: no overlap, {setting}", ""),
        "delays": (f"Delays: no overlap, period {SLOW} d, both at rate 1/(12d)", ""),
        "overlap": (f"Overlap: {setting}", "spread is the largest effective dimension less one"),
        "horizons": (
            f"Horizons: no overlap, d={LONG_DELAY}, period {LONG_PERIOD} d, each at its theorem's best rate",
            "bounds: Theorem B for State-EXP3, Theorem F for the hinted learner; free: without a rate",
        ),
        "funnel": ("The funnel at the paper's rate: the rate decides, not the hints", ""),
    }
    more = {"horizons": ("free", "bound state", "bound hinted")}
    return [
        Table(title, _rows(results, sweep, *more.get(sweep, ())), note, ours=True)
        for sweep, (title, note) in titles.items()
    ]


def _draw(sheet: Sheet, results: Results) -> None:
    periods, delays, overlap, horizons = sheet.panels(4, 2.15, rows=2)
    for ax in (periods, delays, horizons):
        ax.axhline(0, color=MUTED, linewidth=0.6)
    periods.axvspan(min(PERIODS) * 0.85, 8, color=MUTED, alpha=0.09, linewidth=0)
    sheet.lines(periods, PERIODS, _rows(results, "periods"), LOOKS, "x", xlabel="period of the losses, in delays",
                ylabel="regret", title="(a) Slow drift: hints pay")  # fmt: skip
    log_axis(periods.xaxis, (4, 8, 16, 50, 200))
    sheet.lines(delays, DELAYS, _rows(results, "delays"), LOOKS, "x", xlabel="delay $d$",
                title=f"(b) Every delay, period ${SLOW}d$")  # fmt: skip
    saved = {
        f"{1 + v:g}": {f"${p}d$": results.saved("overlap", _place(p, v), "hinted", "state", 0) for p in COLUMNS}
        for v in SPREADS
    }
    sheet.heat_map(overlap, saved, lambda v: copysign(sqrt(min(1.0, abs(v.number) / 1_800)), v.number), size=6.5)
    overlap.set(title="(c) Regret saved by hints", xlabel="period of the losses", ylabel="largest dimension $v$")
    rows = {f"T={t}": {name: results.value("horizons", f"T={t}", name, 2, sqrt(t)) for name in LOOKS} for t in HORIZONS}
    sheet.lines(horizons, HORIZONS, rows, LOOKS, title="(d) At each theorem's rate", xlabel="horizon $T$",
                ylabel=r"regret / $\sqrt{T}$", ylim=(-0.9, 10))  # fmt: skip
    xs = np.geomspace(HORIZONS[0], 1e9, 60)
    curves = [[b.value / sqrt(t) for b in bounds(int(t), LONG_PERIOD * LONG_DELAY, 1.0, LONG_DELAY)] for t in xs]
    for values, (name, look) in zip(zip(*curves, strict=True), LOOKS.items(), strict=True):
        horizons.plot(xs, values, "--", color=look.colour, linewidth=1.1, label=f"bound, {name}")
    log_axis(horizons.xaxis, (1e4, 1e6, 1e8))
    horizons.legend()


add_study(
    "overlap-and-drift",
    [Sweep(name, cells, SEEDS, 90_000, on_funnel if name == "funnel" else swinging) for name, cells in SWEEPS.items()],
    _tables,
    [Figure("overlap-and-drift", _draw)],
    beyond=True,
)
