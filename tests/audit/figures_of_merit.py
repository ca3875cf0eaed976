"""How often the audit is right on logs whose truth is known; tests ask for few logs, the soak for many."""

import numpy as np
from generated import generate

from statepool.audit import audit_log
from statepool.audit.counts import Counts
from statepool.audit.map import estimate_map
from statepool.audit.sufficiency import sufficiency_test
from statepool.audit.verdict import ALONE, CORRECT, POOL

NULLS = {
    "mix moving with the drift": {},
    "strong drift, strong favour": {"drift": 0.24, "favour": 3.0},
    "no drift": {"drift": 0.0, "favour": 0.0},
    "few rows": {"n_rows": 3_000},
    "many actions": {"n_actions": 400, "n_rows": 20_000},
}


def false_alarms(seeds, n_rows=20_000, **settings) -> float:
    """The share of logs without direct effects on which the test says that there are some, at level .05."""
    ps = []
    for seed in seeds:
        made = generate(seed, **({"n_rows": n_rows} | settings))
        K, S = made.P.shape
        ps.append(sufficiency_test(made.rows(), K, S, seed).p)
    return float(np.mean(np.array(ps) <= 0.05))


def power(seeds) -> float:
    """Effects of standard deviation .05 across 50 actions in every state, 2 000 outcomes an action."""
    found = [sufficiency_test(generate(seed, effect=0.05).rows(), 50, 6, seed).p <= 0.05 for seed in seeds]
    return float(np.mean(found))


def coverage(seeds, level=0.95, n_actions=50) -> float:
    """The share of entries of P inside their intervals, over maps and numbers of rows of all kinds."""
    inside = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        P = rng.dirichlet(np.full(6, rng.choice([0.5, 1.0, 3.0])), n_actions)
        n = rng.multinomial(rng.integers(20, 3_000, n_actions), P).astype(float)
        names = tuple(map(str, range(n_actions)))
        none = np.zeros_like(n)
        map_ = estimate_map(Counts(names, names[:6], None, n, none, none, none, 0, {}, {}), level)
        inside.append(((map_.lower <= P) & (map_.upper >= P)).mean())
    return float(np.mean(inside))


CLEAR = {
    # advice: how the log is made, and which of those are clearly of the kind
    POOL: ({}, lambda made: True),
    CORRECT: ({"shared": 0.1}, lambda made: 0.1 < made.lost < 0.4),
    ALONE: ({"shared": 0.1, "rows_alike": True}, lambda made: made.lost > 0.7),
}


def advice_right(verdict, seeds, folder, n_rows=60_000) -> list[bool]:
    """For each clear log of a kind, whether the advice is what it should be."""
    settings, is_clear = CLEAR[verdict]
    right = []
    for seed in seeds:
        made = generate(seed, n_actions=30, n_rows=n_rows, drift=0.08, **settings)
        if is_clear(made):
            audit = audit_log(made.write(folder / "log.parquet"), horizon=500, seconds=0.2, seed=seed)
            right.append(audit.advice.verdict == verdict)
    return right
