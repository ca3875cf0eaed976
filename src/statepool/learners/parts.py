"""Parts that several learners share.

*Estimates.* Cumulative loss estimates that are pooled through the state or, for comparison, of the action played alone.

pooled       G(s) += amount        x(a) ∝ exp(-rate · (P G)(a))
not pooled   L(A) += amount        x(a) ∝ exp(-rate · L(a))

*Outstanding.* How many outcomes are waited for, summed over the rounds, and which are given up.

    active   rounds played whose outcome has neither come nor been given up
    waited   D_t, the sum of `active` over the rounds played so far

With skipping, a round is given up once it has been waited for in max(1, sqrt(waited / log K)) rounds, and its outcome
is then ignored whenever it comes. These thresholds never fall, so rounds are given up in the order they were played:
`front` is the first that may still come, and one flag for each round behind it says whether it has.

Source: Zimmert & Seldin 2020.

*Settings* are explained and checked by one table. *Functions of a rule* that several learners have in common come last.
"""

from dataclasses import dataclass
from inspect import signature
from math import log
from typing import Any, NamedTuple, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import NDArray

from statepool.arguments import Argument, count, number, with_sections
from statepool.checks import Floats, check_count, check_name, check_rate, shown
from statepool.compiling import compiled
from statepool.kernels import LARGEST_ESTIMATE, combine, dot, softmin
from statepool.learners.contract import Learner, Problem, check_flag

Kind = TypeVar("Kind", bound=Learner)
TALLY = np.dtype([("active", "i8"), ("waited", "f8"), ("front", "i8"), ("given_up", "i8")], align=True)

LONGEST_WAIT = 1 << 16
"""Without a horizon so many rounds are remembered; a round that has waited longer is given up."""


def n_copies(copies: int | str, delay: int, horizon: int | None = None) -> int:
    """How many interleaved copies: a number, or "d+1"; no more than there are rounds."""
    count = delay + 1 if copies == "d+1" else int(copies)
    return count if horizon is None else min(count, horizon)


def _check_copies(value: Any, name: str) -> None:
    if isinstance(value, str):
        if value != "d+1":
            raise ValueError(f"{name}: is {shown(value)}, expected a whole number of at least 1, or 'd+1'")
    else:
        check_count(value, name)


def _one_of(meaning: str, *names: str) -> Argument:
    return Argument("str", meaning, lambda value, name: check_name(name, value, names))


def _flag(meaning: str) -> Argument:
    return Argument("bool", meaning, check_flag)


SETTINGS = {
    "base": Argument("Learner", "The learner that is fed."),
    "block": count("The rounds of a block.", lowest=2),
    "certified": _flag("Whether the radii hold with high probability; else they are a heuristic."),
    "copies": Argument('int or "d+1"', 'How many learners take turns; "d+1": one more than the delay.', _check_copies),
    "denominator": _one_of('What the second half divides by: "counted" or "predicted".', "counted", "predicted"),
    "exploration": number("The share of uniform exploration.", 0, 1),
    "forgetting": number("The share of the past that each round keeps, in (0, 1].", 0, 1, open_low=True),
    "groups": Argument("list of int", "Merges states: the group of each state."),
    "history": count("How many outcomes the index is made of."),
    "hold": count("The largest delay; None: that of the problem, doubled whenever an outcome comes later.", lowest=0),
    "known_map": _flag("Whether the rows are taken from P."),
    "learn_map": _flag("Whether the map is learnt from the pairs seen. Then P is not read."),
    "learner": Argument("Learner", "The learner that is copied."),
    "mixing": number("The share of uniform exploration.", 0, 1),
    "pooled": _flag("Whether losses are pooled through the state, or learnt of the action played alone."),
    "prior": Argument("Prior", "How states predict outcomes, as `prior_of` makes it; None: nothing is known of it."),
    "radius": number("Scales the squared radii; 1 is what is proved.", 0, 1e9),
    "rate": Argument(
        "float",
        "The learning rate; None: the paper's default for the horizon and the delay, or the learner's own.",
        lambda value, name: check_rate(value),
    ),
    "samples": count("How many draws a decision chooses among, so that its probability is known."),
    "scale": number("Multiplies the fixed rate.", 0, 1e9, open_low=True),
    "shift": _flag("Whether the rates start later, as in the paper's tuned baseline."),
    "skip": _flag("Whether to give up on outcomes that are too late."),
    "smoothing": number("Added to the count of each pair.", 0, 1e9, open_low=True),
    "tuning": _one_of("The source's rates, or the paper's, which alone have scale and shift.", "anytime", "fixed"),
    "window": count("Rows are counted over this many rounds; None: over all."),
}
"""What the settings of learners mean and may be."""


@dataclass_transform(frozen_default=True)
def settled(kind: type[Kind]) -> type[Kind]:
    """A learner as a frozen dataclass, whose settings are checked and explained by SETTINGS."""
    own = vars(kind).get("__post_init__", lambda learner: None)

    def check(learner: Kind) -> None:
        for name, parameter in parameters.items():
            value, test = getattr(learner, name), SETTINGS[name].check
            if test and (value is not None or parameter.default is not None):
                test(value, name)
        own(learner)

    kind.__post_init__ = check  # type: ignore[attr-defined]
    made = dataclass(frozen=True)(kind)
    parameters = dict(signature(made).parameters)
    made.__doc__ = with_sections(made, parameters, SETTINGS)
    return made


class Estimates(NamedTuple):
    losses: Floats
    """G by state, or L by action."""
    totals: Floats
    """Room for P G."""
    pooled: bool


def start_estimates(problem: Problem, pooled: bool) -> Estimates:
    """Nothing learnt: the uniform policy."""
    K = problem.n_actions
    return Estimates(np.zeros(problem.n_states if pooled else K), np.empty(K), pooled)


@compiled
def weigh(estimates: Any, columns: Any, rate: float, out: Any) -> None:
    """The policy, into `out`."""
    if estimates.pooled:
        combine(columns, estimates.losses, estimates.totals)
        softmin(estimates.totals, rate, out)
    else:
        softmin(estimates.losses, rate, out)


@compiled
def probability(estimates: Any, columns: Any, policy: Any, action: int, state: int) -> float:
    """What an outcome is divided by: the probability of the state, or of the action."""
    return dot(policy, columns[state]) if estimates.pooled else policy[action]


@compiled
def add_estimate(estimates: Any, action: int, state: int, amount: float) -> None:
    """An estimate of the state, or of the action."""
    estimates.losses[state if estimates.pooled else action] += min(amount, LARGEST_ESTIMATE)


class Outstanding(NamedTuple):
    tally: Any
    """One record of TALLY."""
    arrived: NDArray[np.bool_]
    """One flag for each round, in a ring; empty where no round is ever given up."""
    log_actions: float


def start_outstanding(problem: Problem, skip: bool = False) -> Outstanding:
    """Nothing played."""
    flags = np.zeros((problem.horizon or LONGEST_WAIT) if skip else 0, np.bool_)
    return Outstanding(np.zeros(1, TALLY), flags, log(max(problem.n_actions, 2)))


@compiled
def begin_round(outstanding: Any, t: int) -> None:
    """Give up those that have waited too long, and count the others once more."""
    tally = outstanding.tally[0]
    if outstanding.arrived.size > 0:
        _give_up(outstanding, t)
    tally.waited += tally.active


@compiled
def _give_up(outstanding: Any, t: int) -> None:
    tally, arrived = outstanding.tally[0], outstanding.arrived
    longest = max(1.0, np.sqrt(tally.waited / outstanding.log_actions))
    while tally.front < t and (t - tally.front - 1 >= longest or t - tally.front >= arrived.size):
        if not arrived[tally.front % arrived.size]:
            tally.active -= 1
            tally.given_up += 1
        tally.front += 1


@compiled
def count_round(outstanding: Any, t: int) -> None:
    """Round t was played."""
    outstanding.tally[0].active += 1
    if outstanding.arrived.size > 0:
        outstanding.arrived[t % outstanding.arrived.size] = False


@compiled
def count_arrival(outstanding: Any, t: int) -> bool:
    """Round t's outcome has come; False if it was given up before."""
    tally = outstanding.tally[0]
    if outstanding.arrived.size > 0:
        if t < tally.front:
            return False
        outstanding.arrived[t % outstanding.arrived.size] = True
    tally.active -= 1
    return True


def remember_action(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    """The probability of the action."""
    saved[0] = policy[choice]


def remember_state(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    """The probability of the state."""
    saved[0] = dot(policy, rows.columns[state])


def remember_estimate(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    """The probability that an outcome is divided by, for a memory with `estimates`."""
    saved[0] = probability(memory.estimates, rows.columns, policy, choice, state)


def see_round(memory: Any, played: Any, saved: Any) -> None:
    """Count the round, for a memory with `outstanding`."""
    count_round(memory.outstanding, played.t)


def policy_of_estimates(memory: Any, rows: Any, t: int, out: Any) -> None:
    """Exponential weights, for a memory with `estimates` and a `rate`."""
    weigh(memory.estimates, rows.columns, memory.rate, out)
