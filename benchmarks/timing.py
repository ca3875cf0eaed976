"""Timings that can be divided by each other: taken in turns, the best of each kept.

The clock is the thread's processor time, which other programs on the machine do not lengthen much.
"""

from collections.abc import Callable
from time import thread_time


def best_of_turns(runs: dict[str, Callable[[], object]], turns: int) -> dict[str, float]:
    """Seconds of each run, the best of `turns`; every turn times each run once, after one that does not count."""
    for run in runs.values():
        run()
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(turns):
        for name, run in runs.items():
            best[name] = min(best[name], _seconds(run))
    return best


def _seconds(run: Callable[[], object]) -> float:
    start = thread_time()
    run()
    return thread_time() - start
