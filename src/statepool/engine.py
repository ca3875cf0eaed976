"""The one compiled loop that serves every learner, and its Python faces.

A run is a pure function of (instance, learner, delay, stream): `simulate` makes one; `comparison` makes all of a grid.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statepool.calendar import Calendar, book, due, make_calendar
from statepool.checks import Floats, Ints, check_count, check_delay, read_only, shown
from statepool.compiling import entry_point
from statepool.delays import Conversions, never
from statepool.frames import make_frame
from statepool.kernels import aligned, draw, draw_outcome, draw_revenue, draw_row
from statepool.learners import contract, make_learner
from statepool.learners.contract import Learner, Played, Problem, is_own, make_tables, problem_of, rows_at, short_name
from statepool.learners.outside import explained, suited
from statepool.model import Instance
from statepool.probes import NO_PROBE, DimensionProbe, JointDimensionProbe, PolicyProbe, look
from statepool.stream import Seed, Stream

DEFAULT_DELAY = 50
"""Of `simulate`, `compare` and the command."""
POINTS = 101
"""Of a path of regret that is drawn or kept."""
wide: Any = np.int64
"""Numbers of 64 bits, as `Player` hands them over: with others a rule would be compiled once more."""
_NO_TABLE: Floats = read_only(np.empty((0, 0)))


@entry_point
def _play_rounds(
    memory: Any, probe: Any, calendar: Any, saved: Any, tables: Any, rows: Any, requests: Any, n_actions: int,
    theta: Any, effects: Any, gains: Any, uniforms: Any, draws: int, x: Any, actions: Any, states: Any, outcomes: Any,
) -> None:  # fmt: skip
    used = 0
    offered = rows_at(tables, 0)
    policy = x[: offered.actions.size]
    for t in range(theta.shape[0]):
        contract.advance(memory, t, float(t))
        r = due(calendar, t)
        while r >= 0:
            context = requests[r] if tables.vary else 0
            played = Played(wide(r), float(r), wide(actions[r]), wide(states[r]), context, float(t - r - 1))
            contract.learn(memory, played, outcomes[r], saved[calendar.slots[r]], 1.0)
            r = due(calendar, t)
        request = requests[t] if requests.size > 0 else 0
        context = request if tables.vary else 0
        if tables.vary:
            offered = rows_at(tables, context)
            policy = x[: offered.actions.size]
        contract.policy(memory, offered, t, policy)
        choice = draw(policy, uniforms[used])
        action = offered.actions[choice]
        row = request * n_actions + action
        # A two-draw stream has no number for the state: any serves, since the map leaves no choice.
        u = uniforms[used + draws - 2]
        # The learner's rows are in the processor's cache already; it has other rows only where it is given a map.
        state = draw_row(offered.columns[:, choice], u) if rows.size == 0 else draw_row(rows[row], u)
        used += draws - 1
        look(probe, memory, tables, offered, policy, t)
        mean = theta[t, state]
        if effects.size > 0:
            mean += effects[row, state]
        outcome = 0.0
        if mean > 0.0:
            u = uniforms[used]
            outcome = draw_outcome(mean, u) if gains.size == 0 else draw_revenue(mean, gains[row, state], u)
            used += 1
        slot = book(calendar, t, outcome)
        contract.remember(memory, offered, policy, choice, state, saved[slot])
        contract.see(memory, Played(t, float(t), action, state, context, 0.0), saved[slot])
        actions[t], states[t], outcomes[t] = action, state, outcome


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """What happened, round by round; everything else is computed when asked for.

    Attributes
    ----------
    instance, learner, delay, stream, draws
        What was run.
    actions, states : numpy.ndarray of int
        What was played in each round, and the state that it led to.
    outcomes : numpy.ndarray
        The loss of each round.

    Examples
    --------
    >>> import statepool as sp
    >>> run = sp.simulate(sp.families.spread(seed=0, horizon=500), sp.SelfTuned(), delay=10, seed=80_000)
    >>> run.actions.size, run.regret <= run.loss
    (500, True)
    """

    instance: Instance
    learner: Learner
    delay: int | Ints | Conversions
    stream: Stream
    draws: int
    actions: NDArray[np.int32]
    states: NDArray[np.int32]
    outcomes: NDArray[np.float64]

    def __repr__(self) -> str:
        return f"Run({short_name(self.learner)}, {self.instance.horizon} rounds: regret {self.regret:.1f})"

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
        """The mean effective dimension of the policies, mean v_t (a second run)."""
        return float(self.dimension_path.mean())

    @cached_property
    def dimension_path(self) -> Floats:
        """The effective dimension of each round's policy (a second run).

        With contexts it is that of the joint map of contexts and actions, weighted by how often a context came and by
        the policy that it would get in that round.
        """
        instance, out = self.instance, np.empty(self.instance.horizon)
        x = np.empty(instance.n_actions)
        if instance.contexts is None or instance.given_map is not None:
            known = instance.P if instance.given_map is None else instance.given_map
            self.measure(DimensionProbe(np.ascontiguousarray(known.T), out))
        else:
            self.measure(JointDimensionProbe(instance.shares, x, np.empty((2, instance.n_states)), out))
        return out

    @cached_property
    def certificate(self) -> float:
        """What the expected regret is below, by the run's own account, where the learner keeps one (a second run)."""
        return self.learner.certificate(self.measure(NO_PROBE))

    def policies(self, every: int = 1) -> Floats:
        """The policy of every `every`-th round, one row each (a second run)."""
        check_count(every, "every")
        out = np.zeros((-(-self.instance.horizon // every), self.instance.n_actions))
        self.measure(PolicyProbe(every, out))
        return out

    def frame(self, library: str = "pandas") -> Any:
        """One row per round: action, state, outcome, and the regret so far, as a pandas or polars frame."""
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
        """Run again with a probe that looks at each round's policy; the memory at the end is returned."""
        self.learner.check_policy()
        return _run(self.instance, self.learner, self.delay, self.stream, self.draws, probe)[1]


def simulate(
    instance: Instance, learner: Learner | str, delay: int | Ints | Conversions = DEFAULT_DELAY, seed: Seed = 0,
    draws: int = 3,
) -> Run:  # fmt: skip
    """Play one learner on one instance.

    Parameters
    ----------
    instance : Instance
        The problem.
    learner : Learner or str
        A learner, or its name such as "state-exp3".
    delay : int, array_like or Conversions
        How many rounds late outcomes come: for all rounds, for each, or depending on the outcome. `delays.never` is
        the delay of an outcome that does not come.
    seed : int or numpy.random.Generator
        Of the run's random numbers; a generator is read from where it stands and not advanced. Use different seeds
        for the instance and the run: with equal seeds they share random numbers.
    draws : {3, 2}
        2 leaves out the random number of the state, where the map is deterministic.

    Raises
    ------
    ValueError
        In one sentence, for an argument that is not as described here.

    Examples
    --------
    >>> import statepool as sp
    >>> shop = sp.families.funnel(seed=0, n_actions=20, horizon=1_000)
    >>> sp.simulate(shop, sp.SelfTuned(), delay=50, seed=80_000).regret < 50
    True
    """
    if not isinstance(instance, Instance):
        raise ValueError(f"instance: is {type(instance).__name__}, expected an Instance")
    if check_count(draws, "draws") not in (2, 3):
        raise ValueError(f"draws: is {shown(draws)}, expected 2 or 3")
    if draws == 2 and not ((instance.P == 0) | (instance.P == 1)).all():
        raise ValueError("draws: is 2, expected 3, since some action can lead to several states")
    horizon = instance.horizon
    checked = delay.checked(horizon) if isinstance(delay, Conversions) else check_delay(delay, horizon)
    return _run(instance, make_learner(learner), checked, Stream.from_seed(seed), draws, NO_PROBE)[0]


def _run(
    instance: Instance, learner: Learner, delay: int | Ints | Conversions, stream: Stream, draws: int, probe: Any
) -> tuple[Run, Any]:
    """The run, and the memory it ended with."""
    horizon = instance.horizon
    problem, calendar = _timing(instance, learner, delay, stream)
    effects = _NO_TABLE if instance.effects is None else instance.effects.reshape(-1, instance.n_states)
    gains = _NO_TABLE if instance.gains is None else instance.gains.reshape(-1, instance.n_states)
    rows = _NO_TABLE if instance.given_map is None else instance.rows
    uniforms = stream.uniforms(draws * horizon)
    tables = make_tables(problem.P, instance.available if problem.has_contexts else None)

    memory = learner.start(problem)
    saved = np.empty((calendar.n_slots, sum(learner.saved_width(problem))))
    x = aligned(instance.n_actions)
    wrong = np.full(0 if is_own(type(memory)) else 2, -1.0)
    if probe is NO_PROBE:
        probe = NO_PROBE._replace(wrong=wrong)
    actions, states, outcomes = np.empty(horizon, np.int32), np.empty(horizon, np.int32), np.empty(horizon)
    with explained(learner, memory):
        suited(_play_rounds, memory)(
            memory, probe, calendar, saved, tables, rows, instance.requests, instance.n_actions, instance.theta,
            effects, gains, uniforms, draws, x, actions, states, outcomes,
        )  # fmt: skip
    name = type(learner).__name__
    if wrong.size and wrong[0] >= 0:
        raise ValueError(
            f"learner: the policy of {name} in round {wrong[0]:.0f} sums to {wrong[1]:.6g}, expected probabilities "
            "that sum to 1"
        )
    # A rule of this package is tested for its sums; what overflows in its totals is still there in the last round.
    if not np.isfinite(x).all():
        raise ValueError(
            f"learner: the policy of {name} in some round up to {horizon - 1} is not a number, expected probabilities"
        )
    return Run(instance, learner, delay, stream, draws, actions, states, outcomes), memory


def _timing(
    instance: Instance, learner: Learner, delay: int | Ints | Conversions, stream: Stream
) -> tuple[Problem, Calendar]:
    """What the learner knows of the delay, and when outcomes are delivered."""
    horizon = instance.horizon
    if not isinstance(delay, Conversions):
        return problem_of(instance, learner, contract.typical_delay(delay), stream), make_calendar(delay, horizon)
    window = min(delay.window, horizon)
    if learner.exposure:
        problem = problem_of(instance, learner, contract.typical_delay(delay.waits), stream)
        return replace(problem, window=float(delay.window)), make_calendar(delay.waits, horizon, never)
    problem = problem_of(instance, learner, window, stream)
    return problem, make_calendar(window, horizon) if delay.hold else make_calendar(delay.waits, horizon, window)
