"""What is proved, as functions of a problem: the paper's Theorems 1 to 4, ours, and bounds of the neighbours."""

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
    cautious,
    certified_worst_case,
    choices_of,
    drift_between_actions,
    idle_copies,
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
    zimmert_seldin,
)

__all__ = [
    "BoundCheck", "Guarantee", "LowerBound", "cautious", "certified_worst_case", "choices_of",
    "drift_between_actions", "drift_lemma", "expected_best_walk", "idle_copies", "interleaving_pays",
    "skipping_cost", "theorem_1", "theorem_1_printed", "theorem_2", "theorem_3",
    "theorem_4", "theorem_a", "theorem_a_anytime", "theorem_a_skip", "theorem_b", "theorem_d", "theorem_f",
    "theorem_f_free", "theorem_f_tuned", "theorem_g", "total_wait", "zimmert_seldin",
]  # fmt: skip
