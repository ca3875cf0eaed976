"""The interval of the lift, watched after every outcome of simulated pools: a table in Markdown.

python benchmarks/lift.py                 2 000 pools a row, some minutes
python benchmarks/lift.py --pools 200

Every pool has its own reward rate (.5 to .001), holdout (1 to 50 %) and number of outcomes (60 to 10 000), spread
evenly on a logarithmic scale. In an A/A pool both arms are the same; in an A/B pool the learner's rate is between a
quarter of the holdout's and four times it.

wrong      The interval does not hold the truth at one time at least. In A/A pools the truth is 0; in A/B pools the
           difference of the arms' average rates over the outcomes that have come. An interval certainly holds it while
           the bet against one pair of means with that difference is below 20, which is quick to see; at all other
           times `lift` itself is asked, and so it is at the end.
Newcombe   His interval for two proportions (Statistics in Medicine 1998, method 10), of 95 % at a time fixed before:
           how often it is wrong when watched, and the width of ours at the end as a multiple of his, in pools where
           each arm has won thirty times.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from statepool.live.lift import LEVEL, Lift, lift, make_tilts

Floats = NDArray[np.float64]
SEED = 2_026
WINS = 30
Z = 1.959963984540054


class Arm(NamedTuple):
    count: int
    mean: float


@dataclass(frozen=True)
class Watched:
    """A pool as seen after each event; columns: learner, holdout."""

    share: float
    counts: Floats
    totals: Floats
    means: Floats
    """Means whose difference is the truth."""
    binary: bool = True

    @property
    def truth(self) -> Floats:
        return self.means[:, 1] - self.means[:, 0]

    def lift(self, time: int) -> Lift | None:
        arms = [Arm(int(n), float(total / n) if n else float("nan")) for n, total in self.at(time)]
        return lift(*arms, self.share)

    def at(self, time: int) -> list[tuple[float, float]]:
        return list(zip(self.counts[time], self.totals[time], strict=True))


def watch(share: float, held: NDArray[np.bool_], losses: Floats, expected: Floats, binary: bool = True) -> Watched:
    """`expected`: what each outcome was expected to lose when it was its turn."""
    arms = np.stack([~held, held], axis=1)
    counts = arms.cumsum(axis=0).astype(float)
    means = (arms * expected[:, None]).cumsum(axis=0) / np.maximum(counts, 1)
    return Watched(share, counts, (arms * losses[:, None]).cumsum(axis=0), means, binary)


def settings(rng: np.random.Generator) -> tuple[int, float, float]:
    """How many outcomes, the holdout's share, and the reward rate."""
    ends = np.log([[60, 10_000], [0.01, 0.5], [0.001, 0.5]])
    n, share, rate = np.exp(rng.uniform(ends[:, 0], ends[:, 1]))
    return int(n), float(share), float(rate)


def same(rng: np.random.Generator) -> Watched:
    n, share, rate = settings(rng)
    return watch(share, rng.random(n) < share, (rng.random(n) >= rate).astype(float), np.full(n, 1 - rate))


def same_amounts(rng: np.random.Generator) -> Watched:
    """Most earn nothing, the others any part of the most that can be earned."""
    n, share, rate = settings(rng)
    losses = 1 - (rng.random(n) < rate) * rng.random(n)
    return watch(share, rng.random(n) < share, losses, np.full(n, 1 - rate / 2), binary=False)


def same_drift(rng: np.random.Generator) -> Watched:
    """Both arms' rate falls to a tenth at a random time, or rises from it; the truth is 0 all the same."""
    n, share, rate = settings(rng)
    late = np.arange(n) >= rng.integers(n)
    rates = np.where(late == (rng.random() < 0.5), rate / 10, rate)
    seen = watch(share, rng.random(n) < share, (rng.random(n) >= rates).astype(float), 1 - rates)
    level = np.cumsum(1 - rates) / np.arange(1, n + 1)
    return Watched(share, seen.counts, seen.totals, np.stack([level, level], axis=1))


def same_defaults(rng: np.random.Generator) -> Watched:
    """Every outcome expires as lost; what was won replaces that later, after a random number of outcomes."""
    n, share, rate = settings(rng)
    held, won = rng.random(n) < share, rng.random(n) < rate
    times = np.concatenate([np.arange(n), np.flatnonzero(won) + rng.exponential(n / 5, int(won.sum()))])
    arm = np.concatenate([held, held[won]])
    first = np.concatenate([np.ones(n), np.zeros(int(won.sum()))])
    order = np.argsort(times, kind="stable")
    arms = np.stack([~arm, arm], axis=1)[order]
    counts = (arms * first[order, None]).cumsum(axis=0)
    totals = (arms * np.where(first[order, None] > 0, 1.0, -1.0)).cumsum(axis=0)
    level = totals.sum(axis=1) / counts.sum(axis=1)
    return Watched(share, counts, totals, np.stack([level, level], axis=1))


def different(rng: np.random.Generator) -> Watched:
    n, share, rate = settings(rng)
    other = min(rate * 4 ** rng.uniform(-1, 1), 0.5)
    held = rng.random(n) < share
    rates = np.where(held, rate, other)
    return watch(share, held, (rng.random(n) >= rates).astype(float), 1 - rates)


def learning(rng: np.random.Generator) -> Watched:
    """The learner starts as the holdout plays, and its rate comes nearer to another one as it goes."""
    n, share, rate = settings(rng)
    other = min(rate * 4 ** rng.uniform(-1, 1), 0.5)
    held = rng.random(n) < share
    progress = 1 - np.exp(-np.arange(n) / (n * rng.uniform(0.05, 0.5)))
    rates = np.where(held, rate, rate + (other - rate) * progress)
    return watch(share, held, (rng.random(n) >= rates).astype(float), 1 - rates)


KINDS: dict[str, Callable[[np.random.Generator], Watched]] = {
    "A/A": same,
    "A/A, amounts": same_amounts,
    "A/A, both drift": same_drift,
    "A/A, wins replace expired losses": same_defaults,
    "A/B": different,
    "A/B, the learner improves": learning,
}


def is_wrong(seen: Watched) -> bool:
    """At any time."""
    suspects = np.append(np.flatnonzero(_bet(seen) >= LEVEL), len(seen.truth) - 1)
    return any(
        (found := seen.lift(int(time))) is not None and not found.low <= seen.truth[time] <= found.high
        for time in suspects
    )


def _bet(seen: Watched) -> Floats:
    """log E against `means`, after each event."""
    tilts, weights = make_tilts(seen.share)
    terms = np.log(weights) + seen.totals @ tilts
    if (seen.means == seen.means[-1]).all():
        terms -= seen.counts @ np.log1p(seen.means[-1][:, None] * np.expm1(tilts))
    else:
        for arm in range(2):
            terms -= seen.counts[:, arm, None] * np.log1p(np.outer(seen.means[:, arm], np.expm1(tilts[arm])))
    largest = terms.max(axis=1)
    return np.asarray(largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1)))


def newcombe(counts: Floats, totals: Floats) -> tuple[Floats, Floats]:
    """Low and high; the last axis: learner, holdout."""
    p = totals / counts
    middle = (p + Z**2 / (2 * counts)) / (1 + Z**2 / counts)
    half = Z * np.sqrt(p * (1 - p) / counts + Z**2 / (4 * counts**2)) / (1 + Z**2 / counts)
    low, high = middle - half, middle + half
    value = p[..., 1] - p[..., 0]
    down = np.hypot(p[..., 1] - low[..., 1], high[..., 0] - p[..., 0])
    up = np.hypot(high[..., 1] - p[..., 1], p[..., 0] - low[..., 0])
    return value - down, value + up


def newcombe_is_wrong(seen: Watched) -> bool:
    both = (seen.counts > 0).all(axis=1)
    low, high = newcombe(seen.counts[both], seen.totals[both])
    return bool(((seen.truth[both] < low) | (seen.truth[both] > high)).any())


def width(seen: Watched) -> float | None:
    """Ours at the end, as a multiple of Newcombe's, where each arm has won thirty times."""
    if not seen.binary or (seen.counts[-1] - seen.totals[-1]).min() < WINS:
        return None
    low, high = newcombe(seen.counts[-1], seen.totals[-1])
    found = seen.lift(-1)
    assert found is not None
    return float((found.high - found.low) / (high - low))


class Row(NamedTuple):
    pools: int
    wrong: float
    newcombe_wrong: float | None
    widths: list[float]


def measure(kind: str, pools: int, seed: int = SEED) -> Row:
    """One row of the table."""
    wrong, theirs, widths = 0, 0, []
    binary = True
    for number in range(pools):
        seen = KINDS[kind](np.random.default_rng([seed, list(KINDS).index(kind), number]))
        binary &= seen.binary
        wrong += is_wrong(seen)
        theirs += seen.binary and newcombe_is_wrong(seen)
        ratio = width(seen)
        widths += [] if ratio is None else [ratio]
    return Row(pools, wrong / pools, theirs / pools if binary else None, widths)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pools", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
    print("| pools | wrong at any time (≤ 5 %) | Newcombe, watched | width in Newcombe's, median | most (≤ 2) | of |")
    print("|---|---|---|---|---|---|")
    for kind in KINDS:
        row = measure(kind, given.pools, given.seed)
        theirs = "" if row.newcombe_wrong is None else f"{100 * row.newcombe_wrong:.1f} %"
        sizes = f"{np.median(row.widths):.2f} | {max(row.widths):.2f} | {len(row.widths)}" if row.widths else " | | 0"
        print(f"| {kind} | {100 * row.wrong:.2f} % | {theirs} | {sizes} |", flush=True)


if __name__ == "__main__":
    main()
