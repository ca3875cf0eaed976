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
from statepool.learners.contract import Learner, Played, make_tables, problem_of, rows_at, short_name
from statepool.learners.player import PlayedRound
from statepool.learners.stepper import Stepper
from statepool.model import Instance
from statepool.stream import Stream

__all__ = ["Check", "ContractError", "check_family", "check_learner", "learner_checks"]

ROUNDS, SLACK, VERSIONS = 60, 1e-9, 50
EDGES: dict[str, tuple[Any, float]] = {
    "one action": ([[0.3, 0.7]], 0.5),
    "one state": ([[1.0]] * 5, 0.5),
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
    checks.append(Check("takes every report", partial(takes_every_report, learner)))
    for promise in LEARNER_PROMISES:
        name = promise.__name__.replace("_", " ")
        checks += [Check(f"{name} ({place})", partial(promise, learner, each)) for place, each in enumerate(given)]
    return checks + [Check(f"survives {edge}", partial(survives, learner, edge)) for edge in EDGES]


def check_learner(learner: Learner, instances: Iterable[Instance] | None = None) -> None:
    """Run all `learner_checks`; the first that fails raises.

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


def check_family(family: Callable[..., Instance], **settings: Any) -> None:
    """Check a family: a seed names one instance, and what is no seed is refused with ValueError.

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
    first, again = (make(seed=3) for _ in range(2))
    hold(isinstance(first, Instance), f"{name}(seed=3) gives {type(first).__name__}, expected an Instance")
    same = np.array_equal(first.P, again.P) and np.array_equal(first.theta, again.theta)
    hold(same, f"{name}(seed=3) gives another instance the second time")
    with suppress(ValueError):
        make(seed="one")
        raise ContractError(f"{name}(seed='one') is accepted, expected ValueError (generator_of checks a seed)")


def usual_instances() -> list[Instance]:
    """Small members of four families that have little in common."""
    kinds = families.band, families.funnel, families.hostile, families.hard
    return [family(0, n_actions=9, horizon=ROUNDS) for family in kinds]


def is_a_value(learner: Learner) -> None:
    """Settings only: equal to its copy, hashable, and shown by its repr."""
    name = short_name(learner)
    hold(isinstance(learner, Learner), f"{name} is no Learner, expected a subclass of statepool.learners.Learner")
    try:
        copy = pickle.loads(pickle.dumps(learner))
    except Exception as error:
        raise ContractError(f"{name} cannot be pickled ({error}), expected a frozen dataclass of settings") from None
    alike = copy == learner and hash(copy) == hash(learner)
    hold(alike, f"{name} differs from its pickled copy, expected a frozen dataclass of settings")


def repeats_itself(learner: Learner, instance: Instance) -> None:
    """The same random numbers give the same actions: a run leaves nothing behind for the next one."""
    delays = missing(0, instance.horizon, mean=6.0)
    differ = np.not_equal(*(simulate(instance, learner, delays, seed=3).actions for _ in range(2)))
    hold(not differ.any(), f"{short_name(learner)} acts otherwise the second time, on the same numbers{_round(differ)}")


def has_a_policy(learner: Learner, instance: Instance) -> None:
    """What `policy` writes sums to one and is not negative."""
    if not learner.known_policy:
        return
    policies = simulate(instance, learner, 4, seed=3).policies()
    wrong = ~(policies >= 0).all(axis=1) | (np.abs(policies.sum(axis=1) - 1) > SLACK)
    hold(not wrong.any(), f"{short_name(learner)}: the policy is not numbers from 0 that sum to 1{_round(wrong)}")


def waits_for_outcomes(learner: Learner, instance: Instance) -> None:
    """An outcome that has not arrived changes no action: those still waiting in the middle round are inverted."""
    if learner.reads_losses:
        return
    cut, delays = instance.horizon // 2, missing(1, instance.horizon, mean=6.0)
    waiting = np.arange(instance.horizon) + delays >= cut
    theta = np.clip(instance.theta, 0.01, 0.99)  # a mean of 0 takes no random number
    means = theta, np.where(waiting[:, None], 1 - theta, theta)
    runs = (simulate(Instance(instance.P, each), learner, delays, seed=5) for each in means)
    differ = np.not_equal(*(run.actions[: cut + 1] for run in runs))
    hold(not differ.any(), f"{short_name(learner)} acts on an outcome that has not arrived{_round(differ)}")


def steps_as_it_runs(learner: Learner, instance: Instance) -> None:
    """Driven round by round through `Player`, in turn with another player, it acts as in the loop."""
    steady = Instance(instance.P, np.clip(instance.theta, 0.01, 0.99))  # a mean of 0 takes no random number
    run, delay = simulate(steady, learner, 5, seed=11), 5
    player, other = (learner.player(steady.P, steady.horizon, delay, 11, steady) for _ in range(2))
    numbers = run.stream.uniforms(3 * steady.horizon)[::3]  # those that draw actions
    decisions: list[PlayedRound] = []
    for t in range(steady.horizon):
        if t > delay:
            player.update(decisions[t - delay - 1], float(run.outcomes[t - delay - 1]))
        decisions.append(player.act(numbers[t]))
        same = decisions[t].number == run.actions[t]
        hold(same, f"{short_name(learner)} acts otherwise by hand, beside another run, than in the loop (round {t})")
        player.observe(decisions[t], int(run.states[t]))
        beside = other.act((numbers[t] + 0.5) % 1)
        other.observe(beside, int(steady.P[beside.number].argmax()))
        other.update(beside, 1.0)


def takes_outcomes_back(learner: Learner, instance: Instance) -> None:
    """In a live pool `learn` with sign -1 undoes `learn`, versions later: an outcome comes after its default."""
    if not learner.runs_live or learner.exposure:  # with exposure no default is learnt
        return
    problem = problem_of(instance, learner, 5, Stream.from_seed(3))
    taken, never_learnt = Stepper(learner, problem), Stepper(learner, problem)
    rows = rows_at(make_tables(problem.P), 0)
    for t in range(0, VERSIONS * min(instance.horizon, 10), VERSIONS):
        policy = never_learnt.policy(rows, t)
        action = int(policy.argmax())
        played = Played(t, float(t), action, int(rows.columns[:, action].argmax()), 0, 0.0)
        saved = never_learnt.remember(rows, policy, action, played.state)
        taken.learn(played, 1.0, saved)
        for later in range(t + 1, t + VERSIONS + 1):
            for stepper in (taken, never_learnt):
                stepper.advance(later, float(later))
        taken.learn(played, 1.0, saved, -1.0)
        both = [(stepper.policy(rows, later), *stepper.arrays()) for stepper in (taken, never_learnt)]
        kept = all(np.allclose(a, b, rtol=1e-6, atol=1e-6) for a, b in zip(*both, strict=True))
        hold(kept, f"{short_name(learner)}: `learn` with sign -1 does not undo `learn` (round {t})")
        for stepper in (taken, never_learnt):
            stepper.learn(played, float(t // VERSIONS % 2), saved)


def takes_every_report(learner: Learner) -> None:
    """Any action may lead to any state: nothing is written past an array, and the policy stays a distribution."""
    for n_actions, n_states in ((12, 3), (3, 12)):
        instance = Instance(np.full((n_actions, n_states), 1 / n_states), np.full((36, n_states), 0.5))
        stepper = Stepper(learner, problem_of(instance, learner, 0, Stream.from_seed(3)))
        rows = rows_at(make_tables(instance.P), 0)
        for t, (action, state) in enumerate(np.ndindex(n_actions, n_states)):
            stepper.advance(t, float(t))
            policy = stepper.policy(rows, t)
            saved = stepper.remember(rows, policy, action, state)
            played = Played(t, float(t), action, state, 0, 0.0)
            stepper.see(played, saved)
            stepper.learn(played, 0.5, saved)
        total = float(stepper.policy(rows, 36).sum())
        hold(abs(total - 1) < SLACK, f"{short_name(learner)}: the policy sums to {total} after a report of each pair")


def survives(learner: Learner, edge: str) -> None:
    """One action, one state, one round, delays without end: regret stays a number."""
    P, mean = EDGES[edge]
    for horizon in (1, 2, 33):
        instance = Instance(P, np.full((horizon, len(P[0])), mean))
        for delay in (0, 1, horizon, never):
            run = simulate(instance, learner, delay, seed=1)
            hold(bool(np.isfinite(run.regret)), f"{short_name(learner)}: regret is {run.regret} where there is {edge}")


def _round(wrong: Any) -> str:
    return f" (round {int(np.flatnonzero(wrong)[0])})" if np.any(wrong) else ""


LEARNER_PROMISES = (repeats_itself, has_a_policy, waits_for_outcomes, steps_as_it_runs, takes_outcomes_back)
