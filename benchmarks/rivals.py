"""Other packages' bandits on the same work: one decision and one update a round, losses of the same instance."""

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

import statepool as sp
from rows import Row, skipped
from timing import best_of_turns

ROUNDS = 300


def rows(instance: sp.Instance, engine_round: float) -> list[Row]:
    """How many times the engine's State-EXP3 round each takes; the last is our own learner driven from Python."""
    losses = instance.theta[:ROUNDS] @ instance.P.T > np.random.default_rng(0).random(ROUNDS)[:, None]
    runs = {"our Player, by hand": lambda: by_hand(instance)}
    missing = []
    for name, package, run in (("river Exp3", "river", river), ("MABWiser Softmax", "mabwiser", mabwiser)):
        if find_spec(package):
            runs[name] = _on(run, losses)
        else:
            missing.append(skipped(name, f"{package} is not installed"))
    best = best_of_turns(runs, turns=5)
    return missing + [
        Row(
            f"{name} / state-exp3",
            seconds / ROUNDS / engine_round,
            note=f"{seconds / ROUNDS * 1e6:.0f} µs a round",
        )
        for name, seconds in best.items()
    ]


def _on(run: Callable[[np.ndarray], None], losses: np.ndarray) -> Callable[[], None]:
    return lambda: run(losses)


def river(losses: np.ndarray) -> None:
    from river.bandit import Exp3

    policy = Exp3(gamma=0.1, seed=0)
    arms = list(range(losses.shape[1]))
    for lost in losses:
        arm = policy.pull(arms)
        policy.update(arm, 1.0 - lost[arm])


def mabwiser(losses: np.ndarray) -> None:
    from mabwiser.mab import MAB, LearningPolicy

    arms = list(range(losses.shape[1]))
    bandit = MAB(arms, LearningPolicy.Softmax(tau=1))
    bandit.fit([0], [0])
    for lost in losses:
        arm = bandit.predict()
        bandit.partial_fit([arm], [1.0 - lost[arm]])


def by_hand(instance: sp.Instance) -> None:
    player = sp.StateEXP3().player(instance.P, horizon=instance.horizon)
    states = instance.P.argmax(axis=1)
    for u in np.random.default_rng(0).random(ROUNDS):
        decision = player.act(u)
        player.observe(decision, int(states[decision.action]))
        player.update(decision, 1.0)
