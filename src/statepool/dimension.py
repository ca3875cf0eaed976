"""The effective dimension: how many truly different behaviours a play tells apart.

    v(x) = sum_s q(s)⁻¹ sum_a x(a) P(s|a)²        q(s) = sum_a x(a) P(s|a)

Source: paper, Section 3 and Appendix A.
"""

import numpy as np
from numpy.typing import ArrayLike

from statepool.checks import check_count, check_map
from statepool.kernels import columns_of, effective_dimension

CONCENTRATIONS = (0.2, 1.0, 5.0)


def effective(P: ArrayLike, x: ArrayLike) -> float:
    """v(x), between 1 and the number of states; states of probability 0 are left out."""
    table, play = check_map(P), np.ascontiguousarray(x, dtype=np.float64)
    if play.shape != (table.shape[0],) or not (play >= 0).all() or abs(play.sum() - 1) > 1e-9:
        raise ValueError(f"x: expected {table.shape[0]} probabilities that sum to 1, one for each row of P")
    return float(effective_dimension(columns_of(table), play))


def estimate(P: ArrayLike, rng: np.random.Generator, n: int) -> float:
    """The paper's Monte Carlo estimate of sup_x v(x): the largest of n random plays, so a value from below."""
    table = check_map(P)
    columns, ones = columns_of(table), np.ones(table.shape[0])
    largest = 1.0
    for _ in range(check_count(n, "n")):
        concentration = rng.choice(CONCENTRATIONS)
        largest = max(largest, effective_dimension(columns, rng.dirichlet(ones * concentration)))
    return float(largest)
