"""The charts of the page, as columns of numbers."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from statepool.checks import Floats
from statepool.live.dashboard import formatting
from statepool.live.dashboard.buckets import REACHED, SQUARES, Bucket
from statepool.live.dashboard.measures import Measures

SMOOTH, FEWEST = 200, 20
"""A point of a curve is of at least the latest SMOOTH; there is none before the first FEWEST."""


def curves_of(measures: Measures, pending: int) -> dict[str, Any]:
    """Time in seconds, then a column a curve; None: too little to say."""
    buckets, width = list(measures.buckets), measures.buckets.width
    changes = [b.tallies["decisions"] - b.tallies["outcomes"] - b.tallies["expiries"] for b in buckets]
    in_flight = pending - np.cumsum([0.0, *changes[::-1]])[:-1][::-1]
    return {
        "time": [(bucket.number + 1) * width for bucket in buckets],
        "learner": _means(buckets, "learner"),
        "holdout": _means(buckets, "holdout"),
        "dimension": _dimensions(buckets),
        "decisions": [bucket.tallies["decisions"] / width for bucket in buckets],
        "in_flight": [max(float(count), 0.0) for count in in_flight],
    }


def _trailing(buckets: list[Bucket], name: str) -> Iterator[list[Bucket]]:
    """Each bucket with the ones before it, as far back as it takes to have enough; none while there is too little."""
    first, count = 0, 0.0
    for last, bucket in enumerate(buckets):
        count += bucket.tallies[name]
        while count - buckets[first].tallies[name] >= SMOOTH:
            count -= buckets[first].tallies[name]
            first += 1
        yield buckets[first : last + 1] if count >= FEWEST else []


def _means(buckets: list[Bucket], arm: str) -> list[float | None]:
    return [
        sum(each.tallies[f"{arm}_loss"] for each in some) / sum(each.tallies[arm] for each in some) if some else None
        for some in _trailing(buckets, arm)
    ]


def _dimensions(buckets: list[Bucket]) -> list[float | None]:
    """v of what was played: sum_s (sum P(s|A)²) / (sum P(s|A)), over the decisions of each stretch."""
    points: list[float | None] = []
    for some in _trailing(buckets, "decisions"):
        sums = np.sum([each.by_state[[REACHED, SQUARES]] for each in some], axis=0) if some else np.zeros((2, 0))
        reached, squares = sums[:, sums[0] > 0]
        points.append(float((squares / reached).sum()) if some else None)
    return points


def delays_of(counts: Floats) -> dict[str, Any]:
    """The histogram without its empty ends; `edges` in seconds, one more than counts."""
    some = np.flatnonzero(counts)
    if not some.size:
        return {"edges": [], "labels": [], "counts": []}
    first, last = int(some[0]), int(some[-1])
    edges = [2.0**k / 1000 for k in range(first, last + 2)]
    return {
        "edges": edges,
        "labels": [formatting.span(edge) for edge in edges],
        "counts": counts[first : last + 1].tolist(),
    }


def median_of(counts: Floats) -> float | None:
    """The median, in seconds; inside its bin, logarithms are taken to be spread evenly."""
    total = counts.sum()
    if not total:
        return None
    sums = np.cumsum(counts)
    place = int(np.searchsorted(sums, total / 2))
    before = sums[place] - counts[place]
    return float(2.0 ** (place + (total / 2 - before) / counts[place]) / 1000)
