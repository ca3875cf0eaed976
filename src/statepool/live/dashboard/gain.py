"""What heeding contexts gains over one answer for all, per decision.

    gain = sum_s (q'(s) - q(s)) m(s)

q(s) is how likely a state was under what was played, by the rows of the decisions themselves. q'(s) is how likely it
had been if the same requests had been answered in one order for all: in each context by the first action that may be
played there, in the order of expected losses over all contexts. (Where every action may be played everywhere, that is
one action.) m(s) is the mean loss in a state, over all outcomes that are ripe.

What was played includes what the learner tried in order to learn: while that is most of it, the gain is below zero.
It holds as far as the state tells all, which the alarms watch. The order is chosen by the same m that judges it, so it
looks better than it is, and the gain errs to the small side. The interval is of m's error: a state's mean is taken as
if two outcomes of variance 1/4 had come beside its own, so that a state which nobody saw is unknown, not certain.
"""

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.live.dashboard.contexts import ContextTallies
from statepool.live.dashboard.lessons import Lessons
from statepool.live.status import Listing

FEWEST = 30
"""Ripe outcomes before which nothing is said."""
Z = 1.96
"""Of 95 %."""
BESIDE, USUAL, SPREAD = 2, 0.5, 0.25
"""The outcomes that are added to those of each state, their mean and their variance."""


class Gain(NamedTuple):
    """How much less is lost per decision than with one answer for all, and its interval of 95 %."""

    value: float
    low: float
    high: float
    instead: int
    """The number of the action that would be played for all, or for most."""


class StateMeans(NamedTuple):
    """Of each state: the mean loss, and the variance of that mean."""

    means: Floats
    variances: Floats


def gain_of(tallies: ContextTallies, lessons: Lessons, listing: Listing) -> Gain | None:
    """None while it cannot be told: fewer than two contexts, or too few outcomes."""
    ripe = lessons.ripe()
    if len(tallies) < 2 or ripe.sum() < FEWEST:
        return None
    known = state_means(lessons.column("state")[ripe], lessons.losses[ripe], listing.rows.shape[1])
    return compare(tallies, known, listing)


def state_means(states: Any, losses: Floats, n_states: int) -> StateMeans:
    """By the outcomes of each state, and two beside them."""
    n = np.bincount(states, minlength=n_states) + BESIDE
    means = (np.bincount(states, losses, n_states) + BESIDE * USUAL) / n
    squares = np.bincount(states, (losses - means[states]) ** 2, n_states) + BESIDE * SPREAD
    return StateMeans(means, squares / n / n)


def compare(tallies: ContextTallies, known: StateMeans, listing: Listing) -> Gain | None:
    """What was played beside one order for all; None if nothing that came may be answered any more."""
    offers = [(each, *listing.offered(each.context)) for each in tallies]
    offers = [offer for offer in offers if offer[1].size]
    if not offers:
        return None
    total, weight = np.zeros(len(listing.actions)), np.zeros(len(listing.actions))
    for each, numbers, rows in offers:
        total[numbers] += each.decisions * (rows @ known.means)
        weight[numbers] += each.decisions
    order = np.divide(total, weight, out=np.full(total.size, np.inf), where=weight > 0)
    change, decisions = np.zeros(known.means.size), 0
    played = np.zeros(total.size)
    for each, numbers, rows in offers:
        first = int(np.argmin(order[numbers]))
        change += each.decisions * rows[first] - each.reached
        decisions += each.decisions
        played[numbers[first]] += each.decisions
    change /= decisions
    value, error = float(change @ known.means), sqrt(float(change**2 @ known.variances))
    return Gain(value, value - Z * error, value + Z * error, int(np.argmax(played)))
