"""What is predicted of each state: four predictions, their noise, weights and optimism (SelfTuned, steps 1 to 4).

An outcome x counts as y = x - ê, ê being the effect of its action as predicted when the decision was made (`effects`).
All sums are linear in decisions and reports, and fade by the round played. d is the mean delay of what has come.

    1  h_0 = (x_0 + μ)/(n_0 + 1)                                     μ the grand mean
       h_i = (x_i + 2 γ_i^d h_{i-1})/(n_i + 2 γ_i^d)                 memories γ = .999, .99
       o(s) + λ,  o = (x_0 - sum of saved λ + μ_o)/(n_0 + 1)         a common level λ of memory .99
    2  var(s) = (within-state sum of squares + 10 v)/(n_0 + 10)      v the same for all states together
    3  weights ∝ exp(-2 [j ≠ 0] - E_j(s) + max(-3, vote_j))          E_j(s) = sum (y - saved h_j)²/(2 var(s)), where
                                                                     round r counts as ((10⁴ + r)/(10⁴ + t))^10; the
                                                                     vote is that of the other states, less its largest
    4  g(s) = m(s) - sqrt(.4 var(s) log⁺((Σv + S)/(S (v(s) + 1)))/(v(s) + 2))     m the mixture, v(s) all visits

With a window every count is an exposed count (`exposure`), and (y - h)² is summed as F h² for a decision and -2 y h for
its report.
"""

from __future__ import annotations

from math import exp, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled_inside, compiled_part
from statepool.learners.contract import Problem
from statepool.learners.exposure import MARK, READING, ROUND, Clock, coefficient, mean_delay

MEMORIES = (1.0, 0.999, 0.99)
N_MEMORIES = len(MEMORIES)
N_PREDICTIONS = N_MEMORIES + 1
RECENT = 1
"""The memory that looks go by."""

COUNT = 0
LOSS = COUNT + N_MEMORIES
MISS = LOSS + N_MEMORIES
LEVEL_SUM = MISS + N_PREDICTIONS
SQUARE = LEVEL_SUM + 1
DOUBT = SQUARE + 1
"""Places in `Predictions.sums`: counts and losses in each memory, squared errors of each prediction, the saved level,
squares, and (from here on) squared errors of each hypothesis on effects."""

H = 0
LEVEL = N_PREDICTIONS
MEAN, SD, TRUST = range(LEVEL + 1, LEVEL + 4)
N_SAVED = TRUST + 1
VARIANCE, HOPE, RECENT_HOPE, SEEN, PRIOR_MEAN, PRIOR_COUNT = range(N_SAVED, N_SAVED + 6)
VISITS = PRIOR_COUNT + 1
N_ROWS = VISITS + N_MEMORIES
"""Rows of `Predictions.states`. A decision saves the first: the predictions, the level (the same for all states),
m(s), σ(s), and ω(s) = n_0/(n_0 + 10)."""

PRIOR_WEIGHT = 1.0
NESTED = 2.0
NOISE_WEIGHT = 10.0
COMPLEXITY = 2.0
VOTE = 3.0
AGEING, AGEING_POWER = 1e-4, 10
OPTIMISM = 0.4
LOOK_OPTIMISM = 2.0
SEEN_ENOUGH = 10.0
TINY = 1e-12


class Predictions(NamedTuple):
    """Sums of states, and what was read off them last."""

    sums: Floats
    """[k, s, place]: over decisions, k = 0 plain and others fading with τ_k; then over reports; then both, exposed."""
    states: Floats
    """[row, s]"""
    room: Floats


def start_predictions(problem: Problem, clock: Clock, n_hypotheses: int) -> Predictions:
    """Nothing seen."""
    S = problem.n_states
    states = np.zeros((N_ROWS, S))
    states[[VARIANCE, SD]] = 1.0
    if problem.prior is not None:
        states[PRIOR_MEAN] = np.asarray(problem.prior[0]) - (0.0 if problem.window is None else problem.default)
        states[PRIOR_COUNT] = problem.prior[1]
    sums = np.zeros((clock.curve.shape[1] + 2, S, DOUBT + n_hypotheses))
    return Predictions(sums, states, np.zeros((2, max(N_PREDICTIONS, clock.curve.shape[1]))))


@compiled_part
def rescale(p: Any, i: int, factor: float) -> None:
    """The base of a weight was raised: of memory i, or of a τ after the memories."""
    for s in range(p.states.shape[1]):
        if i >= N_MEMORIES:
            for place in range(p.sums.shape[2]):
                p.sums[i - N_MEMORIES + 1, s, place] *= factor
        else:
            p.states[VISITS + i, s] *= factor
            for k in range(p.sums.shape[0]):
                p.sums[k, s, COUNT + i] *= factor
                p.sums[k, s, LOSS + i] *= factor


@compiled_inside
def ageing(t: float) -> float:
    """What round t counts as in the evidence."""
    return (1.0 + AGEING * t) ** AGEING_POWER


@compiled_inside
def effect_saved(saved: Any, effects: int, q: int, of_price: bool) -> float:
    """ε_q in the outcome's own unit: it is saved in units of σ(s), or of m(s) where it is of prices.

    Place 0 has ê, the mean over hypotheses, of the first sort; the place behind the last hypothesis that of prices.
    """
    return saved[effects + q] * (saved[MEAN] if of_price else saved[SD])


@compiled_part
def count_decision(p: Any, clock: Any, played: Any, saved: Any, effects: int, loss: float, sign: float) -> None:
    """The decision at hand counts from now on: with a window when its state is known, otherwise when its outcome comes.

    From place `effects` on `saved` has ê and the ε of each hypothesis (`effect_saved`). `loss` is 0 with a window.
    """
    n, age, fading = p.sums.shape[2] - DOUBT, ageing(float(played.t)), clock.fading
    effect = effect_saved(saved, effects, 0, False) + effect_saved(saved, effects, n, True)
    for k in range(clock.curve.shape[1]):
        sums, weight = p.sums[k, played.state], sign * (fading[MARK, N_MEMORIES + k - 1] if k > 0 else 1.0)
        for i in range(N_MEMORIES):
            sums[COUNT + i] += weight * fading[MARK, i]
            sums[LOSS + i] -= weight * fading[MARK, i] * effect
        for j in range(N_PREDICTIONS):
            sums[MISS + j] += weight * age * (saved[H + j] + effect - loss) ** 2
        sums[LEVEL_SUM] += weight * saved[LEVEL]
        sums[SQUARE] += weight * effect * effect
        sums[DOUBT] += weight * saved[TRUST] * (saved[MEAN] - loss) ** 2
        for q in range(1, n):
            predicted = saved[MEAN] + effect_saved(saved, effects, q, clock.window > 0.0 and q >= n - 2)
            sums[DOUBT + q] += weight * saved[TRUST] * (predicted - loss) ** 2


@compiled_part
def count_report(p: Any, clock: Any, played: Any, saved: Any, effects: int, loss: float, sign: float) -> None:
    """An outcome has come."""
    sums, n = p.sums[clock.curve.shape[1], played.state], p.sums.shape[2] - DOUBT
    effect = effect_saved(saved, effects, 0, False) + effect_saved(saved, effects, n, True)
    for i in range(N_MEMORIES):
        sums[LOSS + i] += sign * loss * clock.fading[MARK, i]
    sums[SQUARE] += sign * loss * (loss - 2.0 * effect)
    if clock.window > 0.0:
        twice = sign * 2.0 * loss
        for j in range(N_PREDICTIONS):
            sums[MISS + j] -= twice * ageing(float(played.t)) * (saved[H + j] + effect)
        sums[DOUBT] -= twice * saved[TRUST] * saved[MEAN]
        for q in range(1, n):
            sums[DOUBT + q] -= twice * saved[TRUST] * (saved[MEAN] + effect_saved(saved, effects, q, q >= n - 2))


@compiled_part
def predict(p: Any, clock: Any, t: float) -> None:
    """Read everything off the sums."""
    totals = p.sums[clock.curve.shape[1] + 1]
    _read_totals(p.sums, totals, clock)
    _read_noise(p.states, totals)
    _predict_by_memories(p.states, totals, mean_delay(clock.numbers))
    _weigh(p, totals, clock.fading, ageing(max(t - 1.0, 0.0)))
    _be_optimistic(p.states, clock.fading)


@compiled_inside
def _read_totals(sums: Any, totals: Any, clock: Any) -> None:
    reports = clock.curve.shape[1]
    for s in range(totals.shape[0]):
        for v in range(totals.shape[1]):
            totals[s, v] = sums[reports, s, v]
        for k in range(reports):
            share = coefficient(clock, s, k)
            for v in range(totals.shape[1]):
                totals[s, v] += share * sums[k, s, v]
        for i in range(N_MEMORIES):
            totals[s, COUNT + i] = max(totals[s, COUNT + i] * clock.fading[READING, i], 0.0)
            totals[s, LOSS + i] *= clock.fading[READING, i]


@compiled_inside
def _read_noise(states: Any, totals: Any) -> None:
    """The variance of each state, shrunk to that of all; its floor is in the outcomes' own units."""
    n_states = totals.shape[0]
    count = squares = within = 0.0
    for s in range(n_states):
        known = totals[s, COUNT]
        states[VARIANCE, s] = 0.0
        if known > 0.0:
            states[VARIANCE, s] = max(totals[s, SQUARE] - totals[s, LOSS] * totals[s, LOSS] / known, 0.0)
        count += known
        squares += totals[s, SQUARE]
        within += states[VARIANCE, s]
    floor = TINY * (squares / count if squares > 0.0 and count > 0.0 else 1.0)
    common = max(within / max(count - min(float(n_states), count / 2.0), 0.5), floor)
    for s in range(n_states):
        known = totals[s, COUNT]
        states[VARIANCE, s] = (states[VARIANCE, s] + NOISE_WEIGHT * common) / (known + NOISE_WEIGHT)
        states[SD, s] = sqrt(states[VARIANCE, s])
        states[TRUST, s] = known / (known + NOISE_WEIGHT)


@compiled_inside
def _predict_by_memories(states: Any, totals: Any, delay: float) -> None:
    n_states = totals.shape[0]
    count = loss = 0.0
    for s in range(n_states):
        count += totals[s, COUNT] + states[PRIOR_COUNT, s] / n_states
        loss += totals[s, LOSS] + states[PRIOR_COUNT, s] / n_states * states[PRIOR_MEAN, s]
    grand = loss / count if count > 1e-9 else 0.0
    for s in range(n_states):
        known = totals[s, COUNT] + PRIOR_WEIGHT + states[PRIOR_COUNT, s]
        states[H, s] = totals[s, LOSS] + PRIOR_WEIGHT * grand + states[PRIOR_COUNT, s] * states[PRIOR_MEAN, s]
        states[H, s] /= known
    for i in range(1, N_MEMORIES):
        worth = NESTED * max(MEMORIES[i] ** delay, 1e-6)
        for s in range(n_states):
            states[H + i, s] = (totals[s, LOSS + i] + worth * states[H + i - 1, s]) / (totals[s, COUNT + i] + worth)
    _predict_by_level(states, totals, count, loss, delay)


@compiled_inside
def _predict_by_level(states: Any, totals: Any, count: float, loss: float, delay: float) -> None:
    n_states, memory, row = totals.shape[0], N_MEMORIES - 1, H + N_MEMORIES
    saved = 0.0
    for s in range(n_states):
        saved += totals[s, LEVEL_SUM]
    grand = (loss - saved) / count if count > 1e-9 else 0.0
    above, known = 0.0, NESTED * max(MEMORIES[memory] ** delay, 1e-6)
    for s in range(n_states):
        given = states[PRIOR_COUNT, s]
        offset = totals[s, LOSS] - totals[s, LEVEL_SUM] + PRIOR_WEIGHT * grand + given * states[PRIOR_MEAN, s]
        states[row, s] = offset / (totals[s, COUNT] + PRIOR_WEIGHT + given)
        above += totals[s, LOSS + memory] - totals[s, COUNT + memory] * states[row, s]
        known += totals[s, COUNT + memory]
    for s in range(n_states):
        states[LEVEL, s] = above / known
        states[row, s] += above / known


@compiled_inside
def _weigh(p: Any, totals: Any, fading: Any, unit: float) -> None:
    """The mixture of the predictions of each state, and how often the state was seen in the memories mixed."""
    states, together, share = p.states, p.room[0], p.room[1]
    for j in range(N_PREDICTIONS):
        together[j] = 0.0
        for s in range(totals.shape[0]):
            together[j] += totals[s, MISS + j] / (2.0 * states[VARIANCE, s] * unit)
    for s in range(totals.shape[0]):
        scaled = 1.0 / (2.0 * states[VARIANCE, s] * unit)
        others = top = -1e300
        for j in range(N_PREDICTIONS):
            others = max(others, totals[s, MISS + j] * scaled - together[j])
        for j in range(N_PREDICTIONS):
            own = totals[s, MISS + j] * scaled
            share[j] = max(own - together[j] - others, -VOTE) - own - (COMPLEXITY if j > 0 else 0.0)
            top = max(top, share[j])
        total = mean = seen = 0.0
        for j in range(N_PREDICTIONS):
            part = exp(share[j] - top)
            i = j if j < N_MEMORIES else 0
            total += part
            mean += part * states[H + j, s]
            seen += part * states[VISITS + i, s] * fading[READING, i]
        states[MEAN, s] = mean / total
        states[SEEN, s] = seen / total + states[PRIOR_COUNT, s]


@compiled_inside
def _be_optimistic(states: Any, fading: Any) -> None:
    n_states, total, recently, noisiest = states.shape[1], 0.0, 0.0, 0.0
    for s in range(n_states):
        total += states[SEEN, s]
        recently += states[VISITS + RECENT, s] * fading[READING, RECENT]
        noisiest = max(noisiest, states[VARIANCE, s])
    for s in range(n_states):
        states[HOPE, s] = states[MEAN, s] - _hope(states[VARIANCE, s], states[SEEN, s], total / n_states)
        seen = states[VISITS + RECENT, s] * fading[READING, RECENT]
        # The noise of the noisiest state: one that was always bad hardly varied, but it may since have become good.
        hope = _hope(LOOK_OPTIMISM * noisiest, seen, recently / n_states)
        states[RECENT_HOPE, s] = states[H + RECENT, s] - hope


@compiled_inside
def _hope(variance: float, seen: float, usual: float) -> float:
    """Optimism for a state that was seen less than is usual."""
    return sqrt(OPTIMISM * variance * log(max((usual + 1.0) / (seen + 1.0), 1.0)) / (seen + 2.0))


@compiled_inside
def rarest(states: Any, clock: Any) -> float:
    """How often the state that was seen least of late was seen, in memory RECENT."""
    least, kept = 1e300, MEMORIES[RECENT] ** clock.numbers[ROUND]
    for s in range(states.shape[1]):
        least = min(least, states[VISITS + RECENT, s] * clock.fading[READING, RECENT] + kept * states[PRIOR_COUNT, s])
    return least
