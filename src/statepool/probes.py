"""What a re-run can measure: a probe looks at the learner's memory in every round, after it has acted.

A run is a pure function of its inputs, so nothing is recorded along the way that a second run can tell: mean
dimension, plays and step ratios cost nothing until they are asked for. `look(probe, memory, t, action, state)`
sees the play of round t before the learner has observed the state.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import chosen_by_type
from statepool.kernels import effective_dimension
from statepool.learners.rules import play, play_for

_LOOKS: dict[type, Callable[..., None]] = {}


def add_probe(probe: type, look: Callable[..., None]) -> None:
    """Tie a function `look(probe, memory, t, action, state)` to a probe type."""
    _LOOKS[probe] = look


look = chosen_by_type(_LOOKS.get)


class DimensionProbe(NamedTuple):
    """v_t, the effective dimension of each round's play."""

    columns: Floats
    x: Floats
    out: Floats


class JointDimensionProbe(NamedTuple):
    """v_t of the joint map of contexts and actions, weighed by the contexts' shares and by each context's play."""

    P: Floats
    shares: Floats
    x: Floats
    sums: Floats
    """Of weights times P and times P², by state."""
    out: Floats


class PlayProbe(NamedTuple):
    """x_t, every `every` rounds; never where that is 0. A run that is not looked at takes the same compiled loop."""

    every: int
    out: Floats


NO_PROBE = PlayProbe(0, np.empty((0, 0)))
"""Measures nothing."""


class StepProbe(NamedTuple):
    """The largest one-step growth of any action's probability, max_a x_{t+1}(a)/x_t(a): the drift lemma's quantity."""

    before: Floats
    x: Floats
    largest: Floats


def _look_dimension(probe: Any, memory: Any, t: int, action: int, state: int) -> None:
    play(memory, t, probe.x)
    probe.out[t] = effective_dimension(probe.columns, probe.x)


def _look_joint_dimension(probe: Any, memory: Any, t: int, action: int, state: int) -> None:
    q, squares = probe.sums[0], probe.sums[1]
    q[:] = 0.0
    squares[:] = 0.0
    for context in range(probe.P.shape[0]):
        if probe.shares[context] > 0.0:
            play_for(memory, t, context, probe.x)
            for a in range(probe.x.size):
                weight = probe.shares[context] * probe.x[a]
                for s in range(q.size):
                    q[s] += weight * probe.P[context, a, s]
                    squares[s] += weight * probe.P[context, a, s] * probe.P[context, a, s]
    v = 0.0
    for s in range(q.size):
        if q[s] > 0.0:
            v += squares[s] / q[s]
    probe.out[t] = v


def _look_play(probe: Any, memory: Any, t: int, action: int, state: int) -> None:
    if probe.every > 0 and t % probe.every == 0:
        play(memory, t, probe.out[t // probe.every])


def _look_step(probe: Any, memory: Any, t: int, action: int, state: int) -> None:
    play(memory, t, probe.x)
    for a in range(probe.x.size):
        if t > 0:
            probe.largest[0] = max(probe.largest[0], probe.x[a] / probe.before[a])
        probe.before[a] = probe.x[a]


add_probe(DimensionProbe, _look_dimension)
add_probe(JointDimensionProbe, _look_joint_dimension)
add_probe(PlayProbe, _look_play)
add_probe(StepProbe, _look_step)
