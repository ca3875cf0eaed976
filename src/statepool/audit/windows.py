"""Does the log show a window? Four signatures, each with the null that it must beat.

closing at once   all of one outcome come after nearly all others, and together: they are known when the window
                  closes, the others when they happen. Delays that have nothing to do with outcomes do not sort.
dated by happening  every outcome with a time is of one kind and every one without of another: the undated are
                  not outcomes until the longest wait seen is over.
blank by age      rows younger than some age are blank unless they are of one kind, rows older are all in, and the
                  change is sudden: with delays of any other kind the share of blanks fades.
falling share     no blanks and no times, but the share of one outcome fades towards the end of the log, in the
                  shape that waiting has, beyond what drift explains (`fade`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from statepool.audit.delays import waiting_weights, weighted_quantiles
from statepool.audit.fade import fading_age
from statepool.audit.sample import Rows

LEAST = 10
"""Outcomes of a kind that a signature needs."""
NEARLY = 0.995
SUDDEN = 0.5
"""Closing takes at most this share of the window: an hour's or a day's batch, not a spread of delays."""
CHANCE = 1e-3
LONGEST = 0.5
"""A window that would leave less than this share of the log is not taken from the log alone."""


@dataclass(frozen=True)
class Found:
    window: float
    closing: float
    """The outcome that is known at the end of the window only."""
    default: float | None
    why: str


def find_window(rows: Rows) -> Found | None:
    """The window that the log shows, if any; `rows` with outcomes as recorded."""
    if not rows.timed or rows.decided.size < 2 * LEAST:
        return None
    known = np.isfinite(rows.loss)
    values, counts = np.unique(rows.loss[known], return_counts=True)
    if values.size < 2:
        return None
    common = values[np.argsort(-counts, kind="stable")[:2]]
    for look in (_closing_at_once, _dated_by_happening, _blank_by_age, _falling_share):
        for value in common:
            found = look(rows, float(value))
            if found is not None and found.window <= LONGEST * (rows.latest - rows.decided[0]):
                return found
    return None


def _dated(rows: Rows) -> NDArray[np.bool_]:
    return np.isfinite(rows.loss) & np.isfinite(rows.resolved) & (rows.resolved >= rows.decided)


def _closing_at_once(rows: Rows, value: float) -> Found | None:
    dated = _dated(rows)
    delays = rows.resolved - rows.decided
    closing, others = delays[dated & (rows.loss == value)], delays[dated & (rows.loss != value)]
    if min(closing.size, others.size) < LEAST or closing.size + others.size < NEARLY * np.isfinite(rows.loss).sum():
        return None
    first, last = float(np.quantile(closing, 1 - NEARLY)), float(np.quantile(closing, NEARLY))
    if first <= 0 or (others > first).mean() > 1 - NEARLY or last - first > SUDDEN * first:
        return None
    if others.max() > 0.999 * first and others.min() > (1 - SUDDEN) * first:
        return None  # the same lag for all
    return Found(last, value, None, "one outcome always comes at once, after all others")


def _dated_by_happening(rows: Rows, value: float) -> Found | None:
    known, dated = np.isfinite(rows.loss), _dated(rows)
    undated = known & ~np.isfinite(rows.resolved)
    if min(int(undated.sum()), int(dated.sum())) < LEAST:
        return None
    if (rows.loss[undated] != value).any() or (rows.loss[dated] == value).any():
        return None
    delays = np.where(dated, rows.resolved - rows.decided, rows.age)
    blank = ~known
    youngest = float(rows.age[undated].min())
    if blank.sum() >= LEAST and (rows.age[blank] <= youngest).mean() >= NEARLY:
        return Found(youngest, value, None, "only what happened has a time, and the rest is blank until it is closed")
    weights = waiting_weights(np.maximum(delays, 0.0), dated)
    longest = weighted_quantiles(delays[dated], weights / max(weights.sum(), 1e-300), np.array([NEARLY]))[0]
    if np.isnan(longest) or longest <= 0:
        longest = float(delays[dated].max())
    return Found(
        float(longest), value, value, "every outcome with a time is of one kind and every one without of another"
    )


def _blank_by_age(rows: Rows, value: float) -> Found | None:
    age, known = rows.age, np.isfinite(rows.loss)
    closed = known & (rows.loss == value)
    if closed.sum() < LEAST or (~known).sum() < LEAST:
        return None
    edge = float(age[closed].min())
    young, old = age < edge, age >= edge
    happened = int((young & known).sum())
    share = closed[old].sum() / max(known[old].sum(), 1)
    stray = float((~known)[old].mean())
    if happened < 3 or (1 - share) ** happened > CHANCE or (~known)[young].sum() < LEAST:
        return None
    # Just past the edge as many are in as ever: delays that have no window fade instead.
    order = np.argsort(age[old], kind="stable")
    near = order[: max(int(young.sum()) // 4, LEAST)]
    missing = float((~known)[old][near].mean())
    limit = stray + 3 * (max(stray * (1 - stray), 1 / max(near.size, 1)) / near.size) ** 0.5
    blank = float((~known)[young].mean())
    if missing > max(limit, 0.02) or blank < 3 * max(stray, 1e-9):
        return None
    return Found(edge, value, None, "rows younger than that are blank unless one thing happened, and no others are")


def _falling_share(rows: Rows, value: float) -> Found | None:
    if not np.isfinite(rows.loss).all() or np.isfinite(rows.resolved).any():
        return None
    age = fading_age(rows.age, (rows.loss != value).astype(np.float64))
    if age is None:
        return None
    return Found(age, value, value, "the share of one outcome fades towards the end, as it never did before")
