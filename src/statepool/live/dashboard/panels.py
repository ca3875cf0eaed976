"""The tables of the page: what is played and why, the states, the lift, the settings."""

import dataclasses

import numpy as np

from statepool.checks import Floats
from statepool.learners.learner import short_name
from statepool.live.dashboard import formatting
from statepool.live.dashboard.buckets import EXPECTED, REACHED, SEEN, Bucket
from statepool.live.dashboard.gain import Gain, gain_of
from statepool.live.dashboard.lessons import Means
from statepool.live.dashboard.measures import Measures
from statepool.live.dashboard.reading import Reading, top
from statepool.live.lift import lift

N_ACTIONS, N_STATES, N_BARS = 20, 12, 24
N_CONTEXTS, N_LEADING = 12, 2
SHADES = 7
FEW = 10_000


@dataclasses.dataclass(frozen=True)
class PlayedAction:
    label: str
    probability: float
    bars: list[tuple[float, int]]
    """The height of each bar, in percent of the highest, and its shade."""
    row: str
    expected: float
    outcomes: int
    measured: float


@dataclasses.dataclass(frozen=True)
class SeenState:
    label: str
    played: float
    expected: float
    loss: float
    outcomes: int
    shade: int


@dataclasses.dataclass(frozen=True)
class PlayedContext:
    label: str
    share: float
    """Of the decisions of all contexts."""
    actions: list[tuple[str, float]]
    """The most played there, and their shares."""
    outcomes: int
    loss: float


@dataclasses.dataclass(frozen=True)
class ContextsPanel:
    """The contexts that came most often, and what heeding them gains."""

    rows: list[PlayedContext]
    n_seen: int
    n_contexts: int
    followed: float
    """The share of the decisions whose contexts are followed."""
    gain: Gain | None
    instead: str
    """The action that one answer for all would be, or mostly be."""


@dataclasses.dataclass(frozen=True)
class LiftTile:
    """What the learner saves against the holdout, per decision; all of it None until both have outcomes."""

    value: float | None
    low: float | None
    high: float | None
    learner: float
    holdout: float
    outcomes: int
    held: int


def beliefs_of(believed: Floats | None, seen: Means) -> Floats:
    """What each state is held to lose: by the learner where it says so, else by the outcomes seen."""
    if believed is not None:
        return believed
    known = seen.counts > 0
    usual = float(seen.means[known] @ seen.counts[known] / seen.counts.sum()) if known.any() else float("nan")
    return np.where(known, seen.means, usual)


def _shades(beliefs: Floats) -> list[int]:
    """From 0, the least loss, to the most; the middle where nothing is known or all are alike."""
    known = beliefs[np.isfinite(beliefs)]
    width = float(known.max() - known.min()) if known.size else 0.0
    if width == 0:
        return [SHADES // 2] * beliefs.size
    places = np.where(np.isfinite(beliefs), (beliefs - known.min()) / width, 0.5)
    return [min(int(place * SHADES), SHADES - 1) for place in places]


def actions_of(reading: Reading, measures: Measures, beliefs: Floats) -> list[PlayedAction]:
    places = _most_played(reading, beliefs)
    numbers = [int(reading.numbers[place]) for place in places]
    outcomes = measures.lessons.of_actions(numbers)
    shades, states = _shades(beliefs), reading.states
    several = [reading.row(number) for number in numbers]
    drawn = np.sort(np.argsort(-np.max(several, axis=0), kind="stable")[:N_BARS])
    highest = max(float(row.max()) for row in several)
    return [
        PlayedAction(
            label=reading.label(number),
            probability=float(reading.distribution[place]),
            bars=[(100 * float(row[s]) / highest, shades[s]) for s in drawn],
            row=", ".join(f"{states[s]} {formatting.share(float(row[s]))}" for s in top(row, 6) if row[s] > 0),
            expected=float(row @ beliefs),
            outcomes=int(outcomes.counts[i]),
            measured=float(outcomes.means[i]),
        )
        for i, (place, number, row) in enumerate(zip(places, numbers, several, strict=True))
    ]


def _most_played(reading: Reading, beliefs: Floats) -> list[int]:
    """Order actions by probability, and equals by what they are expected to lose, unless there are very many."""
    if reading.distribution.size > FEW:
        return top(reading.distribution, N_ACTIONS)
    expected = np.nan_to_num(beliefs) @ reading.columns
    return [int(place) for place in np.lexsort((expected, -np.round(reading.distribution, 4)))[:N_ACTIONS]]


def states_of(reading: Reading, whole: Bucket, outcomes: Means, beliefs: Floats) -> tuple[list[SeenState], int]:
    """The states that were seen most; before any was seen, those expected most."""
    count = whole.tallies["states"]
    played = whole.by_state[SEEN] / count if count else np.full(beliefs.size, np.nan)
    reached = whole.by_state[EXPECTED] if count else whole.by_state[REACHED]
    expected = reached / reached.sum() if reached.sum() else np.full(beliefs.size, np.nan)
    order = np.nan_to_num(played if count else expected)
    chosen = sorted(top(order, N_STATES)) if beliefs.size <= N_STATES else top(order, N_STATES)
    shades, labels = _shades(beliefs), reading.states
    states = [
        SeenState(
            label=labels[s],
            played=float(played[s]),
            expected=float(expected[s]),
            loss=float(outcomes.means[s]),
            outcomes=int(outcomes.counts[s]),
            shade=shades[s],
        )
        for s in chosen
    ]
    return states, beliefs.size - len(states)


def contexts_of(reading: Reading, measures: Measures) -> ContextsPanel | None:
    """None for a pool without contexts."""
    tallies = measures.contexts
    if not reading.status.contexts:
        return None
    total = tallies.others + sum(each.decisions for each in tallies)
    rows = [
        PlayedContext(
            label=formatting.label(each.context),
            share=each.decisions / total,
            actions=[(reading.label(n), count / each.decisions) for n, count in each.actions.most_common(N_LEADING)],
            outcomes=each.outcomes,
            loss=each.loss / each.outcomes if each.outcomes else float("nan"),
        )
        for each in sorted(tallies, key=lambda each: -each.decisions)[:N_CONTEXTS]
    ]
    gain = gain_of(tallies, measures.lessons, reading.listing)
    followed = 1 - tallies.others / total if total else 1.0
    instead = "" if gain is None else reading.label(gain.instead)
    return ContextsPanel(rows, len(tallies), len(reading.status.contexts), followed, gain, instead)


def lift_of(reading: Reading) -> LiftTile | None:
    """The lift since the holdout last changed; None without a holdout."""
    losses, share = reading.status.losses, reading.status.settings.holdout
    learner, held = losses["learner"], losses["holdout"]
    if not share:
        return None
    value, low, high = lift(learner, held, share) or (None, None, None)
    return LiftTile(value, low, high, learner.mean, held.mean, learner.count, held.count)


def settings_of(reading: Reading) -> list[tuple[str, str]]:
    status = reading.status
    settings, learner = status.settings, status.learner
    rate = status.registers.get("rate") or getattr(learner, "rate", None)
    lines = [("learner", short_name(learner)), ("rate", f"{rate:.3g}" if rate else formatting.DASH)]
    if status.leader is not None:
        lines.append(("leader", formatting.label(status.leader)))
    if settings.refresh_seconds is not None:
        unused = "" if settings.refresh is None else f" (refresh={settings.refresh} is not looked at)"
        lines.append(("new version", f"at most every {formatting.span(settings.refresh_seconds)}{unused}"))
    else:
        lessons = status.lessons_a_version
        spared = "" if settings.refresh else ", as far as its budget of bytes goes"
        lines.append(("new version", ("after each lesson" if lessons == 1 else f"after {lessons} lessons") + spared))
    if settings.expire_after is not None:
        lines.append(("expiry", f"after {formatting.span(settings.expire_after)}, as loss {settings.default_loss:g}"))
    else:
        lines.append(("expiry", "never"))
    lines.append(("losses", "from {:g} to {:g}".format(*settings.loss_bounds)))
    if settings.reward_bounds:
        lines.append(("rewards", "from {:g} to {:g}".format(*settings.reward_bounds)))
    if settings.holdout:
        fixed = settings.holdout_action
        played = "every action alike" if fixed is None else formatting.label(fixed)
        lines.append(("holdout", f"{formatting.share(settings.holdout)}, plays {played}"))
    for action, low, high in settings.shares[:N_ACTIONS]:
        lines.append(("share of " + formatting.label(action), f"{formatting.share(low)} to {formatting.share(high)}"))
    return lines
