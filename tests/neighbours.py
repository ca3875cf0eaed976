"""The neighbours again, slowly and in plain NumPy, written from their rules alone: what `textbook` is to the rest."""

import numpy as np

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
