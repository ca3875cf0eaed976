"""Logs whose truth is known: a map, drifting means, direct effects, and a mix of actions that moves with the drift."""

from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

from statepool.audit.counts import Rows


@dataclass(frozen=True, eq=False)
class Generated:
    P: np.ndarray
    means: np.ndarray
    effects: np.ndarray
    action: np.ndarray
    state: np.ndarray
    loss: np.ndarray
    decided: np.ndarray
    resolved: np.ndarray

    @property
    def lost(self) -> float:
        """The share of what can be gained that choosing through the states loses, in truth.

        A mean over choices within .005 of the best, since which of near equals a log favours is chance.
        """
        c = self.P @ self.means.mean(axis=0)
        m = c + (self.P * self.effects).sum(axis=1)
        nearly = c + 0.005 * np.random.default_rng(0).standard_normal((200, c.size))
        return float((m[nearly.argmin(axis=1)].mean() - m.min()) / (m.mean() - m.min()))

    def rows(self) -> Rows:
        latest = float(self.resolved.max())
        return Rows(
            self.action, self.state, self.loss, self.decided, self.resolved, self.loss.size, True, latest, 0 * self.loss
        )

    def write(self, path: Path) -> Path:
        """As a Parquet, CSV or JSON-lines file, by the ending."""
        columns = {
            "action": self.action, "state": self.state, "loss": self.loss, "decided_at": self.decided,
            "resolved_at": self.resolved,
        }  # fmt: skip
        return write_columns(columns, path)


def write_columns(columns: dict, path: Path) -> Path:
    connection = duckdb.connect()
    connection.register("columns", {name: np.asarray(values) for name, values in columns.items()})
    kind = {".parquet": "PARQUET", ".csv": "CSV, HEADER", ".jsonl": "JSON"}[path.suffix]
    connection.execute(f"COPY (SELECT * FROM columns) TO '{path}' (FORMAT {kind})")
    return path


def generate(
    seed, n_actions=50, n_states=6, n_rows=100_000, effect=0.0, shared=0.0, drift=0.15, favour=1.5, rows_alike=False,
    delay=100.0,
):  # fmt: skip
    """`effect` is the standard deviation of effects of each state, `shared` that of effects on all states alike.

    `favour` is how strongly the mix of actions moves, with the same period as the means: the adversary of a test that
    does not look at time.
    """
    rng = np.random.default_rng(seed)
    K, S = n_actions, n_states
    P = rng.dirichlet(np.full(S, 2.0), 1 if rows_alike else K)
    P = np.repeat(P, K, axis=0) if rows_alike else P
    u = np.arange(n_rows) / n_rows
    wave = 2 * np.pi * 3 * u
    taste, phase = rng.normal(0, 0.5, K), rng.uniform(0, 2 * np.pi, K)
    pieces = []
    for part in np.array_split(wave, 200):
        weights = np.exp(taste + favour * np.sin(part[0] + phase)) if part.size else np.ones(K)
        pieces.append(rng.choice(K, size=part.size, p=weights / weights.sum()))
    action = np.concatenate(pieces)
    state = (rng.random(n_rows)[:, None] > P[action].cumsum(axis=1)).sum(axis=1).clip(0, S - 1)
    means = np.linspace(0.25, 0.75, S) + drift * np.sin(wave[:, None] + np.arange(S))
    effects = rng.normal(0, effect, (K, S)) + rng.normal(0, shared, (K, 1))
    effects = np.clip(effects, -means.min(axis=0), 1 - means.max(axis=0))
    chance = means[np.arange(n_rows), state] + effects[action, state]
    loss = (rng.random(n_rows) < chance).astype(np.float64)
    decided = np.arange(n_rows) + rng.random(n_rows)
    return Generated(P, means, effects, action, state, loss, decided, decided + rng.exponential(delay, n_rows))
