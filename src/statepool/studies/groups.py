"""Studies 7 and 13: merging states into given groups, and choosing the groups from data."""

from math import sqrt
from typing import Any

import numpy as np

from statepool.checks import Floats, Ints
from statepool.engine import Run
from statepool.grouping import (
    choose_groups,
    merge_states,
    nested_groupings,
    prefix_means,
    published_rule,
    sampled_dimension,
)
from statepool.guarantees import expected_best_walk, theorem_4
from statepool.kernels import columns_of
from statepool.learners import StateEXP3
from statepool.model import Instance
from statepool.probes import DimensionProbe
from statepool.rates import default_rate
from statepool.report.palette import AMBER, BLUE, INK, MUTED, PURPLE, STATE, SURFACE, VERMILLION, Look
from statepool.report.sheet import Rows, Sheet, Value
from statepool.studies.study import Cell, Figure, Results, Sweep, Table, Task, add_study

GROUPS, HETEROGENEITIES = (1, 2, 4, 8, 16), (0, 0.12)
HORIZON, DELAY, N_ACTIONS, N_STATES = 6_000, 20, 40, 16
HARD = {"n_actions": 5, "n_drifting": 1, "block": 50, "amplitude": 0.1, "horizon": 20_000}


def grouped(task: Task) -> dict[str, float]:
    """Interleaved regret on a grouping, the dimension of the single-copy run on it, and the spread inside groups."""
    instance, n_groups = task.instance(), task.cell.extra["n_groups"]
    groups = np.arange(N_STATES) // (N_STATES // n_groups)
    path = np.empty(instance.horizon)
    single = task.run(instance, StateEXP3(groups=groups))
    single.measure(DimensionProbe(columns_of(merge_states(instance.P, groups)), path))
    means = instance.theta.reshape(instance.horizon, n_groups, -1)
    return {
        "regret": task.run(instance, StateEXP3(copies="d+1", groups=groups)).regret,
        "dimension": float(path.mean()),
        "delta": float((means.max(axis=2) - means.min(axis=2)).max(axis=1).mean()),
    }


def hard_instance(task: Task) -> dict[str, float]:
    """Regret and loss on Theorem 2's construction, and by how much the best fixed action beats T/2."""
    instance = task.instance()
    run = task.run(instance, StateEXP3())
    return {"regret": run.regret, "loss": run.loss, "gain": instance.horizon / 2 - float(instance.total_losses.min())}


def comparators_gain(n_blocks: int, block: int, amplitude: float, draws: int) -> Value:
    """amplitude · block · E[(sum of signs)^+], exactly, with the standard error of so many Monte Carlo draws."""
    step = amplitude * block
    mean = step * expected_best_walk(n_blocks, 1)
    # The sum is symmetric with variance n_blocks: its positive part has half of the second moment.
    return Value(mean, sqrt((step**2 * n_blocks / 2 - mean**2) / draws))


def _group_rows(results: Results, heterogeneity: float) -> Rows:
    rows, sweep = {}, f"h={heterogeneity:g}"
    for n in GROUPS:
        row = {"regret": results.value(sweep, f"{n} groups", "regret", digits=0)}
        row["mean v"] = results.value(sweep, f"{n} groups", "dimension", digits=3)
        row["delta"] = results.value(sweep, f"{n} groups", "delta", digits=3)
        # The paper rounds delta to three decimals first.
        spread = HORIZON * round(row["delta"].number, 3)
        bound = theorem_4(N_ACTIONS, DELAY, row["mean v"].number * HORIZON, spread).value
        rows[f"{n} groups"] = row | {"Theorem 4": Value(bound, None, 0)}
    return rows


def _representation_tables(results: Results) -> list[Table]:
    check = {
        "State-EXP3": {
            "regret": results.value("hard", "hard", "regret"),
            "comparator's gain": results.value("hard", "hard", "gain"),
            "gain, exact": comparators_gain(20_000 // 50 - 1, 50, 0.1, draws=400),
            "loss / (T/2)": results.value("hard", "hard", "loss", digits=4, over=HARD["horizon"] / 2),
        }
    }
    return [
        *(Table(f"Regret by number of groups, heterogeneity {h:g}", _group_rows(results, h)) for h in HETEROGENEITIES),
        Table("Hard-instance check, J=1", check, "comparator's gain: by how much the best fixed action beats T/2"),
    ]


def _draw_groups(sheet: Sheet, results: Results) -> None:
    axes = sheet.panels(2, 2.2, sharey=True)
    titles = ("States of a group alike", "States of a group differ a little")
    for ax, heterogeneity, title in zip(axes, HETEROGENEITIES, titles, strict=True):
        rows = _group_rows(results, heterogeneity)
        sheet.lines(ax, GROUPS, rows, {"Theorem 4": Look(INK, "_")}, proved=True)
        sheet.lines(ax, GROUPS, rows, {"regret": STATE}, "xy", title=title, xlabel="number of groups")


add_study(
    "representation",
    [
        *(Sweep(
            f"h={h:g}",
            [Cell(f"{n} groups", "clustered", {"heterogeneity": float(h), "horizon": HORIZON}, DELAY,
                  extra={"n_groups": n}) for n in GROUPS],
            24, 20_000, grouped,
        ) for h in HETEROGENEITIES),
        Sweep("hard", [Cell("hard", "hard", HARD, 50)], 400, 10_000, hard_instance),
    ],
    _representation_tables,
    [Figure("groups", _draw_groups)],
)  # fmt: skip

PREFIX = 0.2
CHOSEN: dict[str, tuple[str, dict[str, Any]]] = {
    "funnel": ("funnel", {"horizon": 20_000}),
    "dirichlet": ("band", {"drift": 0.05, "horizon": 10_000}),
    "spread": ("spread", {"horizon": 10_000}),
}


def two_phases(task: Task) -> dict[str, float]:
    """Regret of a prefix on the identity, then of a fresh learner on each grouping, against the whole horizon."""
    instance, delay = task.instance(), task.cell.delay
    start = round(PREFIX * instance.horizon)
    dimension = sampled_dimension(instance.n_actions, task.seed + 3)
    identity = np.arange(instance.n_states)

    def run(groups: Ints, theta: Floats) -> Run:
        # The rate is set for the full horizon in both phases, as in the paper's score.
        width = dimension(merge_states(instance.P, groups))
        rate = default_rate(instance.n_actions, width, instance.horizon, delay, delay + 1)
        return task.run(Instance(instance.P, theta), StateEXP3(rate, "d+1", groups))

    first = run(identity, instance.theta[:start])
    states = first.states.astype(np.int64)
    seen = (instance.P, states, first.outcomes, instance.horizon, delay, dimension)
    published, ours = published_rule(*seen), choose_groups(*seen)

    def regret(groups: Ints) -> float:
        return first.loss + run(groups, instance.theta[start:]).loss - float(instance.total_losses.min())

    nested = nested_groupings(prefix_means(states, first.outcomes, instance.n_states))
    numbers = {
        "identity": regret(identity), "published rule": regret(published), "our rule": regret(ours),
        "hindsight": min(regret(groups) for groups in nested),
        "groups, published": float(published.max() + 1), "groups, ours": float(ours.max() + 1),
    }  # fmt: skip
    if task.cell.family == "clustered":
        numbers["true clusters"] = regret(identity // 4)
    return numbers


CLUSTERED = Sweep(
    "clustered",
    [Cell(f"clustered, heterogeneity {h:g}", "clustered", {"heterogeneity": h, "horizon": HORIZON}, DELAY)
     for h in (0.0, 0.12)],
    24, 40_000, two_phases,
)  # fmt: skip
OTHERS = Sweep("others", [Cell(label, *cell, DELAY) for label, cell in CHOSEN.items()], 24, 40_000, two_phases)
RULES = {
    "published rule": Look(VERMILLION, "s"),
    "our rule": Look(BLUE, "o"),
    "true clusters": Look(AMBER, "D"),
    "hindsight": Look(PURPLE, "v"),
}


def _grouping_tables(results: Results) -> list[Table]:
    paper = results.rows("clustered", CLUSTERED.labels, ("identity", "published rule", "true clusters", "hindsight"))
    for cell, row in paper.items():
        row["groups picked"] = results.value("clustered", cell, "groups, published", digits=0)
    ours = {cell: _our_row(results, sweep.name, cell) for sweep in (CLUSTERED, OTHERS) for cell in sweep.labels}
    note = "captured %: of the gap between identity and the true clusters; saved: over identity, paired"
    return [Table("Groupings chosen from a prefix", paper), Table("A rule that works", ours, note, ours=True)]


def _our_row(results: Results, sweep: str, cell: str) -> dict[str, Value]:
    row = results.means(sweep, cell, ("identity", "our rule"))
    row |= results.gain(sweep, cell, "our rule", "identity", name="saved")
    row["groups picked"] = results.value(sweep, cell, "groups, ours")
    if sweep == "clustered":
        gap = results.saved(sweep, cell, "true clusters", "identity").number
        row["captured %"] = Value(100 * row["saved"].number / gap, None, 0)
    return row


def _draw_grouping(sheet: Sheet, results: Results) -> None:
    (ax,) = sheet.panels(1, 2.5)
    places = [(sweep.name, cell) for sweep in (CLUSTERED, OTHERS) for cell in sweep.labels]
    ax.axvline(0, color=MUTED, linewidth=0.9)
    for row, (sweep, cell) in enumerate(places):
        rules = [rule for rule in RULES if sweep == "clustered" or rule != "true clusters"]
        for i, rule in enumerate(rules):
            value, y = results.percent_saved(sweep, cell, rule, "identity"), row + (i - 1.5) * 0.17
            colour, marker = RULES[rule]
            ax.errorbar(value.number, y, xerr=value.se, color=colour, marker=marker, elinewidth=0.9, linestyle="",
                        markeredgecolor=SURFACE, markeredgewidth=0.5, label=rule if row == 0 else None)  # fmt: skip
            sheet.target(ax, value.number, y, f"{rule}, {cell}: saves {value.with_error()} % over no merging", 8)
    ax.set_yticks(range(len(places)), [cell.replace(", ", ",\n") for _, cell in places])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(places) - 0.4, -0.6)
    ax.grid(False)
    ax.grid(axis="x")
    ax.set_xlabel("regret saved over keeping all states separate, %")
    sheet.figure.legend(loc="outside upper center", ncols=4)


add_study(
    "grouping",
    [CLUSTERED, OTHERS],
    _grouping_tables,
    [Figure("grouping", _draw_grouping)],
)
