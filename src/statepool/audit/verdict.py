"""The verdict: pool, pool with corrections, do not pool, or cannot tell; and how much more it would take to tell.

    pool               no direct effect found, and none that would cost `DOUBT` of what can be gained is left possible;
                       or those found cost next to nothing                                        (both < SMALL)
                       Actions that are alike for all together, but not for each context apart: of what personalising
                       gains
    do not pool        choosing by the pooled estimate loses two thirds and more of what can be gained  (both ≥ LARGE)
    with corrections   anything between
    cannot tell        one action, one state, outcomes all alike or none mature; or the log leaves open both a loss that
                       is next to nothing and one that is not

Both: the price of choosing by pooling over that of choosing blindly, for the actions of the log, and for others whose
direct effects spread as much (`effects`): that the best action by chance is the one pooling favours must not decide
alone. What the log leaves open is the interval, at 90 %, of the variance of direct effects over actions.

How much more: the effect that would change the verdict is tau*, the spread of direct effects at which new actions lose
`DOUBT`. With n outcomes the interval of a log without effects ends below tau*² with chance `POWER` when

    noise(n) (nu/χ²_.05(nu) - 1 + z_POWER sqrt(2/nu)) = tau*²,      noise(n) ~ 1/n, nu degrees of freedom
"""

from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from scipy.special import chdtri

from statepool.audit.counts import Counts
from statepool.audit.effects import LEVEL, ActionEffects
from statepool.audit.maturity import Maturity
from statepool.audit.sufficiency import Sufficiency

POOL, CORRECT, ALONE, UNCLEAR = "pool", "pool with corrections", "do not pool", "cannot tell"
SMALL, LARGE = 0.05, 2 / 3
DOUBT = 0.15
"""A possible loss of this share of what can be gained leaves the verdict open."""
CERTAIN = 0.001
"""A direct effect is acted on below this; between it and .05 it is a hint, and speaks for no verdict."""
POWER = 0.9
MARGIN = 1.5
"""Half as many again, since what the states predict is itself only estimated."""
HOLDOUT = 0.1
LITTLE = 0.01
"""If no choice can gain more than this a decision, the actions are alike."""
UNEVEN = 3.0
"""If the mix of actions makes a log need so many times the rows of an even one, a holdout is asked for instead."""


@dataclass(frozen=True)
class Needed:
    """What it would take to tell."""

    outcomes: int
    """Mature outcomes in all, with actions chosen as in the log."""
    more: int
    """Of these, how many rows are to come."""
    even: int
    """The same number with actions chosen evenly."""
    holdout: bool
    """Whether a holdout is the better way: the log hardly tries anything but a few actions."""

    @property
    def decisions_with_holdout(self) -> int:
        return round(self.even / HOLDOUT)


@dataclass(frozen=True)
class Verdict:
    verdict: str
    missing: str = ""
    """If nothing can be told, what is missing."""
    needed: Needed | None = None


def judge(
    counts: Counts, found: Sufficiency, effects: ActionEffects, maturity: Maturity, personalised: float = 0.0
) -> Verdict:
    """`personalised`: what choosing for each context is worth at the least, a decision, through the states."""
    barred = _barred(counts, maturity)
    if barred:
        return Verdict(UNCLEAR, barred)
    possible = effects.possible
    if is_alike(effects):
        # Alike for all together; for each context apart the states may still tell them apart.
        safe = max(possible.at_most) * possible.gain < DOUBT * personalised
        return Verdict(POOL if safe and found.p >= CERTAIN else ALONE)
    if found.p >= CERTAIN and max(possible.at_most) < DOUBT:
        return Verdict(POOL)
    if found.p >= CERTAIN:
        about = _about_power(counts, effects) if found.p >= LEVEL else _about_hints(found, effects)
        return Verdict(UNCLEAR, about, rows_needed(counts, effects))
    if classify(possible.at_least) == POOL and max(possible.at_most) >= DOUBT:
        return Verdict(UNCLEAR, _about_span(effects), rows_needed(counts, effects))
    return Verdict(classify((effects.lost, effects.typical_loss)))


def is_alike(effects: ActionEffects) -> bool:
    """Whether no choice among the actions, for all who ask together, can gain LITTLE."""
    return effects.possible.gain < LITTLE and effects.spread_pooled < LITTLE


def classify(shares: tuple[float, float]) -> str:
    """By the shares lost, of the log's own actions and of new ones."""
    if max(shares) < SMALL:
        return POOL
    return ALONE if min(shares) >= LARGE else CORRECT


def _barred(counts: Counts, maturity: Maturity) -> str:
    """What makes any answer impossible, whatever the numbers."""
    if not counts.has_outcomes:
        return (
            "no outcome is old enough: the window is as long as the log, or longer"
            if maturity.window is not None
            else "no outcome is known"
        )
    if counts.n_actions < 2:
        return "there is one action only, so nothing was chosen"
    if counts.n_states < 2:
        return "there is one state only, so there is nothing to pool through"
    mean = counts.loss.sum() / counts.k.sum()
    if counts.square.sum() / counts.k.sum() - mean**2 <= 1e-12:
        return "every outcome is the same"
    return ""


def rows_needed(counts: Counts, effects: ActionEffects) -> Needed:
    """Rows for the test to find the effect that would change the verdict, as likely as POWER."""
    possible, known, K = effects.possible, float(counts.k.sum()), counts.n_actions
    # Effects too small to matter need not be seen: actions that differ by less than LITTLE are alike.
    target = max(turning_ratio(min(K, 100)) * possible.spread, LITTLE / _expected_lead(K)) ** 2
    # The upper end of the variance's interval falls as 1/n; by chance the estimate lies above 0, too.
    freedom = possible.freedom
    excess = freedom / chdtri(freedom, 0.95) - 1 + NormalDist().inv_cdf(POWER) * (2 / freedom) ** 0.5
    even = MARGIN * excess * K * possible.noise / target
    outcomes = min(max(MARGIN * excess * possible.noise_of_means / target * known, even), 1e12)
    return Needed(round(outcomes), max(round(outcomes - known), 0), round(even), bool(outcomes > UNEVEN * even))


@lru_cache(maxsize=256)
def turning_ratio(n_actions: int) -> float:
    """The spread of direct effects, over that of what the states predict, at which new actions lose DOUBT."""
    rng = np.random.default_rng(16)
    c, z = rng.standard_normal((2, 4_000, n_actions))
    low, high = 1e-3, 10.0
    for _ in range(30):
        middle = (low * high) ** 0.5
        m = c + middle * z
        best = m.min(axis=1)
        lost = (m[np.arange(len(m)), c.argmin(axis=1)] - best).mean() / (m.mean(axis=1) - best).mean()
        low, high = (middle, high) if lost < DOUBT else (low, middle)
    return float((low * high) ** 0.5)


def _expected_lead(n_actions: int) -> float:
    """About how many standard deviations the best of so many lies ahead of the mean."""
    return max(NormalDist().inv_cdf((n_actions - 0.375) / (n_actions + 0.25)), 0.5)


def _about_power(counts: Counts, effects: ActionEffects) -> str:
    return (
        f"{int(counts.k.sum())} outcomes are too few to see a direct effect that would cost pooling {DOUBT:.0%} of "
        f"what can be gained (it may cost up to {max(effects.possible.at_most):.0%})"
    )


def _about_hints(found: Sufficiency, effects: ActionEffects) -> str:
    return (
        f"there is a hint of direct effects (p = {found.p:.2g}) that may cost up to "
        f"{max(effects.possible.at_most):.0%} of what can be gained, and may be chance"
    )


def _about_span(effects: ActionEffects) -> str:
    low, high = min(effects.possible.at_least), max(effects.possible.at_most)
    return f"pooling may lose anything from {low:.0%} to {high:.0%} of what can be gained"
