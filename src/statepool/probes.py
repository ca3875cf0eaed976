"""What a second run can measure: a probe looks at the policy and the learner's memory in every round.

A run is a pure function of its inputs, so nothing is recorded along the way that a second run can compute: mean
dimension and policies cost nothing until they are asked for.
`look(probe, memory, tables, rows, policy, t)` sees the policy of round t, over the actions on offer, before the learner
has seen the state.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from statepool.checks import Floats
from statepool.compiling import INLINED
from statepool.kernels import effective_dimension
from statepool.learners.contract import is_own, rows_at
from statepool.learners.contract import policy as choose


def look(probe: Any, memory: Any, *rest: Any) -> None:
    """What the probe's type says."""
    _LOOKS[type(probe)](probe, memory, *rest)


def _finder(own: bool) -> Callable[..., Any]:
    """The function of a probe, for memories of this package or of others: the rules of others may allocate."""

    def find(probe: Any, memory: Any, *rest: Any) -> Any:
        if not isinstance(probe, types.BaseNamedTuple) or is_own(memory.instance_class) is not own:
            return None
        return _LOOKS.get(probe.instance_class)

    return find


overload(look, strict=False, jit_options=INLINED)(_finder(own=True))
overload(look, strict=False)(_finder(own=False))


class DimensionProbe(NamedTuple):
    """v_t, the effective dimension of each round's policy."""

    columns: Floats
    out: Floats


class JointDimensionProbe(NamedTuple):
    """v_t of the joint map of contexts and actions, weighted by the contexts' shares and by each context's policy."""

    shares: Floats
    x: Floats
    sums: Floats
    """Of weights times P and times P², by state."""
    out: Floats


class PolicyProbe(NamedTuple):
    """x_t, every `every` rounds; never where that is 0. A run without a probe takes the same compiled loop."""

    every: int
    out: Floats
    wrong: Floats = np.empty(0)
    """The first round whose policy does not sum to 1 (-1: none), and its sum; empty: not checked."""


NO_PROBE = PolicyProbe(0, np.empty((0, 0)))
"""Measures nothing."""


def _look_dimension(probe: Any, memory: Any, tables: Any, rows: Any, policy: Any, t: int) -> None:
    probe.out[t] = effective_dimension(probe.columns, policy)


def _look_joint_dimension(probe: Any, memory: Any, tables: Any, rows: Any, policy: Any, t: int) -> None:
    q, squares = probe.sums[0], probe.sums[1]
    q[:] = 0.0
    squares[:] = 0.0
    for context in range(probe.shares.size):
        if probe.shares[context] > 0.0:
            offered = rows_at(tables, context)
            x = probe.x[: offered.actions.size]
            choose(memory, offered, t, x)
            for s in range(q.size):
                for a in range(x.size):
                    mass = probe.shares[context] * x[a] * offered.columns[s, a]
                    q[s] += mass
                    squares[s] += mass * offered.columns[s, a]
    v = 0.0
    for s in range(q.size):
        if q[s] > 0.0:
            v += squares[s] / q[s]
    probe.out[t] = v


def _look_policy(probe: Any, memory: Any, tables: Any, rows: Any, policy: Any, t: int) -> None:
    if probe.wrong.size > 0 and probe.wrong[0] < 0.0:
        total = policy.sum()
        if not abs(total - 1.0) < 1e-6:
            probe.wrong[0], probe.wrong[1] = t, total
    if probe.every > 0 and t % probe.every == 0:
        for choice in range(policy.size):
            probe.out[t // probe.every, rows.actions[choice]] = policy[choice]


_LOOKS: dict[type, Callable[..., None]] = {
    DimensionProbe: _look_dimension,
    JointDimensionProbe: _look_joint_dimension,
    PolicyProbe: _look_policy,
}
