"""The advice: one decision from which verdict, learner, ranking, first action, expected regret and pool all follow.

docs/audit.md has the table of verdicts. "Cost" is the price of choosing through the states over that of choosing
blindly, for the log's actions and for new ones whose direct effects spread as much: a range, all of which has to be
`SMALL` or `LARGE`. The verdict is the most probable one, over draws from what the log says. What it leaves open of
effects that were not found is the interval, at 90 %, of their variance over actions. Effects that were found are in the
prior whatever the verdict. Actions are ranked by the estimate that corrects for them. Expected regret comes from
simulations on worlds drawn from what the log says; the advised learner starts as the pool.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from os import cpu_count
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from statepool import learners
from statepool.audit.counts import Counts, Rows, Unit
from statepool.audit.delays import Lateness, Maturity, simulated_delays
from statepool.audit.estimates import PRESENT, ActionEffects, Drift, Map, Sufficiency
from statepool.checks import Floats
from statepool.engine import simulate
from statepool.learners.contract import Learner, Problem
from statepool.model import Instance

if TYPE_CHECKING:
    from statepool.audit.contexts import Contexts

POOL, CORRECT, ALONE, UNCLEAR = "pool", "pool with corrections", "do not pool", "cannot tell"
LEARNERS: dict[str, str | None] = {
    POOL: "self-tuned", CORRECT: "self-tuned", ALONE: "action-thompson", UNCLEAR: None,
}  # fmt: skip
SMALL, LARGE = 0.05, 2 / 3
DOUBT = 0.25
"""Wide, since self-tuned corrects for effects that were missed."""
TURNING = ((1 - DOUBT) ** -2 - 1) ** 0.5
"""The spread of direct effects at which new actions lose `DOUBT`, over that of what the states predict: where both are
normal, 1 - 1/sqrt(1 + ratio²) is lost."""
SETTLED, GOOD, NAMED = 0.8, 0.9, 0.85
"""No verdict unless its learner is right with probability `SETTLED`, and the first action good with `NAMED`."""
SURE = 1.5
"""That spread over the one which more data have to leave possible: both are themselves only estimated."""
HOLDOUT = 0.1
LITTLE = 0.04
"""If no choice can gain more than this share of the mean outcome, the actions are alike."""

SIMULATED = ("self-tuned", "action-thompson", "state-exp3")
ALWAYS, BLIND = "always the first", "blind choice"
WORLDS, FEW, DRAWN = 24, 8, 200
WORK = 300_000
"""Rounds × actions of a simulation, unless a horizon is given."""
SHORTEST, LONGEST = 500, 10_000


class Ranking(NamedTuple):
    """Actions by number, the best first, by the estimate that corrects for direct effects."""

    order: tuple[int, ...]
    starts: dict[str | None, int]
    """What the advised pool shows most at first: in each context that it knows, by name, or in all (None)."""
    first: int
    """The same without contexts. With contexts, or if the log cannot tell: the best."""
    mean: float
    interval: list[float]
    """Of the first, in the user's unit."""
    alike: tuple[int, ...]
    """Those that may be as good as far as the log can tell, in order."""


class Expected(NamedTuple):
    """Regret over the horizon, in losses: one for each simulated world, the same worlds in order for all."""

    name: str
    by_world: Floats

    @property
    def regret(self) -> float:
        return float(self.by_world.mean())

    @property
    def error(self) -> float:
        return float(self.by_world.std(ddof=1) / self.by_world.size**0.5)


@dataclass(frozen=True, eq=False)
class Advice:
    verdict: str
    missing: str
    """If the log cannot tell, what is missing."""
    needed: int | None
    """Then, how many more rows with an outcome would tell, with actions chosen as in the log."""
    ranking: Ranking
    expected: tuple[Expected, ...]
    horizon: int
    settings: dict[str, Any] = field(repr=False)
    """Of the pool, in the user's unit."""
    prior: dict[str, Any] | None = field(repr=False)
    """What the log knows, in the user's unit."""

    @property
    def learner(self) -> str | None:
        return LEARNERS[self.verdict]


@dataclass(frozen=True, eq=False)
class Evidence:
    """All that the advice rests on; `rows` is the sample with the outcomes of rows that are old enough."""

    counts: Counts
    unit: Unit
    map: Map
    sufficiency: Sufficiency
    effects: ActionEffects
    rows: Rows
    maturity: Maturity
    lateness: Lateness
    drift: Drift


def advise(seen: Evidence, contexts: Contexts | None, horizon: int | None, level: float, seed: int) -> Advice:
    verdict, missing, needed = judge(seen, 0.0 if contexts is None else max(contexts.gain.lower, 0.0))
    # Two windows of decisions, or all of a small log, within limits.
    rounds = 2 * seen.lateness.window or seen.counts.rows
    rounds = horizon or int(min(max(rounds, SHORTEST), LONGEST, max(WORK // seen.counts.n_actions, SHORTEST)))
    known, learner, order = what_is_known(seen, verdict), LEARNERS[verdict], order_actions(seen)
    starts = first_actions(seen, learner, known, order, contexts) if learner else {}
    ranking = rank_actions(seen, order, starts, level)
    prior = prior_of(seen, known) if learner else None
    expected = expected_regrets(seen, learner, known, order[0], rounds, seed) if learner else ()
    return Advice(verdict, missing, needed, ranking, expected, rounds, pool_settings(seen), prior)


def judge(seen: Evidence, personalised: float = 0.0) -> tuple[str, str, int | None]:
    """The verdict; for *cannot tell*, what is missing and how much. `personalised`: what contexts gain at the least."""
    found, is_open = _judge_states(seen, personalised), seen.unit.is_reward and not is_alike(seen.counts, seen.effects)
    known = first_is_good(seen) if found[0] != UNCLEAR and is_open else 1.0
    if known >= NAMED:
        return found
    times = (NormalDist().inv_cdf(NAMED) / max(NormalDist().inv_cdf(known), 0.1)) ** 2
    good = f"the first is worth {100 * GOOD:.0f} % of the best with probability {100 * known:.0f} %"
    return UNCLEAR, f"which action to start on is open: {good}", _more_rows(seen, times)


def first_is_good(seen: Evidence) -> float:
    """The probability that the first action is worth `GOOD` of the best."""
    effects, first = seen.effects, order_actions(seen)[0]
    # Errors of state means are common to all actions: where one is worth less than it seems, so are the others.
    common = seen.map.P * seen.counts.state_errors
    alone = np.sqrt(np.maximum(effects.own_error**2 - (common**2).sum(axis=1), 0.0))
    rng = np.random.default_rng(19)
    noise = alone * rng.standard_normal((1_000, alone.size)) + rng.standard_normal((1_000, common.shape[1])) @ common.T
    worth = seen.unit.outcome(effects.own + noise)
    return float((worth[:, first] >= GOOD * worth.max(axis=1)).mean())


def _judge_states(seen: Evidence, personalised: float) -> tuple[str, str, int | None]:
    counts, effects, found = seen.counts, seen.effects, seen.sufficiency.effects == PRESENT
    barred = _barred(counts, seen.maturity)
    if barred:
        return UNCLEAR, barred, None
    if is_alike(counts, effects):
        # Alike for all together; for each context the states may still tell them apart.
        safe = effects.at_most * effects.possible_gain < DOUBT * personalised
        return (POOL if safe and not found else ALONE), "", None
    if not found:
        if effects.at_most < DOUBT:
            return POOL, "", None
        few = f"{int(counts.k.sum())} outcomes are too few to rule out that actions matter beyond the state"
        lost = f"Pooling may lose up to {100 * effects.at_most:.0f} % of what can be gained"
        return UNCLEAR, f"{few}. {lost}; {100 * DOUBT:.0f} % is too much", rows_needed(seen)
    pool, alone = (effects.drawn < SMALL).all(axis=1).mean(), (effects.drawn >= LARGE).all(axis=1).mean()
    if 1 - SETTLED < alone < SETTLED:
        span = (
            f"that pooling loses {100 * LARGE:.0f} % or more of what can be gained has probability {100 * alone:.0f} %"
        )
        return UNCLEAR, span, rows_needed(seen)
    return ALONE if alone >= SETTLED else POOL if pool >= 1 - pool - alone else CORRECT, "", None


def is_alike(counts: Counts, effects: ActionEffects) -> bool:
    """Whether no choice among the actions can gain `LITTLE`, for all who ask together."""
    little = little_of(counts)
    return effects.possible_gain < little and effects.spread_pooled < little


def little_of(counts: Counts) -> float:
    return LITTLE * max(min(counts.mean, 1 - counts.mean), 1e-9)


def _barred(counts: Counts, maturity: Maturity) -> str:
    """What makes any answer impossible, whatever the numbers."""
    if not counts.has_outcomes:
        long = "no outcome is final: the window is as long as the log, or longer"
        return long if maturity.window is not None else "no outcome is known"
    if counts.n_actions < 2:
        return "there is only one action, so nothing was chosen"
    if counts.n_states < 2:
        return "there is only one state, so there is nothing to pool through"
    return "every outcome is the same" if counts.deviation <= 1.01e-6 else ""


def rows_needed(seen: Evidence) -> int:
    """Rows with which the log would leave no effects possible that change the verdict."""
    effects, K = seen.effects, seen.counts.n_actions
    lead = max(NormalDist().inv_cdf((K - 0.375) / (K + 0.25)), 0.5)
    # Effects too small to matter need not be seen.
    target = max(TURNING * effects.likely_spread, little_of(seen.counts) / lead)
    return _more_rows(seen, (SURE * effects.open.spread / target) ** 2)


def _more_rows(seen: Evidence, times: float) -> int:
    """Beyond those of the log, until there are so many times its outcomes."""
    return max(round((min(times, 1e9) - 1) * float(seen.counts.k.sum())), 1)


def order_actions(seen: Evidence) -> tuple[int, ...]:
    # A new action may well be the best, but nothing shows it yet.
    return tuple(map(int, np.lexsort((seen.effects.own, seen.counts.is_new))))


def rank_actions(seen: Evidence, order: tuple[int, ...], starts: dict[str | None, int], level: float) -> Ranking:
    own, error, z = seen.effects.own, seen.effects.own_error, NormalDist().inv_cdf(0.5 + level / 2)
    first = starts.get(None, order[0])
    # Errors of state means are shared by actions, so this calls a few too many alike.
    near = own - own[first] <= z * np.hypot(error, error[first])
    alike = tuple(a for a in order if near[a] and a != first)
    ends = seen.unit.outcome(np.clip(own[first] + z * error[first] * np.array([-1.0, 1.0]), 0.0, 1.0))
    return Ranking(order, starts, first, float(seen.unit.outcome(own[first])), sorted(ends.tolist()), alike)


def first_actions(
    seen: Evidence, learner: str, known: Known, order: tuple[int, ...], contexts: Contexts | None
) -> dict[str | None, int]:
    """The action that a pool started from this shows most at first; where contexts pay, in each of them by name."""
    maturity, curve = seen.maturity, seen.maturity.curve
    low, high = sorted(map(seen.unit.loss, seen.unit.bounds))
    # As the pool has it: losses between its bounds, actions in order of their rank.
    start = known.scaled(lambda means: (means - low) / (high - low), list(order))
    if maturity.window is not None and maturity.default is not None:
        start |= {"window": maturity.window, "default": (maturity.default - low) / (high - low)}
    start["curve"] = curve and (curve.tau, curve.weight)
    P, offered, asked = seen.map.P, None, dict[str | None, int | None]({None: None})
    if contexts is not None and contexts.pays:
        P, offered = contexts.P, contexts.offered[:, order]
        asked = {name: c for c, name in enumerate(contexts.names)}
    made = informed(learner, **start)
    player, times = made.player(P[..., order, :], available=offered), DRAWN if made.policy_varies else 1

    def policy(context: int | None) -> Floats:
        player.act(0.5, context)
        return player.policy()

    return {name: order[np.sum([policy(c) for _ in range(times)], axis=0).argmax()] for name, c in asked.items()}


def pool_settings(seen: Evidence) -> dict[str, Any]:
    """Settings of the pool, in the log's unit: bounds with headroom, the window and what silence means, a holdout."""
    unit, maturity = seen.unit, seen.maturity
    found: dict[str, Any] = {"holdout": HOLDOUT}
    if unit.is_reward or unit.bounds != [0.0, 1.0]:
        found["reward_bounds" if unit.is_reward else "loss_bounds"] = unit.bounds
    if maturity.window is not None and maturity.default is not None:
        found["window"] = maturity.window
        found["default_reward" if unit.is_reward else "default_loss"] = unit.outcome(maturity.default)
    return found


class Known(NamedTuple):
    """What a pool starts from, in losses: means as of the end of the log, and how many outcomes each is worth."""

    states: tuple[Floats, Floats]
    cells: tuple[Floats, Floats] | None
    """By action and state, with direct effects, where single actions matter."""
    part: Floats
    """What an effect of 1 on an action's mean adds in each state: effects are taken to be shares of what is gained."""

    def scaled(self, scale: Callable[[Floats], Floats], order: Any = slice(None)) -> dict[str, Any]:
        """As a learner's problem takes it, with means on another scale and actions in another order."""
        cells = self.cells and (scale(self.cells[0])[order], self.cells[1][order])
        return {"prior": (scale(self.states[0]), self.states[1]), "cells": cells}


def what_is_known(seen: Evidence, verdict: str) -> Known:
    counts, drift, direct, base = seen.counts, seen.drift, seen.effects.direct, seen.sufficiency.base
    errors, spread = counts.state_errors, drift.spread
    means = np.where(spread > 0, drift.last, counts.state_means)
    # Of a state that drifts fewer outcomes count.
    limit = np.where(spread > 0, errors**2 * np.maximum(counts.worth, 1) / np.maximum(spread, 1e-12) ** 2, np.inf)
    gained = seen.effects.pooled - base
    part = (means - base) / np.where(np.abs(gained) > 1e-12, gained, np.inf)[:, None]
    states = (means, np.minimum(counts.worth, limit))
    if verdict != ALONE and direct.spread <= 0:
        return Known(states, None, part)
    # A cell is known no better than its state's mean, and that of a new action not at all.
    doubt = np.divide(part**2 * direct.variance[:, None], errors**2, out=np.zeros_like(part), where=errors > 0)
    cells = np.clip(means + part * direct.mean[:, None], 0.0, 1.0)
    return Known(states, (cells, ~counts.is_new[:, None] * counts.worth / (1 + doubt)), part)


def prior_of(seen: Evidence, known: Known) -> dict[str, Any]:
    """State means and the outcomes they are worth, the delay curve, and cells where single actions matter."""
    counts, curve = seen.counts, seen.maturity.curve

    def pairs(means: Floats, worth: Floats) -> dict[str, list[float]]:
        outcomes = seen.unit.outcome(means)
        return {name: [float(outcomes[s]), float(worth[s])] for s, name in enumerate(counts.states)}

    prior: dict[str, Any] = {"states": pairs(*known.states)}
    if curve is not None:
        prior["curve"] = {"tau": curve.tau.tolist(), "weight": curve.weight.tolist()}
    if known.cells is not None:
        means, worth = known.cells
        tried = ((a, name) for a, name in enumerate(counts.actions) if worth[a].any())
        prior["cells"] = {name: pairs(means[a], worth[a]) for a, name in tried}
    return prior


def scaled_means(counts: Counts, theta: Floats) -> tuple[float, Callable[[Floats], Floats]]:
    """The largest outcome of a simulation, whose outcomes are 0 or 1, and what scales means by it.

    It is not the log's but the size of a typical event, R = E[x²]/E[x], so that means and variances are those of the
    log.
    """
    turned = counts.mean >= 0.5  # outcomes are measured from the largest loss
    k, loss, square = float(counts.k.sum()), float(counts.loss.sum()), float(counts.square.sum())
    first, second = (k - loss, k - 2 * loss + square) if turned else (loss, square)
    highest = float((1 - theta if turned else theta).max())
    scale = float(np.clip(max(second / max(first, 1e-12), 1.02 * highest), 1e-9, 1.0))
    return scale, lambda means: np.clip(1 - (1 - means) / scale if turned else means / scale, 0.0, 1.0)


def informed(name: str, **known: Any) -> Learner:
    """The learner of a name, started from what a log knows (`prior`, `curve`, `cells`), as a pool with `prior` is."""
    kind: Any = learners.find(name)

    class Informed(kind):  # type: ignore[misc]
        def start(self, problem: Problem) -> Any:
            return super().start(replace(problem, **known))

    made: Learner = Informed()
    return made


def expected_regrets(
    seen: Evidence, learner: str, known: Known, first: int, horizon: int, seed: int
) -> tuple[Expected, ...]:
    """What is expected of the advised learner and of what people would do instead, on the same worlds."""
    counts, direct, late, curve = seen.counts, seen.effects.direct, seen.lateness, seen.maturity.curve
    scale, scaled = scaled_means(counts, seen.drift.last)
    if late.window and seen.maturity.default != 1.0:
        # Where silence is good news, outcomes are held until the window closes.
        late, curve = late._replace(window=0, draws=np.array([float(late.window)])), None
    own = known.scaled(scaled)
    own["curve"] = curve and (curve.tau * seen.rows.pace, curve.weight)
    # Only the advised learner starts from what the log knows of single actions.
    start = own | {"cells": None}
    # Thompson sampling per action draws a number for each action and round: fewer worlds, and fewer still of many.
    few = int(np.clip(FEW * WORK // (horizon * counts.n_actions), 2, FEW))
    visits = counts.effective.sum(axis=1, keepdims=True) + seen.map.strength

    def regrets(world: int) -> list[float]:
        rng = np.random.default_rng((seed + world, 15))
        means = scaled(seen.drift.last + counts.state_errors * rng.standard_normal(counts.n_states))
        drawn = direct.mean + np.sqrt(direct.variance) * rng.standard_normal(counts.n_actions)
        effects = np.clip(known.part / scale * drawn[:, None], -means, 1 - means)
        weights = rng.standard_gamma(seen.map.P * visits)
        P = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, seen.map.P)
        rounds = np.tile(means, (horizon, 1))
        instance = Instance(P / P.sum(axis=1, keepdims=True), rounds, effects if effects.any() else None)
        delays = simulated_delays(late, horizon, seed + world)
        given = [(name, own if name == learner else start) for name in SIMULATED]
        runs = [
            simulate(instance, informed(name, **knows), delays, seed + world).regret
            if name != "action-thompson" or world < few
            else np.nan
            for name, knows in given
        ]
        totals = instance.total_losses - instance.total_losses.min()
        return [*runs, float(totals[first]), float(totals.mean())]

    with ThreadPoolExecutor(cpu_count() or 1) as pool:
        found = scale * np.array(list(pool.map(regrets, range(WORLDS))))
    names = (*SIMULATED, ALWAYS, BLIND)
    return tuple(Expected(name, each[np.isfinite(each)]) for name, each in zip(names, found.T, strict=True))
