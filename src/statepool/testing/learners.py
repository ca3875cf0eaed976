"""What is promised of every learner, one function a promise."""

import pickle
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from statepool import families
from statepool.checks import Ints
from statepool.engine import Run, simulate
from statepool.kernels import draw_outcome, draw_revenue, draw_row
from statepool.learners.contract import Learner
from statepool.learners.player import PlayedRound
from statepool.model import Instance
from statepool.testing.checking import Check, ContractError, hold

ROUNDS = 60
NEVER = 10**9
SLACK = 1e-9

EDGES: dict[str, tuple[Any, float]] = {
    "one action": ([[0.3, 0.7]], 0.5),
    "one state": ([[1.0]] * 5, 0.5),
    "one of each": ([[1.0]], 0.5),
    "a state that is never reached": ([[0.5, 0.0, 0.5], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], 0.5),
    "always lost": (np.eye(3), 1.0),
    "never lost": (np.eye(3), 0.0),
    "many actions": ([[0.5, 0.5]] * 40, 0.5),
}


def ragged(seed: int = 0, horizon: int = ROUNDS) -> Ints:
    """Delays that differ, some of them for ever."""
    delays = np.random.default_rng(seed).integers(0, 12, size=horizon)
    delays[::7] = NEVER
    return delays


def usual_instances() -> list[Instance]:
    """Small members of four families that have little in common."""
    sizes = {"n_actions": 9, "horizon": ROUNDS}
    made = [families.find(name)(0, **sizes) for name in ("band", "funnel", "hostile")]
    return [*made, families.hard(0, horizon=ROUNDS)]


def learner_checks(learner: Learner, instances: Iterable[Instance] | None = None) -> list[Check]:
    """Every promise for one learner, on the instances given or on small ones of four families.

    >>> import statepool as sp
    >>> from statepool.testing import learner_checks
    >>> str(learner_checks(sp.Uniform())[0])
    'is a value'
    """
    played = usual_instances() if instances is None else list(instances)
    checks = [Check("is a value", partial(is_a_value, learner))]
    for promise in PROMISES:
        name = promise.__name__.replace("_", " ")
        checks += [Check(f"{name} ({place})", partial(promise, learner, each)) for place, each in enumerate(played)]
    checks += [Check(f"survives {edge}", partial(survives, learner, edge)) for edge in EDGES]
    return checks


def check_learner(learner: Learner, instances: Iterable[Instance] | None = None) -> None:
    """Run every check; the first that fails raises.

    >>> import statepool as sp
    >>> from statepool.testing import check_learner
    >>> check_learner(sp.Uniform(), [sp.families.band(seed=0, n_actions=4, horizon=60)])
    """
    for check in learner_checks(learner, instances):
        check()


def is_a_value(learner: Learner) -> None:
    """Settings only: equal to its copy, hashable, and shown by its repr."""
    name = type(learner).__name__
    hold(isinstance(learner, Learner), f"{name} is no Learner, expected a subclass of statepool.learners.Learner")
    try:
        copy = pickle.loads(pickle.dumps(learner))
    except Exception as error:
        raise ContractError(f"{name} cannot be pickled ({error}), expected a frozen dataclass of settings") from None
    alike = copy == learner and hash(copy) == hash(learner)
    hold(alike, f"{name} differs from its pickled copy, expected a frozen dataclass of settings")


def repeats_itself(learner: Learner, instance: Instance) -> None:
    """The same actions again from the same random numbers."""
    for delay in (4, ragged(horizon=instance.horizon)):
        first, second = (simulate(instance, learner, delay, seed=3) for _ in range(2))
        same = first.actions == second.actions
        hold(bool(same.all()), f"{_name(learner)} acts otherwise the second time, on the same numbers{_round(~same)}")


def has_a_policy(learner: Learner, instance: Instance) -> None:
    """What `policy` writes sums to one and is not negative."""
    if not learner.known_policy:
        return
    policies = simulate(instance, learner, 4, seed=3).policies()
    negative = ~(policies >= 0).all(axis=1)
    hold(not negative.any(), f"{_name(learner)}: the policy has an entry that is not 0 or more{_round(negative)}")
    sums = np.abs(policies.sum(axis=1) - 1) > SLACK
    hold(not sums.any(), f"{_name(learner)}: the policy does not sum to 1{_round(sums)}")


def waits_for_outcomes(learner: Learner, instance: Instance) -> None:
    """Nothing that has not arrived moves an action: losses are turned round from a round on, or while they wait."""
    if learner.reads_losses:
        return
    cut, delay, horizon = instance.horizon // 2, 6, instance.horizon
    theta = np.clip(instance.theta, 0.01, 0.99)  # a mean of 0 takes no random number
    later = theta.copy()
    later[cut:] = 1 - later[cut:]
    _same_actions(learner, instance, (theta, later), delay, cut + delay + 1)
    delays = ragged(1, horizon)
    waiting = np.arange(horizon) + delays >= cut
    _same_actions(learner, instance, (theta, np.where(waiting[:, None], 1 - theta, theta)), delays, cut + 1)


def _same_actions(learner: Learner, instance: Instance, means: Any, delay: Any, until: int) -> None:
    runs = [simulate(Instance(instance.P, each), learner, delay, seed=5) for each in means]
    parted = runs[0].actions[:until] != runs[1].actions[:until]
    hold(not parted.any(), f"{_name(learner)} acts on an outcome that has not arrived{_round(parted)}")


def steps_as_it_runs(learner: Learner, instance: Instance) -> None:
    """Driven by hand, with outcomes delivered as they come, it acts as in the loop."""
    run = simulate(instance, learner, 5, seed=11)
    actions = [decision.number for decision in by_hand(run)]
    parted = np.asarray(actions) != run.actions
    hold(not parted.any(), f"{_name(learner)} acts otherwise by hand than in the loop{_round(parted)}")


def by_hand(run: Run) -> list[PlayedRound]:
    """The rounds of a run with one delay for all, through `Player`, with the uniforms of its stream."""
    instance, horizon = run.instance, run.instance.horizon
    assert isinstance(run.delay, int)
    player = run.learner.player(instance.P, horizon, run.delay, run.stream.seed or 0, instance)
    numbers = iter(run.stream.uniforms(3 * horizon))
    arrivals: list[list[tuple[PlayedRound, float]]] = [[] for _ in range(horizon + 1)]
    decisions = []
    for t in range(horizon):
        for decision, loss in arrivals[t]:
            player.update(decision, loss)
        decision = player.act(next(numbers))
        state = int(draw_row(instance.P[decision.number], next(numbers)))
        player.observe(decision, state)
        direct = 0.0 if instance.effects is None else float(instance.effects[decision.number, state])
        mean = float(instance.theta[t, state]) + direct
        loss = 0.0
        if mean > 0 and instance.gains is None:
            loss = float(draw_outcome(mean, next(numbers)))
        elif mean > 0 and instance.gains is not None:
            loss = float(draw_revenue(mean, float(instance.gains[decision.number, state]), next(numbers)))
        arrivals[min(t + run.delay + 1, horizon)].append((decision, loss))
        decisions.append(decision)
    return decisions


def shares_nothing(learner: Learner, instance: Instance) -> None:
    """Two players of one learner, in turn, do not affect each other."""
    alone, first, second = (learner.player(instance.P, instance.horizon, 0, 0, instance) for _ in range(3))
    for t in range(min(instance.horizon, 20)):
        _turn(second, (t + 0.5) / 20, 1.0)
        one, other = _turn(alone, (0.37 * t) % 1, t % 2), _turn(first, (0.37 * t) % 1, t % 2)
        hold(one == other, f"{_name(learner)} is moved by another run of the same learner (round {t})")


def _turn(player: Any, u: float, loss: float) -> int:
    decision = player.act(u)
    player.observe(decision, int(player.problem.P[decision.number].argmax()))
    player.update(decision, float(loss))
    return int(decision.number)


def survives(learner: Learner, edge: str) -> None:
    """One action, one state, one round, delays without end: regret stays a number."""
    P, mean = EDGES[edge]
    table = np.asarray(P, dtype=np.float64)
    for horizon in (1, 2, 33):
        instance = Instance(table, np.full((horizon, table.shape[1]), mean))
        for delay in (0, 1, horizon, NEVER):
            run = simulate(instance, learner, delay, seed=1)
            hold(bool(np.isfinite(run.regret)), f"{_name(learner)}: regret is {run.regret} where there is {edge}")


def _name(learner: Learner) -> str:
    return type(learner).__name__


def _round(wrong: Any) -> str:
    return f" (round {int(np.flatnonzero(wrong)[0])})" if np.any(wrong) else ""


PROMISES: tuple[Callable[[Learner, Instance], None], ...] = (
    repeats_itself,
    has_a_policy,
    waits_for_outcomes,
    steps_as_it_runs,
    shares_nothing,
)
