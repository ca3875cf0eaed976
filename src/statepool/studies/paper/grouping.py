"""Study 13: choosing a grouping from data, by the published rule and by ours."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from statepool.checks import Floats, Ints
from statepool.engine import Run, simulate
from statepool.grouping import (
    choose_groups,
    merge_states,
    nested_groupings,
    prefix_means,
    published_rule,
    sampled_dimension,
)
from statepool.learners import StateEXP3
from statepool.model import Instance
from statepool.rates import default_rate
from statepool.report.values import Value
from statepool.studies.statistics import gain, mean_of, means
from statepool.studies.study import Cell, Results, Study, Sweep, Table
from statepool.studies.tasks import make_instance

DELAY, PREFIX = 20, 0.2
CLUSTERED = {f"clustered, heterogeneity {h:g}": {"heterogeneity": h, "horizon": 6_000} for h in (0.0, 0.12)}
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "funnel": ("funnel", {"horizon": 20_000}),
    "dirichlet": ("band", {"drift": 0.05, "horizon": 10_000}),
    "spread": ("spread", {"horizon": 10_000}),
}
FUNCTION = "statepool.studies.paper.grouping:two_phases"


def two_phases(
    family: str, settings: Mapping[str, Any], seed: int, stream: int, delay: int, **_: Any
) -> dict[str, float]:
    """Regret of a prefix on the identity, then of a fresh learner on each grouping, both against the whole horizon."""
    instance = make_instance(family, settings, seed)
    start = round(PREFIX * instance.horizon)
    dimension = sampled_dimension(instance.n_actions, seed + 3)
    identity = np.arange(instance.n_states)

    def run(groups: Ints, theta: Floats) -> Run:
        # The rate is set for the full horizon in both phases, as in the paper's score.
        width = dimension(merge_states(instance.P, groups))
        rate = default_rate(instance.n_actions, width, instance.horizon, delay, delay + 1)
        return simulate(Instance(instance.P, theta), StateEXP3(rate, "d+1", groups), delay, stream)

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
    if family == "clustered":
        numbers["true clusters"] = regret(identity // 4)
    return numbers


def tables(results: Results) -> list[Table]:
    names = ("identity", "published rule", "true clusters", "hindsight")
    paper = {}
    for cell in CLUSTERED:
        picked = mean_of(results.of("clustered", cell, "groups, published"), digits=0)
        paper[cell] = means(results, "clustered", cell, names) | {"groups picked": picked}
    ours = {cell: _our_row(results, "clustered", cell) for cell in CLUSTERED}
    ours |= {cell: _our_row(results, "others", cell) for cell in OTHERS}
    note = "captured %: of the gap between identity and the true clusters; saved: over identity, paired"
    return [Table("Groupings chosen from a prefix", paper), Table("A rule that works", ours, note, ours=True)]


def _our_row(results: Results, sweep: str, cell: str) -> dict[str, Value]:
    row = means(results, sweep, cell, ("identity", "our rule"))
    row |= gain(results, sweep, cell, "our rule", "identity", name="saved")
    row["groups picked"] = mean_of(results.of(sweep, cell, "groups, ours"))
    if sweep == "clustered":
        gap = float((results.of(sweep, cell, "identity") - results.of(sweep, cell, "true clusters")).mean())
        row["captured %"] = Value(100 * row["saved"].number / gap, None, 0)
    return row


STUDY = Study(
    name="grouping",
    number="13",
    title="Grouping from data",
    source="paper's released studies, 13; the second table is ours",
    asks="Merging states speeds learning up when the merged ones are alike. Can a fifth of the horizon tell "
    "which to merge?",
    seen="The published rule hardly merges anything, because it takes sampling noise for bias. Rehearsing the "
    "rest of the run on state means drawn from their posterior finds groupings about as good as the true "
    "clusters, and keeps states apart where merging would not pay.",
    limits="Digits of the published columns hang on an incidental order of Monte Carlo draws.",
    sweeps=(
        Sweep(
            "clustered",
            tuple(Cell(label, "clustered", settings, DELAY) for label, settings in CLUSTERED.items()),
            24, (1, 40_000), function=FUNCTION,
        ),
        Sweep(
            "others",
            tuple(Cell(label, family, settings, DELAY) for label, (family, settings) in OTHERS.items()),
            24, (1, 40_000), function=FUNCTION,
        ),
    ),
    tables=tables,
)  # fmt: skip
