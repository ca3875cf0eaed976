"""The first days of a shop on a live pool with a clock of its own: regret of the pool in per cent of blind choice.

    python benchmarks/shop_live.py --seeds 12 --first 900

30 products, 4 states, 600 visits per day, purchases of about 40 euros that come after 2.5 days on average, a window of
14 days. The first 5 000 visits count, which end before any window closes. "prior" starts the pool from state means
and the delay curve of 5 000 earlier visits by blind choice, as an audit would write them. "stays" is the share of
decisions on the log's best product until ten outcomes are in, of a pool with that prior.
"""

import argparse
import heapq
import tempfile
from typing import Any

import numpy as np

import statepool as sp

PRODUCTS, VISITS, DAY, WINDOW, WAIT, PER_DAY = 30, 5_000, 86_400.0, 14.0, 2.5, 600
STATES = ["left", "looked", "cart", "checkout"]
BUYING = np.array([0.002, 0.02, 0.15, 0.5])


def world(seed: int) -> tuple[Any, Any]:
    """Rows of the products, and the probability of a purchase after each state."""
    rng = np.random.default_rng((seed, 1))
    return rng.dirichlet([6, 2.5, 1, 0.5], PRODUCTS), np.minimum(BUYING * rng.uniform(0.7, 1.3, 4), 1)


def log_of(seed: int, P: Any, buying: Any) -> dict[str, Any]:
    """What an audit knows from visits by blind choice: state means with their weight, and the curve."""
    rng = np.random.default_rng((seed, 2))
    states = np.array([rng.choice(4, p=row) for row in P[rng.integers(PRODUCTS, size=VISITS)]])
    revenue = np.where(rng.random(VISITS) < buying[states], rng.gamma(4, 10, VISITS), 0.0)
    means = {name: [float(revenue[states == s].mean()), int((states == s).sum())] for s, name in enumerate(STATES)}
    return {"states": means, "curve": {"tau": [WAIT * DAY], "weight": [1.0]}}


def play(seed: int, prior: bool) -> tuple[float, float]:
    """Regret in per cent of blind choice, and how much of the first decisions is on the log's best product."""
    P, buying = world(seed)
    rng, now, due, known = np.random.default_rng((seed, 3)), [0.0], [], 0
    worth = P @ (40 * buying)
    given = log_of(seed, P, buying) if prior else None
    best_in_log = None if given is None else int((P @ [given["states"][name][0] for name in STATES]).argmax())
    names = [f"sku-{a:02}" for a in range(PRODUCTS)]
    regret, early, stayed = 0.0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        pool = sp.Pool.open(
            f"sqlite:///{folder}/shop.db", "shop", P, names, STATES, reward_bounds=(0, 200), window=WINDOW * DAY,
            prior=given, clock=lambda: now[0],
        )  # fmt: skip
        for visit in range(VISITS):
            now[0] = 1e9 + visit * DAY / PER_DAY
            while due and due[0][0] <= now[0]:
                _, ticket, revenue = heapq.heappop(due)
                pool.resolve(ticket, reward=revenue)
                known += 1
            decision = pool.decide()
            action = names.index(decision.action)
            state = int(rng.choice(4, p=P[action]))
            pool.observe(decision.ticket, STATES[state])
            if rng.random() < buying[state]:
                wait = min(rng.exponential(WAIT), WINDOW * 0.999) * DAY
                heapq.heappush(due, (now[0] + wait, decision.ticket, float(min(rng.gamma(4, 10), 200))))
            regret += worth.max() - worth[action]
            if known < 10:
                early, stayed = early + 1, stayed + (action == best_in_log)
        pool.close()
    return 100 * regret / (VISITS * (worth.max() - worth.mean())), 100 * stayed / early


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--first", type=int, default=900)
    given = parser.parse_args()
    for prior in (False, True):
        found = np.array([play(seed, prior) for seed in range(given.first, given.first + given.seeds)])
        regret = found[:, 0]
        stays = f", stays {found[:, 1].mean():.0f} % (least {found[:, 1].min():.0f} %)" if prior else ""
        error = regret.std(ddof=1) / len(regret) ** 0.5 if len(regret) > 1 else 0.0
        print(
            f"{'with prior' if prior else 'from nothing':12} {regret.mean():5.1f} ± {error:.1f} % of blind, "
            f"worst {regret.max():.1f} %{stays}", flush=True,
        )  # fmt: skip


if __name__ == "__main__":
    main()
