"""What a second run can measure: a probe looks at the policy and the learner's memory in every round.

A run is a pure function of its inputs, so nothing is recorded along the way that a second run can compute: mean
dimension, policies and step ratios cost nothing until they are asked for.
`look(probe, memory, tables, rows, policy, t)` sees the policy of round t, over the actions on offer, before the learner
has seen the state.

The bias of a pooled estimate, given the past, is b(a) = sum_s theta(s) [q(s) P_hat(s|a) / q_hat(s) - P(s|a)].
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from statepool.checks import Floats
from statepool.compiling import INLINED, compiled
from statepool.kernels import dot, effective_dimension
from statepool.learners.contract import is_own
from statepool.learners.contract import policy as choose
from statepool.learners.paper.counted_denominator import denominator_of
from statepool.learners.parts import estimate_column
from statepool.learners.rows import rows_at


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


NO_PROBE = PolicyProbe(0, np.empty((0, 0)))
"""Measures nothing."""


class StepProbe(NamedTuple):
    """The largest one-step growth of any action's probability, max_a x_{t+1}(a)/x_t(a): the drift lemma's quantity."""

    before: Floats
    largest: Floats


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
    if probe.every > 0 and t % probe.every == 0:
        for choice in range(policy.size):
            probe.out[t // probe.every, rows.actions[choice]] = policy[choice]


def _look_step(probe: Any, memory: Any, tables: Any, rows: Any, policy: Any, t: int) -> None:
    for a in range(policy.size):
        if t > 0:
            probe.largest[0] = max(probe.largest[0], policy[a] / probe.before[a])
        probe.before[a] = policy[a]


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


def _look_bias(probe: Any, memory: Any, tables: Any, rows: Any, policy: Any, t: int) -> None:
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


def _look_half_bias(probe: Any, memory: Any, tables: Any, rows: Any, policy: Any, t: int) -> None:
    if t % memory.block < memory.block // 2:
        return
    bias = 0.0
    for s in range(probe.theta.shape[1]):
        estimate_column(memory.counts, s, probe.column)
        ratio = dot(policy, probe.columns[s]) / denominator_of(memory, s, probe.column)
        best = probe.comparator
        bias += probe.theta[t, s] * (ratio * probe.column[best] - probe.columns[s, best])
    probe.sums[0] += abs(bias)


_LOOKS: dict[type, Callable[..., None]] = {
    DimensionProbe: _look_dimension, JointDimensionProbe: _look_joint_dimension, PolicyProbe: _look_policy,
    StepProbe: _look_step, BiasProbe: _look_bias, HalfBiasProbe: _look_half_bias,
}  # fmt: skip
