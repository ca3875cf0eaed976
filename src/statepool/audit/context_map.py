"""Maps by context, shrunk.

A row (context, action) is shrunk to the action's row tilted by the context, as if contexts and actions moved the states
independently; the tilt is shrunk to none, the action's row to the overall one. All three strengths are read off the
counts (`map.shrinkage`).

    prior(c, a) ∝ P(a) · tilt(c)        P(c, a) = (n(c, a) + kappa · prior(c, a)) / (n(c, a) + kappa)
"""

import numpy as np

from statepool.audit.map import shrinkage
from statepool.checks import Floats


def context_maps(n: Floats, rows: Floats | None = None) -> tuple[Floats, float, float]:
    """Maps by context from counts (contexts, actions, states), and the strengths of both priors; see above.

    `rows` are the actions' rows; by default they are made from the counts.
    """
    visits, seen = n.sum(axis=2), n.sum(axis=1)
    if rows is None:
        overall = (n.sum(axis=(0, 1)) + 1e-9) / (n.sum() + 1e-9 * n.shape[2])
        rows, _ = _shrunk(n.sum(axis=0), np.tile(overall, (n.shape[1], 1)))
    expected = visits @ rows + 1e-12 * rows.mean(axis=0)
    expected /= expected.sum(axis=1, keepdims=True)
    leaning, lean = _shrunk(seen, expected)
    tilt = np.divide(leaning, expected, out=np.ones_like(leaning), where=expected > 0)
    prior = rows[None] * tilt[:, None]
    prior /= prior.sum(axis=2, keepdims=True)
    own = _part(visits, visits.sum(axis=0, keepdims=True)), _part(visits, visits.sum(axis=1, keepdims=True))
    flat, priors = n.reshape(-1, n.shape[2]), prior.reshape(-1, n.shape[2])
    # A row's prior was made from its action's and its context's rows, itself among both.
    P, strength = _shrunk(flat, priors, (1 - (1 - own[0]) * (1 - own[1])).ravel())
    return P.reshape(n.shape), strength, lean


def _part(some: Floats, all_: Floats) -> Floats:
    return np.divide(some, all_, out=np.ones_like(some), where=all_ > 0)


def _shrunk(n: Floats, prior: Floats, own: Floats | None = None) -> tuple[Floats, float]:
    strength = shrinkage(n, prior, own)
    P = (n + strength * prior) / (n.sum(axis=1, keepdims=True) + strength)
    return P / P.sum(axis=1, keepdims=True), strength
