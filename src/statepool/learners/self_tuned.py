"""SelfTuned: the learner to run. Nothing to set, losses in any unit, outcomes early or late.

    1-4  predict the mean outcome of each state, with its noise, and be optimistic about those seen less (`predictions`)
    5    effects of actions beyond the state (`effects`): under each hypothesis q on their variance,
             value_q(a) = Σ_s P(s|a) [g(s) + σ_s (ε_q(a) - sqrt(.4 c/(1 + n_a c) · log⁺(n/(n_a + 1))))]
         with n_a plays of a and n on average; q is weighted ∝ prior · exp(-Σ ω (x - saved m - σ_s saved ε_q)²/(2 var)),
         where no state says more than 3 against a q
    6    each leader argmin value_q with its weight, at least min(1/64, 3/sqrt(t)) on those with effects together; while
         some state was seen less than ten times in memory .999, a look: min(1/16, 3/sqrt(t)) on the action that is best
         by that memory alone, with more optimism, and all states as noisy as the noisiest
    7    rows are believed as the pairs seen say (`effects`); `learn_map`: they are learnt, and optimism extends to them
    8    with a window all counts are exposed counts (`exposure`)
         around it a safe part and a guard (`safe`)

Effects are by action; with contexts also by (context, action); with a window also in proportion to m(s), as prices act:
two further hypotheses each, weighed by evidence.

Source: ours; the safe part is the paper's State-EXP3. What is proved, and what is only measured: docs/self-tuned.md.
"""

from __future__ import annotations

from math import exp, log, sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled_inside, compiled_part
from statepool.kernels import combine_apart, lowest_index
from statepool.learners import effects, exposure, predictions, safe
from statepool.learners.contract import Learner, Problem, Rows, add_rule
from statepool.learners.effects import N_EFFECTS
from statepool.learners.parts import settled
from statepool.learners.predictions import HOPE, MEAN, MEMORIES, N_SAVED, SD

EFFECTS_PRIOR, UNSEEN_PRIOR, FOUND_PRIOR = 1 / 4, 1 / 16, 31 / 32
"""Of the hypotheses with effects together; the second with a `Problem.prior` of states alone, the third where
`Problem.cells` has effects."""
ASK, LOOK, SPREAD = 1 / 64, 1 / 16, 3.0
"""The least share of the hypotheses with effects, and the share of a look: both at most SPREAD/sqrt(t)."""
WEIGHT, ACTION, BEST, USUAL, UNPLAYED, PRIOR = range(6)
"""Of `SelfTunedMemory.leaders`."""
EFFECTS = N_SAVED + 2
"""Where a decision saves ê and ε: behind what it saves of its state, which is of `predictions` and of `safe`. Then
whether its request brought rows of its own."""
OFFERED = 1e300
"""The value of an action on offer that was compared already."""
MOST_AGAINST = 3.0
"""What one state can say against effects: a state with one outcome only has none, whatever holds elsewhere."""
ROW_OPTIMISM = predictions.OPTIMISM / 2
"""Of rows that are learnt: g(s) is optimistic already."""


@settled
class SelfTuned(Learner):
    """The learner to run: no horizon, no rate, no delay, nothing to set.

    >>> import statepool as sp
    >>> sp.simulate(sp.families.spread(seed=0, horizon=500), sp.SelfTuned(), delay=10, seed=80_000).regret < 50
    True
    """

    learn_map: bool = False
    knows_contexts: ClassVar[bool] = True
    runs_live: ClassVar[bool] = True
    scratch: ClassVar[tuple[str, ...]] = ("values",)
    exposure: ClassVar[bool] = True
    scale_free: ClassVar[bool] = True

    @property
    def learns_map(self) -> bool:  # type: ignore[override]
        return self.learn_map

    def saved_width(self, problem: Problem) -> tuple[int, int]:
        return N_SAVED + 2, n_hypotheses(problem) + 2

    def start(self, problem: Problem) -> SelfTunedMemory:
        K, S, Q = problem.n_actions, problem.n_states, n_hypotheses(problem)
        clock, learnt = exposure.start_clock(problem, MEMORIES, S), K if self.learn_map else 0
        plays = np.zeros(1 + problem.n_contexts)
        plays[0] = 0.0 if problem.cells is None else problem.cells[1].sum()
        return SelfTunedMemory(
            clock, predictions.start_predictions(problem, clock, Q), effects.start_cells(problem, clock),
            safe.start_safe(problem), _start_leaders(problem, Q), plays, np.empty((4, K)), np.empty(S * learnt),
            np.zeros(learnt), 0.0 if problem.window is None else float(problem.default),
        )  # fmt: skip

    def grow(self, memory: Any, before: Problem, after: Problem) -> Any:
        """Cells are found again by their keys; what the pairs said of a row that has changed is forgotten."""
        grown = self.start(after)
        for name, parts in (("clock", 5), ("predictions", 2), ("safe", 2)):
            for new, old in zip(getattr(grown, name)[:parts], getattr(memory, name)[:parts], strict=True):
                new[...] = old
        grown.plays[: memory.plays.size] = memory.plays
        effects.move_cells(memory.cells, grown.cells, before.P, None if self.learn_map else after.P)
        return grown


def _start_leaders(problem: Problem, n_hypotheses: int) -> Floats:
    leaders = np.zeros((6, n_hypotheses + 1))
    prior = FOUND_PRIOR if problem.cells is not None else EFFECTS_PRIOR if problem.prior is None else UNSEEN_PRIOR
    leaders[PRIOR, 0], leaders[PRIOR, 1:] = log(1 - prior), log(prior / (n_hypotheses - 1))
    return leaders


def n_hypotheses(problem: Problem) -> int:
    """No effects; small or large ones by action; with contexts by context and action; with a window of prices."""
    return 1 + N_EFFECTS * (1 + (problem.n_contexts > 1) + (problem.window is not None))


class SelfTunedMemory(NamedTuple):
    clock: exposure.Clock
    predictions: predictions.Predictions
    cells: effects.Cells
    safe: safe.Safe
    leaders: Floats
    """[what, q]: the weight of each hypothesis, the position of its best action, that action's value, the mean plays of
    an action, the optimistic effect of one that was never played, and the log prior. The last column is the look."""
    plays: Floats
    """How many decisions there were, and of each context."""
    values: Floats
    """Of each action on offer: Σ P(s|a) g(s), Σ P(s|a) σ_s, Σ P(s|a) m(s), and room."""
    columns: Floats
    """With `learn_map`: the rows of the request as they are believed."""
    worth: Floats
    """With `learn_map`: how many rounds each of these rows is worth."""
    default: float
    """0 without a window."""


def advance(memory: Any, t: int, now: float) -> None:
    clock = memory.clock
    if exposure.set_time(clock, t, now):
        _raise_bases(clock, memory.predictions, memory.cells)
    if memory.safe.actions.size > 0 and t >= 2.0 * memory.safe.numbers[safe.START]:
        safe.start_again(memory.safe, t, exposure.mean_delay(clock.numbers), memory.predictions.states[HOPE])


@compiled_part
def _raise_bases(clock: Any, p: Any, known: Any) -> None:
    for i in range(clock.fading.shape[1]):
        factor = exposure.raised(clock, i)
        if factor != 1.0:
            predictions.rescale(p, i, factor)
            if i >= predictions.N_MEMORIES:
                effects.rescale_cells(known, i - predictions.N_MEMORIES + 1, factor)


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    clock, states, leaders = memory.clock, memory.predictions.states, memory.leaders
    round_now = clock.numbers[exposure.ROUND]
    exposure.read_exposure(clock)
    predictions.predict(memory.predictions, clock, round_now)
    effects.read_scales(memory.cells, clock, states)
    most = SPREAD / sqrt(round_now + 1.0)
    share = min(LOOK, most)
    _weigh_hypotheses(leaders, memory.predictions, min(ASK, most))
    if predictions.rarest(states, clock) >= predictions.SEEN_ENOUGH:
        share = 0.0
    believed = _believed(memory, rows)
    _find_leaders(memory, believed, share > 0.0)
    last = leaders.shape[1] - 1
    for a in range(out.size):
        out[a] = 0.0
    for q in range(last):
        out[int(leaders[ACTION, q])] += (1.0 - share) * leaders[WEIGHT, q]
    out[int(leaders[ACTION, last])] += share
    if memory.safe.actions.size > 0:
        safe.add_safe(memory.safe, believed.columns, not rows.vary and memory.worth.size == 0, out)


@compiled_part
def _weigh_hypotheses(leaders: Any, p: Any, least: float) -> None:
    """The weight of each hypothesis on effects, at least `least` on those with effects together."""
    n, totals = leaders.shape[1] - 1, p.sums[p.sums.shape[0] - 1]
    top = -1e300
    for q in range(n):
        leaders[WEIGHT, q] = leaders[PRIOR, q]
        for s in range(totals.shape[0]):
            fewer = totals[s, predictions.DOUBT] - totals[s, predictions.DOUBT + q]
            leaders[WEIGHT, q] += max(fewer / (2.0 * p.states[predictions.VARIANCE, s]), -MOST_AGAINST)
        top = max(top, leaders[WEIGHT, q])
    total = 0.0
    for q in range(n):
        leaders[WEIGHT, q] = exp(leaders[WEIGHT, q] - top)
        total += leaders[WEIGHT, q]
    for q in range(n):
        leaders[WEIGHT, q] = (1.0 - least) * leaders[WEIGHT, q] / total + (least / (n - 1) if q > 0 else 0.0)


@compiled_part
def _believed(memory: Any, rows: Any) -> Any:
    """The rows of the request: as given, or as learnt where the request brought none."""
    columns = rows.columns
    if memory.worth.size > 0 and not rows.own:
        n_states, n = columns.shape
        columns = memory.columns[: n_states * n].reshape(n_states, n)
        for a in range(n):
            memory.worth[a] = effects.learnt_row(memory.cells, columns, a, rows.context, rows.actions[a])
    return Rows(columns, rows.actions, rows.context, rows.vary, rows.own)


@compiled_part
def _find_leaders(memory: Any, rows: Any, look: bool) -> None:
    """The best action under each hypothesis, and the best by the recent past alone."""
    states, leaders, n, usual_worth = memory.predictions.states, memory.leaders, rows.actions.size, 1.0
    values, room = memory.values[0, :n], memory.values[3, :n]
    combine_apart(rows.columns, states[HOPE], values)
    combine_apart(rows.columns, states[SD], memory.values[1, :n])
    if memory.cells.n_kinds > memory.cells.n_tables:
        combine_apart(rows.columns, states[MEAN], memory.values[2, :n])
    slack, n_known = _start_search(memory, rows.context, n), 0
    learnt, last = memory.worth.size > 0 and not rows.own, leaders.shape[1] - 1
    for a in range(n if learnt else 0):
        usual_worth += memory.worth[a] / n
    for a in range(n):  # a loop by itself: within the next one, which is long, it would take three times as long
        room[n_known] = a
        n_known += 1 if learnt or effects.find(memory.cells, rows.actions[a] + 1) >= 0 else 0
    for i in range(n_known):
        a = int(room[i])
        _offer_known(memory, rows, a, effects.find(memory.cells, rows.actions[a] + 1), usual_worth, slack, look)
        values[a] = OFFERED
    for q in range(last):
        unit, hope = memory.values[2 if q > N_EFFECTS * memory.cells.n_tables else 1, :n], leaders[UNPLAYED, q]
        for a in range(n):
            room[a] = values[a] + hope * abs(unit[a])
        best = lowest_index(room, slack)
        _offer(leaders, q, room[best], best, slack)
    if look:
        combine_apart(rows.columns, states[predictions.RECENT_HOPE], room)
        for a in range(n):
            room[a] = room[a] if values[a] < OFFERED else OFFERED
        best = lowest_index(room, slack)
        _offer(leaders, last, room[best], best, slack)


@compiled_inside
def _offer_known(memory: Any, rows: Any, a: int, cell: int, usual_worth: float, slack: float, look: bool) -> None:
    """Offer an action of which something is known: its row is doubted or learnt, and it may have effects."""
    known_of, states, leaders = memory.cells, memory.predictions.states, memory.leaders
    value, deviation, mean = memory.values[0, a], memory.values[1, a], memory.values[2, a]
    pair = effects.pair_of(known_of, cell, rows.context, rows.actions[a])
    row = rows.columns[:, a]
    if memory.worth.size > 0 and not rows.own:
        value -= _hope_for_row(states, row, value, memory.worth[a], usual_worth)
    elif not rows.own and pair >= 0:
        first = effects.doubt_row(known_of, pair, rows.columns, a)
        row = known_of.table[pair, first : first + row.size]
        value = deviation = mean = 0.0
        for s in range(row.size):
            value += row[s] * states[HOPE, s]
            deviation += row[s] * states[SD, s]
            mean += row[s] * states[MEAN, s]
    _offer(leaders, 0, value, a, slack)
    if look:
        recent = 0.0
        for s in range(row.size):
            recent += row[s] * states[predictions.RECENT_HOPE, s]
        _offer(leaders, leaders.shape[1] - 1, recent, a, slack)
    for kind in range(known_of.n_kinds):
        of_price = kind == known_of.n_tables
        of_kind = pair if kind == 1 and not of_price else cell
        known, news, plays = effects.evidence_of(known_of, of_kind, kind)
        unit, worth = (mean, known) if of_price else (deviation, plays)
        for q in range(1 + N_EFFECTS * kind, 1 + N_EFFECTS * (1 + kind)):
            c = effects.variance_of(q, of_price)
            moved = value + unit * effects.effect_of(known, news, c)
            if moved + abs(unit) * leaders[UNPLAYED, q] < leaders[BEST, q]:  # otherwise no optimism could make it best
                hope = _hope_for_effect(leaders[USUAL, q], plays)
                _offer(leaders, q, moved - abs(unit) * sqrt(hope * c / (1.0 + worth * c)), a, slack)


@compiled_inside
def _start_search(memory: Any, context: int, n: int) -> float:
    """Nothing is best yet; how close values count as equal is returned."""
    leaders, plays, known_of, states = memory.leaders, memory.plays, memory.cells, memory.predictions.states
    for q in range(leaders.shape[1]):
        leaders[ACTION, q], leaders[BEST, q] = 0.0, 1e300
        by_pair = known_of.n_tables > 1 and N_EFFECTS < q <= 2 * N_EFFECTS
        leaders[USUAL, q] = plays[1 + context] / n if by_pair else plays[0] / known_of.n_actions
        c = effects.variance_of(q, q > N_EFFECTS * known_of.n_tables)
        leaders[UNPLAYED, q] = -sqrt(_hope_for_effect(leaders[USUAL, q], 0.0) * c) if q > 0 else 0.0
    largest = 0.0
    for s in range(states.shape[1]):
        largest = max(largest, states[SD, s])
    return 1e-9 * largest


@compiled_inside
def _hope_for_effect(usual: float, plays: float) -> float:
    """Optimism for the effect of an action that was played less than is usual: to be multiplied by its variance."""
    return predictions.OPTIMISM * log((usual + 1.0) / (plays + 1.0)) if plays < usual else 0.0


@compiled_inside
def _hope_for_row(states: Any, row: Any, value: float, worth: float, usual: float) -> float:
    """Optimism for a row that is learnt: n rounds put Σ P g within sqrt(var g / n)."""
    if usual <= worth + 1.0:
        return 0.0
    squares = 0.0
    for s in range(row.size):
        squares += row[s] * states[HOPE, s] * states[HOPE, s]
    return sqrt(ROW_OPTIMISM * max(squares - value * value, 0.0) / (worth + 1.0) * log(usual / (worth + 1.0)))


@compiled_inside
def _offer(leaders: Any, q: int, value: float, a: int, slack: float) -> None:
    if value < leaders[BEST, q] - slack:
        leaders[BEST, q], leaders[ACTION, q] = value, a


def remember(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    for i in range(N_SAVED):
        saved[i] = memory.predictions.states[i, state]
    _save_effects(memory.cells, memory.leaders, rows.context, rows.actions[choice], saved)
    saved[EFFECTS + memory.leaders.shape[1]] = 1.0 if rows.own else 0.0
    saved[N_SAVED] = saved[N_SAVED + 1] = 0.0
    if memory.safe.actions.size > 0:
        safe.save_safe(memory.safe, _believed(memory, rows).columns, policy, state, saved, N_SAVED)


@compiled_part
def _save_effects(known_of: Any, leaders: Any, context: int, action: int, saved: Any) -> None:
    """ê, ε of each hypothesis, and ê of prices (`predictions.effect_saved`)."""
    last = EFFECTS + leaders.shape[1] - 1
    saved[EFFECTS] = saved[last] = 0.0
    cell = effects.find(known_of, action + 1)
    pair = effects.pair_of(known_of, cell, context, action)
    for kind in range(known_of.n_kinds):
        of_price = kind == known_of.n_tables
        known, news, _ = effects.evidence_of(known_of, pair if kind == 1 and not of_price else cell, kind)
        for q in range(1 + N_EFFECTS * kind, 1 + N_EFFECTS * (1 + kind)):
            saved[EFFECTS + q] = effects.effect_of(known, news, effects.variance_of(q, of_price))
            saved[last if of_price else EFFECTS] += leaders[WEIGHT, q] * saved[EFFECTS + q]


def see(memory: Any, played: Any, saved: Any) -> None:
    clock, states = memory.clock, memory.predictions.states
    exposure.weigh_decision(clock, played.t, played.time)
    for i in range(predictions.N_MEMORIES):
        states[predictions.VISITS + i, played.state] += clock.fading[exposure.MARK, i]
    memory.plays[0] += 1.0
    if memory.cells.n_tables > 1:
        memory.plays[1 + played.context] += 1.0
    effects.see_in_cells(memory.cells, clock, played, saved[EFFECTS + memory.leaders.shape[1]] > 0.0)
    if clock.window > 0.0:
        predictions.count_decision(memory.predictions, clock, played, saved, EFFECTS, 0.0, 1.0)


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    clock, news, mean, trust = memory.clock, loss - memory.default, 0.0, sign
    exposure.weigh_decision(clock, played.t, played.time)
    if clock.window == 0.0:
        predictions.count_decision(memory.predictions, clock, played, saved, EFFECTS, news, sign)
        mean, trust = saved[MEAN], sign * saved[predictions.TRUST]
    predictions.count_report(memory.predictions, clock, played, saved, EFFECTS, news, sign)
    effects.learn_in_cells(memory.cells, clock, played, news, trust, mean)
    safe.learn_safe(memory.safe, played, loss, saved, N_SAVED, sign)
    exposure.note_report(clock, played.time, played.wait, played.state, sign)


add_rule(SelfTunedMemory, policy, remember, learn, see, advance)
