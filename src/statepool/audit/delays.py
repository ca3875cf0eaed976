"""When a log's outcomes are final, how late they come, and what rows that are too young are worth.

**Window.** An outcome is the state of affairs a window after the decision. docs/audit.md has the rule that finds the
window, from outcomes with a time (events) and the value of all others (the default).

**Curve.** An event is seen only if its wait is below its decision's age (right truncation). F(x), the share of events
that have come by age x, is Lynden-Bell's product-limit estimate: with waits d_j and ages A_j at the end of the log

    n_j = #{i: d_i <= d_j <= A_i}        F(x) = product over d_j > x of (1 - 1/n_j)

A row younger than the window counts as F(age) of a row (exposure), if enough events are known. A pool gets the mixture
F(x) = 1 - sum_k w_k exp(-x/tau_k) that fits it; rows of the log are not weighted by it, since it is off by a few
hundredths where waits are not of that kind.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from statepool.audit.counts import SLIPS, Rows
from statepool.checks import Floats, check_span
from statepool.delays import Conversions

NONE, GIVEN, FOUND = "none", "given", "found"
LEAST_EVENTS, LEAST_FOR_CURVE = 20, 60
"""Dated outcomes that the rule for the window needs, and events that the curve needs."""
NEARLY = 0.995
SUDDEN = 0.5
"""The default is reported within this share of the window: an hour's or a day's batch, not a spread of delays."""
LONGEST = 0.7
"""A window that would leave less than the rest of the log is not taken from the log alone."""
QUANTILES = (0.1, 0.5, 0.9, 0.99)
DRAWS = (np.arange(1_000) + 0.5) / 1_000
STEPS = 64


class Curve(NamedTuple):
    """F, the share of events that have come by an age: straight between `knots`, and as a mixture of exponentials."""

    tau: Floats
    weight: Floats
    knots: Floats
    """Ages by which equal shares of the events have come, from none to all."""

    def share(self, age: Any) -> Any:
        """F of ages, an array or an Ibis column."""
        rises = [(age - a).clip(0.0, b - a) / (b - a) for a, b in pairwise(self.knots.tolist())]
        return sum(rises) / len(rises)

    def age(self, share: Any) -> Floats:
        """The age by which a share of the events has come."""
        return np.interp(share, np.linspace(0, 1, self.knots.size), self.knots)


@dataclass(frozen=True, eq=False)
class Maturity:
    """Which rows are old enough; `window` is None where every recorded outcome counts."""

    window: float | None
    how: str
    latest: float = float("nan")
    default: float | None = None
    """The loss of a decision for which nothing happened within the window."""
    why: str = ""
    curve: Curve | None = None
    """If it is known, young rows count by their exposure."""

    @property
    def cut(self) -> float:
        """Decisions up to this moment are mature."""
        return float("inf") if self.window is None else self.latest - self.window

    def matured(self, rows: Rows) -> Rows:
        """The sample with the outcomes of mature rows only."""
        if self.window is None:
            return rows
        loss = rows.loss
        if self.default is not None:
            loss = np.where(rows.resolved - rows.decided > self.window, self.default, loss)
        return replace(rows, loss=np.where(rows.decided <= self.cut, loss, np.nan))


def read_window(given: Any, dated: bool) -> float | None:
    """A length of time in seconds, or in the numbers of a log without dates; 0: there is no window."""
    if given is None:
        return None
    text = f"{given.total_seconds():f}s" if isinstance(given, timedelta) else str(given).replace("none", "0")
    seconds = check_span(text, "window", most=1e15)
    if dated and seconds > 0 and text.strip()[-1].isdigit():
        raise ValueError(f"window: is {given!r}, expected a unit, such as 30d, 12h or 30s, since times are dates")
    return seconds


def read_missing(given: Any) -> float | str | None:
    """What a blank outcome means: a number, "drop", or None if nothing was said."""
    if given is None or str(given).strip().lower() == "drop":
        return given if given is None else "drop"
    with suppress(TypeError, ValueError):
        if not isinstance(given, bool) and math.isfinite(float(given)):
            return float(given)
    raise ValueError(f"missing: is {given!r}, expected a number that a blank outcome means, or drop")


def find_maturity(rows: Rows, window: float | None) -> Maturity:
    """The window given or found, its default and its curve; asks where outcomes look unfinished and have no times."""
    if window is not None and window > 0 and not rows.timed:
        raise ValueError("window: needs decision times to tell which rows are old enough, expected --decided")
    if not rows.timed or window == 0 or not np.isfinite(rows.loss).any():
        return Maturity(window or None, NONE if window is None else GIVEN, rows.latest)
    found, span = _find_window(rows), rows.latest - rows.first
    if found is None or (window is None and not 0 < found[0] <= LONGEST * span):
        if window is None:
            _ask_if_unfinished(rows)
            return Maturity(None, NONE, rows.latest)
        # The value of most rows, if it is the worst but for refunds: nothing happened.
        known = rows.loss[np.isfinite(rows.loss)]
        common = _common_values(known)[0]
        nothing = (known > common).sum() <= SLIPS * (known < common).sum() and (known == common).mean() >= 0.5
        return Maturity(window, GIVEN, rows.latest, common if nothing else None)
    length, default, why = found
    how, length = (FOUND, length) if window is None else (GIVEN, window)
    return Maturity(length, how, rows.latest, default, why, fit_curve(rows, length, default))


def _find_window(rows: Rows) -> tuple[float, float, str] | None:
    """The window, the default and why, by the rule of the module's docstring."""
    known, dated = np.isfinite(rows.loss), rows.dated
    undated = known & ~np.isfinite(rows.resolved)
    if dated.sum() < LEAST_EVENTS:
        return None
    waits = rows.resolved - rows.decided
    if undated.sum() >= LEAST_EVENTS:
        default = _common_values(rows.loss[undated])[0]
        settled = rows.loss == default
        if (undated & ~settled).sum() + (dated & settled).sum() > SLIPS * dated.sum():
            return None
        blank, youngest = ~known, float(rows.age[undated & settled].min())
        if blank.sum() >= LEAST_EVENTS and (rows.age[blank] <= youngest).mean() >= NEARLY:
            return youngest, default, "younger rows are blank unless something happened"
        longest = float(wait_quantiles(waits[dated], rows.age[dated], NEARLY))
        return longest, default, "99.5 % of events have come by then"
    if dated.sum() < NEARLY * known.sum():
        return None
    for default in _common_values(rows.loss[known]):
        closing, events = waits[dated & (rows.loss == default)], waits[dated & (rows.loss != default)]
        if min(closing.size, events.size) < LEAST_EVENTS:
            continue
        first, last = np.quantile(closing, (1 - NEARLY, NEARLY))
        together = first > 0 and (events > first).mean() <= 1 - NEARLY and last - first <= SUDDEN * first
        if together and not (events.max() > 0.999 * first and events.min() > (1 - SUDDEN) * first):
            return float(last), default, "one outcome always comes at once, after all others"
    return None


def _common_values(loss: Floats) -> list[float]:
    values, counts = np.unique(loss, return_counts=True)
    return [float(value) for value in values[np.argsort(-counts, kind="stable")[:2]]]


def _ask_if_unfinished(rows: Rows) -> None:
    """Outcomes without times whose latest rows look open: only the caller knows how long they take."""
    if np.isfinite(rows.resolved).any() or rows.loss.size < 1_000:
        return
    known = np.isfinite(rows.loss)
    happened, what = known, "rows with an outcome"
    if known.all():
        happened, what = rows.loss != _common_values(rows.loss)[0], "outcomes that differ from the most common one"
    order = np.argsort(-rows.age, kind="stable")
    edges = (np.array([0.0, 0.9, 0.95, 1.0]) * order.size).astype(int)
    shares = [float(happened[order[a:b]].mean()) for a, b in pairwise(edges)]
    error = (max(shares[0] * (1 - shares[0]), 1e-9) / (order.size - edges[-2])) ** 0.5
    if shares[0] > shares[1] > shares[2] and shares[2] < 0.7 * shares[0] and shares[0] - shares[2] > 4 * error:
        raise ValueError(
            f"window: the share of {what} falls from {shares[0]:.1%} to {shares[2]:.1%} in the latest rows, and "
            "outcomes have no times: are the latest still open? --window 14d if they are final after 14 days, "
            "--window 0 if all are final"
        )


def product_limit(waits: Floats, ages: Floats) -> Floats:
    """Lynden-Bell's mass at each wait, given that it is seen only if it is below its age."""
    order = np.argsort(waits, kind="stable")
    sorted_waits = waits[order]
    at_risk = np.searchsorted(sorted_waits, sorted_waits, side="right") - np.searchsorted(
        np.sort(np.maximum(ages, waits)), sorted_waits, side="left"
    )
    kept = 1 - 1 / np.maximum(at_risk, 1.000001)
    above = np.append(np.cumprod(kept[::-1])[::-1], 1.0)  # product over this wait and all longer ones
    masses = np.empty(waits.size)
    masses[order] = above[1:] - above[:-1]
    total = masses.sum()
    return masses / total if total > 0 else np.full(waits.size, 1 / max(waits.size, 1))


def wait_quantiles(waits: Floats, ages: Floats, shares: Any) -> Floats:
    """By the product-limit estimate."""
    return np.asarray(np.quantile(waits, shares, weights=product_limit(waits, ages), method="inverted_cdf"))


def fit_curve(rows: Rows, window: float, default: float) -> Curve | None:
    """The curve of events within the window, from the sample; None if there are too few."""
    waits = rows.resolved - rows.decided
    events = rows.dated & (rows.loss != default) & (waits <= window)
    if events.sum() < LEAST_FOR_CURVE:
        return None
    shares = np.linspace(0, 1, STEPS + 1)
    knots = wait_quantiles(waits[events], rows.age[events], shares)
    knots += 1e-9 * window * np.arange(STEPS + 1)  # never equal
    tau = window * np.geomspace(1 / 600, 1 / 3, 6)
    weight, _ = nnls(np.exp(-knots[:, None] / tau), 1 - shares)
    weight = weight / max(weight.sum(), 1.0)
    weight[0] += not weight.any()  # everything comes at once
    used = weight > 1e-6
    return Curve(tau[used], weight[used], knots)


class Lateness(NamedTuple):
    """How late outcomes come: those of events where there is a window."""

    time: list[float]
    """At `QUANTILES`; nothing where outcomes have no times, or too few of them."""
    draws: Floats
    """Equally likely delays in decisions, infinite for outcomes that never come."""
    window: int = 0
    """The window in decisions."""


def measure_lateness(rows: Rows, maturity: Maturity, delay: int | None = None) -> Lateness:
    """From the sample as recorded; `delay`, in decisions, where the log has no outcome times and no window."""
    if maturity.default is not None and maturity.window is not None and rows.pace > 0:
        window = max(round(maturity.window * rows.pace), 1)
        curve = maturity.curve
        waits = np.array([maturity.window / 2]) if curve is None else curve.age(DRAWS)
        time = [] if curve is None else curve.age(QUANTILES).tolist()
        return Lateness(time, np.clip(np.round(waits * rows.pace), 0, window - 1), window)
    waits, dated = rows.resolved - rows.decided, rows.dated
    if not rows.timed or not dated.any():
        return Lateness([], np.array([float(delay or 0)]))
    blank = ~np.isfinite(rows.loss)
    old = rows.age > np.quantile(waits[dated], 0.99)
    lost = float((blank & old).sum() / max(old.sum(), 1))
    shares = np.minimum(DRAWS / max(1 - lost, 1e-9), 1.0)
    time, drawn = (wait_quantiles(waits[dated], rows.age[dated], each) for each in (QUANTILES, shares))
    return Lateness(time.tolist(), np.where(shares < 1, np.round(drawn * rows.pace), np.inf))


def simulated_delays(late: Lateness, horizon: int, seed: int) -> Any:
    """Delays for a simulation of the log's latest decisions: events first where there is a window."""
    waits = np.minimum(np.random.default_rng((seed, 13)).choice(late.draws, horizon), late.window or horizon)
    return Conversions(late.window, waits.astype(np.int64)) if late.window else waits.astype(np.int64)
