"""The neighbours again, slowly and in plain NumPy, written from their rules alone: what `textbook` is to the rest."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import wrightomega

from textbook import Arm, softmin


def dimension(P, x):
    """v(x), written from the definition."""
    q, squares = x @ P, x @ P**2
    return (squares[q > 0] / q[q > 0]).sum()


class Waiting(Arm):
    """Keeps the whole history: which rounds were played, which have come, which were given up."""

    pooled, skip, patience = True, False, None

    def setup(self):
        self.played, self.come, self.dropped, self.waited = [], set(), set(), 0
        self.spread = 0.0

    def pending(self):
        return [r for r in self.played if r not in self.come and r not in self.dropped]

    def wait(self, t):
        """Give up the oldest while they have waited too long, then count the others once more."""
        limit = self.patience or max(1.0, np.sqrt(self.waited / np.log(max(self.K, 2))))
        if self.skip or self.patience:
            for r in self.pending():
                if t - r - 1 >= limit:
                    self.dropped.add(r)
        self.waited += len(self.pending())

    def note(self, t, a, s, x):
        self.played.append(t)
        return x @ self.P[:, s] if self.pooled else x[a]

    def played_at(self, x):
        """Count the dimension of a play."""
        self.spread += (dimension(self.P, x) if self.pooled else self.K) - 1
        return x

    def arrives(self, r):
        """Whether round r is still waited for."""
        self.come.add(r)
        return r not in self.dropped

    def estimate(self, a, s, X, note):
        return self.P[:, s] * X / note if self.pooled else np.eye(self.K)[a] * X / note


class Anytime(Waiting):
    rule = "adaptive"

    def setup(self):
        super().setup()
        self.epoch, self.since = 0, 0
        self.m = min(self.K, self.S) if self.pooled else self.K

    def rate_of(self, t):
        if self.rule == "constant":
            cost = ((self.m - 1) / 2 + self.patience) * self.T
        elif self.rule == "epochs":
            while self.waited + t + 1 >= 2**self.epoch:
                self.epoch, self.since, self.L = self.epoch + 1, t, np.zeros(self.K)
            cost = 2**self.epoch
        else:
            cost = 2 * (0.6 * (self.m - 1 + self.spread) + 1.3 * self.waited)
        return min(0.5, np.sqrt(np.log(self.K) / cost)) if cost > 0 else 0.5

    def play(self, t):
        self.wait(t)
        rate = self.rate_of(t)  # which may begin an epoch, and forget the losses
        return self.played_at(softmin(self.L, rate))

    def learn(self, r, a, s, X, note):
        if self.arrives(r) and r >= self.since:
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
        spent = 0.6 * (min(self.K, self.S) - 1 + self.spread) + 1.3 * self.waited
        logs = np.log(max(self.K, 2))
        assert 2 * self.bound <= np.sqrt(8 * logs * spent) + 2 * logs + 4 * logs + 4, "the guard would ring"

    def certificate(self):
        return 2 * self.bound - 2 * np.log(max(self.K, 2)) + len(self.pending())


class StateEXP3(Arm):
    copies, caution = "idle", 0.0

    def setup(self):
        self.e = self.eta(self.S, self.d + 1 if self.copies == "idle" else 1)
        self.gamma = self.e / 2 if self.caution == "rate/2" else self.caution
        self.Ls, self.waiting = [], set()

    def play(self, t):
        free = [i for i in range(len(self.Ls)) if i not in self.waiting] if self.copies == "idle" else [0]
        self.turn = free[0] if free else len(self.Ls)
        if self.turn >= len(self.Ls):
            self.Ls.append(np.zeros(self.K))
        return self.mixed(softmin(self.Ls[self.turn], self.e))

    def note(self, t, a, s, x):
        self.waiting.add(self.turn)
        return self.turn, x @ self.P[:, s] + self.gamma

    def learn(self, r, a, s, X, note):
        self.waiting.discard(note[0])
        self.Ls[note[0]] = self.Ls[note[0]] + self.P[:, s] * X / note[1]


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
    pooled, tuning, shift = False, "anytime", False

    def setup(self):
        super().setup()
        self.skip = self.tuning == "advanced"

    def play(self, t):
        self.wait(t)
        logs, K, d = np.log(self.K), self.K, self.d
        t0, D0 = 10 * d + d**2 / (K ** (1 / 3) * logs) ** 2, 576 * d**2 * K ** (2 / 3) * logs
        t0, D0 = (t0, D0) if self.shift else (0, 0)
        root, entropy = np.sqrt(t + 1 + t0), np.sqrt(2 * (self.waited + D0) / logs)

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
