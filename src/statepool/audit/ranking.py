"""Which action looks best in the log: the order in which `AUDIT.json` lists them, since a pool starts on the first.

Where the verdict is to pool, by the mean loss through the states, c(a) = P(a)·h. Its variance is that of the state
means, (P(a)²)·var(h), and that of the action's row, (P(a)·h² - c(a)²) / n(a); two actions are told apart by the same of
the difference of their rows. Where it is not, nothing here can rank them, and the one that was played most, with which
things went as they went, comes first.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from statepool.audit.counts import Counts
from statepool.audit.map import Map, effective_counts
from statepool.audit.verdict import CORRECT, POOL
from statepool.checks import Floats


@dataclass(frozen=True)
class Ranking:
    """Actions by their numbers, the best or the most played first."""

    order: tuple[int, ...]
    through_states: bool
    """Whether they are in order of their estimated losses; else of how often they were played."""
    loss: float
    """Of the first: its mean loss through the states, and the ends of its interval."""
    lower: float
    upper: float
    alike: tuple[int, ...]
    """Those that the log cannot tell apart from the first, in order."""


def rank_actions(verdict: str, counts: Counts, map_: Map) -> Ranking:
    """The actions in the order in which a pool should have them."""
    means, doubts = counts.state_means, counts.state_errors
    doubts = np.where(np.isfinite(doubts), doubts, 0.5)
    losses = map_.P @ means
    noise = np.maximum(map_.P @ means**2 - losses**2, 0) / np.maximum(effective_counts(counts).sum(axis=1), 1)
    through_states = verdict in (POOL, CORRECT)
    order = np.argsort(losses if through_states else -counts.n.sum(axis=1), kind="stable")
    first = order[0]
    wide = NormalDist().inv_cdf(0.5 + map_.level / 2)
    error = _spread(map_.P[first], doubts, noise[first])
    others = [a for a in order[1:] if losses[a] - losses[first] <= wide * _spread(
        map_.P[a] - map_.P[first], doubts, noise[a] + noise[first]
    )]  # fmt: skip
    loss = float(losses[first])
    ends = max(loss - wide * error, 0.0), min(loss + wide * error, 1.0)
    return Ranking(tuple(map(int, order)), through_states, loss, *ends, tuple(map(int, others)))


def _spread(row: Floats, doubts: Floats, noise: float) -> float:
    return float(np.sqrt((row**2) @ (doubts**2) + noise))
