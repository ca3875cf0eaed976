"""Intervals of proportions and of means."""

from statistics import NormalDist

import numpy as np

from statepool.checks import Floats


def wilson(hits: Floats, trials: Floats, level: float) -> tuple[Floats, Floats]:
    """Wilson's score interval of a proportion."""
    z = NormalDist().inv_cdf(0.5 + level / 2)
    share = hits / trials
    middle = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z / (1 + z**2 / trials) * np.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    return np.where(hits > 0, np.maximum(middle - half, 0), 0.0), np.where(
        hits < trials, np.minimum(middle + half, 1), 1.0
    )


def student(means: Floats, errors: Floats, n: Floats, level: float) -> tuple[Floats, Floats]:
    """Student's interval of a mean of losses, inside [0, 1]."""
    from scipy.stats import t

    half = t.ppf(0.5 + level / 2, np.maximum(n - 1, 1)) * errors
    return np.maximum(means - half, 0.0), np.minimum(means + half, 1.0)
