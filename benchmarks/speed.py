"""The engine at work on the paper's funnel (K=200, T=20 000, d=50) against NumPy, C, and itself."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import limit
import numpy_loop
import statepool as sp
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
    return Row(name, best["theirs"] / best["ours"], at_least=0.7, note=_rates(instance, best))


def _rates(instance: sp.Instance, best: dict[str, float]) -> str:
    ours, theirs = (instance.horizon / best[name] for name in ("ours", "theirs"))
    return f"{ours / 1e6:.2f} M rounds/s against {theirs / 1e6:.3g} M"


COLD = """
import time, sys
import statepool as sp
instance = sp.families.funnel(seed=0, n_actions=200, horizon=50)
for name in sys.argv[1:]:
    learner = sp.learners.find(name)()
    start = time.process_time()
    sp.simulate(instance, learner, 50, 1)
    print(name, time.process_time() - start)
"""


def _cold(names: list[str]) -> float:
    """CPU seconds of the first run of each learner in a new process with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        command = [sys.executable, "-c", COLD, *names]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return sum(float(line.split()[1]) for line in done.stdout.splitlines())


def compiling() -> list[Row]:
    """What compiling costs, cold."""
    asked = {"state-exp3": (["state-exp3"], 5), "self-tuned": (["self-tuned"], 8), "all learners": (list(REGISTRY), 90)}
    return [Row(f"compiling {name}, CPU seconds", _cold(names), at_most=most) for name, (names, most) in asked.items()]


MOST_ROUNDS = {"self-tuned": 20}
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
    most = {"state-exp3": 2, "self-tuned": 40}
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
