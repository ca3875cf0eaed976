"""How the cost of a round grows with the number of actions, and that of a run with its length."""

from collections.abc import Callable

import numpy as np

import statepool as sp
from rows import Row
from statepool.learners import Learner
from timing import best_of_turns

ACTIONS = (40, 200, 1_000, 5_000, 20_000, 100_000)
HORIZONS = (5_000, 20_000, 80_000, 320_000)
MOST_WORK = 40_000_000


def instance(n_actions: int, horizon: int, n_states: int = 6) -> sp.Instance:
    """A random map with steady means: made quickly at any size."""
    rng = np.random.default_rng(n_actions)
    theta = np.tile(np.linspace(0.92, 0.28, n_states), (horizon, 1))
    return sp.Instance(rng.dirichlet(np.ones(n_states), n_actions), theta)


def exponent(sizes: tuple[int, ...], seconds: list[float]) -> float:
    """The slope of log seconds in log size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def in_actions(learner: Learner) -> float:
    """Seconds a round, from 40 to 100 000 actions."""
    rounds = {K: int(np.clip(MOST_WORK // K, 500, 20_000)) for K in ACTIONS}
    best = best_of_turns({str(K): _run(learner, K, T) for K, T in rounds.items()}, turns=4)
    return exponent(ACTIONS, [best[str(K)] / T for K, T in rounds.items()])


def in_rounds(learner: Learner) -> float:
    """Seconds a run of 200 actions."""
    best = best_of_turns({str(T): _run(learner, 200, T) for T in HORIZONS}, turns=5)
    return exponent(HORIZONS, [best[str(T)] for T in HORIZONS])


def _run(learner: Learner, n_actions: int, horizon: int) -> Callable[[], object]:
    problem = instance(n_actions, horizon)
    return lambda: sp.simulate(problem, learner, delay=50, seed=1)


def rows() -> list[Row]:
    learners = {"state-exp3": sp.StateEXP3(), "action-exp3": sp.ActionEXP3()}
    return [
        Row(f"{name}: exponent in {size}", measure(learner), "", at_most=1, note=f"of the cost, {span}")
        for name, learner in learners.items()
        for size, measure, span in (("K", in_actions, "K 40 to 100 000"), ("T", in_rounds, "T 5 000 to 320 000"))
    ]
