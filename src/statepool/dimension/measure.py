"""The effective dimension of a policy: how many different behaviours it distinguishes.

    v(x) = sum_s N(s) / q(s)      N(s) = sum_a x(a) P(s|a)²      q(s) = sum_a x(a) P(s|a)

States of probability 0 are left out. `estimate` is the paper's Monte Carlo search, which only ever sees v from below
(see `bracket` for a proved value). Source: paper, Section 3 and Appendix A.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from statepool.checks import Bools, Floats, check_count, check_map, check_maps, check_table, has_contexts, shown
from statepool.kernels import columns_of, effective_dimension

CONCENTRATIONS = (0.2, 1.0, 5.0)


def effective(P: ArrayLike, x: ArrayLike) -> float:
    """The effective dimension v(x) of a policy x, between 1 and the number of states.

    Parameters
    ----------
    P : array_like
        A map, one row for each action; or a map for each context.
    x : array_like
        A probability for each action; with contexts, for each context and action, and v is that of the joint map.

    Returns
    -------
    float

    Examples
    --------
    >>> import statepool as sp
    >>> round(sp.dimension.effective([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5]), 6)
    2.0
    """
    table, offered = joint_of(P)
    weights = np.asarray(x) if offered is None else _of_available(x, offered)
    return value(table, check_policy(weights, table.shape[0]))


def joint_of(P: ArrayLike) -> tuple[Floats, Bools | None]:
    """A checked map; of maps for each context the rows that are not 0, and which those are."""
    if not has_contexts(P):
        return check_map(P), None
    table, offered = check_maps(P, (np.asarray(P) != 0).any(axis=2))
    return table[offered], offered


def _of_available(x: ArrayLike, offered: Bools) -> Floats:
    weights = np.asarray(x, dtype=np.float64)
    if weights.shape != offered.shape:
        raise ValueError(f"x: has shape {weights.shape}, expected {offered.shape}, one weight per context and action")
    wrong = np.argwhere(~offered & (weights != 0))
    if wrong.size:
        raise ValueError(f"x: entry {tuple(map(int, wrong[0]))} is not 0, expected 0 where no row is available")
    return np.asarray(weights[offered])


def estimate(P: ArrayLike, rng: np.random.Generator, n: int) -> float:
    """The paper's Monte Carlo estimate of sup_x v(x): the largest of n random policies, so a value from below.

    Parameters
    ----------
    P : array_like
        A map, one row for each action.
    rng : numpy.random.Generator
        Draws the policies.
    n : int
        How many.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> import statepool as sp
    >>> 1 <= sp.dimension.estimate([[0.7, 0.3], [0.1, 0.9]], np.random.default_rng(0), n=50) <= 2
    True
    """
    table = check_map(P)
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng: is {shown(rng)}, expected a numpy Generator")
    columns, ones = columns_of(table), np.ones(table.shape[0])
    largest = 1.0
    for _ in range(check_count(n, "n")):
        concentration = rng.choice(CONCENTRATIONS)
        largest = max(largest, effective_dimension(columns, rng.dirichlet(ones * concentration)))
    return float(largest)


def value(P: Floats, x: Floats) -> float:
    """v(x) of a map and a policy that are already checked."""
    # Both sums in one order, so that a deterministic map gives whole numbers.
    q, N = np.einsum("a,as->s", x, P), np.einsum("a,as,as->s", x, P, P)
    reached = q > 0
    return float((N[reached] / q[reached]).sum())


def check_policy(x: ArrayLike, n_actions: int) -> Floats:
    """A probability for each action."""
    policy = check_table(x, "x", "one probability for each row of P", n_axes=1)
    if policy.shape != (n_actions,):
        raise ValueError(f"x: has shape {policy.shape}, expected ({n_actions},), one probability for each row of P")
    wrong = np.flatnonzero(~(policy >= 0))
    if wrong.size:
        raise ValueError(f"x: entry {wrong[0]} is {policy[wrong[0]]}, expected a probability in [0, 1]")
    if not abs(policy.sum() - 1) <= 1e-9:
        raise ValueError(f"x: sums to {policy.sum():.12g}, expected 1 within 1e-09")
    return policy
