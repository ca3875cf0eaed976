"""Two alarms: what was foretold is wrong by more than luck, or the play loses more than a safe one would have.

doubt     sum (h(S) - g)(X - g) < -2 sqrt(sum (h(S) - g)² g (1 - g)),  g: mean of h over the states played
          What h foretold was wrong by more than luck: losses swing with the delay, and who follows comes late.
guard     sum X (1 - q_safe(S)/q(S)) > 3 sqrt(s / SHARE), counted anew from each start s of the safe part
          What was played has lost that much more than safe would have.
"""

from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled
from statepool.learners.sums import Sum, Views

DOUBT = 2.0
"""How many standard errors what was foretold may be worth less than nothing."""

GUARD = 3.0
"""The guard is that many times sqrt(s / SHARE), the standard deviation of its sum at the most: luck hardly rings it."""

LOG_WINDOW = -1e-3
"""Doubt looks back a thousand rounds."""

SUMS = (
    Sum("foretold", told_by="outcome", over="one", logs=(LOG_WINDOW,)),
    Sum("chance", told_by="outcome", over="one", logs=(LOG_WINDOW,)),
    Sum("excess", told_by="outcome", over="one", anew=True),
)
LEAN, USUAL, RATIO = range(3)
"""What travels: h(S) - g, g, and q_safe(S)/q(S)."""


class Alarms(NamedTuple):
    foretold: Floats
    chance: Floats
    """The variance of what was foretold, if it were worth nothing."""
    excess: Floats


def start_alarms(views: Views) -> Alarms:
    """All quiet."""
    return Alarms(views.of["foretold"][0], views.of["chance"][0], views.of["excess"][0])


@compiled
def is_ringing(alarms: Any, start: int, share: float) -> bool:
    """Whether one of the two is on; `start` and `share` are of the safe part."""
    in_doubt = alarms.foretold[0] < -DOUBT * np.sqrt(alarms.chance[0])
    guilty = alarms.excess[0] > GUARD * np.sqrt(start / share)
    return in_doubt or guilty


@compiled
def carry_alarms(memories: Any, state: int, ratio: float, ticket: Any) -> None:
    """What the alarms will need of an outcome."""
    usual = usual_loss(memories)
    ticket[LEAN], ticket[USUAL], ticket[RATIO] = memories.mean[state] - usual, usual, ratio


@compiled
def usual_loss(memories: Any) -> float:
    """The mean of h over the states played."""
    total = weighted = 0.0
    for s in range(memories.mean.size):
        total += memories.visits[s]
        weighted += memories.visits[s] * memories.mean[s]
    return weighted / total if total > 0.0 else 0.5


@compiled
def teach_alarms(out: Any, loss: float, ticket: Any) -> None:
    """Their part of a lesson: what leaning towards a state was worth, its variance, and how much more was lost."""
    lean, usual = ticket[LEAN], ticket[USUAL]
    out[0] = lean * (loss - usual)
    out[1] = lean * lean * usual * (1.0 - usual)
    out[2] = loss * (1.0 - ticket[RATIO])
