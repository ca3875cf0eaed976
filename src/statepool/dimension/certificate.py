"""Proved upper bounds: four that need two passes over the map, and one for each cell of the search.

    v ≤ number of distinct rows          v ≤ number of states reached          v ≤ sum_s M(s)
    v ≤ sum_s M(s) - min_a sum_s P(s|a) (M(s) - P(s|a)) / M(s)                  M(s) = max_a P(s|a)

The last holds because v = sum_s M(s) - sum_a x(a) sum_s P(s|a)(M(s) - P(s|a)) / q(s) and q(s) ≤ M(s). Counts are exact;
sums are rounded upwards.

A cell is a simplex of state distributions with corners v_0 … v_{S-1}; q = sum_k mu(k) v_k. Let M(s) ≥ max_a P(s|a) and
U(s|a) = P(s|a) (M(s) - P(s|a)) ≥ 0. For any tangent points t(s|a) > 0 and any vectors lam_k with

    lam_k · P(a) ≥ c_k(a) := - sum_s U(s|a) (2 - v_k(s)/t(s|a)) / t(s|a)      for all a and k,

every policy x whose state distribution lies in the cell has

    v(x) ≤ sum_s M(s) + max_{j,k} (lam_j·v_k + lam_k·v_j) / 2.

`certify` makes any lam feasible by adding a constant to each (rows of P and corners sum to 1, so a constant adds itself
to either side), plus a margin for rounding. An action's best tangent point minimises a convex function of mu
(`descend`); a poor one costs tightness, never truth. Proofs and rounding analysis: docs/dimension.md. In code, pi holds
lam_0 … lam_{S-1} end to end, then one number that only the solver reads; V's rows are corners.
"""

from __future__ import annotations

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled_allocating as compiled

UNIT = 2.0**-53
"""The unit roundoff of float64."""

DISTINCT_ENTRIES = 1_000_000
"""Maps larger than this are not sorted to find equal rows: sorting copies them."""

DESCENT_STEPS = 20
"""Steps of `descend` when it continues; ten times as many from a fresh start."""

TOLERANCE = 1e-4
"""Violations below this are left to the repair."""


def column_maxima(P: Floats) -> Floats:
    """M(s), not below the exact column maxima of the map whose scaled rows P holds rounded."""
    largest: Floats = P.max(axis=0)
    # A probability never exceeds 1, so a rounded-up 1 is still 1: deterministic maps stay exact.
    return np.asarray(np.minimum(largest * (1 + 4 * (P.shape[1] + 24) * UNIT), 1.0))


def distinct_rows(P: Floats) -> int:
    """The number of different rows, or of all rows where counting would cost too much."""
    if (P[0] == P).all():
        return 1
    return len(np.unique(P, axis=0)) if P.size <= DISTINCT_ENTRIES else len(P)


def coarse_bound(P: Floats, M: Floats, distinct: int) -> tuple[float, str]:
    """The smallest of the bounds above, and its name."""
    slack = 8 * (P.shape[1] + 8) * UNIT * (float(M.sum()) + 1)
    return min(
        (float(distinct), "number of distinct actions"),
        (float(np.count_nonzero(M)), "number of states"),
        (float(M.sum()) + slack, "column maxima"),
        (one_row_bound(P, M) + slack, "column maxima less the least shortfall"),
    )


@compiled
def one_row_bound(P: Floats, M: Floats) -> float:
    """sum M - min_a sum_s P (M - P) / M, in plain floating point."""
    least = np.inf
    for a in range(P.shape[0]):
        shortfall = 0.0
        for s in range(M.size):
            if M[s] > 0:
                shortfall += P[a, s] * (M[s] - P[a, s]) / M[s]
        least = min(least, shortfall)
    return M.sum() - least


@compiled
def check(P: Floats, U: Floats, M: Floats, V: Floats, pi: Floats, depth: int) -> tuple[float, Floats]:
    """The proved bound from multipliers pi, each action with its own best tangent; and how each one breaks them."""
    K, S = P.shape
    mu, c, L = np.full((K, S), 1.0 / S), np.empty((K, S)), np.empty((K, S))
    scale, phi, worst = np.empty(K), np.zeros(K), np.empty(S)
    products(P, pi, L)
    for a in range(K):
        scale[a] = tangent(P, U, M, V, mu, a, c)
        if violation(c, L, a) > 0:
            phi[a] = descend(U[a], L[a], V, mu[a], 10 * DESCENT_STEPS)
            scale[a] = tangent(P, U, M, V, mu, a, c)
    return certify(M, V, pi, c, L, scale, worst, depth), phi


@compiled
def products(P: Floats, pi: Floats, L: Floats) -> None:
    """L(a, k) = lam_k · P(a)."""
    K, S = P.shape
    for a in range(K):
        for k in range(S):
            dot = 0.0
            for s in range(S):
                dot += P[a, s] * pi[k * S + s]
            L[a, k] = dot


@compiled
def violation(c: Floats, L: Floats, a: int) -> float:
    """By how much action a breaks its constraints at its present tangent."""
    most = -np.inf
    for k in range(c.shape[1]):
        most = max(most, c[a, k] - L[a, k])
    return most


@compiled
def tangent(P: Floats, U: Floats, M: Floats, V: Floats, mu: Floats, a: int, c: Floats) -> float:
    """Fill c_k(a) for the tangent at mu[a]; return the size of the terms it was summed from, for the margin."""
    S = V.shape[0]
    size = 0.0
    c[a] = 0.0
    for s in range(S):
        if P[a, s] > 0:
            t, furthest = 0.0, 0.0
            for k in range(S):
                t += mu[a, k] * V[k, s]
                furthest = max(furthest, V[k, s])
            for k in range(S):
                c[a, k] -= U[a, s] * ((2.0 - V[k, s] / t) / t)
            size += P[a, s] * (M[s] / t * (2.0 + furthest / t))
    return size


@compiled
def certify(M: Floats, V: Floats, pi: Floats, c: Floats, L: Floats, scale: Floats, worst: Floats, depth: int) -> float:
    """The proved bound from the multipliers pi = (lam, ·) and each action's tangents c."""
    K, S = c.shape
    unit = 32 * (S + depth + 16) * UNIT
    for k in range(S):
        steepest, most = np.abs(pi[k * S : k * S + S]).max(), -np.inf
        for a in range(K):
            gap = c[a, k] - L[a, k] + unit * (scale[a] + steepest)
            if not gap < np.inf:
                # Overflow or nonsense proves nothing.
                return np.inf
            most = max(most, gap)
        worst[k] = most + unit * (abs(most) + steepest)
    largest = -np.inf
    for j in range(S):
        for k in range(j + 1):
            pair = worst[j] + worst[k] + (pi[j * S : j * S + S] * V[k] + pi[k * S : k * S + S] * V[j]).sum()
            if not pair < np.inf:
                return np.inf
            largest = max(largest, pair)
    return 0.5 * largest + (M * (1 + unit)).sum()


@compiled
def descend(U: Floats, L: Floats, V: Floats, mu: Floats, steps: int) -> float:
    """Minimise L·mu + sum_s U(s)/q(s) over the cell, in place, moving weight between two corners at a time."""
    S = V.shape[0]
    q, g = np.zeros(S), np.empty(S)
    for k in range(S):
        for s in range(S):
            q[s] += mu[k] * V[k, s]
    for _ in range(steps):
        mean, low, high = 0.0, 0, -1
        for k in range(S):
            g[k] = L[k]
            for s in range(S):
                if U[s] > 0:
                    g[k] -= V[k, s] * U[s] / (q[s] * q[s])
            mean += mu[k] * g[k]
            if g[k] < g[low]:
                low = k
            if mu[k] > 0 and (high < 0 or g[k] > g[high]):
                high = k
        if mean - g[low] < 0.5 * TOLERANCE or low == high:
            break
        step = line_step(U, V, q, L, low, high, mu[high])
        mu[low] += step
        mu[high] -= step
        for s in range(S):
            q[s] += step * (V[low, s] - V[high, s])
    phi = 0.0
    for s in range(S):
        phi += L[s] * mu[s]
        if U[s] > 0:
            phi += U[s] / q[s]
    return phi


@compiled
def line_step(U: Floats, V: Floats, q: Floats, L: Floats, low: int, high: int, most: float) -> float:
    """How much weight to move from corner `high` to corner `low`: Newton steps that keep every q(s) positive."""
    S = q.size
    for s in range(S):
        fall = V[high, s] - V[low, s]
        if U[s] > 0 and fall * most > 0.9 * q[s]:
            most = 0.9 * q[s] / fall
    step = 0.0
    for _ in range(3):
        slope, curve = L[low] - L[high], 1e-300
        for s in range(S):
            if U[s] > 0:
                change = V[low, s] - V[high, s]
                at = q[s] + step * change
                slope -= U[s] * change / (at * at)
                curve += 2 * U[s] * change * change / (at * at * at)
        step = min(max(step - slope / curve, 0.0), most)
    return step
