"""Logs with contexts whose truth is known: maps by context, drifting means, direct effects of all kinds.

`crossed` is how differently contexts answer to actions (0: no interaction, so that one action may well be the best for
all), `moved` the standard deviation of direct effects of contexts, `pushed` that of actions, `paired` of both together.
The mix of actions differs between contexts and moves with the drift.
"""

from dataclasses import dataclass, replace

import numpy as np
from generated import write_columns

from statepool.audit.contexts import Cells, parts_of, tables_of
from statepool.audit.counts import Counts
from statepool.audit.effects import estimate_effects
from statepool.audit.map import estimate_map
from statepool.audit.personal import personalise
from statepool.audit.sample import Rows
from statepool.audit.sufficiency import sufficiency_test


@dataclass(frozen=True, eq=False)
class Crowded:
    P: np.ndarray
    """(contexts, actions, states)"""
    means: np.ndarray
    """Over time, one row a decision."""
    effects: np.ndarray
    """Direct ones, one for each context and action."""
    share: np.ndarray
    mix: np.ndarray
    """How often each context was answered with each action, over all time."""
    rows: Rows

    @property
    def true_means(self):
        """Of each context and action."""
        return self.P @ self.means.mean(axis=0) + self.effects

    @property
    def predicted(self):
        """The same through the states, whose means hold the direct effects of the mix that led to them."""
        weights = (self.share[:, None] * self.mix)[:, :, None] * self.P
        pushed = (weights * self.effects[:, :, None]).sum(axis=(0, 1)) / weights.sum(axis=(0, 1))
        return self.P @ (self.means.mean(axis=0) + pushed)

    @property
    def blind(self):
        """What the best for all gains over choosing blindly."""
        m = self.share @ self.true_means
        return float(m.mean() - m.min())

    def worth_of(self, best, one):
        """What a policy is truly worth over one action."""
        m = self.true_means
        return float(self.share @ (m[:, one] - m[np.arange(len(best)), best]))

    @property
    def worth(self):
        """The same of the best choices that can be made through the states."""
        c = self.predicted
        return self.worth_of(c.argmin(axis=1), int((self.share @ c).argmin()))

    def write(self, path):
        rows = self.rows
        columns = {
            "context": np.array([f"crowd {c}" for c in rows.context], dtype=object), "action": rows.action,
            "state": rows.state, "loss": rows.loss, "decided_at": rows.decided, "resolved_at": rows.resolved,
        }  # fmt: skip
        return write_columns(columns, path)


def crowd(
    seed, n_contexts=4, n_actions=6, n_states=5, n_rows=40_000, crossed=0.0, moved=0.0, pushed=0.0, paired=0.0,
    drift=0.08, favour=1.0, tilt=0.4, likeness=0.7,
):  # fmt: skip
    rng = np.random.default_rng((seed, 31))
    C, K, S = n_contexts, n_actions, n_states
    score = rng.normal(0, 0.5, S) + rng.normal(0, likeness, (K, S)) + rng.normal(0, tilt, (C, 1, S))
    score = score + crossed * rng.normal(0, 1, (C, K, S))
    P = np.exp(score)
    P /= P.sum(axis=2, keepdims=True)
    share = 0.5 / C + 0.5 * rng.dirichlet(np.full(C, 3.0))
    wave = 2 * np.pi * 3 * np.arange(n_rows) / n_rows
    means = np.linspace(0.25, 0.75, S) + drift * np.sin(wave[:, None] + np.arange(S))
    effects = rng.normal(0, moved, (C, 1)) + rng.normal(0, pushed, (1, K)) + rng.normal(0, paired, (C, K))
    effects = np.clip(effects, -means.min(), 1 - means.max())
    context = rng.choice(C, n_rows, p=share)
    taste, phase = rng.normal(0, 0.4, (C, K)), rng.uniform(0, 2 * np.pi, K)
    weights = np.exp(taste[context] + favour * np.sin(wave[:, None] + phase))
    weights /= weights.sum(axis=1, keepdims=True)
    mix = np.array([weights[context == c].mean(axis=0) for c in range(C)])
    action = _draw(weights, rng)
    state = _draw(P[context, action], rng)
    chance = means[np.arange(n_rows), state] + effects[context, action]
    loss = (rng.random(n_rows) < chance).astype(np.float64)
    decided = np.arange(n_rows) + rng.random(n_rows)
    resolved = decided + rng.exponential(50.0, n_rows)
    rows = Rows(
        action, state, loss, decided, resolved, n_rows, True, float(resolved.max()), np.nan, context=context
    )  # fmt: skip
    return Crowded(P, means, effects, share, mix, rows)


def _draw(shares, rng):
    return (rng.random(len(shares))[:, None] > shares.cumsum(axis=1)).sum(axis=1).clip(0, shares.shape[1] - 1)


def counts_of(rows, K, S):
    known, loss = np.isfinite(rows.loss), np.nan_to_num(rows.loss)
    place = rows.action * S + rows.state
    sums = [np.bincount(place, part, K * S).reshape(K, S).astype(float) for part in (None, known * 1.0, loss, loss**2)]
    return Counts(tuple(map(str, range(K))), tuple(map(str, range(S))), None, *sums, loss.size, {}, {})


def ask(made, seed, level=0.95, seconds=0.05):
    """What the audit says about contexts, without the rest of it."""
    C, K, S = made.P.shape
    counts = counts_of(made.rows, K, S)
    map_ = estimate_map(counts)
    effects = estimate_effects(counts, map_, sufficiency_test(made.rows, K, S, seed), seed)
    part = parts_of(made.rows, False, seed)
    cells = Cells.of_rows(made.rows, part)
    contexts = tables_of(("crowd",), tuple(map(str, range(C))), counts, cells, cells, part)
    return personalise(contexts, counts, made.rows, map_, effects, level, seconds, seed)


KINDS = {
    "contexts alike": {"tilt": 0.0},
    "contexts tilted": {},
    "somewhat crossed": {"crossed": 0.3},
    "crossed": {"crossed": 0.8},
    "tilted, contexts move outcomes": {"moved": 0.05},
    "crossed, contexts move outcomes": {"crossed": 0.8, "moved": 0.05},
    "crossed, actions move outcomes": {"crossed": 0.8, "pushed": 0.02},
    "crossed, pairs move outcomes": {"crossed": 0.8, "paired": 0.015},
}


def some_crowd(seed):
    """A log of some kind and size, and what kind it is."""
    kind = list(KINDS)[seed % len(KINDS)]
    rng = np.random.default_rng((seed, 32))
    C, K, S = (int(rng.integers(*ends)) for ends in ((2, 9), (3, 11), (3, 7)))
    return kind, crowd(seed, C, K, S, C * K * int(rng.integers(400, 1_600)), **KINDS[kind])


def is_clear(made):
    """ "pays", "does not pay" or None, by the truth alone.

    It pays clearly if at least .02 a decision, and a fifth of what the best for all gains over choosing blindly; it
    clearly does not if the same action is the best in every context by .01, and actions differ at all.
    """
    if made.rows.loss.size < 800 * made.P.shape[0] * made.P.shape[1] or made.blind < 0.03:
        return None
    if made.worth >= 0.02 and made.worth >= 0.2 * made.blind:
        return "pays"
    c = np.sort(made.predicted, axis=1)
    same = len(set(made.predicted.argmin(axis=1).tolist())) == 1
    return "does not pay" if same and (c[:, 1] - c[:, 0]).min() >= 0.01 else None


def judged_crowds(seeds):
    """Of each log: its kind, whether the interval covers the truth, and (what is clear, what was said)."""
    found = []
    for seed in seeds:
        kind, made = some_crowd(seed)
        worth = ask(made, seed).worth
        found.append((kind, worth.lower <= made.worth <= worth.upper, (is_clear(made), worth.verdict)))
    return found


def context_alarms(seeds, n_rows=12_000):
    """The share of logs on which contexts are said to move the outcome beyond the state, where they do not."""
    ps = []
    for seed in seeds:
        rng = np.random.default_rng((seed, 33))
        C, K, S = (int(rng.integers(*ends)) for ends in ((2, 30), (3, 11), (3, 7)))
        made = crowd(seed, C, K, S, n_rows, crossed=float(rng.choice([0.0, 0.8])), drift=0.15, favour=1.5)
        ps.append(sufficiency_test(replace(made.rows, action=made.rows.context), C, S, seed).p)
    return float(np.mean(np.array(ps) <= 0.05))
