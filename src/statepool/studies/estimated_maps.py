"""Studies 2, 3, 4, 5 and 11: learning with a map that is estimated on the way.

The bias of the pooled estimate, given the past, is b(a) = sum_s theta(s) [q(s) P_hat(s|a) / q_hat(s) - P(s|a)].
"""

from math import log
from typing import Any, NamedTuple

import numpy as np

from statepool import families
from statepool.checks import Floats, Ints
from statepool.compiling import compiled
from statepool.engine import simulate
from statepool.kernels import columns_of, dot
from statepool.learners.paper.counted_denominator import CountedDenominator, denominator_of
from statepool.learners.paper.plug_in import PlugIn
from statepool.learners.paper.safe_pool import SafePool
from statepool.learners.parts.map_counts import estimate_column
from statepool.probes import add_probe
from statepool.rates import default_rate
from statepool.report.sheet import Value
from statepool.studies.study import Arms, Cell, Results, Sweep, Table, Task, add_study, paired, paired_with_coverage

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
        "kappa": {"smallest": Value(min(numbers)), "largest": Value(max(numbers), None, 0)},
        "gain over action": {"smallest": Value(min(every)), "largest": Value(max(every))},
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


class BiasProbe(NamedTuple):
    """For the plug-in: sums over rounds of |<x,b> - b(a*)|, of max_a |b(a)|, and of what two certificates charge."""

    columns: Floats
    theta: Floats
    comparator: int
    row_scale: float
    entry_scale: float
    estimates: Floats
    bias: Floats
    sums: Floats


class HalfBiasProbe(NamedTuple):
    """For the counted denominator: the sum over the pooled halves of |b(a*)|."""

    columns: Floats
    theta: Floats
    comparator: int
    column: Floats
    sums: Floats


class PooledProbe(NamedTuple):
    """How many (round, action) pairs Safe-Pool has pooled."""

    total: Ints


@compiled
def _certified_cost(probe: Any, policy: Any, visits: Any, q_hat: Any, bernstein: bool) -> float:
    """min(4, 2 max_a r1 + 2 rho), with Hoeffding or Bernstein radii for the entries."""
    K, S = visits.size, q_hat.size
    row_radius = 0.0
    for a in range(K):
        row_radius = max(row_radius, min(2.0, np.sqrt(probe.row_scale / max(visits[a], 1.0))))
    rho = 0.0
    for s in range(S):
        uncertainty = 0.0
        for a in range(K):
            n = max(visits[a], 1.0)
            p = probe.estimates[s, a]
            if bernstein:
                radius = np.sqrt(2.0 * p * (1.0 - p) * probe.entry_scale / n) + 3.0 * probe.entry_scale / n
            else:
                radius = np.sqrt(probe.entry_scale / (2.0 * n))
            uncertainty += policy[a] * min(1.0, radius)
        slack = q_hat[s] - uncertainty
        rho = max(rho, uncertainty / slack if slack > 0.0 else np.inf)
    return min(4.0, 2.0 * row_radius + 2.0 * rho)


def _look_bias(probe: Any, memory: Any, tables: Any, rows: Any, policy: Any, t: int, action: int, state: int) -> None:
    S = probe.theta.shape[1]
    q_hat = probe.sums[4 : 4 + S]
    probe.bias[:] = 0.0
    for s in range(S):
        estimate_column(memory.counts, s, probe.estimates[s])
        q_hat[s] = dot(policy, probe.estimates[s])
        ratio = dot(policy, probe.columns[s]) / q_hat[s]
        for a in range(policy.size):
            probe.bias[a] += probe.theta[t, s] * (ratio * probe.estimates[s, a] - probe.columns[s, a])
    probe.sums[0] += abs(dot(policy, probe.bias) - probe.bias[probe.comparator])
    largest = 0.0
    for a in range(policy.size):
        largest = max(largest, abs(probe.bias[a]))
    probe.sums[1] += largest
    probe.sums[2] += _certified_cost(probe, policy, memory.counts.visits, q_hat, False)
    probe.sums[3] += _certified_cost(probe, policy, memory.counts.visits, q_hat, True)


def _look_half_bias(
    probe: Any, memory: Any, tables: Any, rows: Any, policy: Any, t: int, action: int, state: int
) -> None:
    if t % memory.block < memory.block // 2:
        return
    bias = 0.0
    for s in range(probe.theta.shape[1]):
        estimate_column(memory.counts, s, probe.column)
        ratio = dot(policy, probe.columns[s]) / denominator_of(memory, s, probe.column)
        best = probe.comparator
        bias += probe.theta[t, s] * (ratio * probe.column[best] - probe.columns[s, best])
    probe.sums[0] += abs(bias)


def _look_pooled(probe: Any, memory: Any, tables: Any, rows: Any, policy: Any, t: int, action: int, state: int) -> None:
    probe.total[0] = memory.n_pooled[0]


add_probe(BiasProbe, _look_bias)
add_probe(HalfBiasProbe, _look_half_bias)
add_probe(PooledProbe, _look_pooled)

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
    instance, probe = task.instance(), PooledProbe(np.zeros(1, np.int64))
    task.run(instance, SafePool()).measure(probe)
    return {"pooled": float(probe.total[0] / (instance.horizon * instance.n_actions)), **paired(task)}


def bias_budget(task: Task) -> dict[str, float]:
    """The plug-in's bias over a run, and what certificates charge; the run continues the instance's generator."""
    rng = np.random.default_rng(task.seed)
    instance = families.find(task.cell.family)(seed=rng, **task.cell.settings)
    K, S, T = instance.n_actions, instance.n_states, instance.horizon
    probe = BiasProbe(
        columns_of(instance.P), instance.theta, instance.best_action, 2 * (S * log(2) + log(2 * K * T)),
        log(2 * K * S * T), np.empty((S, K)), np.empty(K), np.zeros(4 + S),
    )  # fmt: skip
    simulate(instance, PlugIn(), DELAY, rng).measure(probe)
    budget = T * default_rate(K, K, T, DELAY) / 2 * (K - 2 * S)
    return dict(zip(BUDGET, (budget, *map(float, probe.sums[:4])), strict=True))


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


def regret_and_bias(task: Task) -> dict[str, float]:
    """Regret of both denominators, and the comparator's bias summed over the pooled halves."""
    instance = task.instance()
    K, S, T = instance.n_actions, instance.n_states, instance.horizon
    # Half the rounds pool, so half of what pooling saves pays for the bias.
    numbers = {"budget": T / 2 * default_rate(K, K, T, DELAY) / 2 * (K - 2 * S)}
    for denominator in DENOMINATORS:
        run = task.run(instance, CountedDenominator(denominator))
        probe = HalfBiasProbe(columns_of(instance.P), instance.theta, instance.best_action, np.empty(K), np.zeros(1))
        run.measure(probe)
        numbers |= {f"{denominator} regret": run.regret, f"{denominator} bias": float(probe.sums[0])}
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
