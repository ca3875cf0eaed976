"""Which states to merge, and which tell nothing.

Merging follows the grouping rule (`statepool.grouping`), rehearsed on the states and outcomes of the log. A state
tells nothing if every action leads to it equally often, up to noise, or if its mean loss is that of a typical row:
then seeing it moves no estimate of any action.
"""

from dataclasses import dataclass

import numpy as np

from statepool.audit.counts import Counts
from statepool.audit.map import Map
from statepool.audit.sample import Rows
from statepool.checks import Floats
from statepool.grouping import choose_groups

MOST_STATES = 20
REHEARSALS = 32
WORK = 3 * 10**7
"""Multiplications for the rehearsals of one candidate, at the most: they are as long as this allows."""

TELLS = 0.01
"""The least share of the predicted differences between actions that is worth a state of its own."""


@dataclass(frozen=True)
class States:
    groups: tuple[int, ...] | None
    """The group of each state; None where it could not be rehearsed."""
    telling: tuple[float, ...]
    """Each state's share of what the states predict of the differences between actions."""
    silent: tuple[int, ...]
    """States that tell nothing."""
    unseen: tuple[int, ...]
    """States never seen with an outcome."""


def look_at_states(counts: Counts, map_: Map, rows: Rows, horizon: int, delay: int, seed: int = 0) -> States:
    telling = _telling(counts)
    unseen = np.flatnonzero(counts.k.sum(axis=0) == 0)
    silent = np.setdiff1d(np.flatnonzero(telling < TELLS), unseen)
    return States(
        _groups(counts, map_, rows, horizon, delay, seed), tuple(map(float, telling)),
        tuple(map(int, silent)), tuple(map(int, unseen)),
    )  # fmt: skip


def _telling(counts: Counts) -> Floats:
    """Var over actions of P(s|a), net of noise, times the squared distance of the state's mean from the others'."""
    visits = counts.n.sum(axis=1, keepdims=True)
    share = counts.n / visits
    overall = counts.n.sum(axis=0) / counts.n.sum()
    noise = (overall * (1 - overall)) / visits
    weights = visits / visits.sum()
    between = (weights * ((share - overall) ** 2 - noise)).sum(axis=0)
    distance = counts.state_means - float(counts.loss.sum() / max(counts.k.sum(), 1))
    parts = np.maximum(between, 0.0) * distance**2
    return np.asarray(parts / parts.sum() if parts.sum() > 0 else parts)


def _groups(counts: Counts, map_: Map, rows: Rows, horizon: int, delay: int, seed: int) -> tuple[int, ...] | None:
    known = np.flatnonzero(np.isfinite(rows.loss))
    if not 2 <= counts.n_states <= MOST_STATES or counts.n_actions < 2 or known.size < 2:
        return None
    budget = WORK // (REHEARSALS * counts.n_actions)
    rest = min(horizon, budget * (delay + 1))
    if rest < 1:
        return None
    # All outcomes of the sample have come: the prefix is followed by rounds without any, so that none is cut off.
    prefix = known[-min(known.size, 50_000) :]
    states = np.append(rows.state[prefix], np.zeros(delay, dtype=np.int64))
    outcomes = np.append(rows.loss[prefix], np.zeros(delay))
    groups = choose_groups(map_.P, states, outcomes, states.size + rest, delay, rehearsals=REHEARSALS, seed=seed)
    return tuple(map(int, groups))
