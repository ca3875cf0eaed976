"""Studies 6, 10, A and F: what pooling saves as the actions' rows overlap, and what hints save where losses swing.

Study F has two actions that lead to two states. The means of the states swing against each other,
.5 ± .5 sin(2π t/period), and rows overlap so that the effective dimension is at most 1 + spread.
"""

from functools import partial
from math import copysign, pi, sin, sqrt
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from statepool import dimension, families
from statepool.guarantees import theorem_b, theorem_f
from statepool.learners import ActionEXP3, HintedStateEXP3, StateEXP3
from statepool.model import Instance
from statepool.rates import default_rate
from statepool.report.palette import BLUE, FAINT, GREEN, INK, MUTED, STATE, SURFACE, VERMILLION, Look
from statepool.report.sheet import Rows, Sheet, Value, log_axis
from statepool.studies.study import PAIR, Arms, Cell, Figure, Results, Sweep, Table, Task, add_study, paired

FREE_OVERLAPS, OVERLAPS = (0, 0.25, 0.5, 0.75, 0.95), (0, 0.35, 0.65, 0.85, 0.95)


def _places(overlaps: tuple[float, ...]) -> list[str]:
    return [f"overlap {o:g}" for o in overlaps]


def _overlap_cell(label: str, overlap: float, delay: int, arms: Arms, **extra: Any) -> Cell:
    return Cell(label, "overlap", {"overlap": float(overlap), "horizon": 5_000}, delay, arms, extra)


def _free_tables(results: Results) -> list[Table]:
    rows = {
        cell: {"mean v": results.value("overlap", cell, "state dimension", digits=3)}
        | results.means("overlap", cell, PAIR)
        | results.gain("overlap", cell, "state", "action")
        | {"saved %": results.saved_share("overlap", cell, "state", "action")}
        for cell in _places(FREE_OVERLAPS)
    }
    return [Table("Regret as the actions come to overlap", rows)]


add_study(
    "effective-dimension",
    [Sweep(
        "overlap", [_overlap_cell(f"overlap {o:g}", o, 20, PAIR, dimension=["state"]) for o in FREE_OVERLAPS], 24,
        10_000,
    )],
    _free_tables,
)  # fmt: skip

POINTS: dict[str, tuple[str, dict[str, Any], int]] = {
    "first": ("Matched difficulty, K=40, |S|=8, T=10000, d=50",
              {"n_actions": 40, "n_states": 8, "horizon": 10_000, "target": 900.0}, 50),
    "second": ("Matched difficulty, second point, K=20, |S|=12, T=8000, d=20",
               {"n_actions": 20, "n_states": 12, "horizon": 8_000, "target": 500.0}, 20),
}  # fmt: skip


def matched_pair(task: Task) -> dict[str, float]:
    """Both arms, the state learner's rate set by the map's estimated dimension, and the regret of uniform actions."""
    instance = task.instance()
    vhat = dimension.estimate(instance.P, np.random.default_rng(task.seed + 3), 600)
    rate = default_rate(instance.n_actions, vhat, instance.horizon, task.cell.delay)
    losses = instance.total_losses
    numbers = {
        "uniform": float(losses.mean() - losses.min()),
        "state": task.run(instance, StateEXP3(rate=rate)).regret,
        "action": task.run(instance, ActionEXP3()).regret,
    }
    if task.seed == 0:
        numbers["vhat"] = dimension.estimate(instance.P, np.random.default_rng(11), 4_000)
    return numbers


def _matched_rows(results: Results, point: str) -> Rows:
    return {
        cell: {"vhat": Value(results.first(point, cell, "vhat"), None, 3)}
        | results.means(point, cell, ("uniform", "state", "action"))
        | results.gain(point, cell, "state", "action")
        | {"saved %": results.saved_share(point, cell, "state", "action")}
        for cell in _places(OVERLAPS)
    }


def _matched_tables(results: Results) -> list[Table]:
    tables = []
    for point, (title, _, _) in POINTS.items():
        rows = _matched_rows(results, point)
        pairs = np.array([[row["vhat"].number, row["gain"].number] for row in rows.values()])
        correlation = Value(float(np.corrcoef(pairs, rowvar=False)[0, 1]), None, 3)
        summary = Table(f"Dimension against gain, {point} point", {"correlation": {"vhat, gain": correlation}})
        tables += [Table(title, rows), summary]
    return tables


def _draw_claim_and_boundary(sheet: Sheet, results: Results) -> None:
    left, right = sheet.panels(2, 2.15)
    _draw_staleness(sheet, left)
    rows = _matched_rows(results, "first")
    dimensions = [row["vhat"].number for row in rows.values()]
    sheet.lines(
        right, dimensions, rows, {"gain": STATE}, legend=False, xlabel=r"effective dimension $\hat v$",
        ylabel="regret saved by pooling", ylim=(0, None), title="More overlap, more to share",
    )  # fmt: skip


def _draw_staleness(sheet: Sheet, ax: Axes) -> None:
    """An example: one state of an overlap instance, and what is known of it 200 rounds later."""
    horizon, delay, now = 1_000, 200, 680
    theta = families.overlap(seed=3, horizon=horizon).theta
    state = int((theta[now] - theta[now - delay]).argmax())
    ax.plot(np.delete(theta, state, axis=1), color=FAINT, linewidth=0.9, zorder=1)
    ax.plot(theta[:, state], color=BLUE)
    old, new = theta[now - delay, state], theta[now, state]
    ax.plot([now - delay, now], [old, old], color=INK, linewidth=1)
    ax.plot([now, now], [old, new], color=VERMILLION, linewidth=1.6, solid_capstyle="butt")
    ax.plot([now - delay, now], [old, new], "o", color=BLUE, zorder=3)
    ax.plot([now], [old], "o", markerfacecolor=SURFACE, markeredgecolor=INK, zorder=3)
    sheet.target(ax, now - delay, old, f"true mean loss of the state at t - d: {old:.3f}")
    sheet.target(ax, now, old, f"delivered to the learner at t: {old:.3f}, which is {delay} rounds old")
    sheet.target(ax, now, new, f"true mean loss of the state at t: {new:.3f}")
    # A label hides the grid and nothing that is drawn, and must not squeeze its own axes.
    style: dict[str, Any] = {"va": "center", "fontsize": 7.5, "zorder": 1.5, "in_layout": False}
    box = {"facecolor": SURFACE, "edgecolor": "none", "pad": 0.8}
    label: Any = partial(ax.annotate, textcoords="offset points", bbox=box, **style)
    label("error", (now, (old + new) / 2), xytext=(5, 0), color=VERMILLION)
    label("$d$ rounds", (now - delay / 2, old), xytext=(0, -7), ha="center")
    label("delivered", (now, old), xytext=(6, -3))
    ax.set_xticks([now - delay, now], ["$t-d$", "$t$"])
    ax.set(xlim=(0, horizon), xlabel="round", ylabel="mean loss of a state", title="Outcomes are delivered late")


def _draw_matched_control(sheet: Sheet, matched: Results, free: Results) -> None:
    left, right = sheet.panels(2, 2.15)
    sweeps = (
        ("matched", STATE, matched, "first", OVERLAPS),
        ("unmatched", Look(MUTED, "s"), free, "overlap", FREE_OVERLAPS),
    )
    for name, look, found, sweep, overlaps in sweeps:
        hardest = found.mean(sweep, "overlap 0", "action") / 100
        shares = {o: {name: found.percent_saved(sweep, o, "state", "action")} for o in _places(overlaps)}
        levels = {o: {name: found.value(sweep, o, "action", over=hardest)} for o in _places(overlaps)}
        sheet.lines(left, overlaps, shares, {name: look})
        sheet.lines(right, overlaps, levels, {name: look})
    left.set(title="Matching difficulty reverses the trend", ylabel="regret saved, %", ylim=(0, None))
    right.set(title="Unmatched, the task becomes easy", ylabel="action-level regret, % of first", ylim=(0, None))
    for ax in (left, right):
        ax.set_xlabel("overlap of the actions' rows")


add_study(
    "matched-difficulty",
    [
        Sweep(
            point, [Cell(f"overlap {o:g}", "matched", settings | {"overlap": float(o)}, delay) for o in OVERLAPS], 20,
            20_000, matched_pair,
        )
        for point, (_, settings, delay) in POINTS.items()
    ],
    _matched_tables,
    [
        Figure("figure-1", _draw_claim_and_boundary, up_front=True),
        Figure("matched-control", _draw_matched_control, ("effective-dimension",)),
    ],
)  # fmt: skip

GRID_OVERLAPS, GRID_DELAYS = (0, 0.2, 0.4, 0.6, 0.8, 0.95), (5, 10, 25, 50, 100, 200)
POOLED = {"known": "Map known", "plug-in": "Map estimated", "grouped": "States merged in pairs"}
GRID_ARMS: Arms = {"action": ("action-exp3", {}), "known": ("state-exp3", {}), "plug-in": ("plug-in", {}),
                   "grouped": ("state-exp3", {"groups": [s // 2 for s in range(8)]})}  # fmt: skip


def _grid_rows(results: Results, arm: str) -> Rows:
    return {
        f"overlap {o:g}": {f"d={d}": results.saved("grid", f"overlap {o:g} d={d}", arm, "action") for d in GRID_DELAYS}
        for o in GRID_OVERLAPS
    }


def _grid_tables(results: Results) -> list[Table]:
    title = "Gain of {} over action-level learning"
    return [Table(title.format(arm), _grid_rows(results, arm), ours=True) for arm in POOLED]


def _draw_phase_diagram(sheet: Sheet, results: Results) -> None:
    rows = {arm: _grid_rows(results, arm) for arm in POOLED}
    most = max(abs(value.number) for table in rows.values() for row in table.values() for value in row.values())
    for ax, (arm, title) in zip(sheet.panels(3, 2.0), POOLED.items(), strict=True):
        # The square root keeps small gains visible.
        strength = partial(_signed_root, over=most)
        sheet.heat_map(ax, rows[arm], strength, lambda value: f"{value.number:.0f}")
        ax.set_xticks(range(len(GRID_DELAYS)), [f"{d}" for d in GRID_DELAYS])
        ax.set_yticks(range(len(GRID_OVERLAPS)), [f"{o:g}" for o in GRID_OVERLAPS])
        ax.set(xlabel="delay $d$", title=title, ylabel="overlap" if arm == "known" else "")


def _signed_root(value: Value, over: float) -> float:
    return copysign(sqrt(abs(value.number) / over), value.number)


add_study(
    "phase-diagram",
    [Sweep(
        "grid", [_overlap_cell(f"overlap {o:g} d={d}", o, d, GRID_ARMS) for o in GRID_OVERLAPS for d in GRID_DELAYS],
        12, 10_000,
    )],
    _grid_tables,
    [Figure("phase-diagram", _draw_phase_diagram)],
)  # fmt: skip


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


def _swing_cell(label: str, period: float, spread: float, delay: int, horizon: int | None = None) -> Cell:
    """At each theorem's own rate where a horizon is given."""
    settings = {"horizon": horizon or HORIZON, "period": round(period * delay), "spread": spread}
    return Cell(label, "swing", settings, delay, extra={"tuned": horizon is not None})


def _funnel_cell(delay: int) -> Cell:
    """Both at the paper's rate."""
    rate = {"rate": default_rate(200, 6, 20_000, delay)}
    arms = {"state": ("state-exp3", rate), "hinted": ("hinted-state-exp3", rate)}
    return Cell(f"d={delay}", "funnel", {"horizon": 20_000}, delay, arms)


def _swing_place(period: float, spread: float) -> str:
    return f"spread {spread:g}, period {period:g} d"


SWEEPS = {
    "periods": [_swing_cell(f"period {p:g} d", p, 1.0, DELAY) for p in PERIODS],
    "delays": [_swing_cell(f"d={d}", SLOW, 1.0, d) for d in DELAYS],
    "overlap": [_swing_cell(_swing_place(p, v), p, v, DELAY) for v in SPREADS for p in COLUMNS],
    "horizons": [_swing_cell(f"T={t}", LONG_PERIOD, 1.0, LONG_DELAY, t) for t in HORIZONS],
    "funnel": [_funnel_cell(d) for d in (10, 50, 200)],
}


def _swing_rows(results: Results, sweep: str, *more: str, digits: int = 0) -> Rows:
    rows = results.rows(sweep, [cell.label for cell in SWEEPS[sweep]], ("state", "hinted", *more), digits)
    for cell, row in rows.items():
        row |= results.gain(sweep, cell, "hinted", "state", "saved")
        row["saved %"] = results.percent_saved(sweep, cell, "hinted", "state")
    return rows


def _swing_tables(results: Results) -> list[Table]:
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
        Table(title, _swing_rows(results, sweep, *more.get(sweep, ())), note, ours=True)
        for sweep, (title, note) in titles.items()
    ]


def _draw_swing(sheet: Sheet, results: Results) -> None:
    periods, delays, overlap, horizons = sheet.panels(4, 2.15, rows=2)
    for ax in (periods, delays, horizons):
        ax.axhline(0, color=MUTED, linewidth=0.6)
    periods.axvspan(min(PERIODS) * 0.85, 8, color=MUTED, alpha=0.09, linewidth=0)
    sheet.lines(periods, PERIODS, _swing_rows(results, "periods"), LOOKS, "x", xlabel="period of the losses, in delays",
                ylabel="regret", title="(a) Slow drift: hints pay")  # fmt: skip
    log_axis(periods.xaxis, (4, 8, 16, 50, 200))
    sheet.lines(delays, DELAYS, _swing_rows(results, "delays"), LOOKS, "x", xlabel="delay $d$",
                title=f"(b) Every delay, period ${SLOW}d$")  # fmt: skip
    saved = {
        f"{1 + v:g}": {f"${p}d$": results.saved("overlap", _swing_place(p, v), "hinted", "state", 0) for p in COLUMNS}
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
    [Sweep(name, cells, SEEDS, 90_000, paired if name == "funnel" else swinging) for name, cells in SWEEPS.items()],
    _swing_tables,
    [Figure("overlap-and-drift", _draw_swing)],
    beyond=True,
)
