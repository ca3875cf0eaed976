"""Purchases come late: what is lost when they are taken as they come, held until the window closes, or by exposure.

    python benchmarks/shop.py --seeds 12 --first 700          # shops drawn by the seeds first, first + 1, …
    python benchmarks/shop.py --figure docs/purchases-come-late.png --seeds 12 --first 700

The shop of docs: 30 products, 5 stages, 20 000 visits, a window of 8 400 visits and a mean wait of 1 500. Once with
purchases counted (losses 0 and 1), once in revenue, once with prices. "Held" hands every outcome over when its
window closes; "as they come" hands purchases over at once and silence at the window; "curve given" starts from the true
delay curve.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import statepool as sp
from statepool import learners as rules
from statepool.learners.contract import Learner, Problem

WINDOW, WAIT, VISITS = 8_400, 1_500.0, 20_000
SHOPS: dict[str, Callable[[int], Any]] = {
    "purchases counted": lambda seed: sp.families.shop(seed, revenue=1),
    "revenue": lambda seed: sp.families.shop(seed),
    "prices": lambda seed: sp.families.shop_with_prices(seed),
}


def given(learner: Learner) -> Learner:
    """The same learner, which starts from the true delay curve."""

    class Given(type(learner)):  # type: ignore[misc]
        def start(self, problem: Problem) -> Any:
            return super().start(replace(problem, curve=(np.array([WAIT]), np.array([1.0]))))

    return Given(**vars(learner))


def held(learner: Learner) -> Learner:
    """The same learner, which is handed outcomes as one without exposure."""

    class Held(type(learner)):  # type: ignore[misc]
        exposure = False

    return Held(**vars(learner))


def arms() -> dict[str, tuple[Learner, bool]]:
    """Each learner, and whether outcomes are held for those without exposure."""
    return {
        "SelfTuned": (rules.SelfTuned(), True),
        "SelfTuned, curve given": (given(rules.SelfTuned()), True),
        "SelfTuned, held": (held(rules.SelfTuned()), True),
        "SelfTuned, as they come": (held(rules.SelfTuned()), False),
        "pooled Thompson": (rules.PooledThompson(samples=1), True),
        "pooled greedy": (rules.PooledGreedy(), True),
        "Thompson by action, curve given": (given(rules.ActionThompson(samples=1)), True),
        "State-EXP3, held": (rules.StateEXP3(), True),
        "blind": (rules.Uniform(), True),
    }


def run(make: Callable[[int], Any], learner: Learner, hold: bool, seed: int) -> sp.Run:
    waits = np.minimum(np.random.default_rng((seed, 9)).exponential(WAIT, VISITS).astype(int), WINDOW - 1)
    return sp.simulate(make(seed), learner, sp.delays.Conversions(WINDOW, waits, hold), seed=seed + 80_000)


def draw(path: str, seeds: range) -> None:
    """Regret over the days, 600 visits each, of three ways to learn from purchases that come first."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    shown = {
        "as they come": "SelfTuned, as they come", "held until the window closes": "SelfTuned, held",
        "exposure (the default)": "SelfTuned", "blind choice": "blind",
    }  # fmt: skip
    for label, name in shown.items():
        paths = [run(SHOPS["revenue"], *arms()[name], seed).regret_path for seed in seeds]
        style = {"color": "0.6", "linestyle": "--"} if name == "blind" else {}
        axes.plot(np.arange(VISITS) / 600, np.mean(paths, axis=0), label=label, **style)
    axes.axvline(WINDOW / 600, color="0.8", linewidth=1)
    axes.annotate("the first window closes", (WINDOW / 600, 0.97), xycoords=("data", "axes fraction"), ha="right",
                  va="top", rotation=90, color="0.4", fontsize=9)  # fmt: skip
    axes.set(xlabel="days", ylabel="regret (largest revenues lost)", xlim=(0, VISITS / 600), ylim=(0, None))
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--first", type=int, default=700)
    parser.add_argument("--figure", help="draw regret over days into this file, and print nothing")
    given_arguments = parser.parse_args()
    seeds = range(given_arguments.first, given_arguments.first + given_arguments.seeds)
    if given_arguments.figure:
        draw(given_arguments.figure, seeds)
        return
    for shop, make in SHOPS.items():
        print(f"{shop}: mean regret ± standard error (worst)")
        for name, (learner, hold) in arms().items():
            runs = [run(make, learner, hold, seed).regret for seed in seeds]
            error = np.std(runs, ddof=1) / len(runs) ** 0.5
            print(f"  {name:34} {np.mean(runs):7.1f} ± {error:5.1f} ({max(runs):.0f})")


if __name__ == "__main__":
    main()
