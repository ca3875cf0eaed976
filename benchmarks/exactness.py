"""Plays added in floats beside the same added exactly, as a live pool adds: where they part, learner by learner.

A pool that refreshes after every outcome plays as the exact run to the bit (tests/live/test_simulation.py); an ordinary
simulation adds floats. `python benchmarks/exactness.py` prints the largest difference of the plays, and the first round
with another action. Thompson is left out: in a simulation it draws anew in every round.
"""

import argparse

import numpy as np

import statepool as sp
from statepool.exact_run import play_exactly
from statepool.stream import Stream

LEARNERS: list[sp.learners.Learner] = [
    sp.StateEXP3(rate=0.05), sp.SelfTuned(), sp.SelfTuned(learn_map=True), sp.CorrectedPool(), sp.PooledGreedy(),
    sp.PooledGreedy(forgetting=0.999), sp.BestState(), sp.NaiveSharing(rate=0.05),
]  # fmt: skip
FAMILIES = {"funnel": 20, "switching": 7, "spread": 50, "band": 0}
SEED = 90_001


def row(learner: sp.learners.Learner, family: str, delay: int, horizon: int) -> str:
    instance = sp.families.REGISTRY[family](3, n_actions=40, horizon=horizon)
    exact = play_exactly(instance, learner, delay, Stream.from_seed(SEED))
    run = sp.simulate(instance, learner, delay=delay, seed=SEED)
    parted = np.flatnonzero(exact.actions != run.actions)
    until = int(parted[0]) if parted.size else horizon
    difference = np.abs(exact.plays[:until] - run.plays()[:until]).max()
    return f"| `{learner}` | {family} | {difference:.1e} | {until if parted.size else 'none'} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--horizon", type=int, default=20_000)
    horizon = parser.parse_args().horizon
    print("| learner | family | largest difference of the plays, until actions differ | first action that differs |")
    print("|---|---|---|---|")
    for learner in LEARNERS:
        for family, delay in FAMILIES.items():
            print(row(learner, family, delay, horizon), flush=True)


if __name__ == "__main__":
    main()
