"""Logs whose truth is known, many of them: how often the audit's answers are right.

Each function takes seeds and returns figures; few seeds in tests, many in `benchmarks/audit_truth.py`.
"""

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np
from generated import generate
from windowed import make_unwindowed, make_windowed

from statepool.audit.advice import UNCLEAR, Evidence, judge
from statepool.audit.audit import estimate_policy
from statepool.audit.counts import WEIGHTED, Counts, Rows, Unit
from statepool.audit.delays import Maturity, find_maturity
from statepool.audit.estimates import estimate_effects, estimate_map, measure_drift, sufficiency_test

NONE = Maturity(None, "none")


def rows_of(action, state, loss, decided, resolved=None):
    times = np.full(loss.size, np.nan) if resolved is None else resolved
    latest = max(decided.max(), times[np.isfinite(times)].max(initial=-np.inf))
    return Rows(action, state, loss, decided, times, loss.size, True, float(latest), 0 * loss)


def count(rows, weights=None, maturity=None):
    """As `counts.count_log` counts, exposure of young rows included."""
    K, S = int(rows.action.max()) + 1, int(rows.state.max()) + 1
    final = rows if maturity is None else maturity.matured(rows)
    known, loss = np.isfinite(final.loss), np.nan_to_num(final.loss)
    k, square = known.astype(float), loss**2
    if maturity is not None and maturity.curve is not None:
        young, base = rows.decided > maturity.cut, maturity.default
        share = maturity.curve.share(rows.age)
        news = np.where(rows.dated, rows.loss - base, 0.0)
        k, loss = np.where(young, share, k), np.where(young, base * share + news, loss)
        square = np.where(
            young, base**2 * share + np.where(news != 0, np.nan_to_num(rows.loss) ** 2 - base**2, 0.0), square
        )

    def table(values):
        return np.bincount(rows.action * S + rows.state, values, K * S).reshape(K, S).astype(float)

    names = [tuple(map(str, range(size))) for size in (K, S)]
    n, k, loss_sum, squares, early = (table(part) for part in (None, k, loss, square, k * (1 - k)))
    parts = (n, n, k, k, loss_sum, loss_sum, squares)
    if weights is not None:
        w = weights * known
        parts = tuple(map(table, (weights, weights**2, w, w**2, w * loss, w**2 * loss, w**2 * loss**2)))
    sums = dict(zip(WEIGHTED, parts, strict=True))
    base = 0.0 if maturity is None or maturity.default is None else maturity.default
    return Counts(*names, n, k, loss_sum, squares, early, sums, weights is not None, total=rows.loss.size, base=base)


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
    return judge(Evidence(counts, Unit("loss", False), map_, found, effects, rows, maturity, None, None))


def windowed_logs(seeds):
    """Drift, false alarms and coverage with the window given, beside the same log with all outcomes in."""
    figures = defaultdict(list)
    for seed in seeds:
        made = make_windowed(seed)
        recorded = rows_of(made.action, made.state, made.loss, made.decided, made.resolved)
        maturity = find_maturity(recorded, made.window)
        if maturity.default is None and made.kind.startswith("0"):
            maturity = replace(maturity, default=1.0)
        rows = maturity.matured(recorded)
        full = rows_of(made.action, made.state, made.full_loss, made.decided, made.full_resolved)
        counts = count(recorded, maturity=maturity)
        drifts = [measure_drift(each, counts.state_means) for each in (rows, full)]
        S = counts.n_states
        figures["false alarm"].append(sufficiency_test(rows, counts.n_actions, S, seed).p <= 0.05)
        enough = counts.k.sum(axis=0) > 0
        covered = np.abs(made.means[:S] - counts.state_means) <= 1.96 * counts.state_errors
        figures["covered"] += covered[enough].tolist()
        figures["exposed"].append(maturity.curve is not None)
        for name, drift in zip(("windowed", "full"), drifts, strict=True):
            figures[f"drift {name}"].append(float(drift.spread.max()))
        if made.decided[-1] - made.decided[0] >= 4 * made.window and made.conversions >= 200:
            figures[f"found: {made.kind}"].append(found_right(made, recorded))
    return figures


def found_right(made, recorded):
    """Whether the window is found, or asked about where outcomes have no times."""
    try:
        shown = find_maturity(recorded, None)
    except ValueError:
        return "no times" in made.kind
    waits = (made.full_resolved - made.decided)[made.full_loss == 0]
    return shown.default == 1.0 and (waits <= shown.window).mean() >= 0.95 and shown.window <= 2 * made.window


def unwindowed_logs(seeds):
    """Whether a window is assumed, or asked about, where there is none."""
    figures = defaultdict(list)
    for seed in seeds:
        kind, action, state, decided, loss, resolved = make_unwindowed(seed)
        try:
            wrong = find_maturity(rows_of(action, state, loss, decided, resolved), None).how == "found"
        except ValueError:
            wrong = not kind.startswith("still")
        figures["assumed"].append(wrong)
        figures[f"assumed: {kind}"].append(wrong)
    return figures


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
    kept = kept[~rare | (rng.random(kept.size) < min(0.02 / max(rare.mean(), 1e-9), 1.0))]
    rows = made.rows()
    parts = {name: getattr(rows, name)[kept] for name in ("action", "state", "loss", "decided", "resolved")}
    return replace(rows, population=kept.size, **parts), settings


def unclear_logs(kind, seeds, most_rows=300_000):
    """Verdicts of logs that cannot tell, and those given once the rows that were named are supplied."""
    verdicts, told, skipped = [], [], 0
    for seed in seeds:
        rows, settings = unclear_log(seed, kind)
        verdict, _, needed = examine(rows, seed)
        verdicts.append(verdict)
        if needed is None:
            continue
        wanted = rows.loss.size + needed
        if wanted > most_rows:
            skipped += 1
            continue
        told.append(examine(generate(seed, n_rows=wanted, **settings).rows(), seed)[0] != UNCLEAR)
    return verdicts, told, skipped


@dataclass(frozen=True, eq=False)
class Seen:
    counts: Counts
    unit: Unit
    sufficiency: object
    effects: object


def policy_log(seed, P, means, effects, shares, n):
    rng = np.random.default_rng((seed, 66))
    action = rng.choice(len(P), size=n, p=shares)
    state = (rng.random(n)[:, None] > P[action].cumsum(axis=1)).sum(axis=1).clip(0, P.shape[1] - 1)
    loss = (rng.random(n) < means[state] + effects[action]).astype(float)
    rows = rows_of(action, state, loss, np.arange(n) * 1.0)
    counts = count(rows, 1 / shares[action])
    found = sufficiency_test(rows, counts.n_actions, counts.n_states, seed)
    return Seen(counts, Unit("loss", False), found, estimate_effects(counts, estimate_map(counts), found, seed))


def what_ifs(seeds, n=4_000, effect=0.0):
    """Coverage of the three intervals at 95 %, over maps, shares and policies of all kinds; how often bias is named."""
    covered, warned, right = [], [], []
    for seed in seeds:
        rng = np.random.default_rng((seed, 67))
        K, S = int(rng.integers(3, 15)), int(rng.integers(3, 7))
        P, means = rng.dirichlet(np.ones(S), K), rng.uniform(0.2, 0.8, S)
        shares = rng.dirichlet(np.full(K, 5.0)) * 0.7 + 0.3 / K
        effects = np.clip(effect * rng.choice([-1.0, 1.0], K), -means.min(), 1 - means.max())
        policy = rng.dirichlet(np.ones(K)) if rng.random() < 0.5 else np.eye(K)[rng.integers(K)]
        truth = float(policy @ (P @ means + effects))
        seen = policy_log(seed, P, means, effects, shares, n)
        found = estimate_policy(seen, [seen.counts], np.ones(1), [policy], "x")
        covered.append([e.lower <= truth <= e.upper for e in (found.pooled, found.plain, found.robust)])
        warned.append(found.biased)
        right.append(abs(found.pooled.value - truth) <= found.bias + 2 * found.pooled.error)
    return np.mean(covered, axis=0), float(np.mean(warned)), float(np.mean(right))
