"""The one compiled loop that serves every learner, and its Python faces.

A run is a pure function of (instance, learner, delay, stream): `simulate` makes one, `compare` makes all of a
grid, paired on common random numbers.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from statepool.calendar import book, due, make_calendar
from statepool.checks import Floats, Ints, check_count, check_delay, read_only, unknown_name
from statepool.compiling import compiled
from statepool.kernels import draw_outcome, draw_row
from statepool.learners.learner import Learner, Problem, typical_delay
from statepool.learners.rules import act, observe, update
from statepool.model import Instance
from statepool.probes import DimensionProbe, NoProbe, PlayProbe, look
from statepool.stream import APART, Seed, Stream

DRAWS = (2, 3)


@compiled
def _play_rounds(
    memory: Any, probe: Any, calendar: Any, tickets: Any, P: Any, theta: Any, effects: Any, uniforms: Any,
    draws: int, actions: Any, states: Any, outcomes: Any,
) -> None:  # fmt: skip
    used = 0
    for t in range(theta.shape[0]):
        r, slot = due(calendar, t)
        while r >= 0:
            update(memory, r, actions[r], states[r], outcomes[r], tickets[slot])
            r, slot = due(calendar, t)
        action = act(memory, t, uniforms[used])
        # A two-draw stream has no number for the state: any serves, since the map leaves no choice.
        state = draw_row(P[action], uniforms[used + draws - 2])
        used += draws - 1
        look(probe, memory, t, action, state)
        observe(memory, t, action, state, tickets[book(calendar, t)])
        mean = theta[t, state]
        if effects.size > 0:
            mean += effects[action, state]
        outcome = 0.0
        if mean > 0.0:
            outcome = draw_outcome(mean, uniforms[used])
            used += 1
        actions[t], states[t], outcomes[t] = action, state, outcome


@dataclass(frozen=True, eq=False)
class Run:
    """What happened, round by round; everything else is computed when asked for."""

    instance: Instance = field(repr=False)
    learner: Learner
    delay: int | Ints
    stream: Stream = field(repr=False)
    draws: int
    actions: NDArray[np.int32] = field(repr=False)
    states: NDArray[np.int32] = field(repr=False)
    outcomes: NDArray[np.float64] = field(repr=False)

    @cached_property
    def loss(self) -> float:
        """The summed mean loss of the actions played."""
        return self.instance.pseudo_loss(self.actions)

    @cached_property
    def regret(self) -> float:
        """Pseudo-regret: the loss less that of the best fixed action."""
        return self.instance.regret(self.actions)

    @cached_property
    def regret_path(self) -> Floats:
        """Pseudo-regret after each round, against the best fixed action of the whole horizon."""
        return self.instance.regret_path(self.actions)

    @cached_property
    def dimension(self) -> float:
        """The mean effective dimension of the plays, mean v_t (a second run)."""
        return float(self.dimension_path.mean())

    @cached_property
    def dimension_path(self) -> Floats:
        """The effective dimension of each round's play (a second run)."""
        out = np.empty(self.instance.horizon)
        columns = np.ascontiguousarray(self.instance.P.T)
        self.measure(DimensionProbe(columns, np.empty(self.instance.n_actions), out))
        return out

    @cached_property
    def certificate(self) -> float:
        """What the expected regret is below, by the run's own account, where the learner keeps one (a second run)."""
        return self.learner.certificate(self.measure(NoProbe()))

    def plays(self, every: int = 1) -> Floats:
        """The play distribution of every `every`-th round, one row each (a second run)."""
        check_count(every, "every")
        out = np.empty((-(-self.instance.horizon // every), self.instance.n_actions))
        self.measure(PlayProbe(every, out))
        return out

    def measure(self, probe: Any) -> Any:
        """Run again with a probe looking on, at plays that the learner must tell; the memory at the end is returned."""
        self.learner.check_tells_play()
        return _run(self.instance, self.learner, self.delay, self.stream, self.draws, probe)[1]


def simulate(instance: Instance, learner: Learner, delay: int | Ints = 0, seed: Seed = 0, draws: int = 3) -> Run:
    """Play one learner on one instance.

    `delay` is a whole number of rounds, or one a round; `seed` a whole number or a NumPy generator, read from
    where it stands and not advanced; `draws` 2 leaves out the state's uniform where the map is deterministic. Seed
    it apart from the instance: of equal seeds the run's luck is made of the numbers that made the instance.
    """
    if not isinstance(instance, Instance):
        raise ValueError(f"instance: is {type(instance).__name__}, expected an Instance")
    if not isinstance(learner, Learner):
        raise ValueError(f"learner: is {learner!r}, expected a learner such as StateEXP3()")
    if check_count(draws, "draws") not in DRAWS:
        raise ValueError(f"draws: is {draws!r}, expected 2 or 3")
    if draws == 2 and not ((instance.P == 0) | (instance.P == 1)).all():
        raise ValueError("draws: is 2, expected 3, since some action can lead to several states")
    return _run(instance, learner, check_delay(delay, instance.horizon), Stream.from_seed(seed), draws, NoProbe())[0]


def _run(
    instance: Instance, learner: Learner, delay: int | Ints, stream: Stream, draws: int, probe: Any
) -> tuple[Run, Any]:
    """The run, and the memory it ended with."""
    horizon = instance.horizon
    problem = Problem(instance.P, horizon, typical_delay(delay), stream, instance)
    memory = learner.start(problem)
    calendar = make_calendar(delay, horizon)
    tickets = np.empty((calendar.n_slots, learner.ticket_width(problem)))
    effects = read_only(np.empty((0, 0))) if instance.effects is None else instance.effects
    actions, states = np.empty(horizon, np.int32), np.empty(horizon, np.int32)
    outcomes = np.empty(horizon)
    _play_rounds(
        memory, probe, calendar, tickets, instance.P, instance.theta, effects, stream.uniforms(draws * horizon),
        draws, actions, states, outcomes,
    )  # fmt: skip
    return Run(instance, learner, delay, stream, draws, actions, states, outcomes), memory


@dataclass(frozen=True, eq=False)
class Comparison:
    """Regrets of a paired grid: `regret[family, delay, learner, seed]`."""

    families: tuple[str, ...]
    delays: tuple[int, ...]
    learners: tuple[str, ...]
    seeds: tuple[int, ...]
    regret: Floats = field(repr=False)

    def mean(self, family: str, learner: str, delay: int) -> float:
        """Mean regret over seeds."""
        return float(self.of(family, learner, delay).mean())

    def of(self, family: str, learner: str, delay: int) -> Floats:
        """Regret of each seed."""
        given = (("family", family, self.families), ("delay", delay, self.delays), ("learner", learner, self.learners))
        for kind, name, known in given:
            if name not in known:
                raise ValueError(unknown_name(kind, name, map(str, known)))
        cell = self.families.index(family), self.delays.index(delay), self.learners.index(learner)
        return np.asarray(self.regret[cell])

    def gain(self, family: str, learner: str, over: str, delay: int) -> tuple[float, float]:
        """How much less regret than another learner, and the standard error of the paired difference."""
        difference = self.of(family, over, delay) - self.of(family, learner, delay)
        error = difference.std(ddof=1) / np.sqrt(difference.size) if difference.size > 1 else np.nan
        return float(difference.mean()), float(error)


def compare(
    families: Mapping[str, Callable[[int], Instance]],
    learners: Mapping[str, Learner],
    delays: Iterable[int] = (0,),
    seeds: Iterable[int] = range(10),
    stream: int = APART,
    jobs: int = -1,
    on_run: Callable[[int], None] | None = None,
) -> Comparison:
    """Run every learner on the same instances and the same luck, on all cores.

    `families` maps a name to a function of the seed; each run's stream is seeded with seed + `stream`; `on_run`
    is told the rounds of each finished run, from the thread that ran it.
    """
    from joblib import Parallel, delayed

    delays = tuple(check_count(delay, "delays", lowest=0) for delay in delays)
    seeds = tuple(check_count(seed, "seeds", lowest=0) for seed in seeds)
    for name, axis in (("families", families), ("learners", learners), ("delays", delays), ("seeds", seeds)):
        if not axis:
            raise ValueError(f"{name}: is empty, expected at least one")

    def cell(family: str, seed: int) -> Floats:
        instance = families[family](seed)
        regrets = np.empty((len(delays), len(learners)))
        for (i, delay), (j, learner) in product(enumerate(delays), enumerate(learners.values())):
            regrets[i, j] = simulate(instance, learner, delay, seed + stream).regret
            if on_run:
                on_run(instance.horizon)
        return regrets

    # Threads: the compiled loop holds no lock, and instances need not be copied.
    cells = Parallel(n_jobs=jobs, backend="threading")(delayed(cell)(f, s) for f, s in product(families, seeds))
    grid = np.array(cells).reshape(len(families), len(seeds), len(delays), len(learners))
    return Comparison(tuple(families), delays, tuple(learners), seeds, grid.transpose(0, 2, 3, 1))
