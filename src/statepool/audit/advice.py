"""The advice: pool, pool with corrections, or do not pool; with which learner, and what regret to expect of each.

    nothing to choose    the actions do not differ beyond noise                               → do not pool
    pool                 no direct effect found, or what pooling loses is next to nothing     (both < SMALL)
    do not pool          choosing by the pooled estimate loses half and more of what can be gained  (both ≥ LARGE)
    with corrections     anything between

Both: the price of choosing by pooling over that of choosing blindly, for the actions of the log, and for others whose
direct effects spread as much (`effects`): that the best action by chance is the one pooling favours, or is not, must
not decide alone. The learners are then run on the
instance fitted to the log, direct effects included; the advised one is the best of its kind there, and where a learner
of another kind does better on the log's own horizon, the advice says so.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from os import cpu_count
from typing import Any

import numpy as np

from statepool import learners
from statepool.audit.counts import Counts
from statepool.audit.effects import Effects
from statepool.audit.fitting import Fitted
from statepool.audit.lateness import Lateness
from statepool.audit.sufficiency import Sufficiency
from statepool.audit.words import counted
from statepool.engine import simulate

POOL, CORRECT, ALONE = "pool", "pool with corrections", "do not pool"


@dataclass(frozen=True)
class Candidate:
    """A learner by its registered name, its settings, and the advice it serves."""

    learner: str
    kind: str
    settings: tuple[tuple[str, Any], ...] = ()


CANDIDATES = (
    Candidate("self-tuned", POOL),
    Candidate("state-exp3", POOL),
    Candidate("corrected-pool", CORRECT),
    Candidate("action-exp3", ALONE),
    Candidate("zimmert-seldin", ALONE),
)
"""What is tried."""

BLIND = "blind"
SMALL, LARGE = 0.05, 0.5
LEVEL = 0.05
SEEDS = 3


@dataclass(frozen=True)
class Expected:
    """A candidate's regret on the fitted instance, and a decision's share of it."""

    learner: str
    kind: str
    regret: float
    error: float
    per_decision: float


@dataclass(frozen=True)
class Advice:
    verdict: str
    reasons: tuple[str, str, str]
    learner: str
    settings: dict[str, Any]
    expected: tuple[Expected, ...]
    horizon: int


def advise(
    counts: Counts, found: Sufficiency, effects: Effects, lateness: Lateness, fitted: Fitted, seed: int = 0
) -> Advice:
    verdict = judge(counts, found, effects)
    expected = try_candidates(fitted, seed)
    chosen = choose(verdict, expected)
    settings = next(dict(c.settings) for c in CANDIDATES if c.learner == chosen.learner)
    reasons = (
        _about_sufficiency(counts, found, effects), _about_price(counts, verdict, effects),
        _about_regret(verdict, chosen, expected, lateness, fitted),
    )  # fmt: skip
    return Advice(verdict, reasons, chosen.learner, settings, expected, fitted.horizon)


def judge(counts: Counts, found: Sufficiency, effects: Effects) -> str:
    if counts.n_actions < 2 or _alike(effects):
        return ALONE
    shares = (effects.lost, effects.typical_loss)
    if found.p >= LEVEL or max(shares) < SMALL:
        return POOL
    return ALONE if min(shares) >= LARGE else CORRECT


def _alike(effects: Effects) -> bool:
    return effects.spread_pooled < 1e-3 and effects.spread_direct < 1e-3


def try_candidates(fitted: Fitted, seed: int) -> tuple[Expected, ...]:
    """Every candidate on the fitted instance, paired on the same delays and the same luck; and choosing blindly."""
    worlds = [(fitted.instance(seed + i), fitted.delays(seed + i), seed + i) for i in range(SEEDS)]

    def regret(run: tuple[Candidate, tuple[Any, Any, int]]) -> float:
        candidate, (instance, delays, number) = run
        return simulate(instance, learners.find(candidate.learner)(**dict(candidate.settings)), delays, number).regret

    with ThreadPoolExecutor(cpu_count() or 1) as pool:
        regrets = list(pool.map(regret, product(CANDIDATES, worlds)))
    found = [
        _expected(candidate.learner, candidate.kind, regrets[SEEDS * i : SEEDS * i + SEEDS], fitted.horizon)
        for i, candidate in enumerate(CANDIDATES)
    ]
    blind = [float(instance.total_losses.mean() - instance.total_losses.min()) for instance, _, _ in worlds]
    return (*found, _expected("any action", BLIND, blind, fitted.horizon))


def _expected(name: str, kind: str, regrets: list[float], horizon: int) -> Expected:
    mean, error = float(np.mean(regrets)), float(np.std(regrets, ddof=1) / len(regrets) ** 0.5)
    return Expected(name, kind, mean, error, mean / horizon)


def choose(verdict: str, expected: tuple[Expected, ...]) -> Expected:
    """The best of the kind advised; the best of all but blind where none is registered."""
    kin = [e for e in expected if e.kind == verdict] or [e for e in expected if e.kind != BLIND]
    return min(kin, key=lambda e: e.regret)


def _about_sufficiency(counts: Counts, found: Sufficiency, effects: Effects) -> str:
    if counts.n_actions < 2:
        return "There is one action only, so there is nothing to choose."
    rejected = [s for s, p in enumerate(found.corrected) if p < LEVEL]
    if not rejected:
        return (
            f"In none of the {counts.n_states} states do outcomes differ between actions beyond chance "
            f"(p = {found.p:.2g} for the whole log), so the state seems to be all that matters."
        )
    sizes = [found.states[s].size for s in rejected]
    return (
        f"In {len(rejected)} of {counts.n_states} states outcomes differ between actions beyond chance "
        f"(p = {found.p:.1g}), by direct effects of {_span(sizes)} in mean loss, noise taken off."
    )


def _span(sizes: list[float]) -> str:
    low, high = f"{min(sizes):.3f}", f"{max(sizes):.3f}"
    return low if low == high else f"{low} to {high}"


def _about_price(counts: Counts, verdict: str, effects: Effects) -> str:
    if counts.n_actions < 2:
        return f"Its mean loss is {float(counts.loss.sum() / counts.k.sum()):.3f}, whatever is learnt."
    if _alike(effects):
        return (
            "The actions do not differ beyond noise, neither through the states nor otherwise: nothing can be gained."
        )
    return (
        f"The action that looks best through the states is {effects.price:.3f} worse a decision than the best, where "
        f"choosing blindly is {effects.blind:.3f} worse, and the pooled estimate ranks the actions with a "
        f"correlation of {effects.rank_correlation:.2f}."
    )


def _about_regret(
    verdict: str, chosen: Expected, expected: tuple[Expected, ...], lateness: Lateness, fitted: Fitted
) -> str:
    best = min((e for e in expected if e.kind != BLIND), key=lambda e: e.regret)
    text = (
        f"On an instance fitted to the log, {counted(fitted.horizon)} decisions with its own delays and direct "
        f"effects, {chosen.learner} has a regret of {counted(chosen.regret)}"
    )
    others = [e for e in expected if e.kind not in (chosen.kind, BLIND)]
    if others:
        rival = min(others, key=lambda e: e.regret)
        text += f" against {counted(rival.regret)} of {rival.learner}"
    if best.learner != chosen.learner and best.regret + 2 * best.error < chosen.regret:
        text += f" (on so short a horizon {best.learner} still does better, but it would stay biased)"
    if lateness.misleads:
        how = "better" if lateness.early < lateness.late else "worse"
        text += f"; beware that outcomes that come early are {how} than late ones"
    return text + "."
