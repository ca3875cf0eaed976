"""Learners as others write them: in plain NumPy, allocating, and wrong on purpose."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from statepool.learners import Learner
from statepool.learners.rules import add_rule


@dataclass(frozen=True)
class PlainNumPy(Learner):
    """Exponential weights as a textbook writes them: whole arrays, reductions, temporaries."""

    rate: float = 0.2

    def start(self, problem):
        return PlainMemory(np.zeros(problem.n_actions), np.ones(problem.n_actions), problem.columns, self.rate)


class PlainMemory(NamedTuple):
    totals: np.ndarray
    x: np.ndarray
    columns: np.ndarray
    rate: float


def plain_act(memory, t, u):
    weights = np.exp(-memory.rate * (memory.totals - memory.totals.min()))
    memory.x[:] = weights / weights.sum()
    return min(np.argmax(np.cumsum(memory.x) > u), memory.x.size - 1)


def plain_observe(memory, t, action, state, ticket):
    ticket[0] = (memory.x * memory.columns[state]).sum()


def plain_update(memory, t, action, state, loss, ticket):
    memory.totals[:] += memory.columns[state] * loss / ticket[0]


def plain_play(memory, t, out):
    out[:] = memory.x


add_rule(PlainMemory, plain_act, plain_observe, plain_update, plain_play)


@dataclass(frozen=True)
class Allocating(Learner):
    """Makes its buffers as it goes."""

    def start(self, problem):
        return AllocatingMemory(np.zeros((2, problem.n_states)), problem.P.copy())


class AllocatingMemory(NamedTuple):
    sums: np.ndarray
    P: np.ndarray


@njit
def leader(memory):
    means = (memory.sums[0] + 1.0) / (memory.sums[1] + 2.0)
    values = np.empty(memory.P.shape[0])
    for a in range(values.size):
        values[a] = (memory.P[a] * means).sum()
    return values.argmin()


def leader_act(memory, t, u):
    return leader(memory)


def ignore(memory, t, action, state, ticket):
    pass


def leader_update(memory, t, action, state, loss, ticket):
    memory.sums[:, state] += np.array([loss, 1.0])


def leader_play(memory, t, out):
    out[:] = 0.0
    out[leader(memory)] = 1.0


add_rule(AllocatingMemory, leader_act, ignore, leader_update, leader_play)


def wrong_learner(name, start, act, play=None, update=None, fields=("sums", "P")):
    """A learner by its parts, each of which may break a promise."""
    memory = NamedTuple(f"{name}Memory", [(field, np.ndarray) for field in fields])
    memory.__module__ = __name__

    def begin(self, problem):
        return memory(*start(problem))

    add_rule(memory, act, ignore, update or leader_update, play or first_play)
    kind = dataclass(frozen=True)(type(name, (Learner,), {"start": begin, "__module__": __name__}))
    globals()[name] = kind  # so that it can be pickled
    return kind()


def begin(problem):
    return np.zeros((2, problem.n_states)), np.zeros(problem.n_actions)


def first_act(memory, t, u):
    return 0


def first_play(memory, t, out):
    out[:] = 0.0
    out[0] = 1.0


def moody_act(memory, t, u):
    return int(np.random.random() * memory.P.size)


def half_play(memory, t, out):
    out[:] = 0.5 / out.size


def second_play(memory, t, out):
    out[:] = 0.0
    out[-1] = 1.0


def even_play(memory, t, out):
    out[:] = 1.0 / out.size


def one_past_act(memory, t, u):
    return memory.P.size


def far_act(memory, t, u):
    return int(memory.sums[0, t])


def far_update(memory, t, action, state, loss, ticket):
    memory.P[action + 9] += loss


def foreseeing_act(memory, t, u):
    return int(memory.P[t])


def foresee(problem):
    """Reads what the losses will be, which only an oracle may."""
    best = np.zeros(problem.horizon or 1)
    if problem.instance is not None:
        best = (problem.instance.P @ problem.instance.theta.T).argmin(axis=0).astype(float)
    return np.zeros((2, problem.n_states)), best


KEPT = {}


def shared(problem):
    """The same arrays for everyone."""
    return KEPT.setdefault(problem.P.shape, (np.zeros((2, problem.n_states)), problem.P.copy()))


def typo_act(memory, t, u):
    return memory.sumz[0].argmin()


def undefined_act(memory, t, u):
    return lowest_indx(memory.P)  # noqa: F821


def half_act(memory, t, u):
    return u / 2
