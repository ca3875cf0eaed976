"""Study 13, done right: identity, the published rule, ours, the true clusters and hindsight, paired, on all families.

python benchmarks/grouping.py                                the paper's protocol, seeds 0-23, five families
python benchmarks/grouping.py --first 100 --seeds 48         fresh seeds
python benchmarks/grouping.py --prefix 0.1                   another prefix, as a share of the horizon
python benchmarks/grouping.py --shift 5000                   a second phase with random numbers of its own
python benchmarks/grouping.py --families switching scarce    families where nothing was promised
"""

import argparse
from collections.abc import Callable
from functools import partial
from time import perf_counter

import numpy as np

import statepool as sp
from statepool.checks import Floats, Ints
from statepool.grouping import (
    choose_groups,
    merge_states,
    nested_groupings,
    prefix_means,
    published_rule,
    sampled_dimension,
)
from statepool.rates import default_rate

DELAY, STREAM = 20, 40_000
FAMILIES: dict[str, Callable[[int], sp.Instance]] = {
    "clustered 0": sp.families.clustered,
    "clustered .12": partial(sp.families.clustered, heterogeneity=0.12),
    "funnel": sp.families.funnel,
    "dirichlet": sp.families.band,
    "spread": sp.families.spread,
}
Played = tuple[list[float], list[int], float]
ARMS = ("identity", "published", "ours", "true", "hindsight")


def play_seed(make: Callable[[int], sp.Instance], seed: int, prefix: float, shift: int) -> Played:
    """Regret of each arm on one seed; groups picked by the published rule and by ours; seconds ours took to choose."""
    instance = make(seed)
    P, horizon, n_prefix = instance.P, instance.horizon, round(prefix * instance.horizon)
    dimension = sampled_dimension(instance.n_actions, seed + 3)
    identity = np.arange(instance.n_states)

    def run(groups: Ints, theta: Floats, stream: int) -> sp.Run:
        width = dimension(merge_states(P, groups))
        rate = default_rate(instance.n_actions, width, horizon, DELAY, DELAY + 1)
        learner = sp.StateEXP3(rate=rate, copies=DELAY + 1, groups=groups)
        return sp.simulate(sp.Instance(P, theta), learner, DELAY, seed + stream)

    first = run(identity, instance.theta[:n_prefix], STREAM)

    def regret(groups: Ints) -> float:
        second = run(groups, instance.theta[n_prefix:], STREAM + shift)
        return first.loss + second.loss - float(instance.total_losses.min())

    seen = (P, first.states, first.outcomes, horizon, DELAY, dimension)
    published, start = published_rule(*seen), perf_counter()
    ours = choose_groups(*seen)
    seconds = perf_counter() - start
    nested = nested_groupings(prefix_means(first.states, first.outcomes, instance.n_states))
    true = regret(identity // 4) if instance.n_states == 16 else np.nan
    regrets = [regret(identity), regret(published), regret(ours), true, min(map(regret, nested))]
    return regrets, [int(published.max()) + 1, int(ours.max()) + 1], seconds


def show_family(name: str, make: Callable[[int], sp.Instance], seeds: range, prefix: float, shift: int) -> None:
    played = [play_seed(make, seed, prefix, shift) for seed in seeds]
    table = np.array([regrets for regrets, _, _ in played])
    groups = np.mean([picked for _, picked, _ in played], axis=0)
    base, gap = table[:, 0], table[:, 0].mean() - table[:, 3].mean()
    error = base.std(ddof=1) / np.sqrt(len(seeds))
    print(f"\n{name}: groups published {groups[0]:.1f}, ours {groups[1]:.1f}; se of identity {error:.1f}; "
          f"{np.median([seconds for *_, seconds in played]):.2f} s a choice")  # fmt: skip
    for arm, column in zip(ARMS, table.T, strict=True):
        if not np.isnan(column).any():
            lead = column - base
            share = "" if np.isnan(gap) else f"   {-lead.mean() / gap + 0.0:5.0%} of the gap"
            error = lead.std(ddof=1) / np.sqrt(len(seeds))
            print(f"  {arm:10s} {column.mean():8.1f}   against identity {lead.mean():7.1f} ± {error:5.1f}{share}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--prefix", type=float, default=0.2)
    parser.add_argument("--shift", type=int, default=0)
    parser.add_argument("--families", nargs="+", default=list(FAMILIES))
    asked = parser.parse_args()
    seeds = range(asked.first, asked.first + asked.seeds)
    print(f"prefix {asked.prefix:.0%} of the horizon, delay {DELAY}, seeds {seeds[0]}-{seeds[-1]}, stream +{STREAM}")
    for name in asked.families:
        show_family(name, FAMILIES.get(name) or sp.families.find(name), seeds, asked.prefix, asked.shift)


if __name__ == "__main__":
    main()
