"""ImpatientThompson: Gaussian Thompson sampling in which what is seen at once predicts what comes late.

    y = (one indicator a state but the last, X)        action a: z(a) ~ N(mean, between),   y ~ N(z(a), within)
    known of a: the mean of the indicators over its n rounds, of X over its j arrivals; their noise has covariance
    within[i, k] / max(n_i, n_k).  Draw the last coordinate of z(a) from its posterior, play the lowest draw.

With no covariance between states and outcome in the prior the states are ignored. Without a prior that is what is
assumed: mean 1/2 and variance 1/12 of the outcome, nothing known of the states. `prior_of` makes one from actions
whose rows and losses are known, such as last season's.

Source: McDonald et al. 2023 and Zhang et al. 2026; the posterior as in the published code of impatient bandits, for
traces of two steps (state, then outcome). No regret bound is claimed. Its draws come from a second stream,
and its policy has no closed form.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from statepool.checks import Floats, check_map, check_table
from statepool.compiling import compiled
from statepool.kernels import lowest_index
from statepool.learners import parts
from statepool.learners.contract import Learner, Problem, add_rule

JITTER = 1e-9
"""Added to variances, so that rows which never differ still give a matrix that can be solved."""


@dataclass(frozen=True)
class Prior:
    """The mean of (indicators of all states but the last, outcome), and its covariances between and within actions."""

    mean: tuple[float, ...]
    between: tuple[tuple[float, ...], ...]
    within: tuple[tuple[float, ...], ...]


def prior_of(P: ArrayLike, theta: ArrayLike) -> Prior:
    """The prior that actions with known rows, and state means over some rounds, would have suggested."""
    rows = check_map(P)
    means = check_table(theta, "theta", "one row per round, one column per state").mean(axis=0)
    if means.size != rows.shape[1]:
        raise ValueError(f"theta: has {means.size} columns, expected {rows.shape[1]}, one for each state of P")
    truth = np.column_stack([rows[:, :-1], rows @ means])
    # Of one round: indicators and the outcome share the state.
    outcomes = np.column_stack([np.eye(rows.shape[1])[:, :-1], means])
    moments = np.einsum("as,si,sk->ik", rows, outcomes, outcomes) / len(rows) - truth.T @ truth / len(rows)
    moments[-1, -1] += float((rows @ (means * (1 - means))).mean())
    between = np.atleast_2d(np.cov(truth.T, bias=True))
    return Prior(tuple(truth.mean(axis=0)), _frozen(between), _frozen(moments))


def _frozen(table: Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(x) for x in row) for row in table)


class ImpatientMemory(NamedTuple):
    mean: Floats
    between: Floats
    within: Floats
    sums: Floats
    """Of the indicators and of the outcome, one row for each action."""
    played: Floats
    arrivals: Floats
    centres: Floats
    spreads: Floats
    """Mean and standard deviation of each action's posterior."""
    draws: Floats
    matrix: Floats
    """Room for the matrix of a posterior and its Cholesky factor."""
    vector: Floats
    generator: np.random.Generator


@parts.settled
class ImpatientThompson(Learner):
    """Gaussian Thompson sampling in which what is seen at once predicts what comes late.

    >>> import statepool as sp
    >>> sp.learners.ImpatientThompson()
    ImpatientThompson(prior=None)
    """

    known_policy: ClassVar[bool] = False
    policy_varies: ClassVar[bool] = True
    prior: Prior | None = None

    def __post_init__(self) -> None:
        if self.prior is not None and not isinstance(self.prior, Prior):
            raise ValueError(f"prior: is {type(self.prior).__name__}, expected a Prior, such as prior_of(P, theta)")

    def start(self, problem: Problem) -> ImpatientMemory:
        K, S = problem.n_actions, problem.n_states
        prior = self.prior or _ignorant(S)
        mean, between, within = (np.array(part, np.float64) for part in (prior.mean, prior.between, prior.within))
        if mean.shape != (S,):
            raise ValueError(f"prior: mean has shape {mean.shape}, expected {(S,)}, one number for each state")
        return ImpatientMemory(
            mean, between, within, np.zeros((K, S)), np.zeros(K), np.zeros(K), np.full(K, mean[-1]),
            np.full(K, np.sqrt(between[-1, -1])), np.empty(K), np.empty((S, S)), np.empty(S),
            problem.stream.side_generator(),
        )  # fmt: skip


def _ignorant(n_states: int) -> Prior:
    between, within = np.eye(n_states), np.eye(n_states)
    between[-1, -1], within[-1, -1] = 1 / 12, 1 / 4
    return Prior((1 / n_states,) * (n_states - 1) + (0.5,), _frozen(between), _frozen(within))


@compiled
def learn_about(memory: Any, action: int) -> None:
    """The posterior of one action's mean loss."""
    last = memory.mean.size - 1
    n, j = memory.played[action], memory.arrivals[action]
    used = last + (1 if j > 0.0 else 0)
    for i in range(used):
        for k in range(i + 1):
            noise = memory.within[i, k] / (j if k == last else n)
            memory.matrix[i, k] = memory.between[i, k] + noise
        memory.matrix[i, i] += JITTER
        memory.vector[i] = memory.between[last, i]
    solve(memory.matrix, memory.vector, used)
    centre, variance = memory.mean[last], memory.between[last, last]
    for i in range(used):
        observed = memory.sums[action, i] / (j if i == last else n)
        centre += memory.vector[i] * (observed - memory.mean[i])
        variance -= memory.vector[i] * memory.between[last, i]
    memory.centres[action], memory.spreads[action] = centre, np.sqrt(max(variance, 0.0))


@compiled
def solve(matrix: Any, vector: Any, size: int) -> None:
    """vector ← matrix⁻¹ vector, by Cholesky; the lower half of the matrix is read and overwritten."""
    for i in range(size):
        for k in range(i + 1):
            rest = matrix[i, k]
            for h in range(k):
                rest -= matrix[i, h] * matrix[k, h]
            matrix[i, k] = np.sqrt(max(rest, JITTER)) if i == k else rest / matrix[k, k]
    for i in range(size):
        for h in range(i):
            vector[i] -= matrix[i, h] * vector[h]
        vector[i] /= matrix[i, i]
    for i in range(size - 1, -1, -1):
        for h in range(i + 1, size):
            vector[i] -= matrix[h, i] * vector[h]
        vector[i] /= matrix[i, i]


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    for a in range(out.size):
        memory.draws[a] = memory.centres[a] + memory.spreads[a] * memory.generator.standard_normal()
    out[:] = 0.0
    out[lowest_index(memory.draws)] = 1.0


def see(memory: Any, played: Any, saved: Any) -> None:
    memory.played[played.action] += 1.0
    if played.state < memory.mean.size - 1:
        memory.sums[played.action, played.state] += 1.0
    learn_about(memory, played.action)


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    memory.arrivals[played.action] += 1.0
    memory.sums[played.action, -1] += loss
    learn_about(memory, played.action)


add_rule(ImpatientMemory, policy, learn=learn, see=see)
