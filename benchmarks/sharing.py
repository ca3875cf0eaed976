"""What sharing states among contexts is worth: the tables of docs/requests.md, on 20 paired seeds.

    python benchmarks/sharing.py

`crowds` at 1 to 1 000 contexts; `sparse_crowds` with three denominators; drifting and switching means, with the part of
the gap between State-EXP3 and the best of the other rules, chosen in hindsight, that SelfTuned closes; and by how much
the best policy for the requests as they came beats the one that regret is measured against: what it fits of their luck.
"""

from collections.abc import Callable

import numpy as np

import statepool as sp
from statepool.checks import Floats
from statepool.comparison import standard_error
from statepool.learners import Learner

HORIZON, DELAY = 20_000, 50
SEEDS = range(300, 320)
FORGETTING = (1.0, 0.9999, 0.999, 0.99)
SHARING: dict[str, Learner] = {
    "SelfTuned": sp.SelfTuned(), "PooledGreedy": sp.PooledGreedy(), "StateEXP3": sp.StateEXP3(),
    "Apart(SelfTuned())": sp.Apart(sp.SelfTuned()), "Apart()": sp.Apart(), "Uniform": sp.Uniform(),
}  # fmt: skip
RULES: dict[str, Learner] = {f"greedy {each}": sp.PooledGreedy(forgetting=each) for each in FORGETTING} | {
    f"Thompson {each}": sp.PooledThompson(forgetting=each) for each in FORGETTING
}

Make = Callable[[int], sp.Instance]


def crowds(n_contexts: int, means: str = "steady") -> Make:
    return lambda seed: sp.families.crowds(seed, n_contexts=n_contexts, horizon=HORIZON, means=means)


def sparse(n_contexts: int, means: str = "steady") -> Make:
    return lambda seed: sp.families.sparse_crowds(seed, n_contexts=n_contexts, horizon=HORIZON, means=means)


def regrets(make: Make, learner: Learner | Callable[[sp.Instance], Learner]) -> Floats:
    """On each seed; a learner may be made for the instance."""
    found = []
    for seed in SEEDS:
        instance = make(seed)
        own = learner if isinstance(learner, Learner) else learner(instance)
        found.append(sp.simulate(instance, own, DELAY, 80_000 + seed).regret)
    return np.array(found)


def show(name: str, each: Floats) -> None:
    print(f"  {name:24} {each.mean():8.0f} ± {standard_error(each):3.0f}", flush=True)


def by_contexts() -> None:
    for n_contexts in (1, 10, 100, 1_000):
        print(f"crowds, {n_contexts} contexts")
        for name, learner in SHARING.items():
            show(name, regrets(crowds(n_contexts), learner))


def by_denominator() -> None:
    for n_contexts in (20, 100):
        print(f"sparse crowds, {n_contexts} contexts")
        show("SelfTuned", regrets(sparse(n_contexts), sp.SelfTuned()))
        show("the true shares", regrets(sparse(n_contexts), lambda instance: sp.StateEXP3(denominator=instance.shares)))
        for denominator in ("marginal", "conditional"):
            show(denominator, regrets(sparse(n_contexts), sp.StateEXP3(denominator=denominator)))


def gaps_closed() -> None:
    for family, sizes in ((crowds, (10, 100)), (sparse, (20, 100))):
        for n_contexts in sizes:
            for means in ("drifting", "switching"):
                print(
                    f"{family.__name__}, {n_contexts} contexts, {means}: {_gap(family(n_contexts, means))}", flush=True
                )


def _gap(make: Make) -> str:
    tuned, state = (regrets(make, each).mean() for each in (sp.SelfTuned(), sp.StateEXP3()))
    rules = {name: regrets(make, learner).mean() for name, learner in RULES.items()}
    best = min(rules, key=lambda name: rules[name])
    closed = (state - tuned) / (state - rules[best])
    return f"State-EXP3 {state:.0f}, SelfTuned {tuned:.0f}, best rule {rules[best]:.0f} ({best}): closes {closed:.0%}"


def luck(instance: sp.Instance) -> float:
    """The loss of the best policy less that of the best for the requests as they came."""
    sums = np.zeros((instance.n_contexts, instance.n_states))
    np.add.at(sums, instance.requests, instance.theta)
    losses = np.einsum("kas,ks->ka", instance.P, sums)
    return float(losses[np.arange(instance.n_contexts), instance.best_policy].sum() - losses.min(axis=1).sum())


def main() -> None:
    by_contexts()
    by_denominator()
    gaps_closed()
    for means in ("steady", "drifting"):
        print(f"luck, crowds, 1000 contexts, {means}")
        show("regret more", np.array([luck(crowds(1_000, means)(seed)) for seed in SEEDS]))


if __name__ == "__main__":
    main()
