"""The engine at work on the paper's funnel (K=200, T=20 000, d=50) against NumPy, C, and itself."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import limit
import numpy_loop
import statepool as sp
from growth import instance as random_instance
from linear_exp3 import LinearEXP3
from rows import Row, skipped
from statepool.learners import REGISTRY, Learner
from timing import best_of_turns

DELAY, SEED = 50, 80_000


def funnel() -> sp.Instance:
    return sp.families.funnel(seed=0)


def against_numpy(instance: sp.Instance) -> Row:
    actions = sp.simulate(instance, sp.StateEXP3(), DELAY, SEED).actions
    if not np.array_equal(actions, numpy_loop.play(instance, DELAY, SEED)):
        raise AssertionError("numpy_loop.py does not play the engine's actions")
    best = best_of_turns(
        {
            "ours": lambda: sp.simulate(instance, sp.StateEXP3(), DELAY, SEED),
            "theirs": lambda: numpy_loop.play(instance, DELAY, SEED),
        },
        turns=8,
    )
    return Row("state-exp3 vs the NumPy loop", best["theirs"] / best["ours"], at_least=100, note=_rates(instance, best))


def against_c(instance: sp.Instance) -> Row:
    name = "state-exp3 vs C (limit.c)"
    with tempfile.TemporaryDirectory() as folder:
        function = limit.build(Path(folder))
        if function is None:
            return skipped(name, "no C compiler")
        actions = sp.simulate(instance, sp.StateEXP3(), DELAY, SEED).actions
        if not np.array_equal(actions, limit.play(function, instance, DELAY, SEED)):
            raise AssertionError("limit.c does not play the engine's actions")
        best = best_of_turns(
            {
                "ours": lambda: sp.simulate(instance, sp.StateEXP3(), DELAY, SEED),
                "theirs": lambda: limit.play(function, instance, DELAY, SEED),
            },
            turns=60,
        )
    return Row(name, best["theirs"] / best["ours"], at_least=0.9, note=_rates(instance, best))


def _rates(instance: sp.Instance, best: dict[str, float]) -> str:
    ours, theirs = (instance.horizon / best[name] for name in ("ours", "theirs"))
    return f"{ours / 1e6:.2f} M rounds/s against {theirs / 1e6:.3g} M"


def tree_against_line() -> Row:
    instance = random_instance(100_000, 400)
    runs = [sp.simulate(instance, learner, 10, SEED) for learner in (sp.ActionEXP3(), LinearEXP3())]
    tree, line = (run.plays(every=20) for run in runs)
    if not np.array_equal(runs[0].actions, runs[1].actions) or abs(tree / line - 1).max() > 1e-12:
        raise AssertionError("the linear loop does not play as the sum tree does")
    longer = random_instance(100_000, 4_000)
    best = best_of_turns(
        {
            "ours": lambda: sp.simulate(longer, sp.ActionEXP3(), 10, SEED),
            "theirs": lambda: sp.simulate(longer, LinearEXP3(), 10, SEED),
        },
        turns=5,
    )
    return Row(
        "action-exp3 vs linear, K=100 000", best["theirs"] / best["ours"], at_least=20, note=_rates(longer, best)
    )


MOST_ROUNDS = {"zimmert-seldin": 12, "self-tuned": 4.2, "corrected-pool": 10, "certified": 2, "anytime": 2.5}
"""What a round may cost, in State-EXP3 rounds."""


def every_learner(instance: sp.Instance) -> tuple[list[Row], float]:
    """Each learner's round in State-EXP3 rounds, and the seconds of one of those."""
    runs = {name: _run(instance, learner()) for name, learner in REGISTRY.items()}
    best = best_of_turns(runs, turns=8)
    unit = best["state-exp3"]
    rows = [
        Row(
            f"{name} / state-exp3",
            seconds / unit,
            at_most=MOST_ROUNDS.get(name),
            note=f"{instance.horizon / seconds / 1e6:.2f} M rounds/s",
        )
        for name, seconds in best.items()
    ]
    return rows, unit / instance.horizon


def with_contexts(unit: float) -> list[Row]:
    """Rounds of requests from 100 contexts, each with rows of its own, in plain State-EXP3 rounds of `unit` seconds."""
    instance = sp.families.crowds(0, n_contexts=100, n_actions=200, horizon=20_000)
    most = {"state-exp3": 3, "self-tuned": 8}
    best = best_of_turns({name: _run(instance, REGISTRY[name]()) for name in most}, turns=8)
    return [
        Row(
            f"{name}, 100 contexts / state-exp3",
            best[name] / instance.horizon / unit,
            at_most=limit,
            note=f"{instance.horizon / best[name] / 1e6:.2f} M rounds/s",
        )
        for name, limit in most.items()
    ]


def _run(instance: sp.Instance, learner: Learner) -> Callable[[], object]:
    return lambda: sp.simulate(instance, learner, DELAY, SEED)
