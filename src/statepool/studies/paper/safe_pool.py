"""Study 4: a learner that pools only when its estimated map is certified, and what certification charges."""

from collections.abc import Mapping
from math import log
from typing import Any, NamedTuple

import numpy as np

from statepool import families
from statepool.checks import Ints
from statepool.engine import simulate
from statepool.kernels import columns_of
from statepool.learners.paper.plug_in import PlugIn
from statepool.learners.paper.safe_pool import SafePool
from statepool.probes import add_probe
from statepool.rates import default_rate
from statepool.report.values import Value
from statepool.studies.paper.bias_probes import BiasProbe
from statepool.studies.statistics import mean_of, means
from statepool.studies.study import Cell, Results, Study, Sweep, Table
from statepool.studies.tasks import make_instance, paired

FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "band": ("band", {"drift": 0.05}),
    "deterministic": ("hostile", {"kind": "deterministic"}),
    "rare-optimal": ("hostile", {"kind": "rare-optimal"}),
}
HORIZONS, DELAY = (8_000, 50_000), 50
ARMS = {"action": ("action-exp3", {}), "plug-in": ("plug-in", {}), "Safe-Pool": ("safe-pool", {}),
        "heuristic radii": ("safe-pool", {"certified": False})}  # fmt: skip


class PooledProbe(NamedTuple):
    """How many (round, action) pairs Safe-Pool has pooled."""

    total: Ints


def _look_pooled(
    probe: Any, memory: Any, tables: Any, rows: Any, policy: Any, t: int, action: int, state: int
) -> None:  # fmt: skip
    probe.total[0] = memory.n_pooled[0]


add_probe(PooledProbe, _look_pooled)


def paired_with_share(
    family: str, settings: Mapping[str, Any], seed: int, stream: int, delay: int, **rest: Any
) -> dict[str, float]:
    """The paired regrets, and the share of (round, action) pairs that Safe-Pool pooled."""
    instance = make_instance(family, settings, seed)
    probe = PooledProbe(np.zeros(1, np.int64))
    simulate(instance, SafePool(), delay, stream).measure(probe)
    share = probe.total[0] / (instance.horizon * instance.n_actions)
    return {"pooled": float(share), **paired(family, settings, seed, stream, delay, **rest)}


def bias_budget(family: str, settings: Mapping[str, Any], seed: int, delay: int, **_: Any) -> dict[str, float]:
    """The plug-in's bias over a run, and what certificates charge; the run goes on with the instance's generator."""
    rng = np.random.default_rng(seed)
    instance = families.find(family)(seed=rng, **settings)
    K, S, T = instance.n_actions, instance.n_states, instance.horizon
    probe = BiasProbe(
        columns_of(instance.P), instance.theta, instance.best_action, 2 * (S * log(2) + log(2 * K * T)),
        log(2 * K * S * T), np.empty((S, K)), np.empty(K), np.zeros(4 + S),
    )  # fmt: skip
    simulate(instance, PlugIn(), delay, rng).measure(probe)
    names = ("summed |<x,b> - b(a*)|", "summed max |b|", "certified, Hoeffding", "certified, Bernstein")
    budget = T * default_rate(K, K, T, delay) / 2 * (K - 2 * S)
    return {"budget": budget} | {name: float(probe.sums[i]) for i, name in enumerate(names)}


def tables(results: Results) -> list[Table]:
    rows = {}
    for label in (f"{name} T={horizon}" for horizon in HORIZONS for name in FAMILIES):
        row: dict[str, Value] = means(results, "families", label, tuple(ARMS))
        rows[label] = row | {"pooled": mean_of(results.of("families", label, "pooled"), digits=3)}
    names = ("budget", "summed |<x,b> - b(a*)|", "summed max |b|", "certified, Hoeffding", "certified, Bernstein")
    return [
        Table("Regret of Safe-Pool", rows, "heuristic radii: reported here only"),
        Table("Bias budget of the plug-in", {"band": means(results, "bias", "band", names)}),
    ]


STUDY = Study(
    name="safe-pool",
    number="4",
    title="Safe-Pool",
    source="paper's released studies, 4",
    asks="Can a certificate decide when an estimated map is good enough to pool?",
    seen="Not at these horizons: the certified learner never pools and equals action-level play to the digit, "
    "while the uncertified plug-in wins everywhere. The bias it actually incurs is below the budget that "
    "pooling saves; what a certificate must charge is a hundred times that.",
    limits="Equality with action-level play says little about Safe-Pool itself; a test makes it pool.",
    sweeps=(
        Sweep(
            "families",
            tuple(
                Cell(f"{name} T={horizon}", family, settings | {"horizon": horizon}, DELAY, ARMS)
                for horizon in HORIZONS for name, (family, settings) in FAMILIES.items()
            ),
            20, (1, 10_000), function="statepool.studies.paper.safe_pool:paired_with_share",
        ),
        Sweep(
            "bias", (Cell("band", "band", {"drift": 0.05, "horizon": 8_000}, DELAY),), 12, (1, 10_000),
            function="statepool.studies.paper.safe_pool:bias_budget",
        ),
    ),
    tables=tables,
)  # fmt: skip
