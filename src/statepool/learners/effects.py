"""What is known of actions that were played: effects beyond the state, and doubts about rows (SelfTuned, 5 and 7).

A cell belongs to an action, or to a pair of a context and an action. Cells are found by their key in a table of fixed
size with open addressing, so the memory does not grow with the catalogue: beyond the table's size, actions that find
no free place have no cell, and are taken for ordinary ones.

*Effects*, in units of the state's noise: z(a) = sum of ω (x - saved m)/σ_s, N(a) = sum of ω, r = Σz/ΣN,

    ε_c(a) = (z - N r) c/(1 + N c)        c = .01 and .1: what the effects' variance may be

With a window, ω is the exposed count and m today's (the predictions of the first days are not worth saving).

*Prices.* With a window outcomes are measured from the default, and a product that costs more brings more in proportion:
there a second kind of effect moves the mean of state s from m(s) to (1 + ε) m(s). It is estimated in the same way with
z = Σ m (x - m)/σ² and N = Σ m²/σ².

*Rows.* P(s|a) = Σ_κ w_κ (pairs + κ given)/(plays + κ) with κ = ∞, 100, 10, 1 of prior 31/32 and 1/96 each, and w by the
likelihood of the pairs seen; with contexts for each pair of a context and an action. A map that is learnt has κ = 1 on
even rows; with contexts the row of a pair leans on its action's by κ = 10.
"""

from __future__ import annotations

from math import exp, log
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats
from statepool.compiling import compiled_inside, compiled_part
from statepool.learners.contract import Problem
from statepool.learners.exposure import MARK, Clock, coefficient
from statepool.learners.predictions import MEAN, N_MEMORIES, SD

MOST_CELLS = 4096
PROBES = 8
VARIANCES = (0.01, 0.1)
"""c: of the effects, in units of the noise."""
PRICES = 3.0
"""What prices vary by beyond that, relative to the mean: a product that costs twice as much is nothing special."""
N_EFFECTS = len(VARIANCES)
STRENGTHS = (1e9, 100.0, 10.0, 1.0)
"""κ: what a row that was given is worth, in rounds."""
N_STRENGTHS = len(STRENGTHS)
PRIOR_DOUBT = 1 / 32
LEANING = 10.0
"""κ of a learnt map with contexts: how many rounds of its own outweigh what its action does elsewhere."""
LEAK = 1e-3
"""A row that was given may lead to any state with this probability, so that no pair is impossible."""

PLAYS, WEIGHED, LIKELIHOOD = range(3)
HEAD = LIKELIHOOD + N_STRENGTHS
"""A cell is one row of `Cells.table`: plays, how many of them the row as believed takes into account, the log
likelihood of each κ, and then one number for each state of:"""
PAIRS, COUNTED, ROW, NEWS, COUNTS = range(5)
"""how often the state followed where the row was the catalogue's; how many of these the likelihood counts; the row as
believed; Σω(x - saved m), with a window Σx; and Σω, with a window decisions, those of k > 0 fading with τ_k."""


class Cells(NamedTuple):
    """What is known of actions, and with contexts of pairs of a context and an action."""

    keys: Floats
    """Of each cell its key; 0 where there is none yet. Kept apart, since a policy looks up every action on offer."""
    table: Floats
    """One row for each cell, then the sums over all cells of actions, and over all cells of pairs."""
    scales: Floats
    """[what, (k, s)]: what turns counts into N, counts into what m predicts of them, and news into units of σ; then the
    same for prices."""
    usual: Floats
    """r of each kind of effect."""
    n_states: int
    n_actions: int
    n_tables: int
    """2 with contexts."""
    n_kinds: int
    """Kinds of effects: of actions, with contexts of pairs, with a window of prices."""


def start_cells(problem: Problem, clock: Clock) -> Cells:
    """No cells."""
    K, S, n = problem.n_actions, problem.n_states, clock.curve.shape[1]
    n_tables = 2 if problem.n_contexts > 1 else 1
    size = min(K, MOST_CELLS) + (min(problem.n_contexts * K, MOST_CELLS) if n_tables > 1 else 0)
    table = np.zeros((size + n_tables, HEAD + (COUNTS + n) * S))
    n_kinds = n_tables + (problem.window is not None)
    cells = Cells(np.zeros(size), table, np.zeros((6, n * S)), np.zeros(n_kinds), S, K, n_tables, n_kinds)
    if problem.cells is not None:
        _give_cells(cells, problem)
    return cells


def _give_cells(cells: Cells, problem: Problem) -> None:
    """Start from what is known of actions: as if so many outcomes of that mean had been learnt."""
    means, counts = problem.cells or (np.empty(0), np.empty(0))
    usual = np.zeros(problem.n_states) if problem.prior is None else np.asarray(problem.prior[0])
    news = counts * (means - (usual if problem.window is None else problem.default))
    for action in np.flatnonzero(counts.sum(axis=1)):
        place = -2 - find.py_func(cells, action + 1)  # type: ignore[attr-defined]
        if place >= 0:
            row, total = cells.table[place], cells.table[-cells.n_tables]
            cells.keys[place], row[PLAYS] = action + 1, counts[action].sum()
            for what, given in ((NEWS, news[action]), (COUNTS, counts[action])):
                first = HEAD + what * problem.n_states
                row[first : first + problem.n_states] += given
                total[first : first + problem.n_states] += given


@compiled_inside
def key_of(cells: Any, table: int, context: int, action: int) -> int:
    """The key of an action (table 0), or of a pair of a context and an action (1)."""
    return action + 1 if table == 0 or action < 0 else cells.n_actions * (1 + context) + action + 1


@compiled_inside
def find(cells: Any, key: int) -> int:
    """The cell of a key, or -1; if it could be made at a place that is free, -2 less the place."""
    size = cells.keys.size
    place = key - 1 if key <= size else (key - 1) % size
    for _ in range(PROBES if key > 0 else 0):
        if cells.keys[place] == key:
            return place
        if cells.keys[place] == 0.0:
            return -2 - place
        place = place + 1 if place + 1 < size else 0
    return -1


@compiled_inside
def pair_of(cells: Any, cell: int, context: int, action: int) -> int:
    """The cell of a pair of a context and an action; without contexts that of the action, which is given."""
    return cell if cells.n_tables == 1 else find(cells, key_of(cells, 1, context, action))


def move_cells(old: Cells, new: Cells, before: Floats, after: Floats | None) -> None:
    """Into the cells of a larger catalogue. Doubts about rows of P that have changed are forgotten (None: keep all)."""
    new.table[-new.n_tables :][: old.n_tables] = old.table[-old.n_tables :]
    for place in np.flatnonzero(old.keys):
        above, action = divmod(int(old.keys[place]) - 1, old.n_actions)
        key = key_of.py_func(new, min(above, 1), above - 1, action)  # type: ignore[attr-defined]
        found = find.py_func(new, key)  # type: ignore[attr-defined]
        target = found if found >= 0 else -2 - found
        if target >= 0:
            new.table[target], new.keys[target] = old.table[place], key
            row = (max(above - 1, 0), action) if before.ndim == 3 else action
            if after is not None and (before[row] != after[row]).any():
                new.table[target, WEIGHED : HEAD + (COUNTED + 1) * new.n_states] = 0.0


@compiled_part
def rescale_cells(cells: Any, k: int, factor: float) -> None:
    """The base of τ_k was raised."""
    first = HEAD + (COUNTS + k) * cells.n_states
    for cell in range(cells.table.shape[0]):
        for s in range(cells.n_states):
            cells.table[cell, first + s] *= factor


@compiled_inside
def _add(cells: Any, cell: int, table: int, place: int, amount: float) -> None:
    """Into a cell, and into the sum over all of its kind."""
    cells.table[cell, place] += amount
    cells.table[cells.table.shape[0] - cells.n_tables + table, place] += amount


@compiled_part
def see_in_cells(cells: Any, clock: Any, played: Any, own_rows: bool) -> None:
    """The state of a decision is known. If its request brought rows of its own, it says nothing of the catalogue's."""
    for table in range(cells.n_tables):
        key = key_of(cells, table, played.context, played.action)
        cell = find(cells, key)
        if cell < -1:
            cell = -2 - cell
            cells.keys[cell] = key
        if cell >= 0:
            cells.table[cell, PLAYS] += 1.0
            cells.table[cell, HEAD + PAIRS * cells.n_states + played.state] += 0.0 if own_rows else 1.0
            for k in range(clock.curve.shape[1] if clock.window > 0.0 else 0):
                place = HEAD + (COUNTS + k) * cells.n_states + played.state
                _add(cells, cell, table, place, clock.fading[MARK, N_MEMORIES + k - 1] if k > 0 else 1.0)


@compiled_part
def learn_in_cells(cells: Any, clock: Any, played: Any, news: float, trust: float, mean: float) -> None:
    """An outcome has come; `trust` is ω, or -ω to take it back."""
    for table in range(cells.n_tables):
        cell = find(cells, key_of(cells, table, played.context, played.action))
        if cell >= 0:
            _add(cells, cell, table, HEAD + NEWS * cells.n_states + played.state, trust * (news - mean))
            if clock.window == 0.0:
                _add(cells, cell, table, HEAD + COUNTS * cells.n_states + played.state, trust)


@compiled_part
def read_scales(cells: Any, clock: Any, states: Any) -> None:
    """For the sums of now."""
    n_states, scales = cells.n_states, cells.scales
    for k in range(clock.curve.shape[1]):
        for s in range(n_states):
            place, noise, share = k * n_states + s, 1.0 / states[SD, s], coefficient(clock, s, k)
            ratio = states[MEAN, s] * noise if clock.window > 0.0 else 0.0
            scales[0, place], scales[1, place], scales[2, place] = share, share * ratio, noise
            scales[3, place], scales[4, place] = share * ratio * ratio, share * ratio * ratio
            scales[5, place] = ratio * noise
    for kind in range(cells.n_kinds):
        cells.usual[kind] = 0.0
        table = kind if kind < cells.n_tables else 0
        known, news, _ = evidence_of(cells, cells.table.shape[0] - cells.n_tables + table, kind)
        cells.usual[kind] = news / known if known > 0.0 else 0.0


@compiled_inside
def evidence_of(cells: Any, cell: int, kind: int) -> tuple[float, float, float]:
    """N, z - N r and plays of a cell, for one kind of effect; zeros where there is no cell."""
    if cell < 0:
        return 0.0, 0.0, 0.0
    n_states, row, scales, first = cells.n_states, cells.table[cell], cells.scales, 0 if kind < cells.n_tables else 3
    known = news = 0.0
    for s in range(n_states):
        news += row[HEAD + NEWS * n_states + s] * scales[first + 2, s]
    for i in range(scales.shape[1]):
        known += row[HEAD + COUNTS * n_states + i] * scales[first, i]
        news -= row[HEAD + COUNTS * n_states + i] * scales[first + 1, i]
    known = max(known, 0.0)
    return known, news - known * cells.usual[kind], row[PLAYS]


@compiled_inside
def variance_of(q: int, of_price: bool) -> float:
    """c of hypothesis q: 1 and 3 are small effects (of actions, of pairs), 2 and 4 large ones."""
    return (VARIANCES[0] if q % 2 == 1 else VARIANCES[1]) * (PRICES if of_price else 1.0)


@compiled_inside
def effect_of(known: float, news: float, c: float) -> float:
    """ε, if effects have variance c."""
    return news * c / (1.0 + known * c)


@compiled_inside
def doubt_row(cells: Any, cell: int, columns: Any, a: int) -> int:
    """Doubt the row that was given, column a of `columns`; where it stands in the cell as believed is returned."""
    if cells.table[cell, WEIGHED] < cells.table[cell, PLAYS]:
        _weigh_doubts(cells.table[cell], cells.n_states, columns, a)
    return HEAD + ROW * cells.n_states


@compiled_part
def _weigh_doubts(row: Any, n_states: int, columns: Any, a: int) -> None:
    """Weigh the doubts about the row that was given by the pairs seen since the last time."""
    pairs, counted, believed = HEAD + PAIRS * n_states, HEAD + COUNTED * n_states, HEAD + ROW * n_states
    plays, row[WEIGHED] = 0.0, row[PLAYS]
    for s in range(n_states):
        plays += row[counted + s]
    for s in range(n_states):
        given = (1.0 - LEAK) * columns[s, a] + LEAK / n_states
        while row[counted + s] < row[pairs + s]:
            for i in range(N_STRENGTHS):
                row[LIKELIHOOD + i] += log((row[counted + s] + STRENGTHS[i] * given) / (plays + STRENGTHS[i]))
            row[counted + s] += 1.0
            plays += 1.0
        row[believed + s] = 0.0
    top = row[LIKELIHOOD]
    for i in range(1, N_STRENGTHS):
        top = max(top, row[LIKELIHOOD + i])
    total = 0.0
    for i in range(N_STRENGTHS):
        prior = 1.0 - PRIOR_DOUBT if i == 0 else PRIOR_DOUBT / (N_STRENGTHS - 1)
        part = prior * exp(row[LIKELIHOOD + i] - top)
        total += part
        for s in range(n_states):
            row[believed + s] += part * (row[pairs + s] + STRENGTHS[i] * columns[s, a]) / (plays + STRENGTHS[i])
    for s in range(n_states):
        row[believed + s] /= total


@compiled_part
def learnt_row(cells: Any, columns: Any, a: int, context: int, action: int) -> float:
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
