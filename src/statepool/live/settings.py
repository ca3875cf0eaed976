"""What a pool is made of: its learner and the scale of its losses, and its revisions of settings and catalogue."""

from __future__ import annotations

import dataclasses
import math
import re
import secrets
from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
import sqlalchemy as sa

from statepool.checks import Floats, check_number, read_only, shown
from statepool.learners import find, make_learner, name_of
from statepool.learners.contract import Learner, Problem, short_name
from statepool.live.catalogue import Catalogue, Offer, as_label, decoded, differing, encoded
from statepool.live.database import Database, Tables
from statepool.live.lift import Lift, Tally
from statepool.stream import Stream

LARGEST, SLACK = 1e12, 1e-9
Number = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Positive = Annotated[float, msgspec.Meta(gt=0, le=LARGEST)]
Bounds = tuple[Number, Number]
Count = Annotated[int, msgspec.Meta(ge=1, le=int(LARGEST))]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Known = tuple[Number, Annotated[float, msgspec.Meta(ge=0, le=LARGEST)]]
Plain = str | Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | float | bool
Label = Plain | Annotated[tuple[Plain, ...], msgspec.Meta(min_length=1)]
"""The name of an action, a state or a context; a tuple is written as an array."""


def about(description: str, **limits: float) -> msgspec.Meta:
    """The description of a field, and its limits."""
    return msgspec.Meta(description=description, **limits)  # type: ignore[call-overload]


class Curve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of the delays: what share (`weight`) of outcomes takes a time constant of so many seconds (`tau`)."""

    tau: list[Number] = []
    weight: list[Number] = []


class Prior(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is known before the first decision, in reported units, as in AUDIT.json."""

    states: dict[str, Known] = {}
    """By state: its mean outcome, and how many outcomes it is worth."""
    curve: Curve | None = None
    cells: dict[str, dict[str, Known]] = {}
    """By action and state, where actions differ beyond their states."""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Keyword arguments of `Pool.open` and `Pool.change`; every one has a default."""

    window: Annotated[
        Positive | None,
        about("Seconds after which a decision without an outcome counts as the default; None: it waits for ever."),
    ] = None
    default_reward: Annotated[Number | None, about("The reward once the window is over; None: the lower bound.")] = None
    default_loss: Annotated[Number | None, about("The loss once the window is over; None: the upper bound.")] = None
    loss_bounds: Annotated[Bounds, about("The lowest and the highest loss.")] = (0.0, 1.0)
    reward_bounds: Annotated[Bounds | None, about("The lowest and the highest reward; None: losses only.")] = None
    probability_bounds: Annotated[
        tuple[tuple[Label, Share, Share], ...], about("(action, lowest, highest) probability among all decisions.")
    ] = ()
    holdout: Annotated[float, about("The share of decisions that the learner is measured by.", ge=0, le=0.9)] = 0.0
    holdout_action: Annotated[Label | None, about("The action of the holdout; None: every action alike.")] = None
    fixed_action: Annotated[
        Label | None, about("An action to take with probability 1, whatever was learnt; the holdout goes on.")
    ] = None
    update_every: Annotated[
        Count | None,
        about(
            "Reports to one process after which it learns at once; None: as often as costs little. A timer learns, too."
        ),
    ] = None
    keep_candidates: Annotated[
        bool, about("Whether the rows of candidates are stored, so that replay can draw their decisions again.")
    ] = False
    prior: Annotated[Prior | None, about("What is known before the first decision, as in AUDIT.json.")] = None


read_settings = msgspec.json.Decoder(Settings).decode
"""Settings as they are stored."""


def check_settings(given: Mapping[str, Any], known: Settings | None = None) -> Settings:
    """The settings of keyword arguments; None is the default, and what is not given is as known."""
    given = dict(given) if known is None else msgspec.structs.asdict(known) | dict(given)
    unknown = sorted(set(given) - set(Settings.__struct_fields__))
    if unknown:
        names = ", ".join(Settings.__struct_fields__)
        raise ValueError(f"settings: {unknown[0]!r} is not known, expected one of {names}")
    named = {name: value for name, value in given.items() if value is not None}
    try:
        named = msgspec.to_builtins(named, enc_hook=_plain)
    except TypeError as error:
        raise ValueError(f"settings: {error}, expected labels and numbers") from None
    bounds = named.get("probability_bounds")
    if isinstance(bounds, Mapping):
        named["probability_bounds"] = [
            (label, *pair) if isinstance(pair, list | tuple) else (label, pair) for label, pair in bounds.items()
        ]
    try:
        settings = msgspec.convert(named, Settings)
    except msgspec.ValidationError as error:
        raise ValueError(_sentence(str(error), named)) from None
    _check_together(settings)
    return settings


def _plain(value: Any) -> Any:
    """NumPy's numbers are numbers."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"there is {shown(value)}")


def _sentence(error: str, given: Mapping[str, Any]) -> str:
    """What msgspec says about a value, with the name of its setting first."""
    said, _, path = error.partition(" - at `$")
    [name] = re.findall(r"\w+", path)[:1] or ["settings"]
    return f"{name}: is {shown(given.get(name))}, {said[:1].lower()}{said[1:]}"


def _check_together(settings: Settings) -> None:
    """What holds between two numbers."""
    for kind, bounds in (("loss", settings.loss_bounds), ("reward", settings.reward_bounds)):
        default = getattr(settings, f"default_{kind}")
        if bounds is not None and bounds[0] >= bounds[1]:
            raise ValueError(f"{kind}_bounds: is {shown(bounds)}, expected the lowest before the highest")
        if default is not None and bounds is None:
            raise ValueError("default_reward: this pool has no reward_bounds, expected them, or a default_loss")
        if default is not None and bounds is not None:
            check_number(default, f"default_{kind}", *bounds)
    if settings.default_loss is not None and settings.default_reward is not None:
        raise ValueError("settings: expected default_loss or default_reward, and one of them only")
    for label, low, high in settings.probability_bounds:
        if low > high:
            pair = f"from {low} to {high}"
            raise ValueError(f"probability_bounds: {label!r} has {pair}, expected the lowest before the highest")
    if len({label for label, *_ in settings.probability_bounds}) < len(settings.probability_bounds):
        raise ValueError("probability_bounds: has an action twice, expected different actions")
    curve = settings.prior and settings.prior.curve
    if curve and len(curve.tau) != len(curve.weight):
        raise ValueError(f"prior: has curve {shown(curve)}, expected tau and weight, two lists of one length")


class Outcome(NamedTuple):
    """An outcome on the pool's scale and as it was reported: four columns of `reports`."""

    loss: float
    """0 at the best and 1 at the worst of the bounds that the pool was made with."""
    reported: float
    is_reward: bool
    is_clipped: bool | None
    """True: it was outside today's bounds, and `loss` is that of the nearest bound."""


class Unit(NamedTuple):
    """The unit that outcomes are reported in: a loss on the pool's scale is `zero + slope * loss` in this unit."""

    name: str
    """reward or loss"""
    zero: float
    slope: float

    def mean(self, tally: Tally) -> float:
        """The mean outcome; not a number without outcomes."""
        return self.zero + self.slope * tally.mean

    def lift(self, lift: Lift) -> Lift:
        """How much better the learner does than the holdout."""
        return Lift(*(abs(self.slope) * value for value in lift))


class Scale:
    """Losses and rewards on one scale, which stays that of the bounds that the pool was made with (`first`).

    Learners that are `scale_free` take losses in reported units, others in [0, 1].
    """

    def __init__(self, first: Settings, scale_free: bool) -> None:
        (low, high), (least, most) = first.loss_bounds, first.reward_bounds or (0.0, 1.0)
        self._losses, self._rewards = Unit("loss", low, high - low), Unit("reward", most, least - most)
        self._first = self.unit(first)
        self._scale_free = scale_free
        self.bounds = (0.0, 1.0) if not scale_free else (low, high) if first.reward_bounds is None else (-most, -least)
        """The least and the largest loss that the learner is handed."""

    def unit(self, settings: Settings) -> Unit:
        """Rewards where the pool has bounds of rewards, losses otherwise."""
        return self._losses if settings.reward_bounds is None else self._rewards

    def outcome(self, settings: Settings, loss: Any, reward: Any) -> Outcome:
        """What was reported, exactly one of a loss and a reward."""
        if (loss is None) == (reward is None):
            raise ValueError("outcome: expected a loss or a reward, and one of them only")
        unit, value = (self._losses, loss) if reward is None else (self._rewards, reward)
        reported = check_number(value, unit.name, -LARGEST, LARGEST)
        bounds = settings.loss_bounds if reward is None else settings.reward_bounds
        if bounds is None:
            raise ValueError(
                "reward: this pool has no reward_bounds, expected a loss, or reward_bounds=(low, high) in its settings"
            )
        inside = min(max(reported, bounds[0]), bounds[1])
        loss = (inside - unit.zero) / unit.slope + 0.0  # no negative zero
        return Outcome(loss, reported, reward is not None, inside != reported or None)

    def default(self, settings: Settings) -> Outcome:
        """The outcome of a decision whose window is over."""
        if settings.default_loss is None and settings.reward_bounds is not None:
            low = settings.reward_bounds[0] if settings.default_reward is None else settings.default_reward
            return self.outcome(settings, None, low)
        high = settings.loss_bounds[1] if settings.default_loss is None else settings.default_loss
        return self.outcome(settings, high, None)

    def learned(self, loss: float) -> float:
        """The number that the learner is handed: in reported units, or in [0, 1]."""
        if not self._scale_free:
            return min(max(loss, 0.0), 1.0)
        low, high = self.bounds
        return low + loss * (high - low)

    def learned_mean(self, mean: float) -> float:
        """The same for a mean in reported units."""
        return self.learned((mean - self._first.zero) / self._first.slope)


class Definition(NamedTuple):
    """What never changes about a pool."""

    id: int
    name: str
    learner: Learner
    states: tuple[Hashable, ...]
    key: int
    """Seeds the random numbers of learners that draw."""
    scale: Scale


@dataclasses.dataclass(frozen=True, eq=False)
class Revision:
    """A pool's settings and catalogue, as of one change of them."""

    definition: Definition
    number: int
    settings: Settings
    catalogue: Catalogue

    def is_as(self, settings: Settings, catalogue: Catalogue) -> bool:
        return settings == self.settings and not differing(self.catalogue, catalogue)

    @cached_property
    def problem(self) -> Problem:
        """What the learner knows beside reports."""
        scale, settings = self.definition.scale, self.settings
        prior = settings.prior or Prior()
        return Problem(
            self.catalogue.map, None, 0, Stream.from_seed(self.definition.key),
            has_contexts=bool(self.catalogue.contexts), window=settings.window,
            default=scale.learned(scale.default(settings).loss), bounds=scale.bounds,
            prior=self._known(prior.states) if prior.states else None,
            cells=self._known_cells(prior.cells) if prior.cells else None,
            curve=None if prior.curve is None or not prior.curve.tau
            else (np.array(prior.curve.tau), np.array(prior.curve.weight)),
        )  # fmt: skip

    def _known(self, states: dict[str, Any]) -> tuple[Floats, Floats]:
        """The prior of each state as a learner takes it: a mean loss, and how many outcomes it is worth."""
        pairs = [states.get(str(label), (None, 0.0)) for label in self.definition.states]
        means = [0.0 if mean is None else self.definition.scale.learned_mean(mean) for mean, _ in pairs]
        return np.array(means), np.array([count for _, count in pairs], float)

    def _known_cells(self, cells: dict[str, dict[str, Any]]) -> tuple[Floats, Floats]:
        rows = [self._known(cells.get(str(label), {})) for label in self.catalogue.labels]
        return np.array([means for means, _ in rows]), np.array([counts for _, counts in rows])


def limits(settings: Settings, catalogue: Catalogue, offer: Offer) -> tuple[Floats, Floats, Floats]:
    """Of each action on offer: its lowest and its highest probability, and its probability in the holdout."""
    size = offer.rows.actions.size
    low, high, base = np.zeros(size), np.ones(size), np.full(size, 1 / size)
    for label, least, most in settings.probability_bounds:
        place = catalogue.place(offer, label)
        if place is not None:
            low[place], high[place] = least, most
    held = catalogue.place(offer, settings.holdout_action)
    return low, high, base if held is None else np.eye(1, size, held)[0]


def check_feasible(settings: Settings, catalogue: Catalogue) -> None:
    """Settings name actions of the catalogue, and their bounds leave room for a distribution."""
    for label, *_ in settings.probability_bounds:
        catalogue.action(label, "probability_bounds")
    if settings.holdout_action is not None:
        catalogue.action(settings.holdout_action, "holdout_action")
    if settings.fixed_action is not None and catalogue.place(catalogue.base, settings.fixed_action) is None:
        raise ValueError(f"fixed_action: {settings.fixed_action!r} is not an active action of the catalogue")
    low, high, base = limits(settings, catalogue, catalogue.base)
    held = settings.holdout * base
    for place in np.flatnonzero(held > high)[:1]:
        said = f"{catalogue.labels[catalogue.active_numbers[place]]!r} {held[place]:.6g}"
        raise ValueError(f"probability_bounds: the holdout alone gives {said}, expected at most {high[place]:.6g}")
    least, most = np.maximum(low, held).sum(), high.sum()
    if least > 1 + SLACK:
        raise ValueError(f"probability_bounds: the lowest ones and the holdout sum to {least:.6g}, expected at most 1")
    if most < 1 - SLACK:
        raise ValueError(f"probability_bounds: the highest ones sum to {most:.6g}, expected at least 1")


def check_name(name: Any) -> str:
    """The name of a pool: it becomes a part of addresses."""
    legal = isinstance(name, str) and 0 < len(name) <= 64 and all(c.isalnum() or c in "-_." for c in name)
    if not legal or not name.strip("."):
        raise ValueError(f"name: is {str(name)[:40]!r}, expected 1 to 64 letters, digits, '-', '_' or '.'")
    return str(name)


def choose_learner(learner: Learner | str, learns_map: bool) -> Learner:
    """The learner of a new pool, which can run live; `learns_map`: with the setting that learns P."""
    made = make_learner(learner)
    if learns_map and not made.learns_map:
        if not any(field.name == "learn_map" for field in dataclasses.fields(made)):  # type: ignore[arg-type]
            raise ValueError(f"P: is missing, expected one row for each action, since {short_name(made)} learns no map")
        made = dataclasses.replace(made, learn_map=True)  # type: ignore[type-var]
    if not made.runs_live:
        raise ValueError(f"learner: {short_name(made)} can only be simulated, expected one that runs live")
    if name_of(type(made)) is None:
        raise ValueError(
            f"learner: {type(made).__name__} has no name, expected it in learners.REGISTRY or among the entry points "
            "of an installed package: a pool finds its learner by its name"
        )
    return made


def learner_text(learner: Learner) -> str:
    """A learner as stored: its name and its settings."""
    return encoded([name_of(type(learner)), dataclasses.asdict(learner)])  # type: ignore[call-overload]


def _learner_of(text: str) -> Learner:
    name, settings = msgspec.json.decode(text)
    try:
        return find(name)(**{key: as_label(value) for key, value in settings.items()})
    except TypeError as error:
        raise ValueError(f"learner: {name} was stored with other settings ({error}), by another release") from None


def read_definition(connection: sa.Connection, tables: Tables, name: str) -> Definition | None:
    """The pool of a name, if it is there."""
    p, r = tables.pools.c, tables.revisions.c
    query = sa.select(tables.pools, r.settings).where(p.name == name, r.pool == p.id, r.revision == 1)
    row = connection.execute(query).first()
    if row is None:
        return None
    learner, states = _learner_of(row.learner), tuple(map(as_label, msgspec.json.decode(row.states)))
    scale = Scale(read_settings(row.settings), learner.scale_free)
    return Definition(row.id, row.name, learner, states, row.key, scale)


def insert_definition(
    connection: sa.Connection, database: Database, name: str, learner: Learner, settings: Settings,
    catalogue: Catalogue, at: float,
) -> Definition | None:  # fmt: skip
    """A new pool; None: another process was faster."""
    key, pools = secrets.randbits(62), database.tables.pools
    values = {
        "name": name, "learner": learner_text(learner), "states": encoded(catalogue.states), "key": key, "revision": 1,
        "looked_to": 0, "replay_from": 0, "created_at": at,
    }  # fmt: skip
    insert = database.insert(pools).values(values).on_conflict_do_nothing().returning(pools.c.id)
    made = connection.execute(insert).scalar()
    scale = Scale(settings, learner.scale_free)
    return None if made is None else Definition(made, name, learner, catalogue.states, key, scale)


def insert_revision(
    connection: sa.Connection, tables: Tables, revision: Revision, before: Revision | None, version: int, at: float
) -> None:
    """One change: its settings, and the actions and contexts that differ from the revision before."""
    catalogue, pool, number = revision.catalogue, revision.definition.id, revision.number
    connection.execute(sa.update(tables.pools).where(tables.pools.c.id == pool).values(revision=number))
    row = {"pool": pool, "revision": number, "version": version, "settings": encoded(revision.settings), "at": at}
    connection.execute(sa.insert(tables.revisions).values(row))
    known = None if before is None else before.catalogue
    actions = [
        {
            "pool": pool, "since": number, "action": each, "label": encoded(catalogue.labels[each]),
            "category": encoded(catalogue.categories[each]),
            "row": catalogue.map[..., each, :].tobytes() if catalogue.active[each] else None,
        }
        for each in differing(known, catalogue)
    ]  # fmt: skip
    contexts = [
        {"pool": pool, "since": number, "context": place, "label": encoded(label)}
        for place, label in enumerate(catalogue.contexts) if known is None or label not in known.context_number
    ]  # fmt: skip
    for table, given in ((tables.actions, actions), (tables.contexts, contexts)):
        if given:
            connection.execute(sa.insert(table), given)


def read_revision(connection: sa.Connection, tables: Tables, definition: Definition, number: int) -> Revision:
    """The settings and the catalogue of one revision."""
    r, a, c, n_states = tables.revisions.c, tables.actions.c, tables.contexts.c, len(definition.states)
    one = sa.select(r.settings).where(r.pool == definition.id, r.revision == number)
    settings = connection.execute(one).scalar_one_or_none()
    if settings is None:
        raise ValueError(f"revision: {number} of pool {definition.name!r} is not there")
    known: dict[int, Any] = {}
    active: dict[int, bool] = {}
    actions = sa.select(tables.actions).where(a.pool == definition.id, a.since <= number).order_by(a.since, a.action)
    for each in connection.execute(actions):
        active[each.action] = each.row is not None
        if each.row is not None:  # a retired action keeps its last row
            known[each.action] = each
    named = sa.select(c.label).where(c.pool == definition.id, c.since <= number).order_by(c.context)
    contexts = tuple(map(decoded, connection.execute(named).scalars()))
    shape = (len(known), len(contexts), n_states) if contexts else (len(known), n_states)
    size = 8 * math.prod(shape[1:])  # contexts that came after an action was retired have no row of it
    table = np.frombuffer(b"".join(each.row.ljust(size, b"\0") for each in known.values())).reshape(shape)
    catalogue = Catalogue(
        definition.states, tuple(decoded(each.label) for each in known.values()),
        tuple(decoded(each.category) for each in known.values()),
        read_only(np.ascontiguousarray(np.moveaxis(table, 0, -2))), np.array(list(active.values())), contexts,
    )  # fmt: skip
    return Revision(definition, number, read_settings(settings), catalogue)
