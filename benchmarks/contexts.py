"""Requests with contexts: our learners beside other packages' contextual bandits, on the same instances and delays.

    python benchmarks/contexts.py [--out contexts.json]

Regret at 10 and 100 contexts, and where the rivals catch up as an action in a context moves the outcome past the state.
Every rival is given the context and learns from the same late outcomes, in the order in which they come. They do not
know states; the last one is given the rows of P as features of the actions, which is what pooling knows.

Our learners and UCB are run on 20 seeds, other packages on 4 of them, since they take minutes where ours take seconds.
What rivals did stands in the file, seed by seed: a run that was stopped goes on where it was. Ours are run again.
"""

import argparse
import json
from collections import deque
from collections.abc import Callable, Container
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import statepool as sp
from statepool.checks import Floats
from statepool.comparison import standard_error

N_ACTIONS, HORIZON, DELAY = 40, 20_000, 50
EXPLORERS = {"squarecb": "--squarecb", "epsilon": "--epsilon 0.05", "regcb": "--regcb --mellowness 0.01"}
EFFECTS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6)
"""The most that an action in a context moves the mean loss past the state, either way."""
UCB, SQUARECB = "UCB for each context", "Vowpal Wabbit squarecb"
FOLLOWED = (UCB, SQUARECB)
"""The rivals that are run at every size of effects."""
SEEDS, SEEDS_OF_PACKAGES = range(500, 520), range(500, 504)
OURS: dict[str, sp.learners.Learner] = {
    "SelfTuned": sp.SelfTuned(), "State-EXP3": sp.StateEXP3(),
}  # fmt: skip

Way = Callable[[sp.Instance, int], float]
"""To play an instance, from a seed: its regret."""
Act = Callable[[int], tuple[int, float]]
Learn = Callable[[int, int, float, float], None]


def drive(instance: sp.Instance, act: Act, learn: Learn, seed: int) -> float:
    """Regret of a rival: `act(context)` gives an action and its probability, `learn` is given both with the loss."""
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
        if len(told) == 250:  # one at a time it would take an hour
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


def simulated(learner: sp.learners.Learner) -> Way:
    return lambda instance, seed: sp.simulate(instance, learner, DELAY, seed).regret


def rivals() -> dict[str, Way]:
    """Those that are installed."""
    found: dict[str, Way] = {UCB: ucb}
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


class Found:
    """Regrets by setting, learner and seed, in a file that is written after each run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.regrets: dict[str, dict[str, dict[str, float]]] = json.loads(path.read_text()) if path.exists() else {}

    def fill(self, setting: str, name: str, seed: int, way: Way, instance: sp.Instance) -> None:
        done = self.regrets.setdefault(setting, {}).setdefault(name, {})
        if name in OURS or str(seed) not in done:
            done[str(seed)] = way(instance, 70_000 + seed)
            self._path.write_text(json.dumps(self.regrets, indent=1) + "\n")

    def paired(self, setting: str, name: str, other: str) -> tuple[Floats, Floats]:
        """The regrets of both, on the seeds of the first."""
        regrets = self.regrets[setting]
        return np.array(list(regrets[name].values())), np.array([regrets[other][seed] for seed in regrets[name]])

    def lines(self, setting: str) -> list[str]:
        """One a learner, the best first."""
        names = sorted(self.regrets[setting], key=lambda name: np.mean(list(self.regrets[setting][name].values())))
        return [self._line(setting, name) for name in names]

    def _line(self, setting: str, name: str) -> str:
        each, ours = self.paired(setting, name, "SelfTuned")
        shown = f"{each.mean():8.0f} ± {standard_error(each):4.0f} {each.mean() / ours.mean():8.1f}"
        return f"  {name:34} {shown}   ({each.size} seeds)"


def title(n_contexts: int, effect: float) -> str:
    return f"{n_contexts} contexts" + (f", effects up to {effect}" if effect else "")


def measure(found: Found, n_contexts: int, effect: float, followed: Container[str]) -> None:
    setting = title(n_contexts, effect)
    quick = {name: simulated(learner) for name, learner in OURS.items()} | {UCB: ucb}
    slow = {name: way for name, way in rivals().items() if name in followed and name not in quick}
    for seed in SEEDS:
        instance = crowd(seed, n_contexts, effect)
        for name, way in (quick | slow if seed in SEEDS_OF_PACKAGES else quick).items():
            found.fill(setting, name, seed, way, instance)
        print(f"{setting}, seed {seed}: done", flush=True)


def crossing(found: Found, rival: str, ours: str) -> str:
    """The size of effects from which a rival has less regret, on the line between two sizes measured."""
    pairs = [found.paired(title(10, effect), rival, ours) for effect in EFFECTS]
    gaps = [theirs.mean() - own.mean() for theirs, own in pairs]
    for i in range(1, len(gaps)):
        if gaps[i] < 0:
            share = gaps[i - 1] / (gaps[i - 1] - gaps[i])
            return f"from effects of {EFFECTS[i - 1] + share * (EFFECTS[i] - EFFECTS[i - 1]):.2f} on"
    return f"nowhere up to effects of {EFFECTS[-1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("contexts.json"))
    found = Found(parser.parse_args().out)
    for n_contexts in (10, 100):
        measure(found, n_contexts, 0.0, rivals())
    for effect in EFFECTS[1:]:
        measure(found, 10, effect, FOLLOWED)
    for setting in found.regrets:
        print(f"\n{setting}: regret, and in multiples of SelfTuned's on the same seeds")
        print("\n".join(found.lines(setting)))
    print()
    for rival in FOLLOWED:
        if rival in rivals():
            print(f"{rival} has less regret than SelfTuned {crossing(found, rival, 'SelfTuned')}")


if __name__ == "__main__":
    main()
