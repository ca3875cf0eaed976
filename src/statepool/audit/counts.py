"""Counts of all rows by action and state, and the sample of rows that is looked at in time.

Both are Ibis expressions, computed where the log lies. Which rows are sampled depends on what the log holds, not on how
it is stored: the same rows are taken from one file or forty, in duckdb or elsewhere.

    moments    where few decisions share a moment: a moment is in or out by a pseudo-random number of its time
    cells      otherwise: rows that are alike are counted, put in order of time, state, action and outcome, and every
               `step`-th row of that order is taken
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from statepool.audit.log import Log, audit_engine, split_words
from statepool.checks import Floats, Ints

if TYPE_CHECKING:
    from ibis.expr.types import Table

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
UNUSABLE = 0.1
"""Propensities are not used if more than this share of the rows has no usable one."""

PLURALS = (
    "conversions:converted,conversion purchases:purchase,purchased,bought orders:order,ordered clicks:clicked,click "
    "returns:returned,return churns:churned,churn refunds:refunded,refund bounces:bounced subscriptions:subscribed "
    "cancellations:cancelled,canceled signups:signup sales:sold,sale failures:failed wins:won successes:success"
)
NO_UNITS = frozenset(("outcome", "reward", "loss", "y", "value"))


@dataclass(frozen=True)
class Unit:
    """The user's unit. Losses inside the audit are (outcome - low) / (high - low), turned round for rewards."""

    column: str
    is_reward: bool
    low: float = 0.0
    high: float = 1.0

    @classmethod
    def of(cls, log: Log) -> Unit:
        facts = log.facts
        if facts.low >= 0 and facts.high <= 1:
            return cls(log.columns.outcome, log.columns.is_reward)
        low, high = min(facts.low, 0.0), max(facts.high, 0.0)
        if not np.isfinite(high - low):
            raise ValueError(f"outcome: runs from {facts.low:g} to {facts.high:g}, expected a finite range")
        return cls(log.columns.outcome, log.columns.is_reward, low, high)

    @property
    def name(self) -> str:
        """What amounts are called: conversions, revenue, or the column's own name."""
        words, plurals = split_words(self.column), (entry.split(":") for entry in PLURALS.split())
        return next((plural for plural, known in plurals if words & set(known.split(","))), self.column)

    @property
    def suffix(self) -> str:
        """What follows an amount: its unit, where it has one."""
        return "" if self.name in NO_UNITS else f" {self.name}"

    @property
    def kind(self) -> str:
        return "rewards" if self.is_reward else "losses"

    @property
    def scale(self) -> float:
        return self.high - self.low

    @property
    def bounds(self) -> list[float]:
        """Bounds for a pool, with headroom, so that the first larger order is not cut off."""
        if (self.low, self.high) == (0.0, 1.0):
            return [0.0, 1.0]
        return [_rounded_away(HEADROOM * end) for end in (self.low, self.high)]

    def outcome(self, loss: Loss) -> Loss:
        """A mean loss, or an array of them, as the mean outcome that the user knows."""
        return self.high - loss * self.scale if self.is_reward else self.low + loss * self.scale

    def amount(self, difference: float) -> float:
        """A difference of losses in the user's unit; positive is worse."""
        return difference * self.scale

    def loss(self, outcome: Any) -> Any:
        """The loss of an outcome: a number, an array or an Ibis expression."""
        above = self.high - outcome if self.is_reward else outcome - self.low
        return above if self.scale == 1.0 else above / self.scale


def _rounded_away(value: float) -> float:
    """Away from 0, to two digits."""
    if value == 0:
        return 0.0
    step = 10.0 ** (np.floor(np.log10(abs(value))) - 1)
    return float(np.sign(value) * np.ceil(abs(value) / step - 1e-9) * step)


WEIGHTED = ("n", "nn", "k", "kk", "loss", "wloss", "wsquare")
"""Sums with weights w = 1/propensity: of all rows w, w²; of those with an outcome w, w², w·loss, w²·loss, w²·loss²."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Tables of one row for each action and one column for each state; the best state first.

    `n` counts rows and `k` outcomes (final ones, and with `exposed` the exposure of younger rows); `loss` and `square`
    sum losses and their squares. `w` has the sums of `WEIGHTED`; without propensities every weight is 1. `spellings`
    names the state that each spelling in the log stands for.
    """

    actions: tuple[str, ...]
    states: tuple[str, ...]
    n: Floats
    k: Floats
    loss: Floats
    square: Floats
    w: dict[str, Floats]
    weighted: bool = False
    groups: tuple[str, ...] | None = None
    total: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    spellings: dict[str, str] = field(default_factory=dict)
    exposed: bool = False

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
        """The standard error of each state's mean; an outcome's deviation where fewer than two are known."""
        k, loss, square = (table.sum(axis=0) for table in (self.k, self.loss, self.square))
        enough = np.maximum(k, 2)
        variance = np.maximum(square / enough - (loss / enough) ** 2, 0) * enough / (enough - 1)
        return np.where(k > 1, np.sqrt(variance / np.maximum(self.worth, 1)), self.deviation)

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

    `population` is how many rows of the log it stands for, `latest` the log's last moment; `context` is -1 where blank.
    """

    action: Ints
    state: Ints
    loss: Floats
    decided: Floats
    resolved: Floats
    population: int
    timed: bool
    latest: float
    held: Floats | None = None
    context: Ints | None = None

    @property
    def age(self) -> Floats:
        return np.maximum(self.latest - self.decided, 0.0)

    @property
    def dated(self) -> NDArray[np.bool_]:
        """Rows with an outcome that has a time after its decision."""
        return np.isfinite(self.loss) & np.isfinite(self.resolved) & (self.resolved >= self.decided)

    @property
    def pace(self) -> float:
        """Decisions of the whole log in a unit of time; 0 if unknown."""
        span = float(self.decided[-1] - self.decided[0]) if self.timed and self.decided.size > 1 else 0.0
        return self.population / span if span > 0 else 0.0

    def odd(self) -> dict[str, int]:
        """Rows of the log that are kept without their delay, by reason."""
        early = int((self.resolved < self.decided).sum())
        share = self.population / max(self.decided.size, 1)
        return {"outcome before its decision": round(early * share)} if early else {}


def kept_rows(log: Log, unit: Unit, maturity: Maturity | None = None, held_only: bool = False) -> Table:
    """Rows that are used, with `k`, the weight of their outcome, `loss` and `square`; null where there is none.

    A row younger than the window has no outcome; with a known delay curve it counts as `exposure` of one: in the mean,
    what has been reported by then is that share of what will be.
    """
    ibis = audit_engine()
    flat = log.table
    if log.facts.untimed:
        flat = flat.filter(flat.decided.notnull())
    if log.facts.unreadable:
        flat = flat.filter(~flat.unreadable)
    nothing, loss = ibis.null("float64"), unit.loss(flat.outcome)
    old = young_weight = young_loss = young_square = None
    if maturity is not None and maturity.window is not None:
        if maturity.default is not None:
            late = (flat.resolved - flat.decided > maturity.window).fill_null(False)
            loss = ibis.ifelse(late, maturity.default, loss)
        old, young_weight, young_loss, young_square = flat.decided <= maturity.cut, nothing, nothing, nothing
        if maturity.curve is not None and maturity.default is not None:
            share, base = maturity.curve.expression((maturity.latest - flat.decided).clip(lower=0.0)), maturity.default
            news = ibis.ifelse(loss.notnull() & flat.resolved.notnull(), loss - base, 0.0)
            young_weight, young_loss = share, base * share + news
            young_square = base * base * share + ibis.ifelse(news != 0.0, loss * loss - base * base, 0.0)
    weight, square = ibis.ifelse(loss.notnull(), 1.0, nothing), loss * loss
    if old is not None:
        pairs = ((weight, young_weight), (loss, young_loss), (square, young_square))
        weight, loss, square = (ibis.ifelse(old, final, young) for final, young in pairs)
    if held_only:
        weight, loss, square = (ibis.ifelse(flat.held == 1, each, nothing) for each in (weight, loss, square))
    names = ("action", "state", "grouping", "decided", "resolved", "propensity", "held", "context")
    return flat.select(*names, k=weight, loss=loss, square=square)


# Tables


def count_log(log: Log, rows: Table, exposed: bool = False) -> Counts:
    """Count rows by action and state."""
    cells = _cells(log, rows, ("action", "state"))
    nameless = np.array([not label for label in cells["action"]], dtype=bool)
    stateless = np.array([not label for label in cells["state"]], dtype=bool) & ~nameless
    dropped = {
        "line cannot be read": log.unread,
        "repeated ticket": log.repeated,
        "no decision time": log.facts.untimed,
        "outcome is not a number": log.facts.unreadable,
        "no action": int(cells["n"][nameless].sum()),
        "no state": int(cells["n"][stateless].sum()),
    }
    dropped = {why: count for why, count in dropped.items() if count}
    kept = ~nameless & ~stateless
    if not kept.any():
        why = ", ".join(f"{count} dropped: {reason}" for reason, count in dropped.items()) or "no rows"
        raise ValueError(f"{log.name}: no row is left, expected rows with an action and a state ({why})")
    cells = {name: values[kept] for name, values in cells.items()}
    spellings, notes = _merge_spellings(cells["state"], cells["n"])
    actions, states = sorted(set(cells["action"].tolist())), sorted(set(spellings.values()))
    if len(states) > MOST_STATES or len(states) * len(actions) > MOST_ENTRIES:
        raise ValueError(
            f"state: has {len(states)} different values for {len(actions)} actions, expected at most {MOST_STATES} and "
            f"a map of at most {MOST_ENTRIES} entries: is it the right column?"
        )
    odd, weighted = _check_propensities(log, cells)
    nothing = np.zeros((len(actions), len(states)))
    groups = _groups(cells, actions) if log.columns.group else None
    like = Counts(
        tuple(actions), tuple(states), nothing, nothing, nothing, nothing, {}, weighted, groups,
        log.facts.total + log.repeated + log.unread, dropped, odd | notes, spellings, exposed,
    )  # fmt: skip
    made = _filled(cells, like)
    k, loss = made.k.sum(axis=0), made.loss.sum(axis=0)
    order = np.argsort(np.where(k > 0, loss / np.maximum(k, 1e-300), np.inf), kind="stable")
    return _filled(cells, replace(like, states=tuple(states[i] for i in order)))


def _cells(log: Log, rows: Table, keys: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    ibis = audit_engine()
    wanted = {"n": rows.count(), "k": rows.k.sum(), "loss": rows.loss.sum(), "square": rows.square.sum()}
    if log.columns.group:
        wanted["grouping"] = rows.grouping.min()
    if log.columns.propensity:
        valid = (rows.propensity > 0) & (rows.propensity <= 1)
        w = ibis.ifelse(valid, 1 / rows.propensity, ibis.null("float64"))
        wanted |= {
            "wn": w.sum(), "wnn": (w * w).sum(), "wk": (w * rows.k).sum(), "wkk": (w * w * rows.k).sum(),
            "wloss": (w * rows.loss).sum(), "wwloss": (w * w * rows.loss).sum(),
            "wwsquare": (w * w * rows.square).sum(),
            "unusable": rows.count() - w.count(), "unknown": rows.count() - rows.propensity.count(),
        }  # fmt: skip
    found = fetch(rows.group_by(*keys).aggregate(**wanted))
    return {name: values if values.dtype == object else _settled(values) for name, values in found.items()}


def _settled(sums: Floats) -> Floats:
    """Sums without their last digits, which depend on the order in which an engine adds; 0 for those of no rows."""
    part, power = np.frexp(np.nan_to_num(sums))
    return np.asarray(np.ldexp(np.round(part * 2.0**40) / 2.0**40, power))


def _filled(cells: dict[str, Any], like: Counts) -> Counts:
    """Counts from cells; those of other actions or states are left out."""
    row, column = read_labels(cells, like)
    known = (row >= 0) & (column >= 0)

    def table(name: str) -> Floats:
        made = np.zeros((like.n_actions, like.n_states))
        np.add.at(made, (row[known], column[known]), cells[name][known])
        return made

    n, k, loss, square = (table(name) for name in ("n", "k", "loss", "square"))
    plain = dict(zip(WEIGHTED, (n, n, k, k, loss, loss, square), strict=True))
    w = {name: table(f"w{name}") for name in WEIGHTED} if like.weighted else plain
    return replace(like, n=n, k=k, loss=loss, square=square, w=w)


def count_contexts(log: Log, rows: Table, counts: Counts, names: tuple[str, ...]) -> list[Counts]:
    """The same counts for each context."""
    found = _cells(log, rows.filter(rows.context.notnull()), ("context", "action", "state"))
    place = _places(found["context"], {name: i for i, name in enumerate(names)})
    return [_filled({key: each[place == c] for key, each in found.items()}, counts) for c in range(len(names))]


def context_names(rows: Table) -> tuple[str, ...]:
    found = rows.filter(rows.context.notnull()).select("context").distinct()
    return tuple(sorted(str(name) for name in fetch(found)["context"].tolist()))


def _merge_spellings(labels: NDArray[Any], n: Floats) -> tuple[dict[str, str], dict[str, int]]:
    """States that differ by case or blanks only are one, by its most frequent spelling; a note on each merged one."""
    counts: Counter[str] = Counter()
    for label, rows in zip(labels.tolist(), n.tolist(), strict=True):
        counts[label] += int(rows)
    kinds: dict[str, list[str]] = {}
    for label in sorted(counts, key=lambda label: (-counts[label], label)):
        kinds.setdefault(" ".join(label.casefold().split()), []).append(label)
    spellings = {label: kind[0].strip() for kind in kinds.values() for label in kind}
    merged = [label for kind in kinds.values() for label in kind[1:]]
    return spellings, {f"state {label!r} read as {spellings[label]!r}": counts[label] for label in merged}


def _check_propensities(log: Log, cells: dict[str, Any]) -> tuple[dict[str, int], bool]:
    """What is odd about propensities, and whether they are used."""
    if not log.columns.propensity:
        return {}, False
    unusable, unknown = int(cells["unusable"].sum()), int(cells["unknown"].sum())
    notes = {"propensity outside (0, 1]": unusable - unknown, "no propensity": unknown}
    return {why: n for why, n in notes.items() if n}, bool(unusable <= UNUSABLE * cells["n"].sum())


def _groups(cells: dict[str, Any], actions: list[str]) -> tuple[str, ...]:
    """The first name, in order, of each action's group."""
    named: dict[str, str] = {}
    for action, label in zip(cells["action"].tolist(), cells["grouping"].tolist(), strict=True):
        named[action] = min(named.get(action) or label, label or named.get(action, ""))
    return tuple(named[action] for action in actions)


def _places(labels: NDArray[Any], place: dict[str, int]) -> Ints:
    """The number of each label; -1 for those that are missing or unknown."""
    return np.array([place.get(label, -1) for label in labels.tolist()], dtype=np.int64)


def read_labels(found: dict[str, NDArray[Any]], counts: Counts) -> tuple[Ints, Ints]:
    """The numbers of actions and states; -1 for those that are not counted."""
    actions = {name: i for i, name in enumerate(counts.actions)}
    states = {name: i for i, name in enumerate(counts.states)}
    spelt = {spelling: states[state] for spelling, state in counts.spellings.items()}
    return _places(found["action"], actions), _places(found["state"], spelt)


def fetch(table: Table) -> dict[str, NDArray[Any]]:
    """The answer as arrays; a missing number is NaN, a missing or blank label "". Spaces around labels are kept."""
    answer = table.to_pyarrow()
    found: dict[str, NDArray[Any]] = {}
    for name, kind in table.schema().items():
        if kind.is_string():
            coded = answer[name].combine_chunks().dictionary_encode()
            texts = [text if text.strip() else "" for text in coded.dictionary.to_pylist()]
            found[name] = np.array([*texts, ""], dtype=object)[coded.indices.fill_null(-1).to_numpy()]
        else:
            found[name] = answer[name].cast("float64").to_numpy().astype(np.float64)
    return found


# The sample


def draw_rows(log: Log, rows: Table, counts: Counts, seed: int = 0, contexts: tuple[str, ...] | None = None) -> Rows:
    """The sample with outcomes as recorded, sorted by time; rows of the same moment in random order."""
    timed = log.columns.decided is not None
    found = _fetch_sample(rows, counts.rows, timed, contexts is not None)
    found["action"], found["state"] = read_labels(found, counts)
    if contexts is not None:
        found["context"] = _places(found["context"], {name: i for i, name in enumerate(contexts)})
    kept = (found["action"] >= 0) & (found["state"] >= 0)
    found = {name: values[kept] for name, values in found.items()}
    # Threads hand rows over in any order: sort by all there is before ties are broken.
    first = np.lexsort([found[name] for name in ("context", "loss", "resolved", "state", "action", "decided")
                        if name in found])  # fmt: skip
    ties = np.random.default_rng((seed, 10)).permutation(first.size)
    order = first[np.lexsort((ties, found["decided"][first] if timed else ties))]
    found = {name: values[order] for name, values in found.items()}
    return Rows(
        found["action"], found["state"], found["loss"], found["decided"], found["resolved"], counts.rows, timed,
        log.facts.latest, found["held"] if log.columns.holdout else None, found.get("context"),
    )  # fmt: skip


def _fetch_sample(rows: Table, population: int, timed: bool, contexts: bool) -> dict[str, NDArray[Any]]:
    names = ["action", "state", "loss", "decided", "resolved", "held", *(["context"] if contexts else [])]
    looked_at = rows.select(*names)
    if population <= MOST_ROWS:
        return fetch(looked_at)
    if timed:
        turned = rows.decided * TURN
        taken = rows.filter(turned - turned.floor() < SAMPLED / population)
        found = fetch(taken.select(*names).limit(4 * SAMPLED))
        crowd = np.unique(found["decided"], return_counts=True)[1]
        enough = SAMPLED / 2 < found["decided"].size < 4 * SAMPLED
        if enough and (crowd.astype(np.float64) ** 2).sum() <= CROWDED * crowd.sum():
            return found
    return _every_so_many(looked_at, population / SAMPLED, names)


def _every_so_many(looked_at: Table, step: float, names: list[str]) -> dict[str, NDArray[Any]]:
    cells = looked_at.group_by(*names).aggregate(m=looked_at.count().cast("float64"))
    order = ["decided", "state", "action", "loss", "resolved", "held", *names[6:]]
    upto = cells.m.sum().over(audit_engine().window(order_by=order, preceding=None, following=0))
    summed = cells.mutate(upto=upto)
    takes = (summed.upto / step + 0.5).floor() - ((summed.upto - summed.m) / step + 0.5).floor()
    taken = summed.mutate(taken=takes.cast("float64"))
    found = fetch(taken.filter(taken.taken > 0).drop("m", "upto"))
    times = found.pop("taken").astype(np.int64)
    return {name: np.repeat(values, times) for name, values in found.items()}
