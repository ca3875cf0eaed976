"""The neighbours again, slowly and in plain NumPy, written from their rules alone: what `textbook` is to the rest."""

from dataclasses import asdict

import numpy as np
from scipy.optimize import brentq
from scipy.special import wrightomega

from textbook import Arm, argmin, arm_of, softmin


def dimension(P, x):
    """v(x), written from the definition."""
    q, squares = x @ P, x @ P**2
    return (squares[q > 0] / q[q > 0]).sum()


class Waiting(Arm):
    """Keeps the whole history: which rounds were played, which have come, which were given up."""

    pooled, skip = True, False

    def setup(self):
        self.played, self.come, self.dropped, self.waited = [], set(), set(), 0
        self.spread = 0.0

    def pending(self):
        return [r for r in self.played if r not in self.come and r not in self.dropped]

    def wait(self, t):
        """Give up the oldest while they have waited too long, then count the others once more."""
        limit = max(1.0, np.sqrt(self.waited / np.log(max(self.K, 2))))
        if self.skip:
            for r in self.pending():
                if t - r - 1 >= limit:
                    self.dropped.add(r)
        self.waited += len(self.pending())

    def note(self, t, a, s, x):
        self.played.append(t)
        return x @ self.P[:, s] if self.pooled else x[a]

    def played_at(self, x):
        """Count the dimension of a policy."""
        self.spread += (dimension(self.P, x) if self.pooled else self.K) - 1
        return x

    def arrives(self, r):
        """Whether round r is still waited for."""
        self.come.add(r)
        return r not in self.dropped

    def estimate(self, a, s, X, note):
        return self.P[:, s] * X / note if self.pooled else np.eye(self.K)[a] * X / note


class Anytime(Waiting):
    def setup(self):
        super().setup()
        self.covered = 0.0
        self.m = min(self.K, self.S) if self.pooled else self.K

    def play(self, t):
        self.wait(t)
        spent = 0.6 * (self.m - 1 + self.spread) + self.waited
        if spent > self.covered:
            self.covered = 65 / 64 * spent
        rate = min(0.5, np.sqrt(np.log(self.K) / (2 * self.covered))) if self.covered > 0 else 0.5
        return self.played_at(softmin(self.L, rate))

    def learn(self, r, a, s, X, note):
        if self.arrives(r):
            self.L = self.L + self.estimate(a, s, X, note)


class Certified(Waiting):
    def setup(self):
        super().setup()
        self.bound = self.sum = 2 * np.log(max(self.K, 2))

    def rate_now(self):
        return np.log(max(self.K, 2)) / self.bound

    def play(self, t):
        self.wait(t)
        return self.played_at(softmin(self.L, self.rate_now()))

    def learn(self, r, a, s, X, note):
        self.come.add(r)
        c, eta = self.estimate(a, s, X, note), self.rate_now()
        x = softmin(self.L, eta)
        self.sum += X + np.log(x @ np.exp(-eta * c)) / eta
        self.bound = max(self.bound, self.sum)
        self.L = self.L + c
        spent = 0.6 * (min(self.K, self.S) - 1 + self.spread) + self.waited
        logs = np.log(max(self.K, 2))
        assert 2 * self.bound <= np.sqrt(8.07 * logs * spent) + 2 * logs + 4 * logs + 4, "the guard would ring"

    def certificate(self):
        return 2 * self.bound - 2 * np.log(max(self.K, 2)) + len(self.pending())


class DelayAdapted(Arm):
    pooled = True

    def setup(self):
        self.e = self.eta(self.S if self.pooled else self.K)

    def play(self, t):
        return softmin(self.L, self.e)

    def note(self, t, a, s, x):
        return x @ self.P[:, s] if self.pooled else x[a]

    def learn(self, r, a, s, X, note):
        most = max(note, self.note(r, a, s, self.play(r)))
        self.L = self.L + (self.P[:, s] if self.pooled else np.eye(self.K)[a]) * X / most


class CoinGraph(DelayAdapted):
    def setup(self):
        super().setup()
        self.rng = np.random.default_rng((self.seed, 1))

    def learn(self, r, a, s, X, note):
        if X > 0:
            self.L = self.L + (self.rng.random(self.K) < self.P[:, s]) * X / note


class Evolving(DelayAdapted):
    def setup(self):
        super().setup()
        self.sums, self.counts = np.zeros(self.S), np.zeros(self.S)

    def note(self, t, a, s, x):
        guess, q = (self.sums[s] + 1) / (self.counts[s] + 2), x @ self.P[:, s]
        self.L = self.L + self.P[:, s] * guess / q
        return guess, q

    def learn(self, r, a, s, X, note):
        self.sums[s] += X
        self.counts[s] += 1
        self.L = self.L + self.P[:, s] * (X - note[0]) / note[1]


class AuerEXP3(Arm):
    def setup(self):
        self.G = np.zeros(self.K)
        self.mixing = min(1, np.sqrt(self.K * np.log(self.K) / ((np.e - 1) * self.T)))

    def play(self, t):
        return self.mixed(softmin(-self.G, self.mixing / self.K))

    def note(self, t, a, s, x):
        return x[a]

    def learn(self, r, a, s, X, note):
        self.G[a] += (1 - X) / note


class ZimmertSeldin(Waiting):
    pooled, tuning = False, "anytime"

    def play(self, t):
        self.wait(t)
        K, root, entropy = self.K, np.sqrt(t + 1), np.sqrt(2 * self.waited / np.log(self.K))

        def x_of(mu):
            """Where L + mu = root/sqrt(x) - entropy · log x, each coordinate by itself."""
            if entropy == 0:
                return (root / (self.L + mu)) ** 2
            unit = 2 * entropy / root  # with sqrt(1/x) = unit · w the condition is w + log w = (L + mu)/2e - log unit
            return 1 / (unit * wrightomega((self.L + mu) / (2 * entropy) - np.log(unit))) ** 2

        low, high = root - self.L.min(), root * np.sqrt(K) + entropy * np.log(K) - self.L.min()
        low = low - 1 if entropy > 0 else low * 0.999999 - 1e-6 * self.L.min()
        mu = brentq(lambda mu: x_of(mu).sum() - 1, low, high + 1, xtol=1e-13, rtol=1e-14, maxiter=500)
        x = x_of(mu)
        return x / x.sum()

    def learn(self, r, a, s, X, note):
        if self.arrives(r):
            self.L = self.L + self.estimate(a, s, X, note)


class MetaBIO(Arm):
    base = None

    def setup(self):
        kind, shared = arm_of(globals()[type(self.base).__name__], **asdict(self.base))
        self.arm = kind(self.P, self.T, self.d, self.seed, self.theta, **shared)
        self.seen, self.losses = np.zeros(self.S), [[] for _ in range(self.S)]

    def play(self, t):
        return self.arm.play(t)

    def note(self, t, a, s, x):
        self.seen[s] += 1
        note, seen = self.arm.note(t, a, s, x), len(self.losses[s])
        fed = seen >= max(1, self.seen[s] / 2)
        if fed:
            radius = np.sqrt(np.log(2 * self.S * self.T**2) / (2 * seen))
            self.arm.learn(t, a, s, max(0, np.sum(self.losses[s]) / seen - radius), note)
        return note, fed

    def learn(self, r, a, s, X, note):
        self.losses[s].append(X)
        if not note[1]:
            self.arm.learn(r, a, s, X, note[0])


class NSDUCRL2(Arm):
    window, radius, known_map = None, 1.0, False

    def setup(self):
        self.pairs, self.losses = [], [[] for _ in range(self.S)]

    def low(self):
        squared = self.radius * np.log(2 * self.S * self.T) / 2
        return np.array([max(0, np.mean(x) - np.sqrt(squared / len(x))) if x else 0 for x in self.losses])

    def cost(self, a, low):
        if self.known_map:
            return self.P[a] @ low
        row = np.bincount([s for b, s in self.pairs[-(self.window or self.T) :] if b == a], minlength=self.S)
        if row.sum() == 0:
            return low.min()
        left = 0.5 * np.sqrt(2 * self.radius * (self.S * np.log(2) + np.log(2 * self.K * self.T)) / row.sum())
        row, best = row / row.sum(), int(np.argmin(low))
        for s in np.argsort(-low, kind="stable"):
            moved = min(row[s], left)
            row[s] -= moved
            row[best] += moved
            left -= moved
        return row @ low

    def play(self, t):
        low = self.low()
        return np.eye(self.K)[argmin(np.array([self.cost(a, low) for a in range(self.K)]))]

    def note(self, t, a, s, x):
        self.pairs.append((a, s))

    def learn(self, r, a, s, X, note):
        self.losses[s].append(X)


class SurrogateIndex(Arm):
    history = 200

    def setup(self):
        self.e = np.sqrt(2 * np.log(self.K) / (self.S * self.T))
        self.losses, self.proxy = [[] for _ in range(self.S)], None

    def play(self, t):
        return softmin(self.L, self.e)

    def note(self, t, a, s, x):
        if self.proxy is not None:
            self.L = self.L + self.proxy[s] * self.P[:, s] / (x @ self.P[:, s])

    def learn(self, r, a, s, X, note):
        if self.proxy is None:
            self.losses[s].append(X)
            if sum(map(len, self.losses)) == self.history:
                self.proxy = np.array([np.mean(x) if x else 0.5 for x in self.losses])


class ImpatientThompson(Arm):
    prior = None

    def setup(self):
        S = self.S
        mean, between, within = np.full(S, 1 / S), np.eye(S), np.eye(S)
        mean[-1], between[-1, -1], within[-1, -1] = 0.5, 1 / 12, 1 / 4
        if self.prior is not None:
            mean, between, within = map(np.array, (self.prior.mean, self.prior.between, self.prior.within))
        self.mean, self.between, self.within = mean, between, within
        self.states, self.losses = [[] for _ in range(self.K)], [[] for _ in range(self.K)]
        self.rng = np.random.default_rng((self.seed, 1))

    def posterior(self, a):
        n, j = len(self.states[a]), len(self.losses[a])
        if n == 0:
            return self.mean[-1], np.sqrt(self.between[-1, -1])
        used = slice(0, self.S if j else self.S - 1)
        counts = np.r_[np.full(self.S - 1, n), j or 1]
        seen = np.r_[np.bincount(self.states[a], minlength=self.S)[:-1] / n, np.mean(self.losses[a]) if j else 0]
        matrix = self.between + self.within / np.maximum.outer(counts, counts) + 1e-9 * np.eye(self.S)
        weights = np.linalg.solve(matrix[used, used], self.between[-1, used])
        variance = self.between[-1, -1] - weights @ self.between[-1, used]
        return self.mean[-1] + weights @ (seen - self.mean)[used], np.sqrt(max(variance, 0))

    def play(self, t):
        centres, spreads = np.transpose([self.posterior(a) for a in range(self.K)])
        return np.eye(self.K)[np.argmin(centres + spreads * self.rng.standard_normal(self.K))]

    def note(self, t, a, s, x):
        self.states[a].append(s)

    def learn(self, r, a, s, X, note):
        self.losses[a].append(X)
