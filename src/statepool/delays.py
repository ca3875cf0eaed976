"""Random delays, one a round: how outcomes really come back. A delay past the horizon never arrives."""

import numpy as np

from statepool.checks import Ints, check_count, check_number, check_whole

never = 1 << 62
"""A delay past every horizon: the outcome does not come. `np.where(lost, delays.never, 50)`."""


def geometric(seed: int, horizon: int, mean: float) -> Ints:
    """Memoryless.

    >>> import statepool as sp
    >>> sp.delays.geometric(seed=1, horizon=8, mean=3.0).tolist()
    [3, 3, 0, 2, 3, 0, 2, 17]
    """
    rng = _generator(seed, 77, horizon, mean)
    return rng.geometric(1 / (mean + 1), horizon).astype(np.int64) - 1


def heavy_tailed(seed: int, horizon: int, mean: float) -> Ints:
    """Pareto of shape 1.5: a finite mean, no variance.

    >>> import statepool as sp
    >>> sp.delays.heavy_tailed(seed=1, horizon=8, mean=3.0).tolist()
    [1, 1, 1, 4, 1, 1, 3, 1]
    """
    rng = _generator(seed, 78, horizon, mean)
    return ((1 + rng.pareto(1.5, horizon)) * mean / 3).astype(np.int64)


def missing(seed: int, horizon: int, mean: float, share: float = 0.1) -> Ints:
    """Memoryless, and a share never arrives.

    >>> import statepool as sp
    >>> sp.delays.missing(seed=1, horizon=12, mean=3.0, share=0.25).tolist()  # 12 and more: never
    [1, 0, 12, 2, 12, 2, 12, 0, 3, 12, 1, 5]
    """
    check_number(share, "share", 0, 1)
    rng = _generator(seed, 79, horizon, mean)
    delays = rng.geometric(1 / (mean + 1), horizon).astype(np.int64) - 1
    delays[rng.random(horizon) < share] = horizon
    return delays


def _generator(seed: int, kind: int, horizon: int, mean: float) -> np.random.Generator:
    check_count(horizon, "horizon")
    check_number(mean, "mean", 0, 1e12)
    return np.random.default_rng((check_whole(seed, "seed"), kind))


KINDS = {"geometric": geometric, "heavy-tailed": heavy_tailed, "missing": missing}
