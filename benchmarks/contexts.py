"""Requests with contexts: our learners beside other packages' contextual bandits, on the same instances and delays.

    python benchmarks/contexts.py            regret at 10 and 100 contexts, and where the rivals catch up as actions
                                             move the outcome past the state

Every rival is told the context and learns from the same late outcomes, in the order in which they come. They do not
know states; the last one is given the rows of P as features of the actions, which is what pooling knows.
"""

import argparse
import json
from collections import deque
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import statepool as sp

N_ACTIONS, HORIZON, DELAY = 40, 20_000, 50
EXPLORERS = {"squarecb": "--squarecb", "epsilon": "--epsilon 0.05", "regcb": "--regcb --mellowness 0.01"}
EFFECTS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3)
OURS: dict[str, sp.learners.Learner] = {
    "SelfTuned": sp.SelfTuned(), "CorrectedPool": sp.CorrectedPool(), "State-EXP3": sp.StateEXP3(),
}  # fmt: skip

Act = Callable[[int], tuple[int, float]]
Learn = Callable[[int, int, float, float], None]


def drive(instance: sp.Instance, act: Act, learn: Learn, seed: int) -> float:
    """Regret of a rival: `act(context)` gives an action and its probability, `learn` is told both with the loss."""
    rng, waiting, actions = np.random.default_rng(seed), deque[tuple[int, int, float, float]](), []
    assert instance.contexts is not None
    direct = np.zeros_like(instance.P) if instance.effects is None else instance.effects
    for t, context in enumerate(instance.contexts.tolist()):
        if len(waiting) > DELAY:
            learn(*waiting.popleft())
        action, probability = act(context)
        state = int(rng.choice(instance.n_states, p=instance.P[context, action]))
        loss = float(rng.random() < instance.theta[t, state] + direct[context, action, state])
        waiting.append((context, action, probability, loss))
        actions.append(action)
    return instance.regret(actions)


def vowpal(instance: sp.Instance, explorer: str, seed: int, rows: bool = False) -> float:
    from vowpalwabbit import Workspace

    crossed = "-q UA" if not rows else "--ignore_linear U"
    workspace = Workspace(f"--cb_explore_adf {EXPLORERS[explorer]} {crossed} --quiet -b 20 --random_seed {seed}")
    rng = np.random.default_rng(seed + 1)

    def lines(context: int, labels: dict[int, str]) -> list[str]:
        def features(action: int) -> str:
            if not rows:
                return f"a{action}"
            return " ".join(f"s{s}:{p:.4f}" for s, p in enumerate(instance.P[context, action]))

        return [f"shared |U c{context}"] + [f"{labels.get(a, '')}|A {features(a)}" for a in range(instance.n_actions)]

    def act(context: int) -> tuple[int, float]:
        shares = np.array(workspace.predict(lines(context, {})))
        action = int(rng.choice(instance.n_actions, p=shares / shares.sum()))
        return action, float(shares[action])

    def learn(context: int, action: int, probability: float, loss: float) -> None:
        workspace.learn(lines(context, {action: f"0:{loss}:{probability} "}))

    try:
        return drive(instance, act, learn, seed)
    finally:
        workspace.finish()


def lin_ucb(instance: sp.Instance, seed: int) -> float:
    from mabwiser.mab import MAB, LearningPolicy

    arms = list(range(instance.n_actions))
    bandit = MAB(arms, LearningPolicy.LinUCB(alpha=0.3), seed=seed)
    hot = np.eye(instance.n_contexts)
    bandit.fit(arms, [0.5] * len(arms), np.zeros((len(arms), instance.n_contexts)))

    told: list[tuple[int, int, float]] = []

    def learn(context: int, action: int, _: float, loss: float) -> None:
        told.append((context, action, loss))
        if len(told) == 10 * instance.n_contexts:  # one at a time it would take an hour
            contexts, actions, losses = zip(*told, strict=True)
            bandit.partial_fit(list(actions), [1.0 - each for each in losses], hot[list(contexts)])
            told.clear()

    return drive(instance, lambda context: (bandit.predict(hot[context : context + 1]), 1.0), learn, seed)


def ucb(instance: sp.Instance, seed: int) -> float:
    """UCB1 for each context, a count and a sum for each action of it."""
    counts, sums = (np.zeros((instance.n_contexts, instance.n_actions)) for _ in range(2))

    def act(context: int) -> tuple[int, float]:
        n = counts[context]
        bonus = np.sqrt(0.5 * np.log(n.sum() + 1) / np.maximum(n, 1))
        values = np.where(n == 0, -np.inf, sums[context] / np.maximum(n, 1) - bonus)
        return int(values.argmin()), 1.0

    def learn(context: int, action: int, _: float, loss: float) -> None:
        counts[context, action] += 1
        sums[context, action] += loss

    return drive(instance, act, learn, seed)


def rivals() -> dict[str, Callable[[sp.Instance, int], float]]:
    """Those that are installed."""
    found: dict[str, Callable[[sp.Instance, int], float]] = {"UCB for each context": ucb}
    if find_spec("mabwiser"):
        found["MABWiser LinUCB"] = lin_ucb
    if find_spec("vowpalwabbit"):
        for name in EXPLORERS:
            found[f"Vowpal Wabbit {name}"] = lambda instance, seed, name=name: vowpal(instance, name, seed)
        found["Vowpal Wabbit, rows as features"] = lambda instance, seed: vowpal(instance, "squarecb", seed, rows=True)
    return found


def crowd(seed: int, n_contexts: int, effect: float = 0.0) -> sp.Instance:
    """`effect`: the most that an action in a context moves the loss past the state, either way."""
    instance = sp.families.crowds(seed, n_contexts=n_contexts, n_actions=N_ACTIONS, horizon=HORIZON)
    if effect == 0:
        return instance
    moved = np.random.default_rng(seed + 1_000).uniform(-effect, effect, instance.P.shape)
    low, high = instance.theta.min(axis=0), instance.theta.max(axis=0)
    return sp.Instance(instance.P, instance.theta, np.clip(moved, -low, 1 - high), instance.contexts)


def measure(seeds: list[int], n_contexts: int, effect: float, names: list[str]) -> dict[str, float]:
    regrets: dict[str, list[float]] = {}
    for seed in seeds:
        instance = crowd(seed, n_contexts, effect)
        for name, learner in OURS.items():
            regrets.setdefault(name, []).append(sp.simulate(instance, learner, DELAY, 70_000 + seed).regret)
        for name, rival in rivals().items():
            if name in names:
                regrets.setdefault(name, []).append(rival(instance, 70_000 + seed))
        print(f"  {n_contexts} contexts, effects of {effect}, seed {seed}: done", flush=True)
    return {name: float(np.mean(each)) for name, each in regrets.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("contexts.json"))
    options = parser.parse_args()
    seeds, found = list(range(500, 500 + options.seeds)), {}
    for n_contexts in (10, 100):
        asked = [name for name in rivals() if n_contexts <= 10 or name != "MABWiser LinUCB"]  # it would take hours
        found[f"{n_contexts} contexts"] = measure(seeds, n_contexts, 0.0, asked)
    for effect in EFFECTS[1:]:
        followed = ["UCB for each context", "Vowpal Wabbit squarecb"]
        found[f"10 contexts, effects up to {effect}"] = measure(seeds, 10, effect, followed)
    for title, regrets in found.items():
        print(f"\n{title}: regret, and in multiples of SelfTuned's")
        for name, regret in sorted(regrets.items(), key=lambda pair: pair[1]):
            print(f"  {name:34} {regret:8.0f} {regret / regrets['SelfTuned']:8.1f}")
    options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
