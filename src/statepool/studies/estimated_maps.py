"""Studies 2, 3, 4, 5 and 11: learning with a map that is estimated on the way."""

from math import log
from typing import Any

import numpy as np

from statepool import families
from statepool.checks import Floats
from statepool.engine import Run, simulate
from statepool.learners.paper.estimated_maps import SMOOTHING, CountedDenominator, PlugIn, SafePool
from statepool.probes import NO_PROBE
from statepool.rates import default_rate
from statepool.report.sheet import Value
from statepool.studies.study import (
    Arms,
    Cell,
    Results,
    Sweep,
    Table,
    Task,
    add_study,
    ends_of,
    paired,
    paired_with_coverage,
)

DELAY = 50


def _plug_in(**settings: float) -> tuple[str, dict[str, float]]:
    return "plug-in", settings


MIXED = {"K=8": (8, 0.0), "K=20": (20, 0.0), "K=40": (40, 0.0), "K=80": (80, 0.0), "K=40 mixing .02": (40, 0.02),
         "K=40 mixing .10": (40, 0.1)}  # fmt: skip


def _mixed_cell(label: str, n_actions: int, mixing: float) -> Cell:
    learners = {"known": "state-exp3", "plug-in": "plug-in", "action": "action-exp3"}
    arms = {name: (learner, {"mixing": mixing}) for name, learner in learners.items()}
    return Cell(label, "band", {"n_actions": n_actions, "n_states": 4, "horizon": 10_000, "drift": 0.05}, DELAY, arms)


add_study(
    "unknown-map",
    [Sweep("maps", [_mixed_cell(label, *cell) for label, cell in MIXED.items()], 60, 10_000)],
    lambda results: [
        Table("Regret with the map known and estimated", results.rows("maps", MIXED, ("known", "plug-in", "action")))
    ],
)

KINDS = ("rare-optimal", "unbalanced", "near-unreachable", "deterministic", "misleading")
MIXINGS, SMOOTHINGS = (0, 0.01, 0.05, 0.2), (1, 0.3, 0.1, 0.03, 0.01)
HOSTILE_ARMS: Arms = {
    "known": ("state-exp3", {}),
    "action": ("action-exp3", {}),
    **{f"plug-in {mixing:g}": _plug_in(mixing=float(mixing)) for mixing in MIXINGS},
}
BY_KIND = Sweep(
    "kinds", [Cell(kind, "hostile", {"kind": kind, "horizon": 8_000}, DELAY, HOSTILE_ARMS) for kind in KINDS], 30,
    10_000, paired_with_coverage,
)  # fmt: skip
BY_SMOOTHING = Sweep(
    "smoothing",
    [Cell(f"smoothing {alpha:g}", "hostile", {"kind": "deterministic", "horizon": 8_000}, DELAY,
          {"plug-in": _plug_in(smoothing=float(alpha))}) for alpha in SMOOTHINGS],
    30, 10_000,
)  # fmt: skip


def _hostile_tables(results: Results) -> list[Table]:
    rows = results.rows("kinds", KINDS, [*HOSTILE_ARMS, "kappa"])
    smoothing = results.rows("smoothing", BY_SMOOTHING.labels, ["plug-in"])
    return [
        Table("Regret on five hostile maps", rows, "plug-in columns: share of uniform exploration"),
        Table("Plug-in on the deterministic map, by smoothing", smoothing),
    ]


add_study(
    "hostile-maps",
    [BY_KIND, BY_SMOOTHING],
    _hostile_tables,
)

SHARES, FINER = (0.115, 0.05, 0.02, 0.008, 0.003), (1, 0.3, 0.1, 0.03, 0.01, 0.003)
SCARCE_ARMS: Arms = {
    "action": ("action-exp3", {}),
    **{f"plug-in {alpha:g}": _plug_in(smoothing=float(alpha)) for alpha in FINER},
}
BY_SHARE = Sweep(
    "shares", [Cell(f"share {share:g}", "scarce", {"share": share, "horizon": 8_000}, DELAY, SCARCE_ARMS)
               for share in SHARES], 10, 7, paired_with_coverage,
)  # fmt: skip


def _smoothing_tables(results: Results) -> list[Table]:
    gains, worst_over_best = {}, []
    for cell in BY_SHARE.labels:
        gains[cell] = {f"gain at {a:g}": results.saved("shares", cell, f"plug-in {a:g}", "action") for a in FINER}
        regrets = [results.mean("shares", cell, f"plug-in {a:g}") for a in FINER]
        worst_over_best.append(max(regrets) / min(regrets))
    every = [value.number for row in gains.values() for value in row.values()]
    kappas = {cell: {"kappa": results.value("shares", cell, "kappa")} for cell in BY_SHARE.labels}
    numbers = [row["kappa"].number for row in kappas.values()]
    summary = {
        "kappa": ends_of(numbers) | {"largest": Value(max(numbers), None, 0)},
        "gain over action": ends_of(every),
        "cells with a loss": {"largest": Value(float(sum(g < 0 for g in every)), None, 0)},
        "worst / best smoothing": {"largest": Value(max(worst_over_best), None, 2)},
    }
    rows = {cell: kappas[cell] | gains[cell] for cell in gains}
    return [Table("Summary over thirty cells", summary), Table("Gain of the plug-in over action-level learning", rows)]


add_study(
    "smoothing",
    [BY_SHARE],
    _smoothing_tables,
)

SAFE_FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "band": ("band", {"drift": 0.05}),
    "deterministic": ("hostile", {"kind": "deterministic"}),
    "rare-optimal": ("hostile", {"kind": "rare-optimal"}),
}
SAFE_ARMS: Arms = {"action": ("action-exp3", {}), "plug-in": ("plug-in", {}), "Safe-Pool": ("safe-pool", {}),
                   "heuristic radii": ("safe-pool", {"certified": False})}  # fmt: skip
BAND_CELL = Cell("band", "band", {"drift": 0.05, "horizon": 8_000}, DELAY)
BUDGET = ("budget", "summed |<x,b> - b(a*)|", "summed max |b|", "certified, Hoeffding", "certified, Bernstein")


def paired_with_share(task: Task) -> dict[str, float]:
    """The paired regrets, and the share of (round, action) pairs that Safe-Pool pooled."""
    instance = task.instance()
    memory = task.run(instance, SafePool()).measure(NO_PROBE)
    return {"pooled": float(memory.n_pooled[0] / (instance.horizon * instance.n_actions)), **paired(task)}


def estimated_maps(run: Run) -> tuple[Floats, Floats]:
    """P_hat of each round (rounds, actions, states) from the pairs before it, and the visits of each action."""
    instance, played = run.instance, run.actions[:-1].astype(np.int64)
    pairs = np.zeros((instance.horizon, instance.n_actions, instance.n_states))
    pairs[np.arange(1, instance.horizon), played, run.states[:-1]] = 1
    pairs = pairs.cumsum(axis=0)
    visits = pairs.sum(axis=2)
    return (pairs + SMOOTHING) / (visits[:, :, None] + SMOOTHING * instance.n_states), visits


def biases(run: Run, estimates: Floats, policies: Floats, denominators: Floats) -> Floats:
    """b(a) = sum_s theta(s) [q(s) P_hat(s|a) / denominator(s) - P(s|a)] of each round and action."""
    P, theta = run.instance.P, run.instance.theta
    return np.einsum("ts,tas->ta", theta * (policies @ P) / denominators, estimates) - theta @ P.T


def certified_cost(policies: Floats, q_hat: Floats, row_radii: Floats, radii: Floats) -> float:
    """The sum over rounds of min(4, 2 max_a r1 + 2 rho), rho from the radii of the entries."""
    uncertainty = np.einsum("ta,tas->ts", policies, np.minimum(1, radii))
    slack = q_hat - uncertainty
    rho = np.divide(uncertainty, slack, out=np.full_like(slack, np.inf), where=slack > 0).max(axis=1)
    return float(np.minimum(4, 2 * np.minimum(2, row_radii).max(axis=1) + 2 * rho).sum())


def bias_budget(task: Task) -> dict[str, float]:
    """The plug-in's bias over a run, and the cost by two certificates; the run continues the instance's generator."""
    rng = np.random.default_rng(task.seed)
    instance = families.find(task.cell.family)(seed=rng, **task.cell.settings)
    K, S, T = instance.n_actions, instance.n_states, instance.horizon
    run = simulate(instance, PlugIn(), DELAY, rng)
    (estimates, visits), policies = estimated_maps(run), run.policies()
    q_hat = np.einsum("ta,tas->ts", policies, estimates)
    bias = biases(run, estimates, policies, q_hat)
    visits = np.maximum(visits, 1)
    row_radii, share = np.sqrt(2 * (S * log(2) + log(2 * K * T)) / visits), log(2 * K * S * T) / visits[:, :, None]
    hoeffding = np.broadcast_to(np.sqrt(share / 2), estimates.shape)
    bernstein = np.sqrt(2 * estimates * (1 - estimates) * share) + 3 * share
    numbers = (
        T * default_rate(K, K, T, DELAY) / 2 * (K - 2 * S),
        float(np.abs((policies * bias).sum(axis=1) - bias[:, instance.best_action]).sum()),
        float(np.abs(bias).max(axis=1).sum()),
        *(certified_cost(policies, q_hat, row_radii, radii) for radii in (hoeffding, bernstein)),
    )
    return dict(zip(BUDGET, numbers, strict=True))


FAMILIES_SWEEP = Sweep(
    "families",
    [Cell(f"{name} T={horizon}", family, settings | {"horizon": horizon}, DELAY, SAFE_ARMS)
     for horizon in (8_000, 50_000) for name, (family, settings) in SAFE_FAMILIES.items()],
    20, 10_000, paired_with_share,
)  # fmt: skip


def _safe_tables(results: Results) -> list[Table]:
    rows = results.rows("families", FAMILIES_SWEEP.labels, SAFE_ARMS)
    for cell, row in rows.items():
        row["pooled"] = results.value("families", cell, "pooled", digits=3)
    return [
        Table("Regret of Safe-Pool", rows, "heuristic radii: reported here only"),
        Table("Bias budget of the plug-in", results.rows("bias", ["band"], BUDGET)),
    ]


add_study(
    "safe-pool",
    [FAMILIES_SWEEP, Sweep("bias", [BAND_CELL], 12, 10_000, bias_budget)],
    _safe_tables,
)

DENOMINATORS = ("predicted", "counted")


def counted_frequencies(run: Run, block: int) -> Floats:
    """How often each state was seen in the first half of each round's block."""
    halves = run.states.reshape(-1, block)[:, : block // 2]
    frequencies = (halves[:, :, None] == np.arange(run.instance.n_states)).mean(axis=1)
    return np.repeat(np.maximum(frequencies, 1e-6), block, axis=0)


def regret_and_bias(task: Task) -> dict[str, float]:
    """Regret of both denominators, and the comparator's bias summed over the pooled halves."""
    instance = task.instance()
    K, S, T = instance.n_actions, instance.n_states, instance.horizon
    # Half the rounds pool, so half of what pooling saves pays for the bias.
    numbers = {"budget": T / 2 * default_rate(K, K, T, DELAY) / 2 * (K - 2 * S)}
    for name in DENOMINATORS:
        learner = CountedDenominator(name)
        run = task.run(instance, learner)
        (estimates, _), policies = estimated_maps(run), run.policies()
        predicted = np.einsum("ta,tas->ts", policies, estimates)
        denominators = predicted if name == "predicted" else counted_frequencies(run, learner.block)
        bias = biases(run, estimates, policies, denominators)[:, instance.best_action]
        pooled = np.arange(T) % learner.block >= learner.block // 2
        numbers |= {f"{name} regret": run.regret, f"{name} bias": float(np.abs(bias[pooled]).sum())}
    return numbers


def _counted_tables(results: Results) -> list[Table]:
    rows = {}
    for name in DENOMINATORS:
        columns = {"regret": f"{name} regret", "comparator bias": f"{name} bias", "budget": "budget"}
        rows[name] = {column: results.value("band", "band", key) for column, key in columns.items()}
    return [Table("Predicted and counted denominators", rows)]


add_study(
    "counted-denominator",
    [Sweep("band", [BAND_CELL], 12, 10_000, regret_and_bias)],
    _counted_tables,
)
