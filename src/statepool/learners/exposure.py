"""Counts that fade, and a learner's exposure: how much of a decision's outcome can have been reported by now.

*Fading.* A memory keeps a share γ of itself in each round, so a decision of round r counts as γ^(t - r) in round t. A
sum is kept with the weights γ^-r instead, which do not change, and is multiplied by γ^t when it is read. Nothing has
to be done in each round, outcomes may come in any order, and one that is taken back leaves the sum as it was. Weights
are kept relative to a power of two (`Clock.bases`), which is raised before they overflow; that is exact in floating
point.

*Exposure.* Where silence until the window closes means a default, purchases are reported before non-purchases. Let
F(age) be the share of the reports that have come by that age. A decision counts as F(age) of one, and only reports are
learnt:

    mean outcome of a state = default + sum over its reports of (x - default) / sum over its decisions of F(age)

which is unbiased given F and needs no report of silence. F is a mixture of exponentials,

    F(age) = (1 - sum_k w_k exp(-age/τ_k)) / F_w        F_w: the same at the window's end, so that F is 1 there

so the sum of F(age) is linear in counts that fade with τ_k (`Clock.coefficients`): index 0 is the plain count, index k
the one that fades with τ_k. Ages are in time, memories fade by the round.

*The curve.* A report is seen only because its wait is below its decision's age (right truncation). The weights are
fitted by EM for truncated data, from a uniform sample of the reports so far, whenever their number has grown by a
tenth. Pooled learners also fit a curve for each state, to which the common one counts as 50 reports.

Source: Lynden-Bell 1971 for truncation (tests compare the fit with his estimator); the linear form is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, floor, log2
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled, compiled_inside, compiled_part
from statepool.kernels import as_float
from statepool.learners.contract import Problem
from statepool.learners.draws import scramble

N_TAU = 6
SLOWEST, STEP = 1 / 3, 1 / 4
"""The time constants are window/3, window/12, … window/3072."""
SAMPLE = 512
"""Reports that the curve is fitted to."""
FIRST_FIT, GROWTH, ITERATIONS = 5, 1.1, 10
ROOM = 200
"""Bits between the weight of now and the base at which the base is raised."""
LOG2 = 0.6931471805599453
PRIOR_REPORTS = 50.0
"""A curve that is given counts as this many reports."""
DOUBTED = 0.02

ROUND, TIME, FIRST_ROUND, FIRST_TIME, STARTED, REPORTS, FITTED, WAITS, WAITED = range(9)
"""Of `Clock.numbers`; WAITS is the sum of the waits of what has come, WAITED their number."""
BITS, BASE, READING, MARK = range(4)
"""Of `Clock.fading`: how many bits a weight grows by, per round for a memory and per unit of time for a τ; the power of
two that weights are relative to; what a sum is multiplied by when it is read; the weight of the decision at hand."""
COEFFICIENT, TAU, WEIGHT, PRIOR, SUM, PART, LATER = range(7)
"""Of `Clock.curve`: exposure is the sum over k of COEFFICIENT times count k as it is kept; w_k; pseudo-reports of τ_k;
and room for the fit. Column 0 belongs to the plain count."""


class Clock(NamedTuple):
    """What time it is, and what that makes of the sums."""

    numbers: Floats
    fading: Floats
    """[what, i]: of each memory, and then of each τ."""
    curve: Floats
    """[what, k]: of all reports."""
    by_state: Floats
    """[state, what, k]: of the reports of each state; no rows where one curve serves all."""
    sample: Floats
    """One row for each report: when its decision was made, its wait, and its state."""
    n_memories: int
    window: float
    """0 without one."""


def start_clock(problem: Problem, memories: Sequence[float] = (), n_curves: int = 0) -> Clock:
    """Nothing seen; `memories` are what each keeps of itself in a round; `n_curves` states have curves of their own."""
    window = 0.0 if problem.window is None else float(problem.window)
    m = N_TAU if window > 0 else 0
    curve = np.zeros((7, 1 + m))
    curve[TAU, 1:] = window * SLOWEST * STEP ** np.arange(m)
    curve[[WEIGHT, PRIOR], 1:] = 1.0 / max(m, 1)
    if m and problem.curve is not None:
        _give_curve(curve, window, *(np.asarray(part, np.float64) for part in problem.curve))
    curve[COEFFICIENT, 0] = 1.0
    fading = np.zeros((4, len(memories) + m))
    fading[BITS] = [*(-log2(kept) for kept in memories), *(1 / LOG2 / curve[TAU, 1:])]
    by_state = np.repeat(curve[None], n_curves if m else 0, axis=0)
    return Clock(np.zeros(9), fading, curve, by_state, np.zeros((SAMPLE if m else 0, 3)), len(memories), window)


def _give_curve(curve: Floats, window: float, tau: Floats, weight: Floats) -> None:
    """Start from a curve: its time constants take the place of those next to them, and the weights are fitted."""
    from scipy.optimize import nnls  # slow to import, and rarely needed

    for given in tau[weight > 0]:
        curve[TAU, 1 + np.abs(np.log(curve[TAU, 1:] / given)).argmin()] = given
    ages = np.linspace(0, window, 200)[1:, None]
    shares = (1 - np.exp(-ages / tau)) @ weight
    fitted, _ = nnls(1 - np.exp(-ages / curve[TAU, 1:]), shares / shares[-1])
    # A weight of 0 would stay 0 in every fit: what reports say later must be able to contradict the curve given.
    curve[WEIGHT, 1:] = (1 - DOUBTED) * fitted / fitted.sum() + DOUBTED / fitted.size
    curve[PRIOR] = PRIOR_REPORTS * curve[WEIGHT]


@compiled_part
def weigh_decision(clock: Clock, t: int, time: float) -> None:
    """The weights of a decision made in round t at this time, in each memory and for each τ, into row MARK."""
    fading = clock.fading
    for i in range(fading.shape[1]):
        since = t - clock.numbers[FIRST_ROUND] if i < clock.n_memories else time - clock.numbers[FIRST_TIME]
        bits = since * fading[BITS, i]
        whole = floor(bits)
        exponent = int(whole - fading[BASE, i])
        power = as_float((min(exponent, 1023) + 1023) << 52) if exponent > -1023 else 0.0
        fading[MARK, i] = exp((bits - whole) * LOG2) * power


@compiled_part
def set_time(clock: Clock, t: int, now: float) -> bool:
    """Round t begins at time `now`; whether a base has to be raised."""
    numbers, fading, due = clock.numbers, clock.fading, False
    if numbers[STARTED] == 0.0:
        numbers[STARTED], numbers[FIRST_ROUND], numbers[FIRST_TIME] = 1.0, t, now
    numbers[ROUND], numbers[TIME] = t, now
    weigh_decision(clock, t, now)
    for i in range(fading.shape[1]):
        fading[READING, i] = 1.0 / fading[MARK, i]
        due = due or fading[READING, i] <= 0.5**ROOM
    return due


@compiled_inside
def raised(clock: Clock, i: int) -> float:
    """Raise the base of memory or τ number i to now if it is due; what its sums have to be multiplied by."""
    numbers, fading = clock.numbers, clock.fading
    if fading[READING, i] > 0.5**ROOM:
        return 1.0
    since = numbers[ROUND] - numbers[FIRST_ROUND] if i < clock.n_memories else numbers[TIME] - numbers[FIRST_TIME]
    bits = since * fading[BITS, i]
    whole = floor(bits)
    steps = int(whole - fading[BASE, i])
    fading[BASE, i] = whole
    fading[READING, i] = exp((whole - bits) * LOG2)
    return as_float((1023 - steps) << 52) if steps < 1023 else 0.0


@compiled_part
def note_report(clock: Clock, time: float, wait: float, state: int, sign: float) -> None:
    """A report has come: into the mean wait, and perhaps into the sample of the curve."""
    numbers = clock.numbers
    numbers[WAITS] += sign * wait
    numbers[WAITED] += sign
    if clock.window > 0.0 and sign > 0.0:
        count = int(numbers[REPORTS])
        place = count
        if count >= SAMPLE:
            place = np.int64(scramble(np.uint64(count)) % np.uint64(count + 1))  # type: ignore[assignment]
        if place < SAMPLE:
            clock.sample[place, 0], clock.sample[place, 1], clock.sample[place, 2] = time, wait, state
        numbers[REPORTS] += 1.0


@compiled_inside
def rounds_per_time(numbers: Any) -> float:
    """The pace of decisions; 1 before there are two."""
    passed, rounds = numbers[TIME] - numbers[FIRST_TIME], numbers[ROUND] - numbers[FIRST_ROUND]
    return rounds / passed if passed > 0.0 and rounds > 0.0 else 1.0


@compiled_inside
def mean_delay(numbers: Any) -> float:
    """The mean wait of what has come, in rounds."""
    return numbers[WAITS] / numbers[WAITED] * rounds_per_time(numbers) + 1.0 if numbers[WAITED] > 0.5 else 0.0


@compiled_part
def read_exposure(clock: Clock) -> None:
    """The coefficients of now, by curves fitted again if that is due."""
    if clock.window == 0.0:
        return
    numbers, count = clock.numbers, clock.numbers[REPORTS]
    if count >= FIRST_FIT and count >= GROWTH * numbers[FITTED]:
        numbers[FITTED] = count
        half_round, n = 0.5 / rounds_per_time(numbers), int(min(count, SAMPLE))
        for s in range(-1, clock.by_state.shape[0]):
            curve = clock.curve if s < 0 else clock.by_state[s]
            for k in range(1, curve.shape[1] if s >= 0 else 0):
                curve[WEIGHT, k] = clock.curve[WEIGHT, k]
                curve[PRIOR, k] = PRIOR_REPORTS * clock.curve[WEIGHT, k]
            fit_curve(curve, clock.sample, n, s, numbers[TIME], clock.window, half_round)
    _read_coefficients(clock, clock.curve)
    for s in range(clock.by_state.shape[0]):
        _read_coefficients(clock, clock.by_state[s])


@compiled_part
def _read_coefficients(clock: Clock, curve: Any) -> None:
    whole = 0.0
    for k in range(1, curve.shape[1]):
        whole += curve[WEIGHT, k] * (1.0 - exp(-clock.window / curve[TAU, k]))
    curve[COEFFICIENT, 0] = 1.0 / whole
    for k in range(1, curve.shape[1]):
        curve[COEFFICIENT, k] = -curve[WEIGHT, k] * clock.fading[READING, clock.n_memories + k - 1] / whole


@compiled
def coefficient(clock: Clock, state: int, k: int) -> float:
    """What count k of a state is multiplied by."""
    return clock.by_state[state, COEFFICIENT, k] if clock.by_state.shape[0] > 0 else clock.curve[COEFFICIENT, k]


@compiled_part
def fit_curve(curve: Any, sample: Any, count: int, state: int, now: float, window: float, shift: float) -> None:
    """EM for a mixture of exponentials whose draws are seen only if they are below their decision's age.

    `state` is the one whose reports count, or -1 for all; `shift` is half the resolution of the waits. Each step adds,
    to what a report is likely to come from, what must be missing for it: w_k exp(-age/τ_k)/F(age) reports with τ_k that
    were not seen.
    """
    n = curve.shape[1]
    for _ in range(min(ITERATIONS, 2 * count)):  # a constant number of steps would be unrolled by the compiler
        for k in range(1, n):
            curve[SUM, k] = curve[PRIOR, k]
        for j in range(count):
            if state >= 0 and sample[j, 2] != state:
                continue
            wait = sample[j, 1] + shift
            age = max(min(now - sample[j, 0], window), wait)
            density = share = 0.0
            for k in range(1, n):
                curve[PART, k] = curve[WEIGHT, k] * exp(-wait / curve[TAU, k]) / curve[TAU, k]
                density += curve[PART, k]
                curve[LATER, k] = exp(-age / curve[TAU, k])
                share += curve[WEIGHT, k] * (1.0 - curve[LATER, k])
            seen, missing = 1.0 / max(density, 1e-300), 1.0 / max(share, 1e-3)
            for k in range(1, n):
                curve[SUM, k] += curve[PART, k] * seen + curve[WEIGHT, k] * curve[LATER, k] * missing
        total = 0.0
        for k in range(1, n):
            total += curve[SUM, k]
        for k in range(1, n):
            curve[WEIGHT, k] = curve[SUM, k] / total
