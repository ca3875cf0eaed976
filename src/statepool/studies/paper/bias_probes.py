"""Probes for the bias of an estimated map, used by studies 4 and 5.

b(a) = sum_s theta(s) [q(s) P_hat(s|a) / q_hat(s) - P(s|a)]        the pooled estimate's bias given the past
"""

from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled
from statepool.kernels import dot
from statepool.learners.paper.counted_denominator import denominator_of
from statepool.learners.parts import estimate_column
from statepool.probes import add_probe


class BiasProbe(NamedTuple):
    """For the plug-in: sums over rounds of |<x,b> - b(a*)|, max_a |b(a)| and what the two certificates cost."""

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


def _look_bias(
    probe: Any, memory: Any, tables: Any, rows: Any, policy: Any, t: int, action: int, state: int
) -> None:  # fmt: skip
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


def _look_half_bias(
    probe: Any, memory: Any, tables: Any, rows: Any, policy: Any, t: int, action: int, state: int
) -> None:  # fmt: skip
    if t % memory.block < memory.block // 2:
        return
    bias = 0.0
    for s in range(probe.theta.shape[1]):
        estimate_column(memory.counts, s, probe.column)
        ratio = dot(policy, probe.columns[s]) / denominator_of(memory, s, probe.column)
        best = probe.comparator
        bias += probe.theta[t, s] * (ratio * probe.column[best] - probe.columns[s, best])
    probe.sums[0] += abs(bias)


add_probe(BiasProbe, _look_bias)
add_probe(HalfBiasProbe, _look_half_bias)
