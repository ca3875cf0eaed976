"""Logs with a conversion window, and logs like them without one: constant means, every kind of bookkeeping."""

from dataclasses import dataclass

import numpy as np

DAY = 86_400.0
NAN = np.nan
DELAYS = ("exponential", "lognormal", "spike")


@dataclass(frozen=True, eq=False)
class Windowed:
    """What a shop's log shows at its end, and beside it what it would show with all outcomes in."""

    kind: str
    P: np.ndarray
    means: np.ndarray
    """Mean loss of each state, a window after the decision."""
    window: float
    action: np.ndarray
    state: np.ndarray
    decided: np.ndarray
    loss: np.ndarray
    """As recorded: NaN is blank."""
    resolved: np.ndarray | None
    full_loss: np.ndarray
    full_resolved: np.ndarray

    @property
    def conversions(self) -> int:
        return int((self.full_loss == 0).sum())

    def columns(self, full=False) -> dict:
        loss = self.full_loss if full else self.loss
        made = {"action": self.action, "state": self.state, "loss": loss, "decided_at": self.decided}
        resolved = self.full_resolved if full else self.resolved
        return made if resolved is None else made | {"resolved_at": resolved}


def draw_waits(rng, shape, size, scale):
    """Times to conversion, in windows; past 1 it is too late."""
    if shape == "exponential":
        return rng.exponential(scale, size)
    if shape == "lognormal":
        return rng.lognormal(np.log(scale), 0.7, size)
    return np.where(rng.random(size) < 0.3, rng.exponential(0.005, size), rng.exponential(scale, size))


KINDS = (
    "blank until known, all dated",
    "blank until known, conversions dated",
    "blank until known, no times",
    "0 until converted, conversions dated",
    "0 until converted, no times",
)


def make_windowed(seed, kind=None, n_rows=None, windows=None, shape=None, never=None, n_actions=8, n_states=4):
    """One log; what is not given is drawn: windows of 3 to 60 days, logs 2 to 20 windows long, 0 to 95 % never."""
    rng = np.random.default_rng((seed, 77))
    kind = kind or KINDS[rng.integers(len(KINDS))]
    window = rng.uniform(3, 60) * DAY
    drawn = rng.uniform(2, 20), int(rng.integers(3_000, 12_000)), DELAYS[rng.integers(3)], rng.uniform(0, 0.95)
    windows, n, shape, never = (
        given if given is not None else other
        for given, other in zip((windows, n_rows, shape, never), drawn, strict=True)
    )
    P = rng.dirichlet(np.full(n_states, 1.5), n_actions)
    # The share of a state's rows that ever convert: never on average, more in deeper states.
    ever = np.clip((1 - never) * np.linspace(0.4, 1.6, n_states), 0.01, 1.0)
    scale = rng.uniform(0.1, 0.4)
    decided = np.sort(rng.uniform(0, windows * window, n))
    action = rng.integers(n_actions, size=n)
    state = (rng.random(n)[:, None] > P[action].cumsum(axis=1)).sum(axis=1).clip(0, n_states - 1)
    wait = np.where(rng.random(n) < ever[state], draw_waits(rng, shape, n, scale), np.inf) * window
    won = wait <= window
    loss, resolved = np.where(won, 0.0, 1.0), decided + np.where(won, wait, window)
    reach = float((draw_waits(np.random.default_rng(1), shape, 200_000, scale) <= 1).mean())
    shown, times = record(kind, loss, decided, resolved, won, end=float(decided[-1]))
    return Windowed(kind, P, 1 - ever * reach, window, action, state, decided, shown, times, loss, resolved)


def record(kind, loss, decided, resolved, won, end):
    """What the log holds at its end."""
    come = resolved <= end
    if kind == "blank until known, all dated":
        return np.where(come, loss, NAN), np.where(come, resolved, NAN)
    if kind == "blank until known, conversions dated":
        return np.where(come, loss, NAN), np.where(come & won, resolved, NAN)
    if kind == "blank until known, no times":
        return np.where(come, loss, NAN), None
    shown = np.where(come & won, 0.0, 1.0)
    return (shown, np.where(come & won, resolved, NAN)) if "dated" in kind else (shown, None)


UNWINDOWED = (
    "all in, dated",
    "all in, no times",
    "some lost",
    "still coming",
    "still coming, no times",
    "losses slower",
    "same lag for all",
    "waves, no times",
    "falling, no times",
    "step, no times",
)


def make_unwindowed(seed, kind=None, n_actions=8, n_states=4):
    """A log without a window: rows (action, state, decided, loss, resolved or None)."""
    rng = np.random.default_rng((seed, 78))
    kind = kind or UNWINDOWED[rng.integers(len(UNWINDOWED))]
    n, span = int(rng.integers(3_000, 12_000)), rng.uniform(20, 600) * DAY
    P = rng.dirichlet(np.full(n_states, 1.5), n_actions)
    decided = np.sort(rng.uniform(0, span, n))
    action = rng.integers(n_actions, size=n)
    state = (rng.random(n)[:, None] > P[action].cumsum(axis=1)).sum(axis=1).clip(0, n_states - 1)
    mean = np.clip(rng.uniform(0.1, 0.9) * np.linspace(1.5, 0.5, n_states), 0.03, 0.97)[state]
    u = decided / span
    if kind.startswith("waves"):
        mean = mean + 0.15 * np.sin(2 * np.pi * (rng.uniform(1, 4) * u + rng.random()))
    elif kind.startswith("falling"):
        mean = mean + rng.uniform(0.1, 0.3) * u
    elif kind.startswith("step"):
        mean = mean + rng.uniform(0.1, 0.3) * (u > rng.uniform(0.3, 0.95))
    loss = (rng.random(n) < np.clip(mean, 0.02, 0.98)).astype(float)
    scale = rng.uniform(0.01, 0.08) * span
    wait = rng.exponential(scale, n) if rng.random() < 0.5 else rng.lognormal(np.log(scale), 0.7, n)
    resolved: np.ndarray | None = decided + wait
    end = float(decided[-1])
    if kind == "some lost":
        loss, resolved = np.where(rng.random(n) < 0.2, NAN, loss), decided + wait
        resolved = np.where(np.isfinite(loss), resolved, NAN)
    elif kind.startswith("still"):
        loss, resolved = np.where(resolved <= end, loss, NAN), np.where(resolved <= end, resolved, NAN)
    elif kind == "losses slower":
        late = decided + wait * np.where(loss == 1, 3.0, 1.0)
        loss, resolved = np.where(late <= end, loss, NAN), np.where(late <= end, late, NAN)
    elif kind == "same lag for all":
        loss, resolved = np.where(decided + scale <= end, loss, NAN), decided + scale
        resolved = np.where(np.isfinite(loss), resolved, NAN)
    return kind, action, state, decided, loss, None if "no times" in kind else resolved
