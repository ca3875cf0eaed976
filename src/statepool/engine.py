"""The one compiled loop that serves every learner, and its Python faces.

A run is a pure function of (instance, learner, delay, stream): `simulate` makes one; `comparison` makes all of a grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statepool.calendar import book, due, make_calendar
from statepool.checks import Floats, Ints, check_count, check_delay, read_only, shown
from statepool.compiling import compiled
from statepool.frames import make_frame
from statepool.kernels import draw_outcome, draw_row, row_of
from statepool.learners.learner import Learner, problem_of, short_name, typical_delay
from statepool.learners.outside import explained, python_of, suited
from statepool.learners.rules import act, observe, update
from statepool.model import Instance
from statepool.probes import NO_PROBE, DimensionProbe, JointDimensionProbe, PlayProbe, look
from statepool.stream import Seed, Stream

DRAWS = (2, 3)
POINTS = 101
"""Of a path of regret that is drawn or kept."""
_NO_EFFECTS: Floats = read_only(np.empty((0, 0)))


@compiled
def _play_rounds(
    memory: Any, probe: Any, calendar: Any, tickets: Any, rows: Any, requests: Any, n_actions: int, theta: Any,
    effects: Any, uniforms: Any, draws: int, actions: Any, states: Any, outcomes: Any,
) -> None:  # fmt: skip
    used = 0
    for t in range(theta.shape[0]):
        r, slot = due(calendar, t)
        while r >= 0:
            update(memory, r, actions[r], states[r], outcomes[r], tickets[slot])
            r, slot = due(calendar, t)
        action = act(memory, t, uniforms[used])
        row = row_of(requests, n_actions, t, action)
        # A two-draw stream has no number for the state: any serves, since the map leaves no choice.
        state = draw_row(rows[row], uniforms[used + draws - 2])
        used += draws - 1
        look(probe, memory, t, action, state)
        observe(memory, t, action, state, tickets[book(calendar, t)])
        mean = theta[t, state]
        if effects.size > 0:
            mean += effects[row, state]
        outcome = 0.0
        if mean > 0.0:
            outcome = draw_outcome(mean, uniforms[used])
            used += 1
        actions[t], states[t], outcomes[t] = action, state, outcome


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """What happened, round by round: `actions`, `states`, `outcomes`; everything else is computed when asked for.

    >>> import statepool as sp
    >>> run = sp.simulate(sp.families.spread(seed=0, horizon=500), sp.SelfTuned(), delay=10, seed=80_000)
    >>> run.actions.size, run.regret <= run.loss
    (500, True)
    """

    instance: Instance
    learner: Learner
    delay: int | Ints
    stream: Stream
    draws: int
    actions: NDArray[np.int32]
    states: NDArray[np.int32]
    outcomes: NDArray[np.float64]

    def __repr__(self) -> str:
        delay = f"delay {self.delay}" if isinstance(self.delay, int) else "a delay for each round"
        told = f"regret {self.regret:.1f}, loss {self.loss:.1f}"
        return f"Run({short_name(self.learner)}, {self.instance.horizon} rounds, {delay}: {told})"

    @cached_property
    def loss(self) -> float:
        """The summed mean loss of the actions played."""
        return self.instance.pseudo_loss(self.actions)

    @cached_property
    def regret(self) -> float:
        """Pseudo-regret: the loss less that of the best fixed action, or with contexts of the best policy."""
        return self.instance.regret(self.actions)

    @cached_property
    def regret_path(self) -> Floats:
        """Pseudo-regret after each round, against the best action or policy of the whole horizon."""
        return self.instance.regret_path(self.actions)

    @cached_property
    def dimension(self) -> float:
        """The mean effective dimension of the plays, mean v_t (a second run)."""
        return float(self.dimension_path.mean())

    @cached_property
    def dimension_path(self) -> Floats:
        """The effective dimension of each round's play (a second run).

        With contexts it is that of the joint map of contexts and actions, weighed by how often a context came and by
        what it would be answered with in that round: a look at the plays of all contexts, round by round.
        """
        instance, out = self.instance, np.empty(self.instance.horizon)
        x = np.empty(instance.n_actions)
        if instance.contexts is None or instance.told is not None:
            known = instance.P if instance.told is None else instance.told
            self.measure(DimensionProbe(np.ascontiguousarray(known.T), x, out))
        else:
            self.learner.check_tells_play(in_any_context=True)
            sums = np.empty((2, instance.n_states))
            self.measure(JointDimensionProbe(instance.P, instance.shares, x, sums, out))
        return out

    @cached_property
    def certificate(self) -> float:
        """What the expected regret is below, by the run's own account, where the learner keeps one (a second run)."""
        return self.learner.certificate(self.measure(NO_PROBE))

    def plays(self, every: int = 1) -> Floats:
        """The play distribution of every `every`-th round, one row each (a second run)."""
        check_count(every, "every")
        out = np.empty((-(-self.instance.horizon // every), self.instance.n_actions))
        self.measure(PlayProbe(every, out))
        return out

    def frame(self, library: str = "pandas") -> Any:
        """One row a round: action, state, outcome, and the regret so far, as a pandas or polars frame."""
        columns = {
            "round": np.arange(self.actions.size), "action": self.actions, "state": self.states,
            "outcome": self.outcomes, "regret": self.regret_path,
        }  # fmt: skip
        return make_frame(columns, library)

    def plot(self, ax: Any = None) -> Any:
        """Regret over time, on the axes given or on new ones, which are returned (needs matplotlib)."""
        from statepool.report.plots import draw_paths

        rounds = np.linspace(0, self.actions.size - 1, POINTS).round().astype(int)
        return draw_paths({short_name(self.learner): self.regret_path[rounds][None]}, rounds + 1, ax)

    def measure(self, probe: Any) -> Any:
        """Run again with a probe looking on, at plays that the learner must tell; the memory at the end is returned."""
        self.learner.check_tells_play()
        return _run(self.instance, self.learner, self.delay, self.stream, self.draws, probe)[1]


def simulate(instance: Instance, learner: Learner, delay: int | Ints = 0, seed: Seed = 0, draws: int = 3) -> Run:
    """Play one learner on one instance.

    `delay` is a whole number of rounds, or one a round (`delays.never` for what does not come); `seed` a whole number
    or a NumPy generator, read from where it stands and not advanced; `draws` 2 leaves out the state's uniform where
    the map is deterministic. Seed it apart from the instance: of equal seeds the run's luck is made of the numbers
    that made the instance. Raises ValueError, in one sentence, for whatever is not as said here.

    >>> import statepool as sp
    >>> shop = sp.families.funnel(seed=0, n_actions=20, horizon=1_000)
    >>> sp.simulate(shop, sp.SelfTuned(), delay=50, seed=80_000).regret < 50
    True
    """
    if not isinstance(instance, Instance):
        raise ValueError(f"instance: is {type(instance).__name__}, expected an Instance")
    if not isinstance(learner, Learner):
        raise ValueError(f"learner: is {shown(learner)}, expected a learner such as StateEXP3()")
    if check_count(draws, "draws") not in DRAWS:
        raise ValueError(f"draws: is {shown(draws)}, expected 2 or 3")
    if draws == 2 and not ((instance.P == 0) | (instance.P == 1)).all():
        raise ValueError("draws: is 2, expected 3, since some action can lead to several states")
    return _run(instance, learner, check_delay(delay, instance.horizon), Stream.from_seed(seed), draws, NO_PROBE)[0]


def _run(
    instance: Instance, learner: Learner, delay: int | Ints, stream: Stream, draws: int, probe: Any
) -> tuple[Run, Any]:
    """The run, and the memory it ended with."""
    horizon = instance.horizon
    problem = problem_of(instance, learner, typical_delay(delay), stream)
    effects = _NO_EFFECTS if instance.effects is None else instance.effects.reshape(-1, instance.n_states)
    uniforms = stream.uniforms(draws * horizon)

    def started() -> tuple[Any, ...]:
        calendar = make_calendar(delay, horizon)
        return (
            learner.start(problem), probe, calendar, np.empty((calendar.n_slots, learner.ticket_width(problem))),
            instance.rows, instance.requests, instance.n_actions, instance.theta, effects, uniforms, draws,
            np.empty(horizon, np.int32), np.empty(horizon, np.int32), np.empty(horizon),
        )  # fmt: skip

    arguments = started()
    memory, (actions, states, outcomes) = arguments[0], arguments[-3:]
    with explained(learner, memory, lambda: python_of(_play_rounds)(*started())):
        suited(_play_rounds, memory)(*arguments)
    if instance.available is not None and not instance.available[instance.contexts, actions].all():
        raise ValueError(f"learner: {learner} plays actions that are not available, expected one that looks at them")
    return Run(instance, learner, delay, stream, draws, actions, states, outcomes), memory
