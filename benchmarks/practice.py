"""SelfTuned against nine simple rules on settings drawn by a seed: kinds that practice meets.

    python benchmarks/practice.py --settings 80 --seeds 12 --draw 7        # --only KIND, --csv FILE

Each setting is a kind with parameters of its own, drawn by (draw, number). All rules of a setting run on the same
instances with common random numbers. Printed per kind: mean regret of SelfTuned, of the rule that is best there in
hindsight (chosen for each setting by its mean), the mean difference with its standard error over paired runs, and the
regret of blind choice.
"""

import argparse
import csv
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

import statepool as sp
from statepool import learners as rules

RIVALS: dict[str, Any] = {
    "pooled greedy": rules.PooledGreedy(),
    "pooled greedy .999": rules.PooledGreedy(0.999, 0.01),
    "pooled greedy .99": rules.PooledGreedy(0.99, 0.01),
    "pooled Thompson": rules.PooledThompson(samples=1),
    "pooled Thompson .999": rules.PooledThompson(0.999, samples=1),
    "action greedy": rules.ActionGreedy(),
    "action UCB": rules.ActionUCB(),
    "action Thompson": rules.ActionThompson(samples=1),
    "State-EXP3": rules.StateEXP3(),
}


@dataclass
class Setting:
    """How the instances of a setting are made; the delay may depend on the seed."""

    kind: str
    make: Callable[[np.random.Generator], Any]
    delay: Callable[[np.random.Generator], Any]


def rows(g: np.random.Generator, K: int, S: int, sharpness: float) -> Any:
    """Dirichlet rows: 1 is broad, .1 nearly deterministic."""
    P = g.dirichlet(np.full(S, sharpness), K) + 1e-6
    return P / P.sum(axis=1, keepdims=True)


def levels(g: np.random.Generator, S: int, low: float = 0.1, high: float = 0.9) -> Any:
    """Means of states, spread over a range."""
    spaced = np.linspace(low, high, S) + (high - low) * g.uniform(-0.04, 0.04, S)
    return g.permutation(np.clip(spaced, 0, 1))


def fixed(T: int, theta: Any) -> Any:
    return np.tile(theta, (T, 1))


def stationary(g: np.random.Generator, K: int, S: int, T: int, sharp: float) -> Any:
    return sp.Instance(rows(g, K, S, sharp), fixed(T, levels(g, S)))


def low_rate(g: np.random.Generator, K: int, S: int, T: int, sharp: float) -> Any:
    return sp.Instance(rows(g, K, S, sharp), fixed(T, 1 - levels(g, S, 0.002, 0.04)))


def late_bloomer(g: np.random.Generator, K: int, S: int, T: int, sharp: float) -> Any:
    theta = fixed(T, levels(g, S, 0.3, 0.8))
    theta[T // 4 :, theta[0].argmax()] = 0.05
    return sp.Instance(rows(g, K, S, sharp * 0.4), theta)


def sharp_late_bloomer(g: np.random.Generator, K: int, S: int, T: int, sharp: float) -> Any:
    """With rows that hardly lead to the state while it is bad."""
    return late_bloomer(g, K, S, T, 0.25)


def effects(g: np.random.Generator, K: int, S: int, T: int, sharp: float, size: float = 0.1) -> Any:
    theta = levels(g, S, 0.3, 0.7)
    own = np.clip(size * g.standard_normal((K, 1)), -0.25, 0.25)
    return sp.Instance(rows(g, K, S, sharp), fixed(T, theta), np.broadcast_to(own, (K, S)))


def small_effects(g: np.random.Generator, K: int, S: int, T: int, sharp: float) -> Any:
    return effects(g, K, S, T, sharp, 0.05)


def effects_by_context(g: np.random.Generator, K: int, S: int, T: int, sharp: float) -> Any:
    C, theta = int(g.integers(3, 7)), levels(g, S, 0.3, 0.7)
    own = np.clip(0.1 * g.standard_normal((C, K, 1)), -0.25, 0.25)
    P = np.stack([rows(g, K, S, sharp) for _ in range(C)])
    return sp.Instance(P, fixed(T, theta), np.broadcast_to(own, P.shape), contexts=g.integers(C, size=T))


def useless_state(g: np.random.Generator, K: int, S: int, T: int, sharp: float) -> Any:
    own = g.uniform(-0.1, 0.1, (K, 1))
    return sp.Instance(
        np.tile(g.dirichlet(np.ones(S)), (K, 1)), fixed(T, np.full(S, 0.5)), np.broadcast_to(own, (K, S))
    )


def outages(g: np.random.Generator, K: int, S: int, T: int, sharp: float) -> Any:
    theta = fixed(T, levels(g, S, 0.2, 0.8))
    out = np.arange(T) % 2_000 >= 1_700
    theta[out, theta[0].argmin()] = 0.95
    return sp.Instance(rows(g, K, S, sharp), theta)


def common_jumps(g: np.random.Generator, K: int, S: int, T: int, sharp: float) -> Any:
    jumps = np.repeat(g.uniform(-0.25, 0.25, T // 500 + 1), 500)[:T, None]
    return sp.Instance(rows(g, K, S, sharp), np.clip(levels(g, S, 0.3, 0.7) + jumps, 0, 1))


def common_season(g: np.random.Generator, K: int, S: int, T: int, sharp: float) -> Any:
    wave = 0.25 * np.sin(2 * np.pi * g.integers(1, 6) * np.arange(T) / T)[:, None]
    return sp.Instance(rows(g, K, S, sharp), np.clip(levels(g, S, 0.3, 0.7) + wave, 0, 1))


def common_trend(g: np.random.Generator, K: int, S: int, T: int, sharp: float) -> Any:
    trend = np.linspace(-0.25, 0.25, T)[:, None] * g.choice([-1, 1])
    return sp.Instance(rows(g, K, S, sharp), np.clip(levels(g, S, 0.3, 0.7) + trend, 0, 1))


def wrong_rows(g: np.random.Generator, K: int, S: int, T: int, sharp: float) -> Any:
    P, theta = rows(g, K, S, sharp), levels(g, S)
    told, wrong = P.copy(), g.choice(K, max(K // 10, 2), replace=False)
    told[wrong] = P[(P @ theta).argsort()[: wrong.size]]
    return sp.Instance(P[None], fixed(T, theta), contexts=np.zeros(T, int), given_map=told)


def random_walk(g: np.random.Generator, K: int, S: int, T: int, sharp: float) -> Any:
    steps = g.choice([0.002, 0.005, 0.01]) * g.standard_normal((T, S))
    walk = np.abs((levels(g, S) + np.cumsum(steps, axis=0)) % 2)
    return sp.Instance(rows(g, K, S, sharp), np.where(walk > 1, 2 - walk, walk))


def switching(g: np.random.Generator, K: int, S: int, T: int, sharp: float) -> Any:
    every = int(g.choice([1_000, 3_000]))
    theta = np.concatenate([np.tile(levels(g, S), (every, 1)) for _ in range(T // every + 1)])[:T]
    return sp.Instance(rows(g, K, S, sharp), theta)


def shop(g: np.random.Generator, K: int, S: int, T: int, sharp: float) -> Any:
    return sp.families.shop(g, n_actions=K, horizon=T)


def shop_with_prices(g: np.random.Generator, K: int, S: int, T: int, sharp: float) -> Any:
    return sp.families.shop_with_prices(g, n_actions=K, horizon=T)


KINDS = (
    stationary, low_rate, late_bloomer, sharp_late_bloomer, effects, small_effects, effects_by_context, useless_state,
    outages, common_jumps, common_season, common_trend, wrong_rows, random_walk, switching, shop, shop_with_prices,
)  # fmt: skip


def setting(draw: int, number: int, only: str | None = None) -> Setting:
    """The setting of a number, by a draw."""
    g = np.random.default_rng((draw, number))
    kind = next(k for k in KINDS if k.__name__ == only) if only else KINDS[number % len(KINDS)]
    K, S, T = int(g.choice([8, 20, 50])), int(g.integers(3, 9)), int(g.choice([8_000, 20_000]))
    sharp, d = float(g.choice([0.3, 1.0])), int(g.choice([5, 50, 300]))
    early = kind in (shop, shop_with_prices) or (kind is low_rate and g.random() < 0.5)
    window = int(g.choice([600, T // 3]))

    def delay(rng: np.random.Generator) -> Any:
        if not early:
            return d
        waits = np.minimum(rng.exponential(window / 6, T).astype(int), window - 1)
        return sp.delays.Conversions(window, waits)

    return Setting(kind.__name__, lambda rng: kind(rng, K, S, T, sharp), delay)


def play(job: tuple[int, int, int, str | None]) -> tuple[str, int, dict[str, float]]:
    """All rules on one instance of a setting."""
    draw, number, seed, only = job
    made, rng = setting(draw, number, only), np.random.default_rng((draw, number, seed))
    instance, delay = made.make(rng), made.delay(rng)
    arms = {"SelfTuned": rules.SelfTuned(), "blind": rules.Uniform()} | RIVALS
    run_seed = (draw * 1_000 + number) * 100 + seed
    regrets = {name: sp.simulate(instance, rule, delay, seed=run_seed).regret for name, rule in arms.items()}
    return made.kind, number, regrets


def tabulate(results: list[tuple[str, int, dict[str, float]]]) -> list[dict[str, Any]]:
    """One line for each setting."""
    by_setting = defaultdict(list)
    for kind, number, regrets in results:
        by_setting[kind, number].append(regrets)
    lines = []
    for (kind, number), runs in sorted(by_setting.items()):
        mean = {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
        best = min(RIVALS, key=lambda name: mean[name])
        gap = np.array([run["SelfTuned"] - run[best] for run in runs])
        lines.append(
            {"kind": kind, "number": number, "ours": mean["SelfTuned"], "rival": mean[best], "best": best,
             "gap": gap.mean(), "error": gap.std(ddof=1) / len(gap) ** 0.5 if len(gap) > 1 else 0.0,
             "blind": mean["blind"]}
        )  # fmt: skip
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", type=int, default=80)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--draw", type=int, default=7)
    parser.add_argument("--only")
    parser.add_argument("--csv")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    jobs = [(given.draw, number, seed, given.only) for number in range(given.settings) for seed in range(given.seeds)]
    with ProcessPoolExecutor(given.workers) as pool:
        lines = tabulate(list(pool.map(play, jobs, chunksize=4)))
    if given.csv:
        with open(given.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, lines[0])
            writer.writeheader()
            writer.writerows(lines)
    report(lines)


def report(lines: list[dict[str, Any]]) -> None:
    print(f"{'kind':20} {'n':>3} {'ours':>8} {'rival':>8} {'gap':>8} {'±':>6} {'worst':>7} {'blind':>8}  beaten")
    for kind in dict.fromkeys(line["kind"] for line in lines):
        of = [line for line in lines if line["kind"] == kind]
        mean = {name: float(np.mean([line[name] for line in of])) for name in ("ours", "rival", "gap", "blind")}
        error = float(np.sqrt(np.sum([line["error"] ** 2 for line in of]))) / len(of)
        worst, beaten = max(line["gap"] for line in of), sum(is_beaten(line) for line in of)
        print(
            f"{kind:20} {len(of):3} {mean['ours']:8.0f} {mean['rival']:8.0f} {mean['gap']:8.0f} {error:6.0f} "
            f"{worst:7.0f} {mean['blind']:8.0f}  {beaten}"
        )
    gaps = [line["gap"] for line in lines]
    beaten = sum(is_beaten(line) for line in lines)
    print(
        f"mean excess over the best rule {np.mean(gaps):.0f}, worst {max(gaps):.0f}, beaten on {beaten} of {len(lines)}"
    )


def is_beaten(line: dict[str, Any]) -> bool:
    """By more than 100, or twice, and by more than two standard errors."""
    by_much = line["gap"] > 100 or (line["gap"] > 0 and line["ours"] > 2 * max(line["rival"], 0) and line["gap"] > 20)
    return bool(by_much and line["gap"] > 2 * line["error"])


if __name__ == "__main__":
    main()
