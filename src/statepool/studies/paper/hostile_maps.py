"""Study 3: maps on which an estimated map could be expected to go wrong."""

from collections.abc import Mapping
from typing import Any

from statepool.studies.statistics import mean_of, means
from statepool.studies.study import Cell, Results, Study, Sweep, Table
from statepool.studies.tasks import make_instance, paired

KINDS = ("rare-optimal", "unbalanced", "near-unreachable", "deterministic", "misleading")
MIXINGS, SMOOTHINGS = (0, 0.01, 0.05, 0.2), (1, 0.3, 0.1, 0.03, 0.01)
HORIZON = 8_000
ARMS = {
    "known": ("state-exp3", {}),
    "action": ("action-exp3", {}),
    **{f"plug-in {mixing:g}": ("plug-in", {"mixing": float(mixing)}) for mixing in MIXINGS},
}


def paired_with_coverage(family: str, settings: Mapping[str, Any], seed: int, **rest: Any) -> dict[str, float]:
    """The paired regrets, and kappa = 1/(|S| min_s mean_a P(s|a)), how rare the rarest state is."""
    P = make_instance(family, {**settings, "horizon": 1}, seed).P
    kappa = 1 / (P.shape[1] * P.mean(axis=0).min())
    return {"kappa": float(kappa), **paired(family, settings, seed, **rest)}


def tables(results: Results) -> list[Table]:
    names = tuple(ARMS)
    rows = {
        kind: means(results, "kinds", kind, names) | {"kappa": mean_of(results.of("kinds", kind, "kappa"))}
        for kind in KINDS
    }
    smoothing = {
        f"smoothing {alpha:g}": means(results, "smoothing", f"smoothing {alpha:g}", ("plug-in",))
        for alpha in SMOOTHINGS
    }
    return [
        Table("Regret on five hostile maps", rows, "plug-in columns: share of uniform play mixed in"),
        Table("Plug-in on the deterministic map, by smoothing", smoothing),
    ]


STUDY = Study(
    name="hostile-maps",
    number="3",
    title="Hostile maps",
    source="paper's released studies, 3",
    asks="Does the plug-in break on maps built against it: a rare best state, unbalanced or nearly unreachable "
    "states, deterministic rows, a misleading best action?",
    seen="It does not: it follows the known-map learner on all five. Exploration by mixing makes it worse "
    "everywhere, and on the deterministic map less smoothing is better.",
    limits="Five maps chosen by hand are not a worst case.",
    sweeps=(
        Sweep(
            "kinds",
            tuple(Cell(kind, "hostile", {"kind": kind, "horizon": HORIZON}, 50, ARMS) for kind in KINDS),
            30, (1, 10_000), function="statepool.studies.paper.hostile_maps:paired_with_coverage",
        ),
        Sweep(
            "smoothing",
            tuple(
                Cell(f"smoothing {alpha:g}", "hostile", {"kind": "deterministic", "horizon": HORIZON}, 50,
                     {"plug-in": ("plug-in", {"smoothing": float(alpha)})})
                for alpha in SMOOTHINGS
            ),
            30, (1, 10_000),
        ),
    ),
    tables=tables,
)  # fmt: skip
