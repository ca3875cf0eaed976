"""The README's table: the learner to run beside what one would try first, on three worlds.

    python benchmarks/readme_table.py [--seeds 8] [--first 4000]      half an hour, most of it Vowpal Wabbit's

- **shop**: 30 products, 20 000 visits. A purchase is reported about 1 500 visits later, that nothing was bought only
  after 8 400. Learners that are not made for this are handed every outcome when its window closes.
- **catalogue**: 200 items in a dozen categories (`funnel`), 20 000 visits, outcomes 50 visits late.
- **jump**: 40 items, 10 000 visits, 50 late; later the best state turns bad and another one best (`shifting`).

Regret is in losses, or missed purchases: how much more is lost than by the best fixed action. Vowpal Wabbit runs
`--cb_explore_adf` with an indicator for each action and the explorer that turns out best in each world; it is left out
where it is not installed (requirements-bench.txt). The table is Markdown: mean ± standard error over the seeds.
"""

import argparse
from collections import deque
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

import statepool as sp

WINDOW, WAIT, DELAY = 8_400, 1_500.0, 50
RUN_SEEDS = 80_000
"""Runs have seeds of their own: with the instance's seed they would share its random numbers."""


class World(NamedTuple):
    make: Callable[[int], sp.Instance]
    delay: int
    """After which every outcome is known."""
    early: bool = False
    """Whether purchases come before that."""


WORLDS = {
    "shop": World(lambda seed: sp.families.shop(seed, revenue=1), WINDOW, early=True),
    "catalogue": World(sp.families.funnel, DELAY),
    "jump": World(sp.families.shifting, DELAY),
}
LEARNERS = {
    "**SelfTuned** (the learner to run)": sp.SelfTuned(),
    "Thompson sampling per action": sp.ActionThompson(),
    "State-EXP3 (the paper's)": sp.StateEXP3(),
}
VOWPAL, BLIND = "Vowpal Wabbit, best of three explorers", "choosing blindly"
EXPLORERS = ("--squarecb", "--squarecb --gamma_scale 100", "--regcb --mellowness 0.01")


def simulated(learner: sp.learners.Learner, world: World, seed: int) -> float:
    instance = world.make(seed)
    delay: int | sp.Conversions = world.delay
    if world.early:
        waits = np.random.default_rng((seed, 9)).exponential(WAIT, instance.horizon).astype(int)
        delay = sp.Conversions(WINDOW, np.minimum(waits, WINDOW - 1))
    return sp.simulate(instance, learner, delay, seed + RUN_SEEDS).regret


def vowpal(explorer: str, world: World, seed: int) -> float:
    """Vowpal Wabbit, which learns each outcome once it is known for certain."""
    from vowpalwabbit import Workspace

    instance, rng = world.make(seed), np.random.default_rng(seed + RUN_SEEDS)
    actions = np.zeros(instance.horizon, dtype=int)
    waiting: deque[tuple[int, float, float]] = deque()
    lines = [f"| a{a}" for a in range(instance.n_actions)]
    workspace = Workspace(f"--cb_explore_adf {explorer} --quiet -b 18 --random_seed {seed}")
    for t in range(instance.horizon):
        if len(waiting) > world.delay:
            action, loss, probability = waiting.popleft()
            labelled = list(lines)
            labelled[action] = f"0:{loss}:{probability} {lines[action]}"
            workspace.learn(labelled)
        policy = np.array(workspace.predict(lines))
        policy /= policy.sum()
        action = int(rng.choice(instance.n_actions, p=policy))
        state = int(rng.choice(instance.n_states, p=instance.P[action]))
        waiting.append((action, float(rng.random() < instance.theta[t, state]), float(policy[action])))
        actions[t] = action
    workspace.finish()
    return instance.regret(actions)


def arms() -> dict[str, list[Callable[[World, int], float]]]:
    """By name; of several under one name the best in a world counts."""
    found = {name: [partial(simulated, learner)] for name, learner in LEARNERS.items()}
    if find_spec("vowpalwabbit"):
        found[VOWPAL] = [partial(vowpal, explorer) for explorer in EXPLORERS]
    return found | {BLIND: [partial(simulated, sp.learners.find("uniform")())]}


def cell(ways: list[Callable[[World, int], float]], world: World, seeds: range) -> str:
    regrets = min((np.array([way(world, seed) for seed in seeds]) for way in ways), key=np.mean)
    return f"{regrets.mean():,.0f} ± {regrets.std(ddof=1) / len(seeds) ** 0.5:.0f}".replace(",", " ").replace("-", "−")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first", type=int, default=4_000)
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    print(f"| regret | {' | '.join(WORLDS)} |\n|---|{'---|' * len(WORLDS)}")
    for name, ways in arms().items():
        cells = [cell(ways, world, seeds) for world in WORLDS.values()]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
