"""What it costs that versions of the play are old: regret where one is made once in so many rounds.

    python benchmarks/stale_versions.py [SEEDS]

Sums are added exactly, as a pool adds them, and each decision is drawn from the latest version. A pool under load makes
versions as outcomes come, a process of a busy PostgreSQL pool may be a hundred events behind, and budgets may make
them rare.
"""

import sys

import numpy as np

import statepool as sp
from statepool.exact_run import play_exactly
from statepool.stream import Stream

FAMILIES = {"funnel": sp.families.funnel, "switching": sp.families.switching}
LEARNERS = {"SelfTuned": sp.SelfTuned(), "StateEXP3": sp.StateEXP3()}
ROUNDS = (1, 10, 100, 1_000)


def main(seeds: int) -> None:
    print("| | " + " | ".join(f"every {rounds}" for rounds in ROUNDS) + " |")
    print("|---|" + "---|" * len(ROUNDS))
    for family, make in FAMILIES.items():
        instances = [make(600 + seed, horizon=20_000) for seed in range(seeds)]
        for name, learner in LEARNERS.items():
            cells = []
            for rounds in ROUNDS:
                regrets = [
                    instance.regret(play_exactly(instance, learner, 50, Stream.from_seed(80_600 + n), rounds).actions)
                    for n, instance in enumerate(instances)
                ]
                cells.append(f"{np.mean(regrets):.0f} ± {np.std(regrets, ddof=1) / np.sqrt(seeds):.0f}")
            print(f"| `{family}`, `{name}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
