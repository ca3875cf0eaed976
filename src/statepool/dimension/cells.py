"""Upper bounds: four that need two passes over the map, and one for each cell of the search.

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

Good multipliers for a cell come from a linear program, solved by column generation. Nothing of it is trusted: `certify`
has the last word. The program ranges over joint measures of (action, q in the cell). Its columns (a, mu) cost
-sum_s U(s|a)/q(s) and weigh mu(k) P(s|a) in row (k, s); its pairs m(j, k) stand for mu(j) mu(k) and tie the measure's
moments together. The duals are the lam_k. A revised simplex method with a dense inverse solves it; new columns come
from `descend`, priced at a mixture of the best multipliers so far and the present ones. The first basis holds
artificial columns at the cell's centre; their cost grows with 1/q.
"""

from typing import NamedTuple

import numpy as np

from statepool.checks import Bools, Floats, Ints
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


SWEEPS = 400
"""Rounds of pricing before the solver leaves a cell as it is; the root cells measured took 60 to 170."""

SMOOTHING = 0.8
"""Weight of the best multipliers so far in those tried next: without, roots took 1.4 to 3 times longer."""

CLOSE = 5e-4
"""A cell's program counts as solved when bound and value differ by less than this part of the bound."""

PENALTY = 30.0
"""How steep lam may grow, relative to 1/q, to show that a cell misses the reachable distributions."""

START, ARTIFICIAL = -2, -1
"""Mark the starting column mu = centre, and artificial columns, in a basis."""


class Tableau(NamedTuple):
    """Where the simplex method stands: the columns in its basis, their inverse, their values and costs, the duals."""

    basis: Ints
    inverse: Floats
    values: Floats
    costs: Floats
    duals: Floats
    entering: Floats
    """Space for a column that may enter."""


def relax(
    P: Floats, U: Floats, M: Floats, V: Floats, cut: float, depth: int, active: Bools
) -> tuple[float, Floats, Floats, Floats]:
    """A proved upper bound on the cell V, with the relaxed solution: state distribution q, shortfall W, policy x.

    The program is solved over the active actions, and its multipliers are checked on all of them. Actions that break
    them become active, here and in later cells. Stops as soon as the bound falls to `cut`.
    """
    upper = np.inf
    while True:
        few = np.flatnonzero(active)
        value, pi, q, W, masses = propose(P[few], U[few], M, V, cut, depth)
        if few.size == active.size:
            upper = min(upper, value)
            break
        bound, phi = check(P, U, M, V, pi, depth)
        upper = min(upper, bound)
        worst = np.argsort(phi, kind="stable")[: 4 * V.shape[0]]
        fresh = worst[(phi[worst] < -TOLERANCE) & ~active[worst]]
        if upper <= cut or upper - value < CLOSE * upper or fresh.size == 0:
            break
        active[fresh] = True
    x = np.zeros(P.shape[0])
    x[few] = masses
    return upper, q, W, x


@compiled
def propose(
    P: Floats, U: Floats, M: Floats, V: Floats, cut: float, depth: int
) -> tuple[float, Floats, Floats, Floats, Floats]:
    """Multipliers for the cell from a simplex method with column generation, and the relaxed solution."""
    K, S = P.shape
    at = start(V)
    best, tried = at.duals.copy(), at.duals.copy()
    mu, c, L = np.full((K, S), 1.0 / S), np.empty((K, S)), np.empty((K, S))
    scale, phi, worst = np.empty(K), np.zeros(K), np.empty(S)
    for a in range(K):
        scale[a] = tangent(P, U, M, V, mu, a, c)
    upper, smooth = np.inf, 0.0
    for _ in range(SWEEPS):
        tried[:] = smooth * best + (1 - smooth) * at.duals
        products(P, tried, L)
        for a in range(K):
            phi[a] = 0.0
            if violation(c, L, a) > TOLERANCE:
                phi[a] = descend(U[a], L[a], V, mu[a], DESCENT_STEPS)
                scale[a] = tangent(P, U, M, V, mu, a, c)
        bound = certify(M, V, tried, c, L, scale, worst, depth)
        if bound < upper:
            upper = bound
            best[:] = tried
        value = (at.costs * at.values).sum() + M.sum()
        if upper <= cut or upper - value < max(CLOSE * upper, 0.25 * (value - cut)):
            break
        if exchange_columns(P, U, V, mu, phi, at):
            smooth = SMOOTHING
        elif smooth > 0:
            smooth = 0.0
        else:
            break
    q, W, x = solution(U, V, at.basis, at.values)
    return upper, best, q, W, x


@compiled
def start(V: Floats) -> Tableau:
    """A feasible basis: mu at the centre, which artificial columns stand in for until actions reach it."""
    S = V.shape[0]
    n = S * S + 1
    centre = V.sum(axis=0) / S
    basis, xB, cB, B = np.full(n, ARTIFICIAL), np.empty(n), np.empty(n), np.eye(n)
    for k in range(S):
        for s in range(S):
            xB[k * S + s], cB[k * S + s] = centre[s] / S, -PENALTY / centre[s]
            B[k * S + s, n - 1] = centre[s] / S
    basis[n - 1], xB[n - 1], cB[n - 1] = START, 1.0, 0.0
    pi = np.zeros(n)
    for i in range(n):
        pi += cB[i] * B[i]
    return Tableau(basis, B, xB, cB, pi, np.empty(n))


@compiled
def exchange_columns(P: Floats, U: Floats, V: Floats, mu: Floats, phi: Floats, at: Tableau) -> bool:
    """Bring in the actions that broke their constraints most, and between them the pairs that now pay."""
    S = V.shape[0]
    moved = False
    for _ in range(S):
        a = int(phi.argmin())
        if phi[a] < -1e-6:
            moved |= enter_action(P, U, V, mu, a, at)
            phi[a] = 0.0
        moved |= enter_pair(V, P.shape[0], at)
    return moved


@compiled
def enter_action(P: Floats, U: Floats, V: Floats, mu: Floats, a: int, at: Tableau) -> bool:
    """Bring the column (a, mu[a]) into the basis if it still pays."""
    S = V.shape[0]
    cost = 0.0
    for s in range(S):
        if U[a, s] > 0:
            q = 0.0
            for k in range(S):
                q += mu[a, k] * V[k, s]
            cost -= U[a, s] / q
    gain = cost
    at.entering[:] = 0.0
    for k in range(S):
        if mu[a, k] > 0:
            for s in range(S):
                entry = mu[a, k] * P[a, s]
                gain -= entry * at.duals[k * S + s]
                at.entering[:] += at.inverse[:, k * S + s] * entry
    if not gain > 1e-7:
        return False
    return exchange(a, cost, gain, at)


@compiled
def enter_pair(V: Floats, K: int, at: Tableau) -> bool:
    """Bring the pair m(j, k) whose bound is largest into the basis if it pays."""
    S, n, pi = V.shape[0], at.entering.size, at.duals
    best, bj, bk = -np.inf, 0, 0
    for j in range(S):
        for k in range(j + 1):
            bound = (pi[j * S : j * S + S] * V[k] + pi[k * S : k * S + S] * V[j]).sum()
            if bound > best:
                best, bj, bk = bound, j, k
    gain = 0.5 * best - pi[n - 1]
    if not gain > 1e-7:
        return False
    at.entering[:] = at.inverse[:, n - 1]
    for s in range(S):
        at.entering[:] -= 0.5 * (at.inverse[:, bk * S + s] * V[bj, s] + at.inverse[:, bj * S + s] * V[bk, s])
    return exchange(K + bj * S + bk, 0.0, gain, at)


@compiled
def exchange(code: int, cost: float, gain: float, at: Tableau) -> bool:
    """One pivot of the cell's program."""
    leaving = ratio_test(at.values, at.entering)
    if leaving < 0:
        return False
    pivot(at.inverse, at.values, at.entering, leaving)
    at.basis[leaving], at.costs[leaving] = code, cost
    at.duals[:] += gain * at.inverse[leaving]
    return True


@compiled
def solution(U: Floats, V: Floats, basis: Ints, xB: Floats) -> tuple[Floats, Floats, Floats]:
    """Read the relaxed q, the shortfall W(s) = sum_a x(a) U(s|a) and the policy x off a basis."""
    K, S = U.shape
    q, W, x = np.zeros(S), np.zeros(S), np.zeros(K)
    for i in range(xB.size):
        code = basis[i]
        if code >= K:
            q += 0.5 * xB[i] * (V[(code - K) // S] + V[(code - K) % S])
        elif code >= 0:
            W += xB[i] * U[code]
            x[code] += max(xB[i], 0.0)
        elif code == START:
            q += xB[i] * V.sum(axis=0) / S
    return q, W, x


@compiled
def ratio_test(xB: Floats, w: Floats) -> int:
    """The row that leaves: the smallest ratio, and among ties the largest pivot."""
    least, leaving = np.inf, -1
    for i in range(w.size):
        if w[i] > 1e-9:
            ratio = xB[i] / w[i]
            if ratio < least - 1e-13 or (ratio <= least + 1e-13 and w[i] > w[leaving]):
                least, leaving = ratio, i
    return leaving


@compiled
def pivot(B: Floats, xB: Floats, w: Floats, leaving: int) -> None:
    """Exchange the leaving row: update the inverse basis and the basic values."""
    step = max(xB[leaving] / w[leaving], 0.0)
    B[leaving] /= w[leaving]
    for i in range(w.size):
        if i != leaving and w[i] != 0.0:
            xB[i] -= step * w[i]
            for j in range(w.size):
                B[i, j] -= w[i] * B[leaving, j]
    xB[leaving] = step
