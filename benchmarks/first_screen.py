"""The table of the README's first screen: the learner to run beside what one would try first.

    python benchmarks/first_screen.py [--seeds 10]      about ten minutes, most of them Vowpal Wabbit's

`funnel`, `shifting` and `crowds` (ten contexts), outcomes 50 decisions late, mean regret and its standard error.
Learners without pooling are the pooled ones in a world where every action (of every context) has a state of its own:
the same losses, and nothing that one action could teach about another. Vowpal Wabbit is given the context.
"""

import argparse
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

import statepool as sp
from contexts import DELAY, EXPLORERS, vowpal
from statepool.stream import SEED_GAP

COLUMNS: dict[str, Callable[[int], sp.Instance]] = {
    "funnel": sp.families.funnel,
    "shifting": sp.families.shifting,
    "crowds": lambda seed: sp.families.crowds(seed, horizon=20_000),
}
POOLED: dict[str, sp.learners.Learner] = {
    "SelfTuned": sp.SelfTuned(), "pooled Thompson": sp.PooledThompson(), "pooled greedy": sp.PooledGreedy(),
    "State-EXP3": sp.StateEXP3(),
}  # fmt: skip
ALONE: dict[str, sp.learners.Learner] = {"Thompson": sp.PooledThompson(), "greedy": sp.PooledGreedy()}


def apart(instance: sp.Instance) -> sp.Instance:
    """The same losses, with a state for every action of every context."""
    own = np.eye(instance.n_contexts * instance.n_actions)
    losses = instance.theta @ instance.rows.T
    if instance.contexts is None:
        return sp.Instance(own, losses)
    return sp.Instance(own.reshape(instance.n_contexts, instance.n_actions, -1), losses, contexts=instance.contexts)


def regrets_on(make: Callable[[int], sp.Instance], seeds: range) -> dict[str, np.ndarray]:
    """By learner, one a seed."""
    found: dict[str, list[float]] = {}
    for seed in seeds:
        instance = make(seed)
        alone, without = apart(instance), sp.ActionEXP3() if instance.contexts is None else sp.Apart()
        runs = [(name, instance, learner) for name, learner in POOLED.items()]
        runs += [(f"{name} per action", alone, learner) for name, learner in ALONE.items()]
        for name, world, learner in [*runs, ("EXP3 per action", instance, without)]:
            found.setdefault(name, []).append(sp.simulate(world, learner, DELAY, seed + SEED_GAP).regret)
        for explorer in EXPLORERS if instance.contexts is not None and find_spec("vowpalwabbit") else ():
            found.setdefault(f"Vowpal Wabbit, {explorer}", []).append(vowpal(instance, explorer, seed + SEED_GAP))
    return {name: np.array(each) for name, each in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    seeds = range(parser.parse_args().seeds)
    for name, make in COLUMNS.items():
        print(f"{name}: {make(0)}")
        for learner, regrets in regrets_on(make, seeds).items():
            print(f"  {learner:26} {regrets.mean():8.0f} ± {regrets.std(ddof=1) / len(seeds) ** 0.5:.0f}", flush=True)


if __name__ == "__main__":
    main()
