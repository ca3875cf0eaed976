"""What is proved, as functions of a problem: the paper's Theorems 1 to 4, ours, and bounds of the neighbours."""

from statepool.guarantees.neighbours import (
    auer,
    cautious,
    idle_copies,
    meta_bio,
    nsd_ucrl2,
    surrogate_index,
    zimmert_seldin,
)
from statepool.guarantees.paper import (
    BoundCheck,
    Guarantee,
    LowerBound,
    drift_lemma,
    expected_best_walk,
    interleaving_pays,
    theorem_1,
    theorem_1_printed,
    theorem_2,
    theorem_3,
    theorem_4,
)
from statepool.guarantees.theorems import (
    certified_worst_case,
    choices_of,
    drift_between_actions,
    skipping_cost,
    theorem_a,
    theorem_a_anytime,
    theorem_a_skip,
    theorem_b,
    theorem_d,
    theorem_f,
    theorem_f_free,
    theorem_f_tuned,
    theorem_g,
    total_wait,
)

__all__ = [
    "BoundCheck", "Guarantee", "LowerBound", "auer", "cautious", "certified_worst_case", "choices_of",
    "drift_between_actions", "drift_lemma", "expected_best_walk", "idle_copies", "interleaving_pays", "meta_bio",
    "nsd_ucrl2", "skipping_cost", "surrogate_index", "theorem_1", "theorem_1_printed", "theorem_2", "theorem_3",
    "theorem_4", "theorem_a", "theorem_a_anytime", "theorem_a_skip", "theorem_b", "theorem_d", "theorem_f",
    "theorem_f_free", "theorem_f_tuned", "theorem_g", "total_wait", "zimmert_seldin",
]  # fmt: skip
