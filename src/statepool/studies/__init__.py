"""The studies of the paper and the phase diagram, in the paper's order. Adding one is a file and a line here."""

from statepool.checks import unknown_name
from statepool.studies.beyond import certified_dimension, direct_effects, neighbours, overlap_and_drift, self_tuned
from statepool.studies.paper import (
    baselines,
    bound_and_gain,
    certificate_gap,
    counted_denominator,
    dependence,
    drift_scaling,
    effective_dimension,
    funnel,
    grouping,
    hostile_maps,
    matched_difficulty,
    phase_diagram,
    representation,
    safe_pool,
    smoothing,
    tuned_baseline,
    unknown_map,
)
from statepool.studies.study import Study

STUDIES: dict[str, Study] = {
    module.STUDY.name: module.STUDY
    for module in (
        bound_and_gain, unknown_map, hostile_maps, safe_pool, counted_denominator, effective_dimension, representation,
        drift_scaling, dependence, matched_difficulty, smoothing, certificate_gap, grouping, funnel, baselines,
        tuned_baseline, phase_diagram, certified_dimension, self_tuned, direct_effects,
        neighbours, overlap_and_drift,
    )
}  # fmt: skip


def find(name: str) -> Study:
    """The study of a name."""
    if name not in STUDIES:
        raise ValueError(unknown_name("study", name, STUDIES))
    return STUDIES[name]


__all__ = ["STUDIES", "Study", "find"]
