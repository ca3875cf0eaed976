"""What contexts add: do they move the outcome beyond the state, a map for each, and what personalising is worth.

The test is that of `sufficiency` with contexts in the place of actions. Where contexts were answered with other mixes
of actions, direct effects of actions show in it too.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from statepool.audit.context_map import context_maps
from statepool.audit.contexts import Contexts
from statepool.audit.counts import Counts
from statepool.audit.effects import LEVEL, ActionEffects
from statepool.audit.map import Map
from statepool.audit.sample import Rows
from statepool.audit.sufficiency import Sufficiency, sufficiency_test
from statepool.audit.worth import OPEN, ContextMaps, Worth, best_for_all, judge_worth, rows_needed
from statepool.checks import Floats, Ints
from statepool.dimension import bracket

OFFERED = 20.0
"""An action that is never seen in a context where so many of its rows were to be expected is not offered there."""


@dataclass(frozen=True, eq=False)
class Personal:
    contexts: Contexts
    P: Floats = field(repr=False)
    """The map of each context; for what is not offered the row that it would be shrunk to."""
    offered: NDArray[np.bool_] = field(repr=False)
    """Whether an action is seen in the context, or too rare to be missed there."""
    strength: float
    lean: float
    """How many rows the priors of pairs, and of contexts, count as."""
    best: Ints = field(repr=False)
    """The action that looks best in each context."""
    one: int
    """The one that looks best for all of them; -1 if no action was tried nearly everywhere."""
    dimension: tuple[float, float]
    """The bracket of the joint map's."""
    sufficiency: Sufficiency = field(repr=False)
    """Whether the context moves the outcome beyond the state."""
    worth: Worth | None
    """None where there is nothing to compare: one context, one action, none tried everywhere, no outcomes."""
    more: int
    """If it cannot be told, about how many more rows a context would tell."""

    @property
    def least_worth(self) -> float:
        """What personalising through the states gains at the least; 0 where the context moves outcomes past them."""
        told = self.worth is not None and self.worth.through_states and self.sufficiency.p >= LEVEL
        return max(self.worth.lower, 0.0) if told and self.worth is not None else 0.0


def personalise(
    contexts: Contexts,
    counts: Counts,
    rows: Rows,
    map_: Map,
    effects: ActionEffects,
    level: float,
    seconds: float,
    seed: int,
) -> Personal:
    assert rows.context is not None
    known = replace(rows, loss=np.where(rows.context >= 0, rows.loss, np.nan))
    by_context = replace(known, action=np.maximum(rows.context, 0))
    found = sufficiency_test(by_context, len(contexts.names), counts.n_states, seed)
    tried = contexts.whole.n.sum(axis=2)
    P, strength, lean = context_maps(contexts.whole.n, map_.P)
    expected = tried.sum(axis=1, keepdims=True) * tried.sum(axis=0) / tried.sum()
    offered = (tried > 0) | (expected < OFFERED)
    c = P @ counts.state_means
    one = best_for_all(c, contexts.rows / contexts.rows.sum(), tried > 0)
    joint = bracket(P, gap=0.01, seconds=seconds, available=offered)
    worth = None
    if one >= 0 and counts.has_outcomes and min(len(contexts.names), counts.n_actions) > 1:
        worth = judge_worth(contexts, counts, known, ContextMaps(P, strength, offered), effects, level, seed)
    more = rows_needed(worth, contexts, level) if worth is not None and worth.verdict == OPEN else 0
    return Personal(
        contexts, P, offered, strength, lean, np.where(offered, c, np.inf).argmin(axis=1), one,
        (joint.lower, joint.upper), found, worth, more,
    )  # fmt: skip
