"""Policies as a pool draws from them: the learner's, within the bounds of the settings, with the holdout."""

from __future__ import annotations

from typing import Any

import numpy as np

from statepool.checks import Floats, Ints
from statepool.compiling import entry_point
from statepool.kernels import dot, draw
from statepool.learners.contract import Played, Rows, learn, see
from statepool.learners.outside import explained, suited
from statepool.learners.stepper import NO_TABLE, NOBODY, POLICY, Stepper, step
from statepool.live.catalogue import Catalogue, Offer
from statepool.live.definitions import Revision
from statepool.live.settings import Settings

LARGE, BLOCK = 4096, 256
"""A policy of more actions than the first is drawn from by binary search among sums of so many."""
TINY, LARGEST_FACTOR = 1e-12, 2e12
SLACK = 1e-9


FAR = 64
"""Numbers between two arrays that compiled loops treat as apart for certain."""


def policy_of(stepper: Stepper, rows: Rows, t: int) -> Floats:
    """The policy of round t, into an array far from all others.

    Compiled loops sum in another order where one array begins less than some hundred bytes after another. A policy must
    be the same to the bit wherever its array happens to lie, so `Stepper.policy` will not do.
    """
    out = np.empty(rows.actions.size + 2 * FAR)[FAR:-FAR]
    with explained(stepper.learner, stepper.memory):
        suited(step, stepper.memory)(
            stepper.memory, POLICY, rows._replace(vary=True), NOBODY, t, 0.0, 1.0, out, NO_TABLE
        )
    return out


def state_probabilities(rows: Rows, policy: Floats) -> Floats:
    """The probability of each state under a policy, to the bit wherever its array lies."""
    likely = np.empty(len(rows.columns))
    _state_probabilities(rows.columns, policy, likely)
    return likely


@entry_point
def _state_probabilities(columns: Any, policy: Any, likely: Any) -> None:
    for s in range(likely.size):
        likely[s] = dot(policy, columns[s])


@entry_point
def _draw_all(policy: Any, ends: Any, uniforms: Any, choices: Any) -> None:
    """`kernels.draw` for each uniform; in a large policy inside the block that a binary search finds."""
    for n in range(uniforms.size):
        if ends.size == 0:
            choices[n] = draw(policy, uniforms[n])
            continue
        block = min(np.searchsorted(ends, uniforms[n]), ends.size - 1)
        while block > 0 and ends[block] == ends[block - 1]:
            block -= 1  # rounding left the sum below u, and the last blocks are empty
        reached = ends[block - 1] if block > 0 else 0.0
        inside = policy[block * BLOCK : (block + 1) * BLOCK]
        choices[n] = block * BLOCK + draw(inside, uniforms[n] - reached)


class Distribution:
    """What decisions of one version and one set of rows are drawn from.

    Parameters
    ----------
    policy : array
        The learner's action distribution, after the bounds on probabilities.
    holdout : float
        The share of decisions that the holdout takes.
    holdout_place : int, optional
        The place of the holdout's action; None: every action alike.
    """

    __slots__ = ("_ends", "holdout", "holdout_place", "policy")

    def __init__(self, policy: Floats, holdout: float = 0.0, holdout_place: int | None = None) -> None:
        if not (policy >= 0).all() or not abs(policy.sum() - 1) < 1e-6:
            raise ValueError("policy: the learner's numbers give no distribution, expected probabilities that sum to 1")
        self.policy, self.holdout, self.holdout_place = policy, holdout, holdout_place
        large = policy.size > LARGE
        self._ends = np.cumsum(np.add.reduceat(policy, np.arange(0, policy.size, BLOCK))) if large else np.zeros(0)

    def draw(self, uniforms: Floats) -> tuple[Ints, Floats, Any]:
        """The places, probabilities and whether they are the holdout's, of decisions with these random numbers.

        A probability is that of the action among all decisions, those of the holdout included.
        """
        held = uniforms < self.holdout
        choices = np.empty(uniforms.size, np.int64)
        rest = uniforms if not self.holdout else (uniforms - self.holdout) / (1 - self.holdout)
        _draw_all(self.policy, self._ends, rest, choices)
        if self.holdout:
            n = self.policy.size
            even = np.minimum((uniforms / self.holdout * n).astype(np.int64), n - 1)
            choices = np.where(held, even if self.holdout_place is None else self.holdout_place, choices)
        return choices, self.probability(choices), held

    def probability(self, choices: Ints) -> Floats:
        """The probability of actions at these places, among all decisions."""
        learned = self.policy[choices]
        if not self.holdout:
            return np.minimum(learned, 1.0)
        base = 1 / self.policy.size if self.holdout_place is None else (choices == self.holdout_place)
        return np.minimum((1 - self.holdout) * learned + self.holdout * base, 1.0)


def within(policy: Floats, low: Floats, high: Floats) -> Floats:
    """The distribution clip(c x, low, high) that sums to 1: proportions are kept wherever no bound is in the way."""
    if high.sum() < 1:  # actions were retired since: a decision is worth more than a bound
        high = high / high.sum() if high.sum() > TINY else np.ones(high.size)
    if low.sum() > 1:
        low = low / low.sum()
    floored = np.maximum(policy, TINY)
    bottom, top = 0.0, 1.0
    while np.clip(top * floored, low, high).sum() < 1 and top < LARGEST_FACTOR:
        bottom, top = top, 2 * top
    for _ in range(100):  # halving a bracket of doubles a hundred times leaves neighbours
        middle = (bottom + top) / 2
        if np.clip(middle * floored, low, high).sum() < 1:
            bottom = middle
        else:
            top = middle
    fitted = np.clip(top * floored, low, high)
    return np.asarray(fitted / fitted.sum())


def distribution_of(policy: Floats, offer: Offer, revision: Revision) -> Distribution:
    """The policy with the fixed action, the bounds and the holdout of the pool's settings."""
    settings, catalogue = revision.settings, revision.catalogue
    if not (settings.holdout or settings.probability_bounds or settings.fixed_action is not None):
        return Distribution(policy)

    def place_of(label: Any) -> int | None:
        if offer.labels is not None:
            return offer.labels.index(label) if label in offer.labels else None
        found = np.flatnonzero(offer.rows.actions == catalogue.number_of.get(label, -1))
        return int(found[0]) if found.size else None

    fixed = None if settings.fixed_action is None else place_of(settings.fixed_action)
    held = None if settings.holdout_action is None else place_of(settings.holdout_action)
    share = settings.holdout
    if fixed is not None:
        policy = np.zeros(policy.size)
        policy[fixed] = 1.0
    elif settings.probability_bounds:
        low, high = np.zeros(policy.size), np.ones(policy.size)
        for label, least, most in settings.probability_bounds:
            place = place_of(label)
            if place is not None:
                low[place], high[place] = least, most
        base = np.full(policy.size, 1 / policy.size) if held is None else np.eye(1, policy.size, held)[0]
        policy = within(policy, *(np.clip((each - share * base) / (1 - share), 0, 1) for each in (low, high)))
    return Distribution(policy, share, held)


def check_feasible(settings: Settings, catalogue: Catalogue) -> None:
    """Settings name actions of the catalogue, and their bounds leave room for a distribution."""
    bounds = {
        catalogue.action(label, "probability_bounds"): (low, high) for label, low, high in settings.probability_bounds
    }
    held = None if settings.holdout_action is None else catalogue.action(settings.holdout_action, "holdout_action")
    if settings.fixed_action is not None and not catalogue.is_active(settings.fixed_action):
        raise ValueError(f"fixed_action: {settings.fixed_action!r} is not an active action of the catalogue")
    n = int(catalogue.active.sum())
    others = n - sum(bool(catalogue.active[number]) for number in bounds)
    even = settings.holdout / n if held is None else 0.0
    least, most = others * even, float(others)
    if held is not None and catalogue.active[held] and held not in bounds:
        least += settings.holdout
    for number, (low, high) in bounds.items():
        if not catalogue.active[number]:
            continue
        share = even + (settings.holdout if number == held else 0.0)
        if share > high:
            raise ValueError(
                f"probability_bounds: the holdout alone gives {catalogue.labels[number]!r} {share:.6g}, "
                f"expected at most {high:.6g}"
            )
        least, most = least + max(low, share), most + high
    if least > 1 + SLACK:
        raise ValueError(f"probability_bounds: the lowest ones and the holdout sum to {least:.6g}, expected at most 1")
    if most < 1 - SLACK:
        raise ValueError(f"probability_bounds: the highest ones sum to {most:.6g}, expected at least 1")


@entry_point
def take_in(
    memory: Any, what: Any, t: Any, time: Any, action: Any, state: Any, context: Any, wait: Any, loss: Any, sign: Any,
    saved: Any,
) -> None:  # fmt: skip
    """Hand states (`what` 0) and outcomes (1) to the learner, in their order."""
    for i in range(what.size):
        played = Played(t[i], time[i], action[i], state[i], context[i], wait[i])
        if what[i] == 0:
            see(memory, played, saved[i])
        else:
            learn(memory, played, loss[i], saved[i], sign[i])
