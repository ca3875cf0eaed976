"""Logs whose truth is known, many of them: how often the audit's answers are right.

Each function takes seeds and returns figures; few seeds in the tests, many in `benchmarks/audit_truth.py`.
"""

from collections import defaultdict
from dataclasses import replace

import numpy as np
from figures_of_merit import CLEAR
from generated import generate
from windowed import make_unwindowed, make_windowed

from statepool import learners
from statepool.audit.advice import CANDIDATES, advise
from statepool.audit.counts import Counts, Weighted
from statepool.audit.delays import measure_lateness
from statepool.audit.drift import measure_drift
from statepool.audit.effects import estimate_effects
from statepool.audit.fit import fit_instance
from statepool.audit.map import estimate_map
from statepool.audit.maturity import Maturity
from statepool.audit.offpolicy import Evidence, estimate_play
from statepool.audit.sample import Rows
from statepool.audit.sufficiency import sufficiency_test
from statepool.audit.units import Unit
from statepool.audit.verdict import UNCLEAR, judge
from statepool.audit.windows import find_window
from statepool.engine import simulate
from statepool.model import Instance

NONE = Maturity(None, "none")


def rows_of(action, state, loss, decided, resolved=None):
    times = np.full(loss.size, np.nan) if resolved is None else resolved
    latest = max(decided.max(), times[np.isfinite(times)].max(initial=-np.inf))
    return Rows(action, state, loss, decided, times, loss.size, True, float(latest), np.nan)


def count(rows, weights=None):
    K, S = int(rows.action.max()) + 1, int(rows.state.max()) + 1
    known, loss = np.isfinite(rows.loss), np.nan_to_num(rows.loss)

    def table(values):
        return np.bincount(rows.action * S + rows.state, values, K * S).reshape(K, S).astype(float)

    weighted = None
    if weights is not None:
        k = weights * known
        parts = (weights, weights**2, k, k**2, k * loss, k * loss**2, k**2 * loss, k**2 * loss**2)
        weighted = Weighted(*(table(part) for part in parts))
    names = [tuple(map(str, range(size))) for size in (K, S)]
    sums = [table(part) for part in (None, known.astype(float), loss, loss**2)]
    return Counts(*names, None, *sums, loss.size, {}, {}, weighted)


def compact(rows):
    """With actions and states that occur, numbered from 0, as the audit numbers them."""
    action, state = (np.unique(values, return_inverse=True)[1] for values in (rows.action, rows.state))
    return replace(rows, action=action, state=state)


def examine(rows, seed=0, maturity=NONE):
    rows = compact(rows)
    counts = count(rows)
    map_ = estimate_map(counts)
    found = sufficiency_test(rows, counts.n_actions, counts.n_states, seed)
    effects = estimate_effects(counts, map_, found, seed)
    return rows, counts, map_, found, effects, judge(counts, found, effects, maturity)


# Windows


def windowed_logs(seeds):
    """Drift, floor, false alarms and coverage with the window given, beside the same log with all outcomes in."""
    figures = defaultdict(list)
    for seed in seeds:
        made = make_windowed(seed)
        recorded = rows_of(made.action, made.state, made.loss, made.decided, made.resolved)
        shown = find_window(recorded)
        default = 1.0 if made.kind.startswith("0") else None
        maturity = Maturity(made.window, "given", recorded.latest, default, 1.0)
        rows = recorded.matured(maturity)
        full = rows_of(made.action, made.state, made.full_loss, made.decided, made.full_resolved)
        counts = count(rows)
        late = measure_lateness(recorded, 0, maturity).decisions[1]
        drifts = [
            measure_drift(each, estimate_map(counts).P, counts.state_means, late if np.isfinite(late) else 0.0)
            for each in (rows, full)
        ]
        K, S = counts.n_actions, counts.n_states
        figures["false alarm"].append(sufficiency_test(rows, K, S, seed).p <= 0.05)
        low, high = counts.state_intervals(0.95)
        enough = counts.k.sum(axis=0) > 0
        figures["covered"] += ((low <= made.means[:S]) & (made.means[:S] <= high))[enough].tolist()
        for name, drift in zip(("windowed", "full"), drifts, strict=True):
            figures[f"drift {name}"].append(float(drift.spread.max()))
            figures[f"floor {name}"].append(drift.floor)
        figures["drift untold"].append(
            float(measure_drift(recorded, estimate_map(counts).P, counts.state_means, late).spread.max())
        )
        if made.decided[-1] - made.decided[0] >= 4 * made.window and made.conversions >= 200:
            waits = (made.full_resolved - made.decided)[made.full_loss == 0]
            right = shown is not None and shown.closing == 1.0 and (waits <= shown.window).mean() >= 0.95
            figures["found"].append(right and shown.window <= 2 * made.window)
            figures[f"found: {made.kind}"].append(figures["found"][-1])
    return figures


def unwindowed_logs(seeds):
    """Whether a window is assumed where there is none."""
    figures = defaultdict(list)
    for seed in seeds:
        kind, action, state, decided, loss, resolved = make_unwindowed(seed)
        assumed = find_window(rows_of(action, state, loss, decided, resolved)) is not None
        figures["assumed"].append(assumed)
        figures[f"assumed: {kind}"].append(assumed)
    return figures


# Verdicts


def clear_logs(verdict, seeds, horizon=2_000, worlds=24, n_rows=60_000):
    """The verdict of each clear log, and whether another candidate beats the advised one on worlds of its truth."""
    settings, is_clear = CLEAR[verdict]
    verdicts, beaten = [], []
    for seed in seeds:
        made = generate(seed, n_actions=30, n_rows=n_rows, drift=0.08, **settings)
        if not is_clear(made):
            continue
        rows, counts, map_, _, effects, judged = examine(made.rows(), seed)
        verdicts.append(judged.verdict)
        if horizon:
            late = measure_lateness(rows, 0, NONE)
            drift = measure_drift(rows, map_.P, counts.state_means, late.decisions[1])
            advised = advise(judged, fit_instance(counts, map_, drift, effects, late, horizon), seed).learner
            beaten.append(is_beaten(made, advised, late, horizon, seed, worlds))
    return verdicts, beaten


def is_beaten(made, advised, late, horizon, seed, worlds):
    """By more than two standard errors, paired, on worlds of the true map, means and effects."""
    regrets = {candidate.learner: [] for candidate in CANDIDATES}
    for world in range(worlds):
        delays = np.random.default_rng((seed, world, 99)).choice(late.draws, horizon)
        delays = np.where(np.isfinite(delays), delays, horizon).astype(np.int64)
        # Names of actions are shuffled in every world: where rows are alike, which comes first must not decide.
        order = np.random.default_rng((seed, world, 98)).permutation(len(made.P))
        effects = made.effects[order] if made.effects.any() else None
        truth = Instance(made.P[order], made.means[-horizon:], effects)
        for candidate in CANDIDATES:
            learner = learners.find(candidate.learner)(**dict(candidate.settings))
            regrets[candidate.learner].append(simulate(truth, learner, delays, 10_000 * (seed + 1) + world).regret)
    own = np.array(regrets.pop(advised))
    gaps = [own - np.array(other) for other in regrets.values()]
    return any(gap.mean() > 2 * gap.std(ddof=1) / worlds**0.5 for gap in gaps)


def unclear_log(seed, kind):
    """A log that cannot tell, and how to make one with as many rows as are asked for."""
    rng = np.random.default_rng((seed, 55))
    K = int(rng.integers(3, 31))
    settings = {"n_actions": K, "drift": 0.08, "shared": float(rng.choice([0.0, 0.05]))}
    if kind == "200 rows":
        return generate(seed, n_rows=200, **settings).rows(), settings
    settings["n_actions"] = max(K, 8)
    made = generate(seed, n_rows=30_000, **settings)
    kept = np.flatnonzero((made.action == made.action[0]) | (rng.random(30_000) < 0.02 / 3))
    rare = made.action[kept] != made.action[0]
    share = rare.mean()
    kept = kept[~rare | (rng.random(kept.size) < min(0.02 / max(share, 1e-9), 1.0))]
    rows = made.rows()
    return replace(
        rows, action=rows.action[kept], state=rows.state[kept], loss=rows.loss[kept], decided=rows.decided[kept],
        resolved=rows.resolved[kept], population=kept.size,
    ), settings  # fmt: skip


def unclear_logs(kind, seeds, most_rows=300_000):
    """Verdicts of logs that cannot tell, and those given once the rows that were named are supplied."""
    verdicts, told, skipped = [], [], 0
    for seed in seeds:
        if kind == "immature only":
            made = make_windowed(seed)
            span = made.decided[-1] - made.decided[0]
            recorded = rows_of(made.action, made.state, made.loss, made.decided, made.resolved)
            maturity = Maturity(1.01 * span, "given", recorded.latest)
            verdicts.append(examine(recorded.matured(maturity), seed, maturity)[-1].verdict)
            continue
        rows, settings = unclear_log(seed, kind)
        judged = examine(rows, seed)[-1]
        verdicts.append(judged.verdict)
        if judged.needed is None:
            continue
        # A holdout's rows are chosen evenly, and as many as the decisions named bring.
        wanted = judged.needed.even if judged.needed.holdout else judged.needed.outcomes
        if wanted > most_rows:
            skipped += 1
            continue
        chosen = {"favour": 0.0} if judged.needed.holdout else {}
        more = generate(seed, n_rows=wanted, **settings | chosen)
        told.append(examine(more.rows(), seed)[-1].verdict != UNCLEAR)
    return verdicts, told, skipped


# What if


def play_log(seed, P, means, effects, shares, n):
    rng = np.random.default_rng((seed, 66))
    action = rng.choice(len(P), size=n, p=shares)
    state = (rng.random(n)[:, None] > P[action].cumsum(axis=1)).sum(axis=1).clip(0, P.shape[1] - 1)
    loss = (rng.random(n) < means[state] + effects[action]).astype(float)
    return rows_of(action, state, loss, np.arange(n) * 1.0), 1 / shares[action]


def see(rows, weights, seed, full_test=True):
    counts = count(rows, weights)
    found = sufficiency_test(rows, counts.n_actions, counts.n_states, seed)
    effects = estimate_effects(counts, estimate_map(counts), found, seed)
    return Evidence(counts, Unit("loss", False), found, effects)


def what_ifs(seeds, n=4_000, effect=0.0):
    """Coverage of the three intervals at 95 %, over maps, shares and plays of all kinds; and how often bias is told."""
    covered, warned, right = [], [], []
    for seed in seeds:
        rng = np.random.default_rng((seed, 67))
        K, S = int(rng.integers(3, 15)), int(rng.integers(3, 7))
        P, means = rng.dirichlet(np.ones(S), K), rng.uniform(0.2, 0.8, S)
        shares = rng.dirichlet(np.full(K, 5.0)) * 0.7 + 0.3 / K
        effects = effect * rng.choice([-1.0, 1.0], K)
        play = rng.dirichlet(np.ones(K)) if rng.random() < 0.5 else np.eye(K)[rng.integers(K)]
        effects = np.clip(effects, -means.min(), 1 - means.max())
        truth = float(play @ (P @ means + effects))
        found = estimate_play(see(*play_log(seed, P, means, effects, shares, n), seed), play, "x")
        covered.append([e.lower <= truth <= e.upper for e in (found.pooled, found.plain, found.robust)])
        warned.append(found.biased)
        right.append(abs(found.pooled.value - truth) <= found.bias + 2 * found.pooled.error)
    return np.mean(covered, axis=0), float(np.mean(warned)), float(np.mean(right))


def variance_ratio(P, seeds, n=4_000):
    """Pooled over plain variance with the map known, over single actions of an even log, divided by v/K."""
    from statepool.dimension import effective

    K = len(P)
    even, means = np.full(K, 1 / K), np.linspace(0.2, 0.8, P.shape[1])
    asked = np.random.default_rng(0).choice(K, min(K, 20), replace=False)
    values = []
    for seed in seeds:
        rows, weights = play_log(seed, P, means, np.zeros(K), even, n)
        counts = count(rows, weights)
        h = counts.loss.sum(axis=0) / np.maximum(counts.k.sum(axis=0), 1)
        plain = counts.weighted.loss.sum(axis=1)[asked] / n
        values.append((P[asked, : h.size] @ h, plain))
    pooled, plain = (np.array(part).var(axis=0, ddof=1).mean() for part in zip(*values, strict=True))
    return float(pooled / plain / (effective(P, even) / K))
