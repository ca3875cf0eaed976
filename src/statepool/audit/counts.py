"""Counts of all rows by action and state, and the sample of rows that is looked at in time.

Both are Ibis expressions, computed where the log lies. Which rows are sampled depends on what the log holds, not on how
it is stored: the same rows are taken from one file or forty, in duckdb or elsewhere.

    moments    where few decisions share a moment: a moment is in or out by a pseudo-random number of its time
    places     otherwise: every so many rows in order of time, state, action and outcome
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import ibis
import numpy as np
from ibis.expr.types import Table
from numpy.typing import NDArray

from statepool.audit.log import Log, split_unit
from statepool.checks import Floats, Ints

if TYPE_CHECKING:
    from statepool.audit.delays import Maturity

Loss = TypeVar("Loss", float, Floats)

MOST_STATES, MOST_ENTRIES = 1_000, 50_000_000
MOST_ROWS, SAMPLED = 400_000, 120_000
"""Logs up to the first are taken whole; of longer ones about as many rows as the second."""
CROWDED = 1.5
"""Mean number of rows that share a moment, from which moments would be taken or left as whole crowds."""
TURN = 0.6180339887498949
"""The golden ratio: the fractions of its multiples are spread evenly, and are the same numbers in every engine."""
HEADROOM = 2.0
"""A pool takes outcomes up to this many times the log's largest."""
BLANK = 0.01
"""Share of blanks, in a column that is never 0, from which the audit asks."""
UNUSABLE = 0.1
"""Propensities are not used if more than this share of the rows has no usable one."""
SLIPS = 0.05
"""Up to this share of the others, refunds, purchases without a time and the like do not change how a log is read."""

NO_UNITS = frozenset(("outcome", "reward", "loss", "y", "value"))


@dataclass(frozen=True)
class Unit:
    """The user's unit. Losses inside the audit are (outcome - low) / (high - low), turned round for rewards."""

    column: str
    is_reward: bool
    low: float = 0.0
    high: float = 1.0
    least: float = 0.0
    """Below `low` where there are a few refunds, whose losses are above 1."""

    @property
    def name(self) -> str:
        """What amounts are in: the unit at the end of the column's name, or else the column."""
        return split_unit(self.column)[1] or self.column

    @property
    def suffix(self) -> str:
        """What follows an amount, unless it says nothing."""
        return "" if self.name in NO_UNITS else f" {self.name}"

    @property
    def kind(self) -> str:
        return "rewards" if self.is_reward else "losses"

    @property
    def scale(self) -> float:
        """Differences of losses times this are in the user's unit."""
        return self.high - self.low

    @property
    def bounds(self) -> list[float]:
        """Bounds for a pool, with headroom, so that the first larger order is not cut off."""
        room = 1.0 if (self.low, self.high) == (0.0, 1.0) else HEADROOM
        return [room * self.least, room * self.high]

    def outcome(self, loss: Loss) -> Loss:
        """A mean loss, or an array of them, as the mean outcome that the user knows."""
        return self.high - loss * self.scale if self.is_reward else self.low + loss * self.scale

    def loss(self, outcome: Loss) -> Loss:
        """The loss of an outcome, or of an array of them."""
        return (self.high - outcome if self.is_reward else outcome - self.low) / self.scale


WEIGHTED = ("n", "nn", "k", "kk", "loss", "wloss", "wsquare")
"""Sums with weights w = 1/propensity: of all rows w, w²; of those with an outcome w, w², w·loss, w²·loss, w²·loss²."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Tables of one row for each action and one column for each state; the best state first.

    `n` counts rows and `k` outcomes (final ones, and the exposure of younger rows); `loss` and `square` sum losses and
    their squares; `early` sums F (1 - F) of rows that count as F of one. `w` has the sums of `WEIGHTED`; without
    propensities every weight is 1. `spellings` names the state that each spelling in the log stands for, `merged`
    counts the rows of those that are not the state's own. `base` is the loss where nothing happened.
    """

    actions: tuple[str, ...]
    states: tuple[str, ...]
    n: Floats
    k: Floats
    loss: Floats
    square: Floats
    early: Floats
    w: dict[str, Floats]
    weighted: bool = False
    total: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    spellings: dict[str, str] = field(default_factory=dict)
    merged: dict[str, int] = field(default_factory=dict)
    blank: int = 0
    base: float = 0.0

    @property
    def n_actions(self) -> int:
        return len(self.actions)

    @property
    def n_states(self) -> int:
        return len(self.states)

    @property
    def rows(self) -> int:
        return int(self.n.sum())

    @property
    def has_outcomes(self) -> bool:
        return bool(self.k.sum() >= 2)

    @property
    def is_new(self) -> NDArray[np.bool_]:
        """Actions without an outcome that counts."""
        return np.asarray(self.k.sum(axis=1) <= 0)

    @property
    def mean(self) -> float:
        return float(self.loss.sum() / self.k.sum()) if self.k.sum() > 0 else 0.5

    @property
    def deviation(self) -> float:
        """The standard deviation of an outcome."""
        if self.k.sum() <= 0:
            return 0.5
        return float(max(self.square.sum() / self.k.sum() - self.mean**2, 1e-12) ** 0.5)

    @property
    def state_means(self) -> Floats:
        """The mean loss of each state; of all rows where a state was never seen with an outcome."""
        k, loss = self.w["k"].sum(axis=0), self.w["loss"].sum(axis=0)
        return np.where(k > 0, loss / np.maximum(k, 1e-300), self.mean)

    @property
    def state_errors(self) -> Floats:
        """The standard error of each state's mean; an outcome's deviation where fewer than two are known.

        What has been reported of a young row depends on whether its event has come yet: that adds to the variance.
        """
        k, loss, square = (table.sum(axis=0) for table in (self.k, self.loss, self.square))
        enough = np.maximum(k, 2)
        variance = np.maximum(square / enough - (loss / enough) ** 2, 0) * enough / (enough - 1)
        variance = variance / np.maximum(self.worth, 1) + (self.state_means - self.base) ** 2 * self.waiting
        return np.where(k > 1, np.sqrt(variance), self.deviation)

    @property
    def waiting(self) -> Floats:
        """What young rows add to the variance of each state's mean, over its squared distance from `base`."""
        return self.early.sum(axis=0) / np.maximum(self.k.sum(axis=0), 1) ** 2

    @property
    def worth(self) -> Floats:
        """As many outcomes as those of each state are worth."""
        return np.minimum(self.k.sum(axis=0), _kish(self.w["k"].sum(axis=0), self.w["kk"].sum(axis=0)))

    @property
    def effective_rows(self) -> Floats:
        """How many evenly weighted rows each action's are worth."""
        return _kish(self.w["n"].sum(axis=1), self.w["nn"].sum(axis=1))

    @property
    def effective(self) -> Floats:
        """Rows by action and state; weighted ones as many as they are worth."""
        totals = self.w["n"].sum(axis=1, keepdims=True)
        # Actions without a usable propensity keep their plain rows.
        scale = self.effective_rows[:, None] / np.maximum(totals, 1e-300)
        return np.where(totals > 0, self.w["n"] * scale, self.n)


def _kish(total: Floats, squares: Floats) -> Floats:
    return np.divide(total**2, squares, out=np.zeros_like(total, dtype=np.float64), where=squares > 0)


@dataclass(frozen=True, eq=False)
class Rows:
    """The sample in order of decision, one entry for each row; NaN where there is no outcome or no time.

    `population` is how many rows of the log it stands for, `latest` its last moment.
    """

    action: Ints
    state: Ints
    loss: Floats
    decided: Floats
    resolved: Floats
    population: int
    timed: bool
    latest: float
    held: Floats
    """1 in the holdout."""

    @property
    def age(self) -> Floats:
        return np.maximum(self.latest - self.decided, 0.0)

    @property
    def dated(self) -> NDArray[np.bool_]:
        """Rows with an outcome that has a time after its decision, both within the log."""
        inside = (self.decided >= self.first) & (self.resolved <= self.latest)
        return np.isfinite(self.loss) & (self.resolved >= self.decided) & inside

    @property
    def first(self) -> float:
        """The first decision."""
        return -last_time(-self.decided)

    @property
    def pace(self) -> float:
        """Decisions of the whole log in a unit of time; 0 if unknown."""
        span = min(float(self.decided[-1]), self.latest) - self.first if self.timed and self.decided.size else 0.0
        return self.population / span if span > 0 else 0.0


def count_log(log: Log) -> tuple[Counts, Unit]:
    """Count all rows by action and state in one pass; asks what has to be known before anything is computed."""
    cells = _cells(log, _recorded(log))
    used, unreadable = cells["used"] > 0, int(cells["unreadable"].sum())
    untimed = int(cells["n"][~used].sum()) - unreadable
    unit = _read_unit(log, cells, untimed)
    nameless, stateless = (np.array([not label for label in cells[part]], dtype=bool) for part in ("action", "state"))
    total, unread = int(cells["n"].sum()), log.unread_lines()
    refunds = int(cells["negative"].sum()) if unit.least < unit.low else 0
    blank = total - int(cells["k"].sum()) - unreadable
    dropped = {
        "line cannot be read": unread,
        "repeated ticket": log.repeated,
        "no decision time": untimed,
        "outcome is not a number": unreadable,
        "no action": int(cells["n"][used & nameless].sum()),
        "no state": int(cells["n"][used & stateless & ~nameless].sum()),
    }
    dropped = {why: count for why, count in dropped.items() if count}
    kept = used & ~nameless & ~stateless
    if not kept.any():
        why = ", ".join(f"{count} dropped: {reason}" for reason, count in dropped.items()) or "no rows"
        raise ValueError(f"{log.name}: no row is left, expected rows with an action and a state ({why})")
    cells = {name: values[kept] for name, values in cells.items()}
    spellings, merged = _merge_spellings(cells["state"], cells["n"])
    actions, states = sorted(set(cells["action"].tolist())), sorted(set(spellings.values()))
    if len(states) > MOST_STATES or len(states) * len(actions) > MOST_ENTRIES:
        raise ValueError(
            f"state: has {len(states)} different values for {len(actions)} actions, expected at most {MOST_STATES} and "
            f"a map of at most {MOST_ENTRIES} entries: is it the right column?"
        )
    odd, weighted = {"negative outcome": refunds}, False
    if log.columns.propensity:
        unusable, unknown = int(cells["unusable"].sum()), int(cells["unknown"].sum())
        odd |= {"propensity outside (0, 1]": unusable - unknown, "no propensity": unknown}
        weighted = bool(unusable <= UNUSABLE * cells["n"].sum())
    odd, nothing = {why: n for why, n in odd.items() if n}, np.zeros((len(actions), len(states)))
    like = Counts(
        tuple(actions), tuple(states), nothing, nothing, nothing, nothing, nothing, {}, weighted,
        total + log.repeated + unread, dropped, odd, spellings, merged, blank,
    )  # fmt: skip
    return _by_worth(_filled(cells, like, unit)), unit


def count_mature(
    log: Log, counts: Counts, unit: Unit, maturity: Maturity, held_only: bool, contexts: tuple[str, ...] = ()
) -> list[Counts]:
    """Counts again, of final outcomes (of the holdout alone) and the exposure of younger rows; then of each context."""
    rows = _matured(log, unit, maturity, held_only)
    base = counts.base if maturity.default is None else maturity.default
    again = _by_worth(_filled(_cells(log, rows), replace(counts, base=base), unit))
    if not contexts:
        return [again]
    found = _cells(log, rows, ("context",))
    number = {name: c for c, name in enumerate(contexts)}
    place = np.array([number.get(name, -1) for name in found["context"].tolist()])
    parts = ({key: each[place == c] for key, each in found.items()} for c in range(len(contexts)))
    return [again, *(_filled(part, again, unit) for part in parts)]


def _recorded(log: Log) -> Table:
    """Rows with `k`, the weight of their outcome, `x` and `xx`, it and its square; as recorded."""
    x = log.table.outcome.cast("float64")
    return log.table.mutate(k=x.notnull().cast("int32").cast("float64"), x=x, xx=x * x)


def _matured(log: Log, unit: Unit, maturity: Maturity, held_only: bool) -> Table:
    """The same with final outcomes alone.

    A row younger than the window has no outcome; with a known delay curve it counts as `exposure` of one: in the mean,
    what has been reported by then is that share of what will be.
    """
    rows, nothing = _recorded(log), ibis.null("float64")
    k, x, xx = rows.k, rows.x, rows.xx
    if maturity.window is not None:
        if maturity.default is not None:
            late = (rows.resolved - rows.decided > maturity.window).fill_null(False)
            x = ibis.ifelse(late, float(unit.outcome(maturity.default)), x)
        young = (nothing, nothing, nothing)
        if maturity.curve is not None and maturity.default is not None:
            share = maturity.curve.share((maturity.latest - rows.decided).clip(lower=0.0))
            base = float(unit.outcome(maturity.default))
            news = ((x - base).fill_null(0.0), (x * x - base * base).fill_null(0.0))
            young = (share, base * share + news[0], base * base * share + news[1])
        old = rows.decided <= maturity.cut
        k, x, xx = (ibis.ifelse(old, final, early) for final, early in zip((k, x, x * x), young, strict=True))
    if held_only:
        k, x, xx = (ibis.ifelse(rows.held == 1, each, nothing) for each in (k, x, xx))
    return rows.filter(rows.used).mutate(k=k, x=x, xx=xx)


def _cells(log: Log, rows: Table, keys: tuple[str, ...] = ()) -> dict[str, NDArray[Any]]:
    """Sums by action and state, of rows that are used and of others."""
    wanted = {
        "n": rows.count(), "k": rows.k.sum(), "x": rows.x.sum(), "xx": rows.xx.sum(),
        "early": (rows.k * (1 - rows.k)).sum(),
        "low": rows.outcome.min(), "high": rows.outcome.max(), "unreadable": rows.unreadable.sum(),
        "negative": (rows.outcome < 0).sum(), "positive": (rows.outcome > 0).sum(),
    }  # fmt: skip
    if log.columns.propensity:
        valid = (rows.propensity > 0) & (rows.propensity <= 1)
        w = ibis.ifelse(valid, 1 / rows.propensity, ibis.null("float64"))
        wanted |= {
            "wn": w.sum(), "wnn": (w * w).sum(), "wk": (w * rows.k).sum(), "wkk": (w * w * rows.k).sum(),
            "wx": (w * rows.x).sum(), "wwx": (w * w * rows.x).sum(), "wwxx": (w * w * rows.xx).sum(),
            "unusable": rows.count() - w.count(), "unknown": rows.count() - rows.propensity.count(),
        }  # fmt: skip
    found = fetch(rows.group_by("action", "state", "used", *keys).aggregate(**wanted))
    # Sums without their last digits, which depend on the order in which an engine adds; 0 for those of no rows.
    for name in wanted.keys() - {"low", "high"}:
        part, power = np.frexp(np.nan_to_num(found[name]))
        with np.errstate(over="ignore"):  # a range that is not finite is refused later
            found[name] = np.ldexp(np.round(part * 2.0**40) / 2.0**40, power)
    return found


def _read_unit(log: Log, cells: dict[str, NDArray[Any]], untimed: int) -> Unit:
    """The unit; before that, the questions that only the caller can answer, the first that is open."""
    column = log.columns.outcome
    total, known = int(cells["n"].sum()), int(cells["k"].sum())
    blank = total - known - int(cells["unreadable"].sum())
    if not total:
        raise ValueError(f"{log.name}: has no rows, expected one for each decision")
    if not known:
        raise ValueError(f"outcome: column {column!r} holds no number, expected one in the rows with an outcome")
    if untimed == total:
        raise ValueError(f"decided: column {log.columns.decided!r} holds no time, expected dates or numbers")
    has = cells["k"] > 0
    low, high = float(cells["low"][has].min()), float(cells["high"][has].max())
    negative, positive = (float(cells[sign].sum()) for sign in ("negative", "positive"))
    has_both = min(negative, positive) > SLIPS * max(negative, positive)
    is_clear = low != high and (negative + positive < known or has_both)
    if log.missing is None and blank > BLANK * total and not is_clear:
        values = f"every other value is {low:g}" if low == high else "no value is 0"
        raise ValueError(
            f"outcome: {blank} of {total} rows of {column!r} are blank and {values}: what is a blank? "
            f"--missing {1 if low == high == 0 else 0} if nothing happened, --missing drop if the outcome is not known"
        )
    if not np.isfinite(high - low):
        raise ValueError(f"outcome: runs from {low:g} to {high:g}, expected a finite range")
    lowest = 0.0 if negative <= SLIPS * positive else low
    ends = (0.0, 1.0) if lowest >= 0 and high <= 1 else (lowest, max(high, 0.0))
    return Unit(column, log.columns.is_reward, *ends, min(low, 0.0))


def _filled(cells: dict[str, Any], like: Counts, unit: Unit) -> Counts:
    """Counts from cells, with losses in the place of outcomes; cells of other actions or states are left out."""
    row, column = read_labels(cells, like)
    known = (row >= 0) & (column >= 0)

    # A loss is start + step x: sums of losses and of their squares follow from those of outcomes.
    start, step = unit.loss(0.0), unit.loss(1.0) - unit.loss(0.0)

    def table(values: Floats) -> Floats:
        made = np.zeros((like.n_actions, like.n_states))
        np.add.at(made, (row[known], column[known]), values[known])
        return made

    def tables(*names: str) -> dict[str, Floats]:
        n, nn, k, kk, x, wx, xx = (cells[name] for name in names)
        squares = np.maximum(start**2 * kk + 2 * start * step * wx + step**2 * xx, 0.0)
        sums = (n, nn, k, kk, start * k + step * x, start * kk + step * wx, squares)
        return {name: table(values) for name, values in zip(WEIGHTED, sums, strict=True)}

    plain = tables("n", "n", "k", "k", "x", "x", "xx")
    w = tables("wn", "wnn", "wk", "wkk", "wx", "wwx", "wwxx") if like.weighted else plain
    n, k, loss, square = (plain[name] for name in ("n", "k", "loss", "wsquare"))
    return replace(like, n=n, k=k, loss=loss, square=square, early=table(cells["early"]), w=w)


def _by_worth(counts: Counts) -> Counts:
    """States in order of their mean loss, the best first."""
    k, loss = counts.k.sum(axis=0), counts.loss.sum(axis=0)
    order = np.argsort(np.where(k > 0, loss / np.maximum(k, 1e-300), np.inf), kind="stable")
    tables = {name: getattr(counts, name)[:, order] for name in ("n", "k", "loss", "square", "early")}
    w = {name: table[:, order] for name, table in counts.w.items()}
    return replace(counts, states=tuple(counts.states[i] for i in order), w=w, **tables)


def _merge_spellings(labels: NDArray[Any], n: Floats) -> tuple[dict[str, str], dict[str, int]]:
    """States that differ by case or blanks only are one, by its most frequent spelling; rows of every other one."""
    counts: Counter[str] = Counter()
    for label, rows in zip(labels.tolist(), n.tolist(), strict=True):
        counts[label] += int(rows)
    kinds: dict[str, list[str]] = {}
    for label in sorted(counts, key=lambda label: (-counts[label], label)):
        kinds.setdefault(" ".join(label.casefold().split()), []).append(label)
    spellings = {label: kind[0].strip() for kind in kinds.values() for label in kind}
    merged = {f"{label!r} as {state!r}": counts[label] for label, state in spellings.items() if label != state}
    return spellings, merged


def read_labels(found: dict[str, NDArray[Any]], counts: Counts) -> tuple[Ints, Ints]:
    """The numbers of actions and states; -1 for those that are not counted."""
    actions = {name: i for i, name in enumerate(counts.actions)}
    states = {spelling: counts.states.index(state) for spelling, state in counts.spellings.items()}
    return (
        np.array([actions.get(name, -1) for name in found["action"].tolist()], dtype=np.int64),
        np.array([states.get(name, -1) for name in found["state"].tolist()], dtype=np.int64),
    )


def fetch(table: Table) -> dict[str, NDArray[Any]]:
    """The answer as arrays; a missing number is NaN, a missing or blank label "". Spaces around labels are kept."""
    answer = table.to_pyarrow()
    found: dict[str, NDArray[Any]] = {}
    for name, kind in table.schema().items():
        if kind.is_string():
            texts = [text if text and text.strip() else "" for text in answer[name].to_pylist()]
            found[name] = np.array(texts, dtype=object)
        else:
            found[name] = answer[name].cast("float64").to_numpy().astype(np.float64)
    return found


def draw_rows(log: Log, counts: Counts, unit: Unit, seed: int = 0) -> Rows:
    """The sample with outcomes as recorded, sorted by time; rows of the same moment in random order."""
    timed = log.columns.decided is not None
    rows = _recorded(log)
    found = _fetch_sample(rows.filter(rows.used), counts.rows, timed)
    found["action"], found["state"] = read_labels(found, counts)
    kept = (found["action"] >= 0) & (found["state"] >= 0)
    found = {name: values[kept] for name, values in found.items()}
    # Threads hand rows over in any order: sort by all there is before ties are broken.
    first = np.lexsort([found[name] for name in ("x", "resolved", "state", "action", "decided")])
    ties = np.random.default_rng((seed, 10)).permutation(first.size)
    order = first[np.lexsort((ties, found["decided"][first] if timed else ties))]
    found = {name: values[order] for name, values in found.items()}
    latest = float(np.fmax(last_time(found["decided"]), last_time(found["resolved"])))
    return Rows(
        found["action"], found["state"], unit.loss(found["x"]), found["decided"], found["resolved"], counts.rows, timed,
        latest, found["held"],
    )  # fmt: skip


def last_time(times: Floats) -> float:
    """The last time; one that comes after the others by more than they span is taken for a mistake."""
    known = times[np.isfinite(times)]
    if not known.size:
        return np.nan
    low, high = np.quantile(known, (0.01, 0.99))
    return float(known[known <= 2 * high - low].max())


def _fetch_sample(rows: Table, population: int, timed: bool) -> dict[str, NDArray[Any]]:
    names = ["decided", "state", "action", "x", "resolved", "held"]
    looked_at = rows.select(*names)
    if population <= MOST_ROWS:
        return fetch(looked_at)
    if timed:
        turned = looked_at.decided * TURN
        found = fetch(looked_at.filter(turned - turned.floor() < SAMPLED / population).limit(4 * SAMPLED))
        crowd = np.unique(found["decided"], return_counts=True)[1]
        enough = SAMPLED / 2 < found["decided"].size < 4 * SAMPLED
        if enough and (crowd.astype(np.float64) ** 2).sum() <= CROWDED * crowd.sum():
            return found
    share = SAMPLED / population
    numbered = looked_at.mutate(place=ibis.row_number().over(order_by=names).cast("float64"))
    taken = ((numbered.place + 1) * share).floor() > (numbered.place * share).floor()
    return fetch(numbered.filter(taken).drop("place"))
