"""Learners as others write them: in plain NumPy, allocating, and wrong on purpose."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from statepool.learners import Learner, add_rule


@dataclass(frozen=True)
class PlainNumPy(Learner):
    """Exponential weights as a textbook writes them: whole arrays, reductions, temporaries."""

    rate: float = 0.2

    def start(self, problem):
        return PlainMemory(np.zeros(problem.n_states), self.rate)


class PlainMemory(NamedTuple):
    losses: np.ndarray
    rate: float


def plain_policy(memory, rows, t, out):
    totals = (rows.columns.T * memory.losses).sum(axis=1)
    weights = np.exp(-memory.rate * (totals - totals.min()))
    out[:] = weights / weights.sum()


def plain_remember(memory, rows, policy, choice, state, saved):
    saved[0] = (policy * rows.columns[state]).sum()


def plain_learn(memory, played, loss, saved, sign):
    memory.losses[played.state] += sign * loss / saved[0]


add_rule(PlainMemory, plain_policy, plain_remember, plain_learn)


@dataclass(frozen=True)
class Allocating(Learner):
    """Makes its buffers as it goes."""

    def start(self, problem):
        return AllocatingMemory(np.zeros((2, problem.n_states)))


class AllocatingMemory(NamedTuple):
    sums: np.ndarray


@njit
def leader(sums, columns):
    means = (sums[0] + 1.0) / (sums[1] + 2.0)
    values = np.empty(columns.shape[1])
    for a in range(values.size):
        values[a] = (columns[:, a] * means).sum()
    return values.argmin()


def leader_policy(memory, rows, t, out):
    out[:] = 0.0
    out[leader(memory.sums, rows.columns)] = 1.0


def remember_nothing(memory, rows, policy, choice, state, saved):
    pass


def leader_learn(memory, played, loss, saved, sign):
    memory.sums[:, played.state] += sign * np.array([loss, 1.0])


add_rule(AllocatingMemory, leader_policy, remember_nothing, leader_learn)


def wrong_learner(name, start, policy, learn=None, fields=("sums", "P"), **more):
    """A learner by its parts, each of which may break a promise."""
    memory = NamedTuple(f"{name}Memory", [(field, np.ndarray) for field in fields])
    memory.__module__ = __name__

    def begin(self, problem):
        return memory(*start(problem))

    add_rule(memory, policy, remember_nothing, learn or leader_learn, **more)
    kind = dataclass(frozen=True)(type(name, (Learner,), {"start": begin, "__module__": __name__}))
    globals()[name] = kind  # so that it can be pickled
    return kind()


def begin(problem):
    return np.zeros((2, problem.n_states)), np.zeros(problem.n_actions)


def first_policy(memory, rows, t, out):
    out[:] = 0.0
    out[0] = 1.0


def learn_without_sign(memory, played, loss, saved, sign):
    memory.sums[:, played.state] += np.array([loss, 1.0])


def learn_by_action(memory, played, loss, saved, sign):
    memory.sums[0, played.action] += sign * loss


def fade(memory, t, now):
    memory.sums[:] *= 0.999


def keep_time(memory, t, now):
    memory.sums[:] *= 0.999
    memory.P[0] = t


def learn_what_is_left(memory, played, loss, saved, sign):
    memory.sums[:, played.state] += sign * 0.999 ** (memory.P[0] - played.t) * np.array([loss, 1.0])


FAULTS = ("moody", "half", "nearly", "negative", "one past", "far", "not a number", "far in learn")


@dataclass(frozen=True)
class Faulty(Learner):
    """Promises broken while it runs: one rule for all of them, which compiles once."""

    fault: str

    def start(self, problem):
        return FaultyMemory(np.zeros((2, problem.n_states)), FAULTS.index(self.fault))


class FaultyMemory(NamedTuple):
    sums: np.ndarray
    fault: int


def faulty_policy(memory, rows, t, out):
    out[:] = 0.0 if memory.fault in (0, 3, 4, 5) else 1.0 / out.size
    if memory.fault == 0:
        out[int(np.random.random() * out.size)] = 1.0
    elif memory.fault == 1 and t == 7:
        out[:] = 0.5 / out.size
    elif memory.fault == 2:
        out[:] = (1.0 - 1e-7) / out.size
    elif memory.fault == 3:
        out[0], out[1] = 1.5, -0.5
    elif memory.fault == 4:
        out[out.size] = 1.0
    elif memory.fault == 5:
        out[int(memory.sums[0, t])] = 1.0
    elif memory.fault == 6 and t == 11:
        out[:] = np.nan


def faulty_learn(memory, played, loss, saved, sign):
    if memory.fault == 7:
        memory.sums[0, played.action + 9] += loss


add_rule(FaultyMemory, faulty_policy, remember_nothing, faulty_learn)


def foreseeing_policy(memory, rows, t, out):
    out[:] = 0.0
    out[int(memory.P[t])] = 1.0


def foresee(problem):
    """Reads what the losses will be, which only an oracle may."""
    best = np.zeros(problem.horizon or 1)
    if problem.instance is not None:
        best = (problem.instance.P @ problem.instance.theta.T).argmin(axis=0).astype(float)
    return np.zeros((2, problem.n_states)), best


KEPT = {}


def shared(problem):
    """The same arrays for every run."""
    return KEPT.setdefault(problem.P.shape, (np.zeros((2, problem.n_states)), problem.P.copy()))


def typo_policy(memory, rows, t, out):
    out[:] = memory.sumz[0].min()


def undefined_policy(memory, rows, t, out):
    out[:] = lowest_indx(memory.P)  # noqa: F821


def short_policy(memory, t, out):
    out[:] = 1.0 / out.size
