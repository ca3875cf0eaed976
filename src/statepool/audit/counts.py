"""Counts of all rows by action and state, and the sample of rows that is looked at in time.

Both are Ibis expressions, computed where the log lies. Which rows are sampled depends on what the log holds, not on how
it is stored: the same rows are taken from one file or forty, in duckdb or elsewhere.

    moments    where few decisions share a moment: a moment is in or out by a pseudo-random number of its time
    cells      otherwise: rows that are alike are counted, put in order of time, state, action and outcome, and every
               `step`-th row of that order is taken
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from statepool.audit.log import Log, audit_engine
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
TURN, SPIN = 0.6180339887498949, 4321.987
"""Products and floors give the same pseudo-random number of a time in every engine."""
HEADROOM = 2.0
"""A pool takes outcomes up to this many times the log's largest."""

PLURALS = dict(re.findall(
    r"(\w+):(\w+)", "converted:conversions conversion:conversions purchase:purchases purchased:purchases "
    "bought:purchases order:orders ordered:orders clicked:clicks click:clicks returned:returns return:returns "
    "churned:churns churn:churns refunded:refunds refund:refunds bounced:bounces cancelled:cancellations "
    "canceled:cancellations subscribed:subscriptions signup:signups sold:sales sale:sales failed:failures won:wins "
    "success:successes",
))  # fmt: skip
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
        low = min(facts.low, 0.0)
        high = max(facts.high, 0.0)
        if not np.isfinite(high - low):
            raise ValueError(f"outcome: runs from {facts.low:g} to {facts.high:g}, expected a finite range")
        return cls(log.columns.outcome, log.columns.is_reward, low, high)

    @property
    def name(self) -> str:
        """What amounts are called: conversions, revenue, or the column's own name."""
        words = re.split(r"[^a-z]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", self.column).lower())
        return next((PLURALS[word] for word in words if word in PLURALS), self.column)

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


@dataclass(frozen=True, eq=False)
class Weighted:
    """Sums with weights w = 1/propensity, one row for each action and one column for each state.

    Of all rows w and w²; of rows with an outcome w, w², w·loss, w·loss², w²·loss and w²·loss².
    """

    n: Floats
    nn: Floats
    k: Floats
    kk: Floats
    loss: Floats
    square: Floats
    loss_twice: Floats
    square_twice: Floats

    @property
    def effective_rows(self) -> Floats:
        """How many evenly weighted rows each action's are worth (Kish)."""
        return _kish(self.n.sum(axis=1), self.nn.sum(axis=1))


def _kish(total: Floats, squares: Floats) -> Floats:
    return np.divide(total**2, squares, out=np.zeros_like(total, dtype=np.float64), where=squares > 0)


@dataclass(frozen=True, eq=False)
class Counts:
    """Tables of one row for each action and one column for each state; the best state first.

    `n` counts rows and `k` outcomes (final ones, and with `exposed` the exposure of younger rows); `loss` and `square`
    sum losses and their squares. `spellings` names the state that each spelling in the log stands for.
    """

    actions: tuple[str, ...]
    states: tuple[str, ...]
    groups: tuple[str, ...] | None
    n: Floats
    k: Floats
    loss: Floats
    square: Floats
    total: int
    dropped: dict[str, int]
    notes: dict[str, int]
    spellings: dict[str, str] = field(default_factory=dict)
    weighted: Weighted | None = None
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
        sums: Counts | Weighted = self if self.weighted is None else self.weighted
        k, loss = sums.k.sum(axis=0), sums.loss.sum(axis=0)
        return np.where(k > 0, loss / np.maximum(k, 1e-300), self.mean)

    @property
    def state_errors(self) -> Floats:
        """The standard error of each state's mean; infinite where fewer than two outcomes are known."""
        k, loss, square = (table.sum(axis=0) for table in (self.k, self.loss, self.square))
        enough = np.maximum(k, 2)
        variance = np.maximum(square / enough - (loss / enough) ** 2, 0) * enough / (enough - 1)
        return np.where(k > 1, np.sqrt(variance / np.maximum(self.worth, 1)), np.inf)

    @property
    def worth(self) -> Floats:
        """As many outcomes as those of each state are worth."""
        k = self.k.sum(axis=0)
        return (
            k
            if self.weighted is None
            else np.minimum(k, _kish(self.weighted.k.sum(axis=0), self.weighted.kk.sum(axis=0)))
        )

    @property
    def effective(self) -> Floats:
        """Rows by action and state; weighted ones as many as they are worth."""
        if self.weighted is None:
            return self.n
        totals = self.weighted.n.sum(axis=1, keepdims=True)
        scale = self.weighted.effective_rows[:, None] / np.maximum(totals, 1e-300)
        # Actions without a usable propensity keep their plain rows.
        return np.where(totals > 0, self.weighted.n * scale, self.n)


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
        share = self.population / max(self.decided.size, 1)
        early = self.resolved < self.decided
        return {"outcome before its decision": round(int(early.sum()) * share)} if early.any() else {}


def kept_rows(log: Log, unit: Unit, maturity: Maturity | None = None, held_only: bool = False) -> Table:
    """Rows that are used, with `k`, the weight of their outcome, `loss` and `square`; null where there is none.

    A row younger than the window has no outcome; with a known delay curve it counts as `exposure` of one (PRACTICE.md):
    in the mean, what has been reported by then is that share of what will be.
    """
    ibis = audit_engine()
    flat = log.table
    if log.facts.untimed:
        flat = flat.filter(flat.decided.notnull())
    if log.facts.unreadable:
        flat = flat.filter(~flat.unreadable)
    nothing, loss = ibis.null("float64"), unit.loss(flat.outcome)
    weight = ibis.ifelse(loss.notnull(), 1.0, nothing)
    square = loss * loss
    if maturity is not None and maturity.window is not None:
        if maturity.default is not None:
            late = (flat.resolved - flat.decided > maturity.window).fill_null(False)
            loss = ibis.ifelse(late, maturity.default, loss)
        old = flat.decided <= maturity.cut
        young_weight = young_loss = young_square = nothing
        if maturity.curve is not None and maturity.default is not None:
            age = (maturity.latest - flat.decided).clip(lower=0.0)
            share, base = maturity.curve.expression(age), maturity.default
            news = ibis.ifelse(loss.notnull() & flat.resolved.notnull(), loss - base, 0.0)
            young_weight, young_loss = share, base * share + news
            young_square = base * base * share + ibis.ifelse(news != 0.0, loss * loss - base * base, 0.0)
        weight = ibis.ifelse(old, ibis.ifelse(loss.notnull(), 1.0, nothing), young_weight)
        loss, square = ibis.ifelse(old, loss, young_loss), ibis.ifelse(old, loss * loss, young_square)
    if held_only:
        weight, loss, square = (ibis.ifelse(flat.held == 1, each, nothing) for each in (weight, loss, square))
    names = ("action", "state", "grouping", "decided", "resolved", "propensity", "held", "context")
    return flat.select(*names, k=weight, loss=loss, square=square)


def count_log(log: Log, rows: Table, exposed: bool = False) -> Counts:
    """Count rows by action and state."""
    return _tabulate(log, fetch(_cells(log, rows, ("action", "state"))), exposed)


def _cells(log: Log, rows: Table, keys: tuple[str, ...]) -> Table:
    ibis = audit_engine()
    wanted = {"n": rows.count(), "k": rows.k.sum(), "loss": rows.loss.sum(), "square": rows.square.sum()}
    if log.columns.group:
        wanted["grouping"] = rows.grouping.min()
    if log.columns.propensity:
        valid = (rows.propensity > 0) & (rows.propensity <= 1)
        w = ibis.ifelse(valid, 1 / rows.propensity, ibis.null("float64"))
        wanted |= {
            "wn": w.sum(), "wnn": (w * w).sum(), "wk": (w * rows.k).sum(), "wkk": (w * w * rows.k).sum(),
            "wloss": (w * rows.loss).sum(), "wsquare": (w * rows.square).sum(),
            "wwloss": (w * w * rows.loss).sum(), "wwsquare": (w * w * rows.square).sum(),
            "unlikely": rows.count() - w.count(), "unknown": rows.count() - rows.propensity.count(),
        }  # fmt: skip
    return rows.group_by(*keys).aggregate(**wanted)


def count_contexts(log: Log, rows: Table, counts: Counts, names: tuple[str, ...]) -> list[Counts]:
    """The same counts for each context."""
    found = fetch(_cells(log, rows.filter(rows.context.notnull()), ("context", "action", "state")))
    place = _places(found["context"], {name: i for i, name in enumerate(names)})
    coded = read_labels(found, counts)
    tables = []
    for c in range(len(names)):
        kept = (place == c) & (coded[0] >= 0) & (coded[1] >= 0)
        part = {name: values[kept] for name, values in found.items()}
        tables.append(_filled(part, coded[0][kept], coded[1][kept], counts))
    return tables


def _filled(cells: dict[str, Any], row: Ints, column: Ints, like: Counts) -> Counts:
    def table(name: str) -> Floats:
        made = np.zeros((like.n_actions, like.n_states))
        np.add.at(made, (row, column), np.nan_to_num(cells[name].astype(np.float64)))
        return made

    weighted = None
    if like.weighted is not None:
        weighted = Weighted(*(table(f"w{name}") for name in WEIGHTED))
    n, k, loss, square = (table(name) for name in ("n", "k", "loss", "square"))
    return replace(like, n=n, k=k, loss=loss, square=square, weighted=weighted, total=int(n.sum()))


WEIGHTED = ("n", "nn", "k", "kk", "loss", "square", "wloss", "wsquare")


def _tabulate(log: Log, cells: dict[str, NDArray[Any]], exposed: bool) -> Counts:
    facts, n = log.facts, cells["n"].astype(np.float64)
    actions, raw_states = (_labels(cells[part]) for part in ("action", "state"))
    nameless = np.array([a == "" for a in actions], dtype=bool)
    stateless = np.array([s == "" for s in raw_states], dtype=bool) & ~nameless
    dropped = {
        "line cannot be read": log.unread,
        "repeated ticket": facts.duplicated,
        "no decision time": facts.untimed,
        "outcome is not a number": facts.unreadable,
        "no action": int(n[nameless].sum()),
        "no state": int(n[stateless].sum()),
    }
    kept = ~nameless & ~stateless
    if not kept.any():
        why = ", ".join(f"{count} dropped: {reason}" for reason, count in dropped.items() if count) or "no rows"
        raise ValueError(f"{log.name}: no row is left, expected rows with an action and a state ({why})")
    spellings, merged = _merge_spellings([s for s, keep in zip(raw_states, kept, strict=True) if keep], n[kept])
    names = sorted({a for a, keep in zip(actions, kept, strict=True) if keep})
    states = sorted(set(spellings.values()))
    _refuse_wide(len(names), len(states))
    found = {name: values[kept] for name, values in cells.items()}
    row = _places(np.array(actions, dtype=object)[kept], {name: i for i, name in enumerate(names)})
    column = _places(np.array(raw_states, dtype=object)[kept], _state_places(spellings, states))
    notes, usable = _propensity_notes(log, found)
    shape = np.zeros((len(names), len(states)))
    weighted = Weighted(*[shape] * 8) if usable else None
    groups = _groups(found["grouping"], row, len(names)) if log.columns.group else None
    like = Counts(tuple(names), tuple(states), groups, shape, shape, shape, shape, 0, {}, {}, spellings, weighted)
    made = _filled(found, row, column, like)
    k, loss = made.k.sum(axis=0), made.loss.sum(axis=0)
    order = np.argsort(np.where(k > 0, loss / np.maximum(k, 1e-300), np.inf), kind="stable")
    return replace(
        _ordered(made, order), total=facts.total + facts.duplicated + log.unread, exposed=exposed,
        dropped={why: count for why, count in dropped.items() if count},
        notes=notes | {f"state {spelling!r} read as {state!r}": count for (spelling, state), count in merged.items()},
    )  # fmt: skip


def _ordered(counts: Counts, order: Ints) -> Counts:
    weighted = counts.weighted
    if weighted is not None:
        weighted = Weighted(*(table[:, order] for table in vars(weighted).values()))
    tables = {name: getattr(counts, name)[:, order] for name in ("n", "k", "loss", "square")}
    return replace(counts, states=tuple(counts.states[i] for i in order), weighted=weighted, **tables)


def _refuse_wide(n_actions: int, n_states: int) -> None:
    if n_states > MOST_STATES or n_states * n_actions > MOST_ENTRIES:
        raise ValueError(
            f"state: has {n_states} different values for {n_actions} actions, expected at most {MOST_STATES} and a "
            f"map of at most {MOST_ENTRIES} entries: is it the right column?"
        )


def _merge_spellings(labels: list[str], n: Floats) -> tuple[dict[str, str], dict[tuple[str, str], int]]:
    """States that differ by case or blanks only are one, by its most frequent spelling; and those merged, with rows."""
    counts: dict[str, float] = {}
    for label, rows in zip(labels, n.tolist(), strict=True):
        counts[label] = counts.get(label, 0) + rows
    kinds: dict[str, list[str]] = {}
    for label in sorted(counts, key=lambda label: (-counts[label], label)):
        kinds.setdefault(" ".join(label.casefold().split()), []).append(label)
    spellings = {label: kind[0].strip() for kind in kinds.values() for label in kind}
    merged = {(label, kind[0].strip()): int(counts[label]) for kind in kinds.values() for label in kind[1:]}
    return spellings, merged


def _state_places(spellings: dict[str, str], states: list[str] | tuple[str, ...]) -> dict[str, int]:
    place = {name: i for i, name in enumerate(states)}
    return {spelling: place[state] for spelling, state in spellings.items()}


def _propensity_notes(log: Log, cells: dict[str, Any]) -> tuple[dict[str, int], bool]:
    """What is odd about propensities; they are not used if over a tenth of the rows have no usable one."""
    if not log.columns.propensity:
        return {}, False
    unlikely, unknown = (int(np.nan_to_num(cells[name].astype(np.float64)).sum()) for name in ("unlikely", "unknown"))
    notes = {"propensity outside (0, 1]": unlikely - unknown, "no propensity": unknown}
    return {why: n for why, n in notes.items() if n}, bool(unlikely <= 0.1 * cells["n"].sum())


def _groups(labels: NDArray[Any], row: Ints, n_actions: int) -> tuple[str, ...]:
    found = [""] * n_actions
    for place, label in zip(row, _labels(labels), strict=True):
        found[place] = min(found[place] or label, label or found[place])
    return tuple(found)


def _labels(values: NDArray[Any]) -> list[str]:
    """Labels as text; blank ones are "". Spaces around states are kept, so that their merging can be reported."""
    return ["" if label is None or not str(label).strip() else str(label) for label in values.tolist()]


def _places(labels: NDArray[Any], place: dict[str, int]) -> Ints:
    """The number of each label; -1 for those that are missing or unknown."""
    known = {label: place.get(label, place.get(str(label).strip(), -1)) for label in set(labels.tolist())}
    return np.array([known[label] for label in labels.tolist()], dtype=np.int64)


def read_labels(found: dict[str, NDArray[Any]], counts: Counts) -> tuple[Ints, Ints]:
    actions = {name: i for i, name in enumerate(counts.actions)}
    return _places(found["action"], actions), _places(found["state"], _state_places(counts.spellings, counts.states))


def context_names(rows: Table) -> tuple[str, ...]:
    found = rows.filter(rows.context.notnull()).select("context").distinct()
    return tuple(sorted(str(name) for name in fetch(found)["context"].tolist()))


def fetch(table: Table) -> dict[str, NDArray[Any]]:
    """The answer as arrays; a missing number is NaN, a missing label None."""
    answer, kinds = table.to_pyarrow(), table.schema()
    found: dict[str, NDArray[Any]] = {}
    for name, kind in kinds.items():
        column = answer[name]
        if kind.is_string():
            found[name] = np.asarray(column.to_numpy(), dtype=object)
        else:
            found[name] = column.cast("float64").to_numpy().astype(np.float64)
    return found


# The sample


def draw_rows(log: Log, rows: Table, counts: Counts, seed: int = 0, contexts: tuple[str, ...] | None = None) -> Rows:
    """The sample with outcomes as recorded, sorted by time; rows of the same moment in random order."""
    timed = log.columns.decided is not None
    found = _fetch_sample(rows, counts.rows, timed, contexts is not None)
    action, state = read_labels(found, counts)
    kept = (action >= 0) & (state >= 0)
    action, state = action[kept], state[kept]
    context = np.zeros(0, np.int64)
    if contexts is not None:
        context = _places(found["context"], {name: i for i, name in enumerate(contexts)})[kept]
    numbers = {name: values[kept] for name, values in found.items() if values.dtype != object}
    # Threads hand rows over in any order: sort by all there is before ties are broken.
    known = (numbers["loss"], numbers["resolved"], state, action, numbers["decided"])
    first = np.lexsort(known if contexts is None else (context, *known))
    ties = np.random.default_rng((seed, 10)).permutation(first.size)
    order = first[np.lexsort((ties, numbers["decided"][first] if timed else ties))]
    return Rows(
        action[order], state[order], numbers["loss"][order], numbers["decided"][order], numbers["resolved"][order],
        counts.rows, timed, log.facts.latest, numbers["held"][order] if log.columns.holdout else None,
        None if contexts is None else context[order],
    )  # fmt: skip


def _fetch_sample(rows: Table, population: int, timed: bool, contexts: bool) -> dict[str, NDArray[Any]]:
    names = ["action", "state", "loss", "decided", "resolved", "held", *(["context"] if contexts else [])]
    looked_at = rows.select(*names)
    if population <= MOST_ROWS:
        return fetch(looked_at)
    if timed:
        turn = rows.decided * TURN - (rows.decided * TURN).floor()
        spun = turn * (turn + 1.0) * SPIN
        taken = rows.filter(spun - spun.floor() < SAMPLED / population)
        found = fetch(taken.select(*names).limit(4 * SAMPLED))
        crowd = np.unique(found["decided"], return_counts=True)[1]
        enough = SAMPLED / 2 < found["decided"].size < 4 * SAMPLED
        if enough and (crowd.astype(np.float64) ** 2).sum() <= CROWDED * crowd.sum():
            return found
    return _every_so_many(looked_at, population / SAMPLED, names)


def _every_so_many(looked_at: Table, step: float, names: list[str]) -> dict[str, NDArray[Any]]:
    ibis = audit_engine()
    cells = looked_at.group_by(*names).aggregate(m=looked_at.count().cast("float64"))
    order = ["decided", "state", "action", "loss", "resolved", "held", *names[6:]]
    upto = cells.m.sum().over(ibis.window(order_by=order, preceding=None, following=0))
    summed = cells.mutate(upto=upto)
    takes = (summed.upto / step + 0.5).floor() - ((summed.upto - summed.m) / step + 0.5).floor()
    taken = summed.mutate(taken=takes.cast("float64"))
    found = fetch(taken.filter(taken.taken > 0).drop("m", "upto"))
    times = found.pop("taken").astype(np.int64)
    return {name: np.repeat(values, times) for name, values in found.items()}
