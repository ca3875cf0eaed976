"""Good plays: local ascent of v from a few starts, which is what attains the bracket's lower end.

    x(a) ← x(a) exp(step · g(a)) / Z      g(a) = sum_s P(s|a) (P(s|a) - r(s)) / q(s)      r(s) = N(s) / q(s)

g is the gradient of v (its mean under x is 0). A step that lowers v is halved, one that raises it is kept
and the next is longer. Multiplicative steps let a mass fall to nothing without leaving the simplex, which
matters because the supremum may be approached only as some mass vanishes. Once a climb has found its few
actions it goes on among those and the best of the others: a maximiser needs no more than |S| of them.
"""

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled_allocating as compiled
from statepool.dimension.measure import value

COARSE, FINE = 100, 3000
"""Steps over all actions, and over the few that matter."""

LEAST_MASS = 1e-30

ENTRIES_PER_CLIMB = 1_000_000_000
"""Work allowed for the coarse steps of one start, in entries of P read."""


def starts(P: Floats, n_random: int) -> list[Floats]:
    """Deterministic starting plays: each state's most likely action, all actions alike, and random ones."""
    K = P.shape[0]
    extremes = np.zeros(K)
    for s in range(P.shape[1]):
        # One column at a time: argmax over the first axis would copy the whole map.
        extremes[P[:, s].argmax()] += 1
    uniform = np.full(K, 1 / K)
    rng = np.random.default_rng(0)
    random = [rng.dirichlet(np.full(K, 0.3)) + 1e-12 for _ in range(n_random)]
    # A little of everything: an action of mass exactly 0 could never come back.
    return [0.99 * extremes / extremes.sum() + 0.01 * uniform, uniform, *(x / x.sum() for x in random)]


def ascend(P: Floats, x: Floats) -> tuple[float, Floats]:
    """Climb from the play x; the value reached and the play that attains it."""
    K, S = P.shape
    x = x.copy()
    climb(P, x, max(3, min(COARSE, ENTRIES_PER_CLIMB // (4 * K * S))))
    best, best_x = settled(P, x)
    for _ in range(8):
        few = promising(P, x, 6 * S)
        inner = np.maximum(x[few], 1e-6 / few.size)
        inner /= inner.sum()
        climb(np.ascontiguousarray(P[few]), inner, FINE)
        x = np.zeros(K)
        x[few] = inner
        reached, x = settled(P, x)
        if reached <= best * (1 + 1e-10):
            break
        best, best_x = reached, x
    return best, best_x


def settled(P: Floats, x: Floats) -> tuple[float, Floats]:
    """The play without its vanishing masses, whose ratios would be rounding only; and its value."""
    x = np.where(x < LEAST_MASS, 0.0, x)
    x /= x.sum()
    return value(P, x), x


def promising(P: Floats, x: Floats, n: int) -> np.ndarray:
    """The n actions with the largest mass or the largest gradient."""
    q = np.maximum(x @ P, 1e-300)
    r = np.einsum("a,as,as->s", x, P, P) / q
    g = np.einsum("as,as,s->a", P, P, 1 / q) - P @ (r / q)
    heavy = np.argsort(-x, kind="stable")[:n]
    steep = np.argsort(-g, kind="stable")[:n]
    return np.union1d(heavy[x[heavy] > 1e-7], steep)


@compiled
def climb(P: Floats, x: Floats, steps: int) -> float:
    """Up to so many multiplicative steps on x, in place; v of the last play."""
    K, S = P.shape
    q, r, g, y = np.empty(S), np.empty(S), np.empty(K), np.empty(K)
    best = ratios(P, x, q, r)
    step = 1.0
    for _ in range(steps):
        for a in range(K):
            slope = 0.0
            for s in range(S):
                if q[s] > 0:
                    slope += P[a, s] * (P[a, s] - r[s]) / q[s]
            g[a] = slope
        while True:
            total = 0.0
            for a in range(K):
                y[a] = x[a] * np.exp(min(max(step * g[a], -30.0), 30.0))
                total += y[a]
            for a in range(K):
                y[a] /= total
            reached = ratios(P, y, q, r)
            if reached >= best or step < 1e-9:
                break
            step /= 2
        gain = reached - best
        if gain <= 1e-13:
            break
        best = reached
        x[:] = y
        step *= 1.5
    return best


@compiled
def ratios(P: Floats, x: Floats, q: Floats, r: Floats) -> float:
    """Fill q(s) and r(s); return their sum over reached states, v(x)."""
    K, S = P.shape
    q[:] = 0.0
    r[:] = 0.0
    for a in range(K):
        if x[a] > 0:
            for s in range(S):
                q[s] += x[a] * P[a, s]
                r[s] += x[a] * P[a, s] * P[a, s]
    v = 0.0
    for s in range(S):
        if q[s] > 0:
            r[s] /= q[s]
            v += r[s]
    return v
