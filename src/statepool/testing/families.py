"""What is promised of every family, one function a promise."""

import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from statepool.engine import simulate
from statepool.learners import StateEXP3
from statepool.model import Instance
from statepool.testing.checking import Check, hold

Family = Callable[..., Instance]
SMALL = {"horizon": 50}


def family_checks(family: Family, **settings: Any) -> list[Check]:
    """Every promise for one family, with small settings of your own if you give some.

    >>> import statepool as sp
    >>> from statepool.testing import family_checks
    >>> str(family_checks(sp.families.band, horizon=60)[0])
    'gives an instance'
    """
    known = inspect.signature(family).parameters
    chosen = {name: value for name, value in SMALL.items() if name in known} | settings
    return [Check(promise.__name__.replace("_", " "), partial(promise, family, chosen)) for promise in PROMISES]


def check_family(family: Family, **settings: Any) -> None:
    """Run every check; the first that fails raises.

    >>> import statepool as sp
    >>> from statepool.testing import check_family
    >>> check_family(sp.families.band, horizon=60)
    """
    for check in family_checks(family, **settings):
        check()


def gives_an_instance(family: Family, settings: dict[str, Any]) -> None:
    """A function of a seed that gives an `Instance`."""
    made = family(seed=0, **settings)
    hold(isinstance(made, Instance), f"{family.__name__}(seed=0) gives {type(made).__name__}, expected an Instance")


def is_named_by_its_seed(family: Family, settings: dict[str, Any]) -> None:
    """The same seed gives the same bits; a generator, where one is taken, gives those of the seed that made it."""
    first, again = family(seed=3, **settings), [family(seed=3, **settings)]
    with suppress(ValueError):
        again.append(family(seed=np.random.default_rng(3), **settings))
    for other in again:
        same = np.array_equal(first.P, other.P) and np.array_equal(first.theta, other.theta)
        hold(same, f"{family.__name__}(seed=3) gives another instance the second time")


def can_be_played(family: Family, settings: dict[str, Any]) -> None:
    """A learner runs on it, and its regret is a number."""
    run = simulate(family(seed=0, **settings), StateEXP3(), delay=3, seed=80_000)
    hold(bool(np.isfinite(run.regret)), f"{family.__name__}: the regret of StateEXP3 is {run.regret}")


def refuses_what_is_not_a_seed(family: Family, settings: dict[str, Any]) -> None:
    """A seed that is none is refused in a sentence."""
    try:
        family(seed="one", **settings)
    except ValueError:
        return
    except Exception as error:
        hold(False, f"{family.__name__}(seed='one') raises {type(error).__name__}, expected ValueError")
    hold(False, f"{family.__name__}(seed='one') is taken, expected ValueError (generator_of checks a seed)")


PROMISES = (gives_an_instance, is_named_by_its_seed, can_be_played, refuses_what_is_not_a_seed)
