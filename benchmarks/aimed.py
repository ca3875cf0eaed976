"""SelfTuned against nine simple rules in thirty worlds that are aimed at it: what its rule suggests that it loses on.

    python benchmarks/aimed.py --seeds 12        # --only WORLD

Each world is one that practice could meet; the comment above it says why it should hurt. All rules run on the same
instances with common random numbers. Printed for each: mean regret of SelfTuned, of the rule that is best there in
hindsight, the mean difference with its standard error over paired runs, blind choice, and whether SelfTuned is beaten.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import statepool as sp
from practice import RIVALS, fixed, is_beaten, levels, rows, tabulate
from statepool import learners as rules
from statepool.learners.contract import Played, Problem, make_tables, rows_at
from statepool.learners.stepper import Stepper
from statepool.stream import Stream


@dataclass
class World:
    """With `scale` it is played by hand: purchases wait so many times `delay.waits`, by action and state, a share
    `returned` of each state's is taken back, and learners are `told` a map. SelfTuned starts from `known`."""

    instance: Any
    delay: Any
    scale: Any = None
    returned: Any = 0.0
    told: Any = None
    known: dict[str, Any] = field(default_factory=dict)


def pieces(T: int, every: int, draw: Callable[[], Any]) -> Any:
    """Means that are drawn again every so many rounds."""
    return np.concatenate([np.tile(draw(), (every, 1)) for _ in range(-(-T // every))])[:T]


def own(g: np.random.Generator, K: int, size: float) -> Any:
    """Effects by action, of five states."""
    return np.tile(np.clip(size * g.standard_normal((K, 1)), -0.28, 0.28), (1, 5))


def conversions(g: np.random.Generator, T: int, window: int, mean: Any) -> sp.delays.Conversions:
    return sp.delays.Conversions(window, np.minimum(g.exponential(mean, T).astype(int), window - 1))


def moving(g: np.random.Generator) -> dict[str, World]:
    """States that move."""
    T, P, base, worlds = 20_000, rows(g, 20, 6, 0.3), levels(g, 6, 0.5, 0.8), {}
    # The evidence must choose the shortest memory.
    flashes = pieces(8_000, 250, lambda: np.where(np.arange(6) == g.integers(6), 0.1, base))
    worlds["flash sales"] = World(sp.Instance(P, flashes), 5)
    # The evidence of 15 000 calm rounds speaks for the longest memory.
    storm = np.concatenate([fixed(15_000, levels(g, 6)), pieces(5_000, 400, lambda: levels(g, 6))])
    worlds["calm, then storm"] = World(sp.Instance(P, storm), 5)
    # The best state is out for as long as the delay: who reacts does so when it is over.
    theta = fixed(T, levels(g, 6, 0.2, 0.8))
    theta[np.arange(T) % 400 >= 300, theta[0].argmin()] = 0.95
    worlds["short outages"] = World(sp.Instance(P, theta), 100)
    worlds["resonance"] = World(sp.families.resonance(g, half_period=150), 150)
    # What is not played is not seen, and looks become rare.
    walk = np.abs((levels(g, 24) + np.cumsum(0.004 * g.standard_normal((T, 24)), axis=0)) % 2)
    locked = np.eye(24)[np.r_[np.arange(24), g.integers(24, size=36)]]
    worlds["slow, locked"] = World(sp.Instance(locked, np.where(walk > 1, 2 - walk, walk)), 50)
    theta = fixed(T, levels(g, 8, 0.3, 0.8))
    theta[:, theta[0].argmax()] = np.linspace(0.8, 0.02, T)
    return worlds | {"slow rise, locked": World(sp.Instance(np.eye(8)[np.arange(16) % 8], theta), 50)}


def sizes(g: np.random.Generator) -> dict[str, World]:
    """Few or many states, long delays, and something wrong that is known beforehand."""
    T, worlds, theta = 8_000, {}, levels(g, 5)
    worlds["two by two"] = World(sp.Instance([[0.6, 0.4], [0.4, 0.6]], fixed(20_000, g.permutation([0.4, 0.6]))), 50)
    worlds["many states"] = World(sp.Instance(rows(g, 30, 24, 1.0), fixed(T, levels(g, 24))), 50)
    # Optimism leads to states that are seldom reached, which are bad, while news takes half of the horizon.
    P = np.c_[rows(g, 20, 3, 1.0) * 0.98, np.full((20, 3), 0.02 / 3)]
    P[:3, 3:] += np.eye(3) * 0.6
    late = sp.Instance(P / P.sum(axis=1, keepdims=True), fixed(T, [0.2, 0.3, 0.4, 0.9, 0.9, 0.9]))
    worlds["rare bad states, late"] = World(late, 4_400)
    # The order of the states is reversed.
    known = {"prior": (1 - theta, np.full(5, 300.0))}
    return worlds | {"wrong prior": World(sp.Instance(rows(g, 20, 5, 0.3), fixed(T, theta)), 50, known=known)}


def effects(g: np.random.Generator) -> dict[str, World]:
    """Actions that differ beyond their states."""
    T, P, E, theta, worlds = 20_000, rows(g, 20, 5, 1.0), own(g, 20, 0.1), fixed(20_000, levels(g, 5, 0.3, 0.7)), {}
    jumps = levels(g, 5, 0.45, 0.55) + pieces(T, 500, lambda: g.uniform(-0.1, 0.1, 1))
    worlds["common jumps"] = World(sp.Instance(P, jumps, E), 50)
    # Effects are not forgotten.
    both, half, quarter = np.stack([P, P]), np.arange(T) // (T // 2), (np.arange(T) >= T // 4).astype(int)
    flip, gone = np.stack([E, -E]), np.stack([2 * E.clip(-0.14, 0.14), 0 * E])
    worlds["effects change sign"] = World(sp.Instance(both, theta, flip, contexts=half, given_map=P), 50)
    worlds["effects vanish"] = World(sp.Instance(both, theta, gone, contexts=quarter, given_map=P), 50)
    split = np.clip(0.15 * g.standard_normal((20, 5)), -0.28, 0.28)
    worlds["states split"] = World(sp.Instance(P, theta, split), 50)
    # One large effect among fifty actions, where the row is worst.
    many, coupon, means = rows(g, 50, 5, 1.0), np.zeros((50, 5)), levels(g, 5, 0.45, 0.75)
    coupon[(many @ means).argmax()] = -0.4
    worlds["one coupon"] = World(sp.Instance(many, fixed(T, means), coupon), 50)
    worlds["nightly batches"] = World(sp.Instance(P, theta, E), 1_999 - np.arange(T) % 2_000)
    # Actions multiply purchases, but there is no window: such effects are taken to be in units of noise.
    buying, times = levels(g, 5, 0.005, 0.1), np.clip(np.exp(0.7 * g.standard_normal((20, 1))), 0.2, 4.0)
    worlds["uplifts, no window"] = World(sp.Instance(P, fixed(T, 1 - buying), -(times - 1) * buying), 50)
    # Doubts about a row do not age: that of the best action is off for a quarter of the time, and then as told.
    off, values = P.copy(), P @ theta[0]
    off[values.argmin()] = P[values.argmax()]
    worlds["launch fault"] = World(sp.Instance(np.stack([off, P]), theta, contexts=quarter, given_map=P), 50)
    return worlds


def contexts(g: np.random.Generator) -> dict[str, World]:
    """Contexts, and actions that are added."""
    T, theta, asked, worlds = 20_000, fixed(20_000, levels(g, 5, 0.35, 0.65)), g.integers(5, size=20_000), {}
    # Effects by context and action mistake a context's level for the effects of the actions played there.
    P, level = np.stack([rows(g, 20, 5, 1.0) for _ in range(5)]), np.linspace(-0.25, 0.25, 5)[:, None, None]
    worlds["contexts have levels"] = World(sp.Instance(P, theta, level + 0 * P, contexts=asked), 50)
    # Two contexts of twelve have most of the traffic.
    many, E = np.stack([rows(g, 10, 5, 1.0) for _ in range(12)]), np.stack([own(g, 10, 0.1) for _ in range(12)])
    unequal = np.minimum(g.pareto(1.0, T).astype(int), 11)
    worlds["unequal contexts"] = World(sp.Instance(many, theta, E, contexts=unequal), 50)
    # Rows are not doubted with contexts.
    means, told = levels(g, 5), P[:3].copy()
    for k in range(3):
        told[k, g.choice(20, 2, replace=False)] = P[k, (P[k] @ means).argmin()]
    wrong = sp.Instance(P[:3], fixed(8_000, means), contexts=asked[:8_000] % 3)
    worlds["wrong rows, contexts"] = World(wrong, 50, 1.0, told=told)
    offered, quarters = np.arange(40) < 10 * np.arange(1, 5)[:, None], np.arange(T) // (T // 4)
    P, E = np.tile(rows(g, 40, 5, 1.0), (4, 1, 1)), np.tile(own(g, 40, 0.1), (4, 1, 1))
    worlds["late actions"] = World(sp.Instance(P, theta, E, quarters, offered), 50)
    return worlds


def purchases(g: np.random.Generator) -> dict[str, World]:
    """Windows: purchases come first."""
    T, P, ones, worlds = 20_000, rows(g, 20, 5, 1.0), np.ones((20, 5)), {}
    wave, season = np.sin(2 * np.pi * (np.arange(T)[:, None] / 600 + g.random(5))), conversions(g, T, 600, 150)
    worlds["season of the window"] = World(sp.Instance(P, 1 - (1 + 0.8 * wave) * [0.02, 0.04, 0.08, 0.12, 0.2]), season)
    # Few purchases, and a curve that is thirty times too short.
    sparse, known = sp.Instance(P, fixed(8_000, 1 - levels(g, 5, 0.001, 0.01))), {"curve": ([20.0], [1.0])}
    worlds["wrong curve, sparse"] = World(sparse, conversions(g, 8_000, 2_600, 600), known=known)
    # Products whose rows are good are cheap.
    shop = sp.families.shop(g, revenue=0.25)
    buying = (1 - shop.theta[0]) / 0.25
    quality = (shop.P @ buying).argsort().argsort()[:, None] / 29
    prices = np.clip(0.25 * np.exp(1.2 - 2.4 * quality + 0.3 * g.standard_normal((30, 1))), 0.02, 2 / 3)
    against = sp.Instance(shop.P, shop.theta, -(prices - 0.25) * buying, gains=np.tile(prices, (1, 5)))
    worlds["prices against rows"] = World(against, conversions(g, T, 6_600, 1_100))
    # The best state buys rarely and much.
    gains, rate = ones * [0.66, 0.2, 0.05, 0.02, 0.02], np.array([0.02, 0.04, 0.1, 0.3, 0.05])
    worlds["whales"] = World(sp.Instance(P, fixed(T, 1 - gains[0] * rate), gains=gains), conversions(g, T, 600, 100))
    # Good actions, or good states, sell late.
    theta = 1 - levels(g, 5, 0.02, 0.3)
    plain, waits = sp.Instance(P, fixed(8_000, theta)), conversions(g, 8_000, 2_000, 100)
    slow = np.where((P @ theta).argsort().argsort() < 5, 8.0, 1.0)
    worlds["waits by action"] = World(plain, waits, slow[:, None] * ones)
    worlds["waits by state"] = World(plain, waits, np.where(theta < np.median(theta), 8.0, 1.0) * ones)
    longer = conversions(g, T, 2_400, np.repeat([120.0, 600.0], T // 2))
    worlds["waits lengthen"] = World(sp.Instance(P, fixed(T, 1 - levels(g, 5, 0.02, 0.2))), longer)
    # What sells most comes back most.
    sells, back = np.array([0.35, 0.25, 0.2, 0.1, 0.05]), np.array([0.7, 0.05, 0.05, 0.05, 0.05])
    returns = sp.Instance(P, fixed(8_000, 1 - sells * (1 - back)))
    worlds["returns"] = World(returns, conversions(g, 8_000, 2_000, 200), ones, back)
    return worlds


def knowing(rule: Any, known: dict[str, Any]) -> Any:
    """The same learner, which starts from what is known."""

    class Knowing(type(rule)):  # type: ignore[misc]
        def start(self, problem: Problem) -> Any:
            return super().start(replace(problem, **known))

    return Knowing(**vars(rule)) if known else rule


def regret_of(world: World, rule: Any, seed: int) -> float:
    """Regret of a rule where the engine does not know such waits, returns or maps; elsewhere the engine's."""
    if world.scale is None:
        return float(sp.simulate(world.instance, rule, world.delay, seed=seed).regret)
    instance, due, T = world.instance, defaultdict(list), world.instance.horizon
    early, asked = isinstance(world.delay, sp.delays.Conversions), instance.contexts
    window, told = world.delay.window if early else world.delay, instance.P if world.told is None else world.told
    open_for = float(window) if early and rule.exposure else None
    problem = Problem(told, T, window, Stream.from_seed(seed), has_contexts=asked is not None, window=open_for)
    stepper, tables, u = Stepper(rule, problem), make_tables(told), np.random.default_rng((seed, 1)).random((T, 4))
    actions, back = np.empty(T, int), np.broadcast_to(world.returned, instance.n_states)
    for t in range(T):
        stepper.advance(t, float(t))
        for played, loss, saved, sign in due.pop(t, ()):
            stepper.learn(played._replace(wait=float(t - played.t - 1)), loss, saved, sign)
        k = 0 if asked is None else int(asked[t])
        offered = rows_at.py_func(tables, k)
        policy = stepper.policy(offered, t)
        a = min(int(policy.cumsum().searchsorted(u[t, 0] * policy.sum())), policy.size - 1)
        row = instance.rows[a + k * instance.n_actions]
        s, actions[t] = min(int(row.cumsum().searchsorted(u[t, 1])), row.size - 1), a
        saved, played = stepper.remember(offered, policy, a, s), Played(t, float(t), a, s, k, 0.0)
        stepper.see(played, saved)
        bought = u[t, 2] < (1 - instance.theta[t, s]) / (1 - back[s])
        returned = bought and u[t, 3] < back[s]
        if open_for is None:
            due[t + window + 1].append((played, 0.0 if bought and not returned else 1.0, saved, 1.0))
        elif bought:
            wait = min(int(world.delay.waits[t] * world.scale[a, s]), window - 1)
            due[t + wait + 1].append((played, 0.0, saved, 1.0))
            if returned:
                due[t + min(wait + wait // 2, window - 1) + 1].append((played, 0.0, saved, -1.0))
    return float(instance.regret(actions))


def play(job: tuple[int, int, str | None]) -> list[tuple[str, int, dict[str, float]]]:
    """All rules in all worlds of a group."""
    group, seed, only = job
    results = []
    for number, (name, world) in enumerate(GROUPS[group](np.random.default_rng((31, group, seed))).items()):
        arms = {"SelfTuned": knowing(rules.SelfTuned(), world.known), "blind": rules.Uniform()} | RIVALS
        if only in (None, name):
            run = {arm: regret_of(world, rule, 7_000_000 + 100 * number + seed) for arm, rule in arms.items()}
            results.append((name, 100 * group + number, run))
    return results


GROUPS = (moving, sizes, effects, contexts, purchases)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--only")
    given = parser.parse_args()
    jobs = [(group, seed, given.only) for group in range(len(GROUPS)) for seed in range(given.seeds)]
    with ProcessPoolExecutor(2) as pool:
        lines = tabulate([run for runs in pool.map(play, jobs) for run in runs])
    print(f"{'world':24} {'ours':>7} {'rival':>7} {'gap':>7} {'±':>7} {'blind':>7}  best rival")
    for line in sorted(lines, key=lambda line: line["number"]):
        figures = " ".join(f"{line[name]:7.0f}" for name in ("ours", "rival", "gap", "error", "blind"))
        print(f"{line['kind']:24} {figures}  {line['best']}{', beaten' if is_beaten(line) else ''}")


if __name__ == "__main__":
    main()
