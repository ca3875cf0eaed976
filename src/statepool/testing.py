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
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from statepool import families
from statepool.delays import missing, never
from statepool.engine import simulate
from statepool.learners import StateEXP3
from statepool.learners.contract import Learner, Played, make_tables, problem_of, rows_at
from statepool.learners.player import PlayedRound, Player
from statepool.learners.stepper import Stepper
from statepool.model import Instance
from statepool.stream import Stream

__all__ = ["Check", "ContractError", "check_family", "check_learner", "learner_checks"]

Family = Callable[..., Instance]
ROUNDS, SLACK = 60, 1e-9
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


class Check(NamedTuple):
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
    """Run all `learner_checks`; the first that fails raises.

    Parameters
    ----------
    learner : Learner
    instances : iterable of Instance, optional

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
    """Check a family: a seed names one instance, learners run on it, and what is no seed is refused with ValueError.

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
    make, name = partial(family, **(small | settings)), family.__name__
    made = make(seed=0)
    hold(isinstance(made, Instance), f"{name}(seed=0) gives {type(made).__name__}, expected an Instance")
    first = make(seed=3)
    for seed in (3, np.random.default_rng(3)):
        with suppress(ValueError):  # some take whole numbers only
            other = make(seed=seed)
            same = np.array_equal(first.P, other.P) and np.array_equal(first.theta, other.theta)
            hold(same, f"{name}(seed=3) gives another instance the second time")
    regret = simulate(made, StateEXP3(), delay=3, seed=80_000).regret
    hold(bool(np.isfinite(regret)), f"{name}: the regret of StateEXP3 is {regret}")
    try:
        make(seed="one")
    except ValueError:
        return
    hold(False, f"{name}(seed='one') is accepted, expected ValueError (generator_of checks a seed)")


def usual_instances() -> list[Instance]:
    """Small members of four families that have little in common."""
    made = [family(0, n_actions=9, horizon=ROUNDS) for family in (families.band, families.funnel, families.hostile)]
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
    delays = missing(0, instance.horizon, mean=6.0)
    differ = np.not_equal(*(simulate(instance, learner, delays, seed=3).actions for _ in range(2)))
    hold(not differ.any(), f"{_name(learner)} acts otherwise the second time, on the same numbers{_round(differ)}")


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
    """An outcome that has not arrived changes no action: those still waiting in the middle round are inverted."""
    if learner.reads_losses:
        return
    cut, delays = instance.horizon // 2, missing(1, instance.horizon, mean=6.0)
    waiting = np.arange(instance.horizon) + delays >= cut
    theta = np.clip(instance.theta, 0.01, 0.99)  # a mean of 0 takes no random number
    means = theta, np.where(waiting[:, None], 1 - theta, theta)
    first, second = (simulate(Instance(instance.P, each), learner, delays, seed=5).actions[: cut + 1] for each in means)
    differ = first != second
    hold(not differ.any(), f"{_name(learner)} acts on an outcome that has not arrived{_round(differ)}")


def steps_as_it_runs(learner: Learner, instance: Instance) -> None:
    """Driven round by round through `Player`, it acts as in the loop."""
    run, delay = simulate(instance, learner, 5, seed=11), 5
    player = learner.player(instance.P, instance.horizon, delay, 11, instance)
    numbers, used = run.stream.uniforms(3 * instance.horizon), 0
    decisions: list[PlayedRound] = []
    for t in range(instance.horizon):
        if t > delay:
            player.update(decisions[t - delay - 1], float(run.outcomes[t - delay - 1]))
        decisions.append(player.act(numbers[used]))
        action, state = decisions[t].number, int(run.states[t])
        hold(action == run.actions[t], f"{_name(learner)} acts otherwise by hand than in the loop (round {t})")
        player.observe(decisions[t], state)
        direct = 0.0 if instance.effects is None else instance.effects[action, state]
        used += 3 if instance.theta[t, state] + direct > 0 else 2  # a mean of 0 takes no random number


def shares_nothing(learner: Learner, instance: Instance) -> None:
    """Two players of one learner, in turn, do not affect each other."""
    alone, first, second = (learner.player(instance.P, instance.horizon, 0, 0, instance) for _ in range(3))

    def turn(player: Player, u: float, loss: float) -> int:
        decision = player.act(u)
        player.observe(decision, int(instance.P[decision.number].argmax()))
        player.update(decision, loss)
        return decision.number

    for t in range(min(instance.horizon, 20)):
        turn(second, (t + 0.5) / 20, 1.0)
        one, other = (turn(player, (0.37 * t) % 1, float(t % 2)) for player in (alone, first))
        hold(one == other, f"{_name(learner)} is affected by another run of the same learner (round {t})")


def takes_outcomes_back(learner: Learner, instance: Instance) -> None:
    """In a live pool `learn` with sign -1 undoes `learn`: an outcome has come after the default was learnt."""
    if not learner.runs_live or learner.exposure:  # with exposure no default is learnt
        return
    stepper = Stepper(learner, problem_of(instance, learner, 5, Stream.from_seed(3)))
    rows = rows_at(make_tables(stepper.problem.P), 0)
    for t in range(min(instance.horizon, 20)):
        policy = stepper.policy(rows, t)
        action = int(policy.argmax())
        played = Played(t, float(t), action, int(rows.columns[:, action].argmax()), 0, 0.0)
        saved = stepper.remember(rows, policy, action, played.state)
        for loss, sign in ((1.0, 1.0), (1.0, -1.0)):
            stepper.learn(played, loss, saved, sign)
        kept = np.allclose(stepper.policy(rows, t), policy, atol=1e-6)
        hold(kept, f"{_name(learner)}: `learn` with sign -1 does not undo `learn` (round {t})")
        stepper.learn(played, float(t % 2), saved)


def survives(learner: Learner, edge: str) -> None:
    """One action, one state, one round, delays without end: regret stays a number."""
    P, mean = EDGES[edge]
    table = np.asarray(P, dtype=np.float64)
    for horizon in (1, 2, 33):
        instance = Instance(table, np.full((horizon, table.shape[1]), mean))
        for delay in (0, 1, horizon, never):
            run = simulate(instance, learner, delay, seed=1)
            hold(bool(np.isfinite(run.regret)), f"{_name(learner)}: regret is {run.regret} where there is {edge}")


def _name(learner: Learner) -> str:
    return type(learner).__name__


def _round(wrong: Any) -> str:
    return f" (round {int(np.flatnonzero(wrong)[0])})" if np.any(wrong) else ""


LEARNER_PROMISES = (
    repeats_itself,
    has_a_policy,
    waits_for_outcomes,
    steps_as_it_runs,
    shares_nothing,
    takes_outcomes_back,
)
