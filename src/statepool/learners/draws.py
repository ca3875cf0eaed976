"""Random numbers that follow from a key, a round and a counter, with no state between them.

A learner that draws for itself takes its draws from here. The same round gives the same draws in a simulation, in a
live pool and in its replay, and a caller that needs only some of them does not change the others.

Rule: splitmix64's finaliser, applied to key, round and counter in turn (Steele, Lea and Flood 2014); gamma variates by
Marsaglia and Tsang 2000, normal ones by Box and Muller; a beta variate is a ratio of two gammas.
"""

from math import cos, log, pi, sqrt
from typing import Any

import numpy as np

from statepool.compiling import compiled

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


@compiled
def scramble(number: Any) -> Any:
    """Sixty-four bits that look like others."""
    number = (number + _STEP) & np.uint64(0xFFFFFFFFFFFFFFFF)
    number = (number ^ (number >> _S30)) * _FIRST
    number = (number ^ (number >> _S27)) * _SECOND
    return number ^ (number >> _S31)


@compiled
def source_of(key: Any, t: int, place: int) -> Any:
    """Where the draws of one place in one round begin."""
    return scramble(scramble(key ^ np.uint64(t)) ^ np.uint64(place))


@compiled
def uniform(source: Any, count: int) -> float:
    """The `count`-th number of a source, in (0, 1)."""
    return (float(scramble(source ^ np.uint64(count)) >> _S11) + 0.5) * 2.0**-53


@compiled
def gamma(source: Any, shape: float) -> float:
    """A gamma variate of shape at least 1."""
    d = shape - 1.0 / 3.0
    c = 1.0 / sqrt(9.0 * d)
    count = 0
    while True:
        x = sqrt(-2.0 * log(uniform(source, count))) * cos(2.0 * pi * uniform(source, count + 1))
        v = 1.0 + c * x
        if v > 0.0:
            v = v * v * v
            if log(uniform(source, count + 2)) < 0.5 * x * x + d - d * v + d * log(v):
                return d * v
        count += 3


@compiled
def beta(source: Any, first: float, second: float) -> float:
    """A beta variate; both shapes are at least 1."""
    own, other = gamma(source, first), gamma(scramble(source), second)
    return own / (own + other)
