"""The contract that every learner and family keeps, as checks to run on yours.

    import pytest
    from statepool.testing import check_family, learner_checks

    @pytest.mark.parametrize("check", learner_checks(MyLearner()), ids=str)
    def test_my_learner(check):
        check()

    def test_my_family():
        check_family(my_family)

A check that fails raises `ContractError` with one sentence: what is promised, and where the promise is broken. The
package's own learners and families pass the same checks.
"""

import inspect
import pickle
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from statepool import families
from statepool.checks import Ints
from statepool.engine import Run, simulate
from statepool.kernels import draw_outcome, draw_revenue, draw_row
from statepool.learners import StateEXP3
from statepool.learners.contract import Learner
from statepool.learners.player import PlayedRound
from statepool.model import Instance

__all__ = ["Check", "ContractError", "check_family", "check_learner", "learner_checks"]

Family = Callable[..., Instance]
ROUNDS, NEVER, SLACK = 60, 10**9, 1e-9
EDGES: dict[str, tuple[Any, float]] = {
    "one action": ([[0.3, 0.7]], 0.5),
    "one state": ([[1.0]] * 5, 0.5),
    "one of each": ([[1.0]], 0.5),
    "a state that is never reached": ([[0.5, 0.0, 0.5], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], 0.5),
    "always lost": (np.eye(3), 1.0),
    "never lost": (np.eye(3), 0.0),
    "many actions": ([[0.5, 0.5]] * 40, 0.5),
}


class ContractError(AssertionError):
    """What is promised, and where the promise is broken."""


@dataclass(frozen=True)
class Check:
    """A named promise; calling it raises `ContractError` if it is not kept."""

    name: str
    run: Callable[[], None]

    def __call__(self) -> None:
        self.run()

    def __str__(self) -> str:
        return self.name


def hold(kept: bool, sentence: str) -> None:
    """Raise the sentence unless the promise is kept."""
    if not kept:
        raise ContractError(sentence)


def learner_checks(learner: Learner, instances: Iterable[Instance] | None = None) -> list[Check]:
    """Every promise of a learner, as checks to run one by one.

    Parameters
    ----------
    learner : Learner
    instances : iterable of Instance, optional
        What it plays; small ones of four families by default.

    Returns
    -------
    list of Check

    Examples
    --------
    >>> import statepool as sp
    >>> from statepool.testing import learner_checks
    >>> str(learner_checks(sp.Uniform())[0])
    'is a value'
    """
    given = usual_instances() if instances is None else list(instances)
    checks = [Check("is a value", partial(is_a_value, learner))]
    for promise in LEARNER_PROMISES:
        name = promise.__name__.replace("_", " ")
        checks += [Check(f"{name} ({place})", partial(promise, learner, each)) for place, each in enumerate(given)]
    return checks + [Check(f"survives {edge}", partial(survives, learner, edge)) for edge in EDGES]


def check_learner(learner: Learner, instances: Iterable[Instance] | None = None) -> None:
    """Run every check of a learner; the first that fails raises.

    Parameters
    ----------
    learner, instances
        As for `learner_checks`.

    Raises
    ------
    ContractError

    Examples
    --------
    >>> import statepool as sp
    >>> from statepool.testing import check_learner
    >>> check_learner(sp.Uniform(), [sp.families.band(seed=0, n_actions=4, horizon=60)])
    """
    for check in learner_checks(learner, instances):
        check()


def check_family(family: Family, **settings: Any) -> None:
    """Run every check of a family; the first that fails raises.

    Parameters
    ----------
    family : callable
        A function of a seed that returns an `Instance`.
    **settings
        Small ones; a short horizon by default.

    Raises
    ------
    ContractError

    Examples
    --------
    >>> import statepool as sp
    >>> from statepool.testing import check_family
    >>> check_family(sp.families.band, horizon=60)
    """
    small = {"horizon": 50} if "horizon" in inspect.signature(family).parameters else {}
    for promise in FAMILY_PROMISES:
        promise(family, small | settings)


def ragged(seed: int = 0, horizon: int = ROUNDS) -> Ints:
    """Delays that differ from round to round; some outcomes never arrive."""
    delays = np.random.default_rng(seed).integers(0, 12, size=horizon)
    delays[::7] = NEVER
    return delays


def usual_instances() -> list[Instance]:
    """Small members of four families that have little in common."""
    sizes = {"n_actions": 9, "horizon": ROUNDS}
    made = [families.find(name)(0, **sizes) for name in ("band", "funnel", "hostile")]
    return [*made, families.hard(0, horizon=ROUNDS)]


def is_a_value(learner: Learner) -> None:
    """Settings only: equal to its copy, hashable, and shown by its repr."""
    name = _name(learner)
    hold(isinstance(learner, Learner), f"{name} is no Learner, expected a subclass of statepool.learners.Learner")
    try:
        copy = pickle.loads(pickle.dumps(learner))
    except Exception as error:
        raise ContractError(f"{name} cannot be pickled ({error}), expected a frozen dataclass of settings") from None
    alike = copy == learner and hash(copy) == hash(learner)
    hold(alike, f"{name} differs from its pickled copy, expected a frozen dataclass of settings")


def repeats_itself(learner: Learner, instance: Instance) -> None:
    """The same random numbers give the same actions."""
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
    """An outcome that has not arrived changes no action: losses are inverted from a round on, or while they wait."""
    if learner.reads_losses:
        return
    cut, delay, horizon = instance.horizon // 2, 6, instance.horizon
    theta = np.clip(instance.theta, 0.01, 0.99)  # a mean of 0 takes no random number
    later = np.where(np.arange(horizon)[:, None] < cut, theta, 1 - theta)
    _same_actions(learner, instance, (theta, later), delay, cut + delay + 1)
    delays = ragged(1, horizon)
    waiting = np.arange(horizon) + delays >= cut
    _same_actions(learner, instance, (theta, np.where(waiting[:, None], 1 - theta, theta)), delays, cut + 1)


def _same_actions(learner: Learner, instance: Instance, means: Any, delay: Any, until: int) -> None:
    runs = [simulate(Instance(instance.P, each), learner, delay, seed=5) for each in means]
    differ = runs[0].actions[:until] != runs[1].actions[:until]
    hold(not differ.any(), f"{_name(learner)} acts on an outcome that has not arrived{_round(differ)}")


def steps_as_it_runs(learner: Learner, instance: Instance) -> None:
    """Driven round by round through `Player`, it acts as in the loop."""
    run = simulate(instance, learner, 5, seed=11)
    actions = [decision.number for decision in by_hand(run)]
    differ = np.asarray(actions) != run.actions
    hold(not differ.any(), f"{_name(learner)} acts otherwise by hand than in the loop{_round(differ)}")


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
        action, state = decision.number, int(draw_row(instance.P[decision.number], next(numbers)))
        player.observe(decision, state)
        mean = float(instance.theta[t, state]) + (0.0 if instance.effects is None else instance.effects[action, state])
        loss = 0.0
        if mean > 0 and instance.gains is None:
            loss = float(draw_outcome(mean, next(numbers)))
        elif mean > 0 and instance.gains is not None:
            loss = float(draw_revenue(mean, float(instance.gains[action, state]), next(numbers)))
        arrivals[min(t + run.delay + 1, horizon)].append((decision, loss))
        decisions.append(decision)
    return decisions


def shares_nothing(learner: Learner, instance: Instance) -> None:
    """Two players of one learner, in turn, do not affect each other."""
    alone, first, second = (learner.player(instance.P, instance.horizon, 0, 0, instance) for _ in range(3))
    for t in range(min(instance.horizon, 20)):
        _turn(second, (t + 0.5) / 20, 1.0)
        one, other = _turn(alone, (0.37 * t) % 1, t % 2), _turn(first, (0.37 * t) % 1, t % 2)
        hold(one == other, f"{_name(learner)} is affected by another run of the same learner (round {t})")


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


def gives_an_instance(family: Family, settings: dict[str, Any]) -> None:
    """A function of a seed that gives an `Instance`."""
    made = family(seed=0, **settings)
    hold(isinstance(made, Instance), f"{family.__name__}(seed=0) gives {type(made).__name__}, expected an Instance")


def is_named_by_its_seed(family: Family, settings: dict[str, Any]) -> None:
    """The same seed gives the same bits; a generator, where one is accepted, gives those of the seed that made it."""
    first, again = family(seed=3, **settings), [family(seed=3, **settings)]
    with suppress(ValueError):
        again.append(family(seed=np.random.default_rng(3), **settings))
    for other in again:
        same = np.array_equal(first.P, other.P) and np.array_equal(first.theta, other.theta)
        hold(same, f"{family.__name__}(seed=3) gives another instance the second time")


def can_be_simulated(family: Family, settings: dict[str, Any]) -> None:
    """A learner runs on it, and its regret is a number."""
    run = simulate(family(seed=0, **settings), StateEXP3(), delay=3, seed=80_000)
    hold(bool(np.isfinite(run.regret)), f"{family.__name__}: the regret of StateEXP3 is {run.regret}")


def refuses_what_is_not_a_seed(family: Family, settings: dict[str, Any]) -> None:
    """A value that is no seed is refused with ValueError."""
    try:
        family(seed="one", **settings)
    except ValueError:
        return
    except Exception as error:
        hold(False, f"{family.__name__}(seed='one') raises {type(error).__name__}, expected ValueError")
    hold(False, f"{family.__name__}(seed='one') is accepted, expected ValueError (generator_of checks a seed)")


LEARNER_PROMISES = (repeats_itself, has_a_policy, waits_for_outcomes, steps_as_it_runs, shares_nothing)
FAMILY_PROMISES = (gives_an_instance, is_named_by_its_seed, can_be_simulated, refuses_what_is_not_a_seed)
