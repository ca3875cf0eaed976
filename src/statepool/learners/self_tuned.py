"""SelfTuned: the learner to run. Nothing to set, losses in any unit, outcomes early or late.

    1-4  predict the mean outcome of each state, with its noise, and be optimistic about those seen less (`predictions`)
    5    effects of actions beyond the state (`cells`): under each hypothesis q on their variance,
             value_q(a) = Σ_s P(s|a) [g(s) + σ_s (ε_q(a) - sqrt(.4 c/(1 + n_a c) · log⁺(n/(n_a + 1))))]
         with n_a plays of a and n on average; q is weighted ∝ prior · exp(-Σ ω (x - saved m - σ_s saved ε_q)²/(2 var))
    6    each leader argmin value_q with its weight, at least min(1/32, 3/sqrt(t)) on those with effects together; while
         some state was seen less than ten times in memory .999, a look: min(1/16, 3/sqrt(t)) on the action that is best
         by that memory alone, with more optimism
    7    rows are believed as the pairs seen say (`cells`); `learn_map`: they are learnt, and optimism extends to them
    8    with a window all counts are exposed counts (`exposure`)
         around it a safe part and a guard (`safe`)

Effects are by action; with contexts also by (context, action); with a window also in proportion to m(s), as prices act:
two further hypotheses each, weighed by evidence.

Source: ours; the safe part is the paper's State-EXP3. What is proved, and what is only measured: docs/self-tuned.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled_inside, compiled_part
from statepool.kernels import combine, lowest_index
from statepool.learners.cells import (
    COUNTED,
    HEAD,
    N_EFFECTS,
    PAIRS,
    PLAYS,
    ROW,
    WEIGHED,
    Cells,
    doubt_row,
    effect_of,
    evidence_of,
    find,
    key_of,
    learn_in_cells,
    read_scales,
    rescale_cells,
    see_in_cells,
    start_cells,
    variance_of,
)  # fmt: skip
from statepool.learners.contract import Learner, Problem, Rows, add_rule, check_flag
from statepool.learners.exposure import (
    MARK,
    READING,
    ROUND,
    Clock,
    mean_delay,
    note_report,
    raised,
    read_exposure,
    set_time,
    start_clock,
    weigh_decision,
)  # fmt: skip
from statepool.learners.predictions import (
    DOUBT,
    HOPE,
    MEAN,
    MEMORIES,
    N_MEMORIES,
    N_SAVED,
    OPTIMISM,
    PRIOR_COUNT,
    RECENT,
    RECENT_HOPE,
    SD,
    SEEN_ENOUGH,
    TRUST,
    VARIANCE,
    VISITS,
    Predictions,
    count_decision,
    count_report,
    predict,
    rescale,
    start_predictions,
)  # fmt: skip
from statepool.learners.safe import START, Safe, add_safe, learn_safe, save_safe, see_request, start_again, start_safe

EFFECTS_PRIOR, KNOWN_EFFECTS_PRIOR = 1 / 4, 31 / 32
"""Of the hypotheses with effects together; the second where `Problem.cells` says that there are effects."""
ASK, LOOK, SPREAD = 1 / 32, 1 / 16, 3.0
"""The least share of the hypotheses with effects, and the share of a look: both at most SPREAD/sqrt(t)."""
WEIGHT, ACTION, BEST, USUAL, UNPLAYED, PRIOR = range(6)
"""Of `SelfTunedMemory.leaders`."""
EFFECTS = N_SAVED + 2
"""Where a decision saves ê and ε: behind what it saves of its state, which is of `predictions` and of `safe`. Then
whether its request brought rows of its own, and with contexts the state probabilities of `safe`."""
OFFERED = 1e300
"""The value of an action on offer that was compared already."""
LEANING = 10.0
"""κ of a learnt map with contexts: how many rounds of its own outweigh what its action does elsewhere."""
ROW_OPTIMISM = OPTIMISM / 2
"""Of rows that are learnt: g(s) is optimistic already."""


@dataclass(frozen=True)
class SelfTuned(Learner):
    """The learner to run: no horizon, no rate, no delay, nothing to set.

    Parameters
    ----------
    learn_map : bool
        Whether the map is learnt from the pairs seen. Then P is not read.

    Examples
    --------
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

    def __post_init__(self) -> None:
        check_flag(self.learn_map, "learn_map")

    @property
    def learns_map(self) -> bool:  # type: ignore[override]
        return self.learn_map

    def saved_width(self, problem: Problem) -> tuple[int, int]:
        return N_SAVED + 2, n_hypotheses(problem) + 2 + (problem.n_states if problem.has_contexts else 0)

    def start(self, problem: Problem) -> SelfTunedMemory:
        K, S, Q = problem.n_actions, problem.n_states, n_hypotheses(problem)
        clock, learnt = start_clock(problem, MEMORIES, S), K if self.learn_map else 0
        plays = np.zeros(1 + problem.n_contexts)
        plays[0] = 0.0 if problem.cells is None else problem.cells[1].sum()
        return SelfTunedMemory(
            clock, start_predictions(problem, clock, Q), start_cells(problem, clock), start_safe(problem),
            _start_leaders(problem, Q), plays, np.empty((4, K)), np.empty(S * learnt),
            np.zeros(learnt), 0.0 if problem.window is None else float(problem.default),
        )  # fmt: skip

    def grow(self, memory: Any, before: Problem, after: Problem) -> Any:
        """Cells are found again by their keys; what the pairs said of a row that has changed is forgotten."""
        grown, (keys, table) = self.start(after), memory.cells[:2]
        S, tables = before.n_states, memory.cells.n_tables
        for name in ("clock", "predictions"):
            for new, old in zip(getattr(grown, name), getattr(memory, name), strict=True):
                if isinstance(new, np.ndarray):
                    new[...] = old
        for new, old in zip(grown.safe[:2], memory.safe[:2], strict=True):
            new[...] = old
        grown.plays[: memory.plays.size] = memory.plays
        grown.cells.table[-grown.cells.n_tables :][:tables] = table[-tables:]
        for old in np.flatnonzero(keys):
            table_number, context, action = _from_key(int(keys[old]), before.n_actions)
            key = key_of.py_func(grown.cells, table_number, context, action)  # type: ignore[attr-defined]
            found = find.py_func(grown.cells, key)  # type: ignore[attr-defined]
            place = found if found >= 0 else -2 - found
            if place >= 0:
                grown.cells.table[place], grown.cells.keys[place] = table[old], key
                row = (context, action) if before.P.ndim == 3 else action
                if not self.learn_map and (before.P[row] != after.P[row]).any():
                    grown.cells.table[place, WEIGHED : HEAD + (COUNTED + 1) * S] = 0.0
        return grown


def _from_key(key: int, n_actions: int) -> tuple[int, int, int]:
    """Table, context and action of a key."""
    above, action = divmod(key - 1, n_actions)
    return (0, 0, action) if above == 0 else (1, above - 1, action)


def _start_leaders(problem: Problem, n_hypotheses: int) -> Floats:
    leaders = np.zeros((6, n_hypotheses + 1))
    effects = EFFECTS_PRIOR if problem.cells is None else KNOWN_EFFECTS_PRIOR
    leaders[PRIOR, 0], leaders[PRIOR, 1:] = log(1 - effects), log(effects / (n_hypotheses - 1))
    return leaders


def n_hypotheses(problem: Problem) -> int:
    """No effects; small or large ones by action; with contexts by context and action; with a window of prices."""
    return 1 + N_EFFECTS * (1 + (problem.n_contexts > 1) + (problem.window is not None))


class SelfTunedMemory(NamedTuple):
    clock: Clock
    predictions: Predictions
    cells: Cells
    safe: Safe
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
    clock, p = memory.clock, memory.predictions
    if set_time(clock, t, now):
        _raise_bases(clock, p, memory.cells)
    if t >= 2.0 * memory.safe.numbers[START]:
        start_again(memory.safe, t, mean_delay(clock.numbers), p.states[HOPE])


@compiled_part
def _raise_bases(clock: Any, p: Any, cells: Any) -> None:
    for i in range(clock.fading.shape[1]):
        factor = raised(clock, i)
        if factor != 1.0:
            rescale(p, i, factor)
            if i >= N_MEMORIES:
                rescale_cells(cells, i - N_MEMORIES + 1, factor)


def policy(memory: Any, rows: Any, t: int, out: Any) -> None:
    clock, states, leaders = memory.clock, memory.predictions.states, memory.leaders
    read_exposure(clock)
    predict(memory.predictions, clock, clock.numbers[ROUND])
    read_scales(memory.cells, clock, states)
    most = SPREAD / sqrt(clock.numbers[ROUND] + 1.0)
    share = min(LOOK, most)
    _weigh_hypotheses(leaders, memory.predictions, min(ASK, most))
    rarest, kept = 1e300, MEMORIES[RECENT] ** clock.numbers[ROUND]
    for s in range(states.shape[1]):
        rarest = min(rarest, states[VISITS + RECENT, s] * clock.fading[READING, RECENT] + kept * states[PRIOR_COUNT, s])
    if rarest >= SEEN_ENOUGH:
        share = 0.0
    believed = _believed(memory, rows)
    _find_leaders(memory, believed, share > 0.0)
    last = leaders.shape[1] - 1
    for a in range(out.size):
        out[a] = 0.0
    for q in range(last):
        out[int(leaders[ACTION, q])] += (1.0 - share) * leaders[WEIGHT, q]
    out[int(leaders[ACTION, last])] += share
    add_safe(memory.safe, believed.columns, not rows.vary and memory.worth.size == 0, out)


@compiled_part
def _weigh_hypotheses(leaders: Any, p: Any, least: float) -> None:
    """The weight of each hypothesis on effects, at least `least` on those with effects together."""
    n, totals = leaders.shape[1] - 1, p.sums[p.sums.shape[0] - 1]
    top = -1e300
    for q in range(n):
        leaders[WEIGHT, q] = leaders[PRIOR, q]
        for s in range(totals.shape[0]):
            leaders[WEIGHT, q] -= totals[s, DOUBT + q] / (2.0 * p.states[VARIANCE, s])
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
            memory.worth[a] = _learnt_row(memory.cells, columns, a, rows.context, rows.actions[a])
    return Rows(columns, rows.actions, rows.context, rows.vary, rows.own)


@compiled_part
def _learnt_row(cells: Any, columns: Any, a: int, context: int, action: int) -> float:
    """The row of an action as it is learnt, into column a; how many rounds it is worth is returned.

    It starts even; with contexts the row of a pair leans on its action's.
    """
    n_states, worth, kappa = cells.n_states, 0.0, 1.0
    for s in range(n_states):
        columns[s, a] = 1.0 / n_states
    for table in range(cells.n_tables):
        cell, own = find(cells, key_of(cells, table, context, action)), 0.0
        if cell >= 0:
            pairs = cells.table[cell, HEAD + PAIRS * n_states : HEAD + (PAIRS + 1) * n_states]
            for s in range(n_states):
                own += pairs[s]
            for s in range(n_states):
                columns[s, a] = (pairs[s] + kappa * columns[s, a]) / (own + kappa)
        elsewhere = worth - own if table > 0 else 0.0
        worth = own + kappa * elsewhere / (kappa + elsewhere)
        kappa = LEANING
    return worth


@compiled_part
def _find_leaders(memory: Any, rows: Any, look: bool) -> None:
    """The best action under each hypothesis, and the best by the recent past alone."""
    states, leaders, n, usual_worth = memory.predictions.states, memory.leaders, rows.actions.size, 1.0
    values, room = memory.values[0, :n], memory.values[3, :n]
    combine(rows.columns, states[HOPE], values)
    combine(rows.columns, states[SD], memory.values[1, :n])
    if memory.cells.n_kinds > memory.cells.n_tables:
        combine(rows.columns, states[MEAN], memory.values[2, :n])
    slack = _start_search(leaders, states, memory.plays, rows.context, n, memory.cells)
    learnt = memory.worth.size > 0 and not rows.own
    for a in range(n if learnt else 0):
        usual_worth += memory.worth[a] / n
    for a in range(n):
        cell = find(memory.cells, rows.actions[a] + 1)
        if cell >= 0 or learnt:
            _offer_known(memory, rows, a, cell, usual_worth, slack, look)
            values[a] = OFFERED
    last = leaders.shape[1] - 1
    for q in range(last):
        unit, hope = memory.values[2 if q > N_EFFECTS * memory.cells.n_tables else 1, :n], leaders[UNPLAYED, q]
        for a in range(n):
            room[a] = values[a] + hope * abs(unit[a])
        best = lowest_index(room, slack)
        _offer(leaders, q, room[best], best, slack)
    if look:
        combine(rows.columns, states[RECENT_HOPE], room)
        for a in range(n):
            room[a] = room[a] if values[a] < OFFERED else OFFERED
        best = lowest_index(room, slack)
        _offer(leaders, last, room[best], best, slack)


@compiled_inside
def _offer_known(memory: Any, rows: Any, a: int, cell: int, usual_worth: float, slack: float, look: bool) -> None:
    """Offer an action of which something is known: its row is doubted or learnt, and it may have effects."""
    cells, states, leaders, n_states = memory.cells, memory.predictions.states, memory.leaders, memory.cells.n_states
    value, deviation, mean = memory.values[0, a], memory.values[1, a], memory.values[2, a]
    recent = 0.0
    for s in range(n_states if look else 0):
        recent += rows.columns[s, a] * states[RECENT_HOPE, s]
    if memory.worth.size > 0 and not rows.own:
        value -= _hope_for_row(states, rows.columns, a, value, memory.worth[a], usual_worth)
    elif not rows.own:
        doubted = find(cells, key_of(cells, cells.n_tables - 1, rows.context, rows.actions[a]))
        if doubted >= 0:
            if cells.table[doubted, WEIGHED] < cells.table[doubted, PLAYS]:
                doubt_row(cells.table[doubted], n_states, rows.columns, a)
            value = deviation = mean = recent = 0.0
            for s in range(n_states):
                believed = cells.table[doubted, HEAD + ROW * n_states + s]
                value += believed * states[HOPE, s]
                deviation += believed * states[SD, s]
                mean += believed * states[MEAN, s]
                recent += believed * states[RECENT_HOPE, s]
    _offer(leaders, 0, value, a, slack)
    _offer(leaders, leaders.shape[1] - 1, recent, a, slack)
    for kind in range(cells.n_kinds):
        of_price = kind == cells.n_tables
        cell = find(cells, key_of(cells, 0 if of_price else kind, rows.context, rows.actions[a]))
        known = news = plays = 0.0
        if cell >= 0:
            plays = cells.table[cell, PLAYS]
            known, news = evidence_of(cells, cell, kind)
        unit, worth = (mean, known) if of_price else (deviation, plays)
        hope = _hope_for_effect(leaders[USUAL, 1 + N_EFFECTS * kind], plays)
        for q in range(1 + N_EFFECTS * kind, 1 + N_EFFECTS * (1 + kind)):
            c = variance_of(q, of_price)
            moved = unit * effect_of(known, news, c)
            if hope > 0.0:
                moved -= abs(unit) * sqrt(hope * c / (1.0 + worth * c))
            _offer(leaders, q, value + moved, a, slack)


@compiled_inside
def _start_search(leaders: Any, states: Any, plays: Any, context: int, n: int, cells: Any) -> float:
    """Nothing is best yet; how close values count as equal is returned."""
    for q in range(leaders.shape[1]):
        leaders[ACTION, q], leaders[BEST, q] = 0.0, 1e300
        by_pair = cells.n_tables > 1 and N_EFFECTS < q <= 2 * N_EFFECTS
        leaders[USUAL, q] = plays[1 + context] / n if by_pair else plays[0] / cells.n_actions
        c = variance_of(q, q > N_EFFECTS * cells.n_tables)
        leaders[UNPLAYED, q] = -sqrt(_hope_for_effect(leaders[USUAL, q], 0.0) * c) if q > 0 else 0.0
    largest = 0.0
    for s in range(states.shape[1]):
        largest = max(largest, states[SD, s])
    return 1e-9 * largest


@compiled_inside
def _hope_for_effect(usual: float, plays: float) -> float:
    """Optimism for the effect of an action that was played less than is usual: to be multiplied by its variance."""
    return OPTIMISM * log((usual + 1.0) / (plays + 1.0)) if plays < usual else 0.0


@compiled_inside
def _hope_for_row(states: Any, columns: Any, a: int, value: float, worth: float, usual: float) -> float:
    """Optimism for a row that is learnt: n rounds put Σ P g within sqrt(var g / n)."""
    if usual <= worth + 1.0:
        return 0.0
    squares = 0.0
    for s in range(states.shape[1]):
        squares += columns[s, a] * states[HOPE, s] * states[HOPE, s]
    return sqrt(ROW_OPTIMISM * max(squares - value * value, 0.0) / (worth + 1.0) * log(usual / (worth + 1.0)))


@compiled_inside
def _offer(leaders: Any, q: int, value: float, a: int, slack: float) -> None:
    if value < leaders[BEST, q] - slack:
        leaders[BEST, q], leaders[ACTION, q] = value, a


def remember(memory: Any, rows: Any, policy: Any, choice: int, state: int, saved: Any) -> None:
    for i in range(N_SAVED):
        saved[i] = memory.predictions.states[i, state]
    _save_effects(memory.cells, memory.leaders, rows.context, rows.actions[choice], saved)
    own = EFFECTS + memory.leaders.shape[1]
    saved[own] = 1.0 if rows.own else 0.0
    save_safe(memory.safe, _believed(memory, rows).columns, policy, state, saved, N_SAVED, own + 1)


@compiled_part
def _save_effects(cells: Any, leaders: Any, context: int, action: int, saved: Any) -> None:
    """ê, ε of each hypothesis, and ê of prices (`predictions.effect_saved`)."""
    last = EFFECTS + leaders.shape[1] - 1
    saved[EFFECTS] = saved[last] = 0.0
    for kind in range(cells.n_kinds):
        of_price = kind == cells.n_tables
        cell = find(cells, key_of(cells, 0 if of_price else kind, context, action))
        known = news = 0.0
        if cell >= 0:
            known, news = evidence_of(cells, cell, kind)
        for q in range(1 + N_EFFECTS * kind, 1 + N_EFFECTS * (1 + kind)):
            saved[EFFECTS + q] = effect_of(known, news, variance_of(q, of_price))
            saved[last if of_price else EFFECTS] += leaders[WEIGHT, q] * saved[EFFECTS + q]


def see(memory: Any, played: Any, saved: Any) -> None:
    clock, states = memory.clock, memory.predictions.states
    weigh_decision(clock, played.t, played.time)
    for i in range(N_MEMORIES):
        states[VISITS + i, played.state] += clock.fading[MARK, i]
    own = EFFECTS + memory.leaders.shape[1]
    see_request(memory.safe, saved, own + 1)
    memory.plays[0] += 1.0
    if memory.cells.n_tables > 1:
        memory.plays[1 + played.context] += 1.0
    see_in_cells(memory.cells, clock, played, saved[own] > 0.0)
    if clock.window > 0.0:
        count_decision(memory.predictions, clock, played, saved, EFFECTS, 0.0, 1.0)


def learn(memory: Any, played: Any, loss: float, saved: Any, sign: float) -> None:
    clock, news = memory.clock, loss - memory.default
    weigh_decision(clock, played.t, played.time)
    if clock.window == 0.0:
        count_decision(memory.predictions, clock, played, saved, EFFECTS, news, sign)
    count_report(memory.predictions, clock, played, saved, EFFECTS, news, sign)
    if clock.window == 0.0:
        learn_in_cells(memory.cells, clock, played, news, sign * saved[TRUST], saved[MEAN])
    else:
        learn_in_cells(memory.cells, clock, played, news, sign, 0.0)
    learn_safe(memory.safe, played, loss, saved, N_SAVED, EFFECTS + memory.leaders.shape[1] + 1, sign)
    note_report(clock, played.time, played.wait, played.state, sign)


add_rule(SelfTunedMemory, policy, remember, learn, see, advance, large=True)
