"""Timings that can be divided by each other: taken in turns, the best of each kept.

The clock is the thread's processor time, which other programs on the machine do not lengthen much.
"""

from collections.abc import Callable
from time import thread_time

SHARE = 0.05
"""Seconds that a run is repeated for in each turn, so that a short one has as good a chance of a quiet moment."""


def best_of_turns(runs: dict[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """Seconds of each run, the best of all its repeats; every turn gives each run its share."""
    for run in runs.values():
        run()  # compiles
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(turns):
        for name, run in runs.items():
            best[name] = min(best[name], _best_within_share(run))
    return best


def _best_within_share(run: Callable[[], object]) -> float:
    best = float("inf")
    start = now = thread_time()
    while now - start < SHARE:
        run()
        before, now = now, thread_time()
        best = min(best, now - before)
    return best
