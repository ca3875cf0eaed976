"""Which learner to run: every candidate on instances fitted to the log, paired on the same delays and the same luck.

The one advised has the least regret; those that noise does not separate from it, by paired differences within `BEYOND`
of their standard errors, are called ties. If the verdict is *pool*, a tie goes to the learner that only pools: there is
nothing to correct, and what a few lucky worlds say for correcting is noise. Worlds are added while the best is not
apart, from `LEAST_WORLDS` up to `MOST_WORLDS`. The verdict says what can be learnt through the states in the long run,
the learner what is best over the log's horizon.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from os import cpu_count
from typing import Any

import numpy as np

from statepool import learners
from statepool.audit.fit import Fitted
from statepool.audit.verdict import ALONE, CORRECT, POOL, UNCLEAR, Needed, Verdict
from statepool.checks import Floats
from statepool.engine import simulate

BLIND = "blind"
WORLDS, LEAST_WORLDS, MOST_WORLDS = 4, 8, 24
BEYOND = 2.0
WORK = 10**8
"""Rounds × actions × states of all runs together, from which on no worlds are added."""

RUNS_LIVE = {"state-exp3": "self-tuned"}
"""What a pool runs instead of a learner that needs a horizon. One that does not
pool stays: a pool refuses it, as it should."""


@dataclass(frozen=True)
class CandidateLearner:
    """A learner by its registered name, its settings, and the advice it serves."""

    learner: str
    kind: str
    settings: tuple[tuple[str, Any], ...] = ()


CANDIDATES = (
    CandidateLearner("self-tuned", POOL),
    CandidateLearner("state-exp3", POOL),
    CandidateLearner("corrected-pool", CORRECT),
    CandidateLearner("action-exp3", ALONE),
    CandidateLearner("zimmert-seldin", ALONE),
)
"""What is tried."""


@dataclass(frozen=True)
class Expected:
    """A candidate's regret on the fitted instances, a decision's share of it, and what the advised one saves."""

    learner: str
    kind: str
    regret: float
    error: float
    per_decision: float
    behind: float
    """How much more regret than the advised learner has, on the same worlds; below 0: less."""
    behind_error: float

    @property
    def tied(self) -> bool:
        """Whether noise does not separate it from the advised learner."""
        return abs(self.behind) <= BEYOND * self.behind_error


@dataclass(frozen=True)
class Advice:
    verdict: str
    missing: str
    needed: Needed | None
    learner: str
    settings: dict[str, Any]
    expected: tuple[Expected, ...]
    horizon: int

    @property
    def ties(self) -> tuple[str, ...]:
        """Learners that are as good as the advised one, as far as can be seen."""
        return tuple(e.learner for e in self.expected if e.learner != self.learner and e.kind != BLIND and e.tied)


def advise(verdict: Verdict, fitted: Fitted, seed: int = 0) -> Advice:
    regrets, blind = try_candidates(fitted, seed)
    chosen = _pick(verdict.verdict, regrets)
    expected = [_expected(c.learner, c.kind, regrets[i], regrets[chosen], fitted.horizon)
                for i, c in enumerate(CANDIDATES)]  # fmt: skip
    expected.append(_expected("any action", BLIND, blind, regrets[chosen], fitted.horizon))
    advised = CANDIDATES[chosen]
    return Advice(
        verdict.verdict, verdict.missing, verdict.needed, advised.learner, dict(advised.settings), tuple(expected),
        fitted.horizon,
    )  # fmt: skip


def try_candidates(fitted: Fitted, seed: int) -> tuple[Floats, Floats]:
    """Regrets, one row a candidate and one column a world; and those of choosing blindly."""
    regrets, blind = _run(fitted, seed, 0, WORLDS)
    rounds = fitted.horizon * fitted.P.size * len(CANDIDATES)
    while regrets.shape[1] < MOST_WORLDS and rounds * regrets.shape[1] < WORK and not _settled(regrets):
        more, blinder = _run(fitted, seed, regrets.shape[1], regrets.shape[1] + WORLDS)
        regrets, blind = np.hstack([regrets, more]), np.append(blind, blinder)
    return regrets, blind


def _run(fitted: Fitted, seed: int, first: int, last: int) -> tuple[Floats, Floats]:
    worlds = [(fitted.instance(seed + i), fitted.delays(seed + i), seed + i) for i in range(first, last)]

    def regret(run: tuple[CandidateLearner, tuple[Any, Any, int]]) -> float:
        candidate, (instance, delays, number) = run
        return simulate(instance, learners.find(candidate.learner)(**dict(candidate.settings)), delays, number).regret

    with ThreadPoolExecutor(cpu_count() or 1) as pool:
        regrets = np.array(list(pool.map(regret, product(CANDIDATES, worlds)))).reshape(len(CANDIDATES), -1)
    return regrets, np.array([float(w.total_losses.mean() - w.total_losses.min()) for w, _, _ in worlds])


def _pick(verdict: str, regrets: Floats) -> int:
    """The candidate with the least regret; in a tie that which only pools, if that is the verdict."""
    means = regrets.mean(axis=1)
    best = int(means.argmin())
    pooling = [i for i, candidate in enumerate(CANDIDATES) if candidate.kind == POOL]
    own = min(pooling, key=lambda i: means[i])
    return own if verdict == POOL and not _beats(regrets[best], regrets[own]) else best


def _settled(regrets: Floats) -> bool:
    """Whether the best is ahead of all others beyond noise, each difference paired."""
    best = int(regrets.mean(axis=1).argmin())
    apart = all(_beats(regrets[best], other) for i, other in enumerate(regrets) if i != best)
    # The error of four differences is too uncertain itself to stop at.
    return apart and regrets.shape[1] >= LEAST_WORLDS


def _beats(first: Floats, second: Floats) -> bool:
    """Whether the first has the smaller regret beyond noise."""
    difference = second - first
    return bool(difference.mean() > BEYOND * difference.std(ddof=1) / difference.size**0.5)


def _expected(name: str, kind: str, regrets: Floats, advised: Floats, horizon: int) -> Expected:
    count = regrets.size**0.5
    behind = regrets - advised
    mean, error = float(regrets.mean()), float(regrets.std(ddof=1) / count)
    return Expected(name, kind, mean, error, mean / horizon, float(behind.mean()), float(behind.std(ddof=1) / count))


def live_learner(advice: Advice) -> str:
    """What a pool of this map runs; where nothing can be told, one that pools and keeps a holdout finds out."""
    if advice.verdict == UNCLEAR:
        return "self-tuned"
    return RUNS_LIVE.get(advice.learner, advice.learner)
