"""Every learner again, slowly and in plain NumPy, written from the published rules alone.

It shares no code with the package: the engine's tests demand the same actions from both.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import wrightomega


def draw(x, u):
    """The first index whose cumulative sum reaches u."""
    return min(int(np.searchsorted(np.cumsum(x), u, side="left")), len(x) - 1)


def argmin(values):
    """The lowest index on ties, and sums that should be equal are a tie whatever their last bits."""
    return int(np.flatnonzero(values <= values.min() + 1e-12)[0])


def softmin(L, eta):
    w = np.exp(-eta * (L - L.min()))
    return w / w.sum()


def default_rate(K, V, T, d, m=1):
    return np.sqrt(2 * np.log(K) / ((V + d // m) * T / m))


def random_instance(seed, K=7, S=4, T=400, zeros=True):
    """A map with some impossible states, means that jump, some exactly 0 and 1."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(0.5 * np.ones(S), size=K)
    if zeros and S > 1:
        P[rng.random((K, S)) < 0.25] = 0
        P[np.arange(K), rng.integers(S, size=K)] += 0.3
    P /= P.sum(axis=1, keepdims=True)
    theta = rng.random((T, S))
    theta[rng.random((T, S)) < 0.1] = 0
    theta[rng.random((T, S)) < 0.1] = 1
    theta[:, 0] *= 0.3
    return P, theta


class Arm:
    """What all arms know: the map, the horizon, the delay the rate is set for."""

    def __init__(self, P, T, d, seed, theta=None, direct=0.0, rate=None, mixing=0.0):
        self.P, self.T, self.d, self.seed, self.theta, self.direct = P, T, d, seed, theta, direct
        self.K, self.S = P.shape
        self.mixing, self.rate = mixing, rate
        self.L = np.zeros(self.K)
        self.setup()

    def setup(self):
        pass

    def eta(self, V, m=1):
        return default_rate(self.K, V, self.T, self.d, m) if self.rate is None else self.rate

    def mixed(self, x):
        return (1 - self.mixing) * x + self.mixing / self.K

    def note(self, t, a, s, x):
        return None


class ActionEXP3(Arm):
    copies = 1

    def setup(self):
        self.m = self.d + 1 if self.copies == "d+1" else self.copies
        self.e, self.caution = self.eta(self.K, self.m), 0.0
        self.Ls = np.zeros((self.m, self.K))

    def play(self, t):
        return self.mixed(softmin(self.Ls[t % self.m], self.e))

    def note(self, t, a, s, x):
        return x[a] + self.caution

    def learn(self, r, a, s, X, note):
        self.Ls[r % self.m][a] += X / note


class EXP3IX(ActionEXP3):
    def setup(self):
        super().setup()
        self.caution = self.e / 2


class StateEXP3(Arm):
    copies, groups = 1, None

    def setup(self):
        self.m = self.d + 1 if self.copies == "d+1" else self.copies
        self.g = np.arange(self.S) if self.groups is None else np.asarray(self.groups)
        self.Pg = np.stack([self.P[:, self.g == z].sum(axis=1) for z in range(self.g.max() + 1)], axis=1)
        self.e = self.eta(self.Pg.shape[1], self.m)
        self.Ls = np.zeros((self.m, self.K))

    def play(self, t):
        return self.mixed(softmin(self.Ls[t % self.m], self.e))

    def note(self, t, a, s, x):
        return x @ self.Pg[:, self.g[s]]

    def learn(self, r, a, s, X, note):
        self.Ls[r % self.m] += self.Pg[:, self.g[s]] * X / note


class NaiveSharing(StateEXP3):
    def note(self, t, a, s, x):
        return self.P[:, s].mean()


class BestState(Arm):
    def setup(self):
        self.losses = [[] for _ in range(self.S)]

    def play(self, t):
        means = [np.sum(seen) / len(seen) if seen else 0.5 for seen in self.losses]
        x = np.full(self.K, 0.08 / self.K)
        x[np.argmax(self.P[:, int(np.argmin(means))])] += 0.92
        return x

    def learn(self, r, a, s, X, note):
        self.losses[s].append(X)


class PlugIn(Arm):
    smoothing = 0.01

    def setup(self):
        self.e = self.eta(self.S)
        self.counts = np.zeros((self.K, self.S))

    def estimate(self):
        return (self.counts + self.smoothing) / (self.counts.sum(axis=1, keepdims=True) + self.smoothing * self.S)

    def play(self, t):
        return self.mixed(softmin(self.L, self.e))

    def note(self, t, a, s, x):
        Phat = self.estimate()
        self.counts[a, s] += 1
        return Phat[:, s] / (x @ Phat[:, s])

    def learn(self, r, a, s, X, note):
        self.L = self.L + note * X


class CountedDenominator(PlugIn):
    denominator, block = "counted", 400

    def play(self, t):
        if t % self.block == 0:
            self.frozen = self.mixed(softmin(self.L, self.e))
            self.seen = np.zeros(self.S)
        return self.frozen

    def note(self, t, a, s, x):
        Phat = self.estimate()
        self.counts[a, s] += 1
        half = self.block // 2
        if t % self.block < half:
            self.seen[s] += 1
            return np.eye(self.K)[a] / x[a]
        q = max(self.seen[s] / half, 1e-6) if self.denominator == "counted" else x @ Phat[:, s]
        return Phat[:, s] / q


class SafePool(PlugIn):
    certified = True

    def setup(self):
        super().setup()
        self.e = self.eta(self.K)
        self.n_pooled = 0

    def radii(self):
        K, S, T, alpha = self.K, self.S, self.T, self.smoothing
        n = np.maximum(self.counts.sum(axis=1), 1)
        if not self.certified:
            return np.minimum(2, np.sqrt(S / n)), np.minimum(1, np.sqrt(1 / n))
        b = alpha * (S - 1) / (n + alpha * S)
        r1 = np.minimum(2, np.sqrt(2 * (S * np.log(2) + np.log(2 * K * T**2)) / n) + 2 * b)
        return r1, np.minimum(1, np.sqrt(np.log(4 * K * S * T**2) / (2 * n)) + b)

    def pooled(self, x, Phat):
        r1, rinf = self.radii()
        u, qhat = x @ rinf, x @ Phat
        nobody = np.zeros(self.K, dtype=bool)
        if (qhat - u <= 0).any() or (u / (qhat - u)).max() > 0.5:
            return nobody
        rho = (u / (qhat - u)).max()
        best, chosen = self.e * self.K / 2, nobody
        for radius in np.unique(r1):
            inside = r1 <= radius
            moment = (x[inside, None] * Phat[inside] ** 2 / qhat).sum()
            cost = self.e / 2 * ((self.K - inside.sum()) + 2 * moment) + 4 * radius + 4 * rho
            if cost < best:
                best, chosen = cost, inside
        return chosen

    def note(self, t, a, s, x):
        Phat = self.estimate()
        lam = self.pooled(x, Phat)
        self.n_pooled += lam.sum()
        self.counts[a, s] += 1
        return np.where(lam, Phat[:, s] / (x @ Phat[:, s]), np.eye(self.K)[a] / x[a])


class ZimmertSeldin(Arm):
    scale, shift = 1.0, False

    def play(self, t):
        B = np.sqrt(t + 1 + (64 * self.d**2 if self.shift else 0))
        eta = self.scale * np.sqrt(np.log(self.K) / (max(self.d, 1) * self.T))
        c = 4 / (eta * B)  # B y/2 + (2/eta) log y = R  <=>  w + log w = R eta/2 - log c with y = c w

        def x_of(mu):
            return 1 / (c * wrightomega((self.L + mu) * eta / 2 - np.log(c))) ** 2

        low = B / 2 - self.L.min()
        high = B * np.sqrt(self.K) / 2 + np.log(self.K) / eta - self.L.min()
        mu = brentq(lambda mu: x_of(mu).sum() - 1, low - 1, high + 1, xtol=1e-13, rtol=1e-14, maxiter=500)
        x = x_of(mu)
        return self.mixed(x / x.sum())

    def note(self, t, a, s, x):
        return x[a]

    def learn(self, r, a, s, X, note):
        self.L[a] += X / note


class PooledGreedy(Arm):
    """Everything is summed afresh from the history, each outcome by the age of its round."""

    forgetting, exploration = 1.0, 0.0

    def setup(self):
        self.history = []

    def recall(self, t):
        self.sums, self.counts = np.zeros(self.S), np.zeros(self.S)
        for r, s, X in self.history:
            self.sums[s] += X * self.forgetting ** (t - r)
            self.counts[s] += self.forgetting ** (t - r)

    def play(self, t):
        self.recall(t)
        best = argmin(self.P @ ((self.sums + 1) / (self.counts + 2)))
        x = np.full(self.K, self.exploration / self.K)
        x[best] += 1 - self.exploration
        return x

    def learn(self, r, a, s, X, note):
        self.history.append((r, s, X))


def scramble(z):
    """splitmix64, in whole numbers of any size cut to 64 bits."""
    z = (z + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def gamma(source, shape):
    """Marsaglia and Tsang."""
    uniforms = ((scramble(source ^ n) // 2**11 + 0.5) / 2**53 for n in range(10**6))
    d = shape - 1 / 3
    for first, second, third in zip(uniforms, uniforms, uniforms, strict=False):
        x = np.sqrt(-2 * np.log(first)) * np.cos(2 * np.pi * second)
        v = (1 + x / np.sqrt(9 * d)) ** 3
        if v > 0 and np.log(third) < x * x / 2 + d - d * v + d * np.log(v):
            return d * v
    raise AssertionError("never accepted")


class PooledThompson(PooledGreedy):
    samples = 16

    def setup(self):
        super().setup()
        self.key = int(np.random.default_rng((self.seed, 1)).integers(1 << 63))

    def play(self, t):
        self.recall(t)
        winners = []
        for j in range(self.samples):
            theta = np.empty(self.S)
            for s in range(self.S):
                source = scramble(scramble(self.key ^ t) ^ (j * self.S + s))
                lost = gamma(source, 1 + self.sums[s])
                won = gamma(scramble(source), 1 + max(self.counts[s] - self.sums[s], 0))
                theta[s] = lost / (lost + won)
            winners.append(argmin(self.P @ theta))
        return np.bincount(winners, minlength=self.K) / self.samples


class Uniform(Arm):
    def play(self, t):
        return np.full(self.K, 1 / self.K)

    def learn(self, r, a, s, X, note):
        pass


class GreedyStale(Uniform):
    def stale(self, t):
        return self.P @ self.theta[max(t - self.d, 0)] + self.direct

    def play(self, t):
        return np.eye(self.K)[argmin(self.stale(t))]


class OptimisticStale(GreedyStale):
    def setup(self):
        self.e = self.eta(self.K)

    def play(self, t):
        return self.mixed(softmin(self.L + self.stale(t), self.e))

    def note(self, t, a, s, x):
        return x[a]

    def learn(self, r, a, s, X, note):
        self.L[a] += X / note


def arm_of(cls, **settings):
    """The same arm with other settings of its own."""
    own = {k: v for k, v in settings.items() if k not in ("rate", "mixing")}
    shared = {k: v for k, v in settings.items() if k in ("rate", "mixing")}
    return type(cls.__name__, (cls,), own), shared


def simulate(P, theta, cls, delay, seed, draws=3, effects=None, **settings):
    """actions, states, outcomes, plays (T×K) and the arm."""
    T, K = theta.shape[0], P.shape[0]
    effects = np.zeros_like(P) if effects is None else effects
    delays = np.full(T, delay) if np.ndim(delay) == 0 else np.asarray(delay)
    arriving = delays[delays < T]
    typical = int(delay) if np.ndim(delay) == 0 else int(arriving.mean()) if len(arriving) else T
    kind, shared = arm_of(cls, **settings)
    arm = kind(P, T, typical, seed, theta, (P * effects).sum(axis=1), **shared)
    stream = iter(np.random.default_rng(seed).random(draws * T))
    arrivals = [[] for _ in range(T)]
    notes, plays = [None] * T, np.empty((T, K))
    actions, states, outcomes = np.empty(T, int), np.empty(T, int), np.empty(T)
    for t in range(T):
        for r in sorted(arrivals[t]):
            arm.learn(r, actions[r], states[r], outcomes[r], notes[r])
        plays[t] = arm.play(t)
        a = draw(plays[t], next(stream))
        s = draw(P[a], next(stream)) if draws == 3 else int(np.argmax(P[a]))
        notes[t] = arm.note(t, a, s, plays[t])
        p, X = theta[t, s] + effects[a, s], 0.0
        if p != 0:
            u = next(stream)
            X = float(u > 1 - p) if p <= 0.5 else float(u <= p)
        actions[t], states[t], outcomes[t] = a, s, X
        if t + delays[t] + 1 < T:
            arrivals[t + delays[t] + 1].append(t)
    return actions, states, outcomes, plays, arm
