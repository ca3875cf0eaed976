"""Study B (ours): the published dimensions with proved brackets, and Theorem 1 with a proved budget."""

from typing import Any

import numpy as np

from statepool.dimension import bracket, estimate
from statepool.guarantees import theorem_1
from statepool.learners import StateEXP3
from statepool.report.sheet import Value
from statepool.studies.study import Cell, Results, Sweep, Table, Task, add_study

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


def _tables(results: Results) -> list[Table]:
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
    _tables,
    beyond=True,
)  # fmt: skip
