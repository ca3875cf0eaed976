"""Study 5: is a counted state frequency a better denominator than the predicted one?"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from statepool.engine import simulate
from statepool.kernels import columns_of
from statepool.learners.paper.counted_denominator import CountedDenominator
from statepool.rates import default_rate
from statepool.studies.paper.bias_probes import HalfBiasProbe
from statepool.studies.statistics import mean_of
from statepool.studies.study import Cell, Results, Study, Sweep, Table
from statepool.studies.tasks import make_instance

DENOMINATORS = ("predicted", "counted")


def regret_and_bias(
    family: str, settings: Mapping[str, Any], seed: int, stream: int, delay: int, **_: Any
) -> dict[str, float]:
    """Regret of both denominators, and the comparator's bias summed over the pooled halves."""
    instance = make_instance(family, settings, seed)
    K, S, T = instance.n_actions, instance.n_states, instance.horizon
    # Half the rounds pool, so half of what pooling saves pays for the bias.
    numbers = {"budget": T / 2 * default_rate(K, K, T, delay) / 2 * (K - 2 * S)}
    for denominator in DENOMINATORS:
        run = simulate(instance, CountedDenominator(denominator), delay, stream)
        probe = HalfBiasProbe(columns_of(instance.P), instance.theta, instance.best_action, np.empty(K), np.zeros(1))
        run.measure(probe)
        numbers |= {f"{denominator} regret": run.regret, f"{denominator} bias": float(probe.sums[0])}
    return numbers


def tables(results: Results) -> list[Table]:
    rows = {
        denominator: {
            "regret": mean_of(results.of("band", "band", f"{denominator} regret")),
            "comparator bias": mean_of(results.of("band", "band", f"{denominator} bias")),
            "budget": mean_of(results.of("band", "band", "budget")),
        }
        for denominator in DENOMINATORS
    }
    return [Table("Predicted and counted denominators", rows)]


STUDY = Study(
    name="counted-denominator",
    number="5",
    title="Counted denominator",
    source="paper's released studies, 5",
    asks="Freezing the play for a block lets states be counted: does dividing by the count remove the "
    "estimated map's bias?",
    seen="Regret is the same within noise, and the comparator's bias doubles: a count of two hundred rounds is "
    "noisier than the prediction it replaces.",
    limits="One family, one block length.",
    sweeps=(
        Sweep(
            "band", (Cell("band", "band", {"drift": 0.05, "horizon": 8_000}, 50),), 12, (1, 10_000),
            function="statepool.studies.paper.counted_denominator:regret_and_bias",
        ),
    ),
    tables=tables,
)  # fmt: skip
