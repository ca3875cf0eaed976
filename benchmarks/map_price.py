"""What not knowing the map must cost, beside what SelfTuned pays for it: a table in Markdown.

python benchmarks/map_price.py                 twenty seeds, some minutes
python benchmarks/map_price.py --seeds 4

Two figures stand beside SelfTuned's with the map known and unknown; both are for names of actions that were shuffled.

floor      No learner without the map has less expected regret. Let it know every theta_t, let one play of an action
           reveal its whole row, and let it stop trying new actions at the best moment in hindsight. New actions come
           in a random order a_1, a_2, …; whoever tries m of them pays, with M_t = min over those m of c_t,

               sum_t M_t - L*  +  sum over the m of min_t (c_t(a_i) - M_t),       L*: the best fixed action's loss

           since every round costs at least M_t and the first play of each of them the rest. The floor is the mean
           over random orders of the least of these over m.
informed   A learner that is told theta_t in every round, the rows there are and the horizon, but not which action has
           which row. It keeps a posterior over rows for each action (independently) and plays
           argmin_a mean(a) - (rounds left / N) · E[(best mean - loss of a's row)⁺], N the best of 1, 3, 10, 30 in
           hindsight. It shows what a learner that knows far more than SelfTuned pays.
"""

import argparse
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import statepool as sp
from statepool.studies.beyond.self_tuned_sweeps import SWEEPS
from statepool.studies.tasks import make_instance

Floats = NDArray[np.float64]
PATIENCE = (1, 3, 10, 30)
ORDERS, EVERY = 50, 20
"""Random orders a seed; the floor reads losses, which move slowly, in every so many rounds."""


def floor(losses: Floats, total: float, rng: np.random.Generator) -> float:
    """`losses`: one row a round, one column an action; `total`: the best fixed action's sum of them."""
    return float(np.mean([_least_price(losses[:, rng.permutation(losses.shape[1])], total) for _ in range(ORDERS)]))


def _least_price(losses: Floats, total: float) -> float:
    """The least over m for one order of the actions."""
    best = np.minimum.accumulate(losses, axis=1)
    prices = []
    for m in range(1, losses.shape[1] + 1):
        tried = (losses[:, :m] - best[:, m - 1 : m]).min(axis=0).sum()
        prices.append(EVERY * best[:, m - 1].sum() - total + tried)
        # Nothing is gained by trying more once all rounds are played as well as they can be.
        if (best[:, m - 1] == best[:, -1]).all():
            break
    return min(prices)


def informed(instance: sp.Instance, patience: int, rng: np.random.Generator) -> float:
    """Regret of the learner that knows the rows but not their names."""
    P, K, T = instance.P, instance.n_actions, instance.horizon
    names = rng.permutation(K)
    logs = np.log(np.maximum(P, 1e-300)).T
    posterior, scores = np.full((K, K), 1 / K), np.zeros((K, K))
    actions = np.empty(T, np.int64)
    for t in range(T):
        c = P @ instance.theta[t]
        means = posterior @ c
        gain = posterior @ np.maximum(means.min() - c, 0)
        chosen = int((means - (T - t) / patience * gain).argmin())
        actions[t] = names[chosen]
        scores[chosen] += logs[rng.choice(P.shape[1], p=P[actions[t]])]
        weights = np.exp(scores[chosen] - scores[chosen].max())
        posterior[chosen] = weights / weights.sum()
    return instance.regret(actions)


def settings(seeds: int) -> Iterator[tuple[str, list[tuple[sp.Instance, int, int]]]]:
    """(label, (instance, delay, stream) of every seed) over the study's settings with an unknown map."""
    for sweep in (sweep for sweep in SWEEPS if sweep.name.startswith("unknown")):
        cells: dict[str, list[tuple[sp.Instance, int, int]]] = {}
        for label, task in sweep.tasks(seeds):
            given = task.arguments
            instance = make_instance(given["family"], given["settings"], given["seed"])
            cells.setdefault(label, []).append((instance, given["delay"], given["stream"]))
        yield from cells.items()


def row(runs: list[tuple[sp.Instance, int, int]]) -> list[float]:
    learners = (sp.SelfTuned(), sp.SelfTuned(learn_map=True))
    known, unknown = (
        np.mean([sp.simulate(instance, learner, delay, stream).regret for instance, delay, stream in runs])
        for learner in learners
    )
    floors = []
    for instance, _, stream in runs:
        losses = instance.theta[::EVERY] @ instance.P.T
        floors.append(floor(losses, float(EVERY * losses.sum(axis=0).min()), np.random.default_rng(stream)))
    best = min(np.mean([informed(i, n, np.random.default_rng(stream)) for i, _, stream in runs]) for n in PATIENCE)
    return [float(value) for value in (known, unknown, np.mean(floors), best)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    seeds = parser.parse_args().seeds
    if seeds < 1:
        parser.error(f"seeds: is {seeds}, expected at least 1")
    print("| | map known | unknown | floor | informed |\n|---|---|---|---|---|")
    for label, runs in settings(seeds):
        print(f"| {label} | {' | '.join(f'{value:.1f}' for value in row(runs))} |", flush=True)


if __name__ == "__main__":
    main()
