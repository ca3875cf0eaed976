"""The bracket of the effective dimension's supremum: a policy from below, a cover by bounded cells from above.

    lower = v(play)  ≤  vbar = sup_x v(x)  ≤  upper

The state distributions of policies lie in one simplex. It is cut into ever smaller simplices, the cell with the largest
bound first, at the middle of an edge, until no cell's bound exceeds lower·(1 + gap). Every cell ever set aside counts
towards `upper`, so stopping early only leaves the bracket wider.
Proofs: docs/dimension.md. Source of v: paper, Section 3; the paper itself only estimates vbar by random search.

The lower end comes from local ascent of v from a few starting policies:

    x(a) ← x(a) exp(step · g(a)) / Z      g(a) = sum_s P(s|a) (P(s|a) - r(s)) / q(s)      r(s) = N(s) / q(s)

g is the gradient of v (its mean under x is 0). A step that lowers v is halved; after one that raises it the next is
longer. Multiplicative steps let a mass vanish without leaving the simplex, which matters because the supremum may be
approached only as some mass vanishes. A maximiser needs at most |S| actions, so a climb ends among a few of them.
"""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from statepool.checks import Floats, check_number
from statepool.compiling import compiled_allocating as compiled
from statepool.dimension.cells import UNIT, coarse_bound, column_maxima, distinct_rows, relax
from statepool.dimension.measure import joint_of, value

COARSE_STEPS, FINE_STEPS = 100, 3000
"""Steps over all actions, and over the few that matter."""

LEAST_MASS = 1e-30

ENTRIES_PER_CLIMB = 1_000_000_000
"""Work allowed for the coarse steps of one start, in entries of P read."""

RANDOM_STARTS = 6
"""Random starts of the ascent on small maps; on maps past `LARGE` entries only the two structured ones."""

LARGE = 500_000
MOST_STATES = 20
"""A cell's program has |S|² + 1 unknowns: past these sizes cells are not searched."""

WORK = 10**11
"""Multiplications allowed without a time limit (minutes), so that a call always ends, and always the same way."""

NEGLIGIBLE = 1e-9
"""States less likely than this under every action are not searched over."""

FAINT = 1e-18
"""Entries up to this are searched over as 0, so that no square of one is lost below the smallest float."""

ALL_ACTIVE = 100
"""Up to this many actions, cells are solved over all of them; above, over those that have mattered so far."""


@dataclass(frozen=True)
class Bracket:
    """lower = v(play) ≤ sup_x v(x) ≤ upper.

    Attributes
    ----------
    lower, upper : float
        The bracket.
    play : numpy.ndarray
        A policy that attains `lower`.
    proof : str
        What proves `upper`.
    reached : bool
        Whether the gap that was asked for is reached.
    nodes : int
        How many cells were bounded.
    seconds : float
        How long it took.
    """

    lower: float
    upper: float
    play: Floats = field(repr=False)
    proof: str
    reached: bool
    nodes: int
    seconds: float


class SearchCell(NamedTuple):
    """A simplex of state distributions, its bound, and the edge to cut; the largest bound comes first."""

    rank: float
    number: int
    corners: Floats
    depth: int
    edge: tuple[int, int]

    @property
    def upper(self) -> float:
        return -self.rank


def bracket(P: ArrayLike, gap: float = 0.01, seconds: float | None = None) -> Bracket:
    """Bracket vbar to the relative gap (upper - lower)/lower, or as far as the time or work allowed goes.

    Parameters
    ----------
    P : array_like
        A map, whose rows are scaled to sum to exactly 1; or a map for each context (contexts, actions, states), which
        gives the joint map of contexts and actions over all shares of contexts, as in Theorem D. An action that a
        context does not have has a row of 0.
    gap : float
        The relative gap to stop at.
    seconds : float, optional
        A time limit. Without one the result depends on P and gap alone.

    Returns
    -------
    Bracket
        Its `play` is a policy that attains `lower`, with a weight for each action (and context).

    Examples
    --------

    >>> import statepool as sp
    >>> found = sp.dimension.bracket([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.3, 0.4, 0.3]], gap=0.01)
    >>> 1.41 < found.lower <= found.upper < 1.43
    True
    """
    table, offered = joint_of(P)
    check_number(gap, "gap", 0, math.inf, open_low=True)
    if seconds is not None:
        check_number(seconds, "seconds", 0, math.inf)
    _compile_once()
    begun = time.monotonic()
    distinct = distinct_rows(table)
    table /= table.sum(axis=1, keepdims=True)  # a copy: see check_map
    search = Search(table, distinct, gap, math.inf if seconds is None else begun + seconds)
    search.run()
    # v(play) never exceeds a proved bound; what its computed value has beyond it is rounding.
    lower = min(max(search.lower, 1.0), search.upper)
    reached = search.upper <= lower * (1 + gap)
    play = search.play
    if offered is not None:
        play = np.zeros(offered.shape)
        play[offered] = search.play
    return Bracket(lower, search.upper, play, search.proof, reached, search.nodes, time.monotonic() - begun)


@cache
def _compile_once() -> None:
    # The first call on a machine compiles for a while: not at the cost of the caller's time limit.
    Search(np.array([[0.6, 0.3, 0.1], [0.1, 0.6, 0.3], [0.3, 0.1, 0.6]]), 3, 1e-3, math.inf).run()


class Search:
    """The state of one bracket: the best policy, the open cells, and the largest bound set aside.

    P may be some columns of a map only: the sum then runs over those states, and rows need not sum to 1.
    """

    def __init__(self, P: Floats, distinct: int, gap: float, deadline: float) -> None:
        self.P, self.gap, self.deadline = P, gap, deadline
        self.M = column_maxima(P)
        self.upper, self.proof = coarse_bound(P, self.M, distinct)
        self.lower, self.play = 0.0, np.full(P.shape[0], 1 / P.shape[0])
        self.nodes = 0
        self.settled = 0.0
        self.open: list[SearchCell] = []

    @property
    def cut(self) -> float:
        """The bound at which a cell needs no more work."""
        return self.lower * (1 + self.gap)

    def run(self) -> None:
        """Climb, then cut cells, until the gap is reached or the work is spent."""
        for x in starts(self.P, RANDOM_STARTS if self.P.size <= LARGE else 0):
            self.try_policy(x)
            if self.upper <= self.cut or time.monotonic() > self.deadline:
                return
        if self.P.shape[1] > MOST_STATES:
            return
        self.cover()

    def try_policy(self, x: Floats) -> None:
        """Climb from x and keep the policy reached if it is the best so far."""
        reached, play = ascend(self.P, x)
        if reached > self.lower:
            self.lower, self.play = reached, play

    def cover(self) -> None:
        """Best-first search over cells; lowers `upper` to the largest bound in the cover."""
        counted = self.M > NEGLIGIBLE
        part = self.P[:, counted]
        part[part <= FAINT] = 0.0
        # What is left out is paid for: a state's ratio is at most its maximum, and a faint entry, averaged
        # into a ratio, raises it by no more than itself.
        self.spare = float(self.M[~counted].sum()) * (1 + 64 * UNIT) + 2 * FAINT * counted.size
        self.weight = part.sum(axis=1)
        self.used = np.flatnonzero(self.weight)
        part = part[self.used]
        self.rows = part / part.sum(axis=1, keepdims=True)
        # A little above the maxima, so that no shortfall is lost in rounding.
        self.largest = self.M[counted] * (1 + 1e-8)
        self.shortfall = self.rows * (self.largest - part)
        K, S = self.rows.shape
        self.active = (self.play[self.used] > 0) | (K <= ALL_ACTIVE)
        self.active[part.argmax(axis=0)] = True
        allowed = self.nodes + max(50, WORK // (1000 * S * S * (K + 4 * S * S)))
        self.keep(self.bound(root(self.rows), 0, self.upper))
        while self.open and self.open[0].upper > self.cut:
            if self.nodes >= allowed or time.monotonic() > self.deadline:
                break
            for half in self.cut_cell(heapq.heappop(self.open)):
                self.keep(half)
        largest = max([self.settled, *(cell.upper for cell in self.open[:1])])
        if largest < self.upper:
            self.upper, self.proof = largest, "cover by cells with dual certificates"

    def keep(self, cell: SearchCell) -> None:
        """Open the cell, or set it aside when its bound is low enough."""
        if cell.upper > self.cut:
            heapq.heappush(self.open, cell)
        else:
            self.settled = max(self.settled, cell.upper)

    def cut_cell(self, cell: SearchCell) -> list[SearchCell]:
        """The two halves of the cell along its longest edge."""
        j, k = cell.edge
        middle = 0.5 * (cell.corners[j] + cell.corners[k])
        halves = []
        for i in (j, k):
            corners = cell.corners.copy()
            corners[i] = middle
            halves.append(self.bound(corners, cell.depth + 1, cell.upper))
        return halves

    def bound(self, corners: Floats, depth: int, inherited: float) -> SearchCell:
        """Bound one cell; a part of a cell has the bound of the whole too."""
        upper, q, W, x = relax(
            self.rows, self.shortfall, self.largest, corners, self.cut - self.spare, depth, self.active
        )
        self.nodes += 1
        upper = min(float(upper) + self.spare, inherited)
        if upper > self.cut:
            self.learn(x)
        return SearchCell(-upper, self.nodes, corners, depth, longest_edge(corners, q, W, self.largest))

    def learn(self, y: Floats) -> None:
        """A relaxed solution is also a policy: climb from it when it is already better than the best."""
        x = np.zeros(self.P.shape[0])
        x[self.used] = y / self.weight[self.used]
        if x.sum() > 0:
            x /= x.sum()
            if value(self.P, x) > self.lower * (1 + 1e-9):
                self.try_policy(x)


def root(P: Floats) -> Floats:
    """The corners of {q : q ≥ m, sum q = 1} with m(s) = min_a P(s|a), which holds every mixture of rows."""
    S = P.shape[1]
    m = P.min(axis=0) * (1 - 8 * (S + 4) * UNIT)
    corners = np.tile(m, (S, 1))
    for k in range(S):
        # fsum rounds once, so that each corner is right to a relative error, however small it is.
        corners[k, k] = math.fsum([1.0, *(-m[s] for s in range(S) if s != k)])
    return corners


def longest_edge(corners: Floats, q: Floats, W: Floats, M: Floats) -> tuple[int, int]:
    """The edge along which tangents of 1/q err most: W(s) · (difference in s)² / q(s)³, summed over states."""
    S = corners.shape[0]
    q = np.maximum(q, 0.5 * np.minimum(corners.max(axis=0), M))
    weight = (np.maximum(W, 0) + 1e-3 * q) / q**3
    j, k = np.tril_indices(S, -1)
    length = ((corners[j] - corners[k]) ** 2 @ weight).round(12)
    longest = int(length.argmax())
    return int(j[longest]), int(k[longest])


def starts(P: Floats, n_random: int) -> list[Floats]:
    """Deterministic starting policies: each state's most likely action, all actions alike, and random ones."""
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
    """Climb from the policy x; the value reached and the policy that attains it."""
    K, S = P.shape
    x = x.copy()
    climb(P, x, max(3, min(COARSE_STEPS, ENTRIES_PER_CLIMB // (4 * K * S))))
    best, best_x = settled(P, x)
    for _ in range(8):
        few = promising(P, x, 6 * S)
        inner = np.maximum(x[few], 1e-6 / few.size)
        inner /= inner.sum()
        climb(np.ascontiguousarray(P[few]), inner, FINE_STEPS)
        x = np.zeros(K)
        x[few] = inner
        reached, x = settled(P, x)
        if reached <= best * (1 + 1e-10):
            break
        best, best_x = reached, x
    return best, best_x


def settled(P: Floats, x: Floats) -> tuple[float, Floats]:
    """The policy without its vanishing masses, whose ratios would be rounding only; and its value."""
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
    """Up to so many multiplicative steps on x, in place; v of the last policy."""
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
            for a in range(K):
                y[a] = x[a] * np.exp(min(max(step * g[a], -30.0), 30.0))
            y /= y.sum()
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
