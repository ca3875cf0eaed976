"""The uniform policy: the regret of learning nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.learners.contract import Learner, Problem, add_rule


@dataclass(frozen=True)
class Uniform(Learner):
    """Every action with the same probability, always.

    Examples
    --------
    >>> import statepool as sp
    >>> sp.Uniform()
    Uniform()
    """

    knows_contexts: ClassVar[bool] = True
    runs_live: ClassVar[bool] = True

    def saved_width(self, problem: Problem) -> tuple[int, int]:
        return 0, 0

    def start(self, problem: Problem) -> UniformMemory:
        return UniformMemory(np.zeros(0))


class UniformMemory(NamedTuple):
    nothing: Floats


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    out[:] = 1.0 / out.size


add_rule(UniformMemory, policy)
