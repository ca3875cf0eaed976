"""The safe part of a play: EXP3 on the rounds since the last power of two, at the rate of Theorem 1.

It starts anew in each round s that is a power of two, on the leader of that moment with 1/s spread evenly, and is given
SHARE of the rounds (all of them while an alarm rings). Its rate is set for as many rounds as there were, at the delay
seen so far, for a learner that is given that share.
"""

from math import e
from typing import Any

import numpy as np

from statepool.compiling import compiled
from statepool.kernels import log, lowest

SHARE = 1 / 32
"""What insurance costs: a thirty-second of what following gains; the floor grows as 1/sqrt(SHARE)."""

CLOCK = np.dtype([("start", np.int64), ("leader", np.int64), ("anchor", np.int64), ("rate", float), ("part", float)])
"""The round that safe started in, the leader of the play, the number of the action that safe started on (for learners
that know actions apart), safe's rate, and its part of the play."""


def start_clock() -> Any:
    return np.zeros(1, CLOCK)[0]


@compiled
def rate_of(length: int, delay: float, width: int, n_actions: int) -> float:
    """Safe's rate for so many rounds at that delay; `width`: how many states, or actions, it tells apart."""
    cost = (3.3 * (width - 1) / SHARE + 2.0 * delay + 1.0) * length
    return min(np.sqrt(2.0 * log(float(n_actions * length)) / cost), SHARE / (e * (delay + 1.0)))


@compiled
def begin(clock: Any, t: int, delay: float, width: int, n_actions: int) -> None:
    """Safe starts anew in round t."""
    # A delay that is the same for all is known exactly by the first outcome that safe learns from.
    clock.start = t
    clock.rate = rate_of(max(t, 1), delay, width, n_actions)


@compiled
def lean_on(weights: Any, anchor: int, start: int) -> None:
    """Where safe started, into its totals: 1/s spread evenly, the rest on the leader of that moment."""
    totals = weights.totals[0]
    odds = float(totals.size * max(start, 1))
    price = log(odds)
    for a in range(totals.size):
        totals[a] += price
    totals[anchor] -= price + log(1.0 - (totals.size - 1) / odds)
    weights.references[0] = lowest(totals)
    weights.changed[0] = True
