"""What a pool is made of: its learner, which never changes, and its revisions of settings and catalogue."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Hashable
from typing import Any, NamedTuple

import msgspec
import numpy as np
import sqlalchemy as sa

from statepool.checks import Floats, read_only, shown
from statepool.learners import find, make_learner, name_of
from statepool.learners.contract import Learner, Problem, short_name
from statepool.live.catalogue import Catalogue, ContextRows, decoded, differing, encoded
from statepool.live.errors import Conflict
from statepool.live.settings import Prior, Scale, Settings, check_settings
from statepool.live.tables import Tables
from statepool.stream import Stream


class Definition(NamedTuple):
    """What never changes about a pool."""

    id: int
    name: str
    learner: Learner
    states: tuple[Hashable, ...]
    key: int
    """Seeds the random numbers of learners that draw."""
    scale: Scale
    created_at: float


class Revision(NamedTuple):
    """A pool's settings and catalogue, as of one change of them."""

    number: int
    settings: Settings
    catalogue: Catalogue


def problem_of(definition: Definition, revision: Revision) -> Problem:
    """What the learner knows beside reports."""
    catalogue, settings, scale = revision.catalogue, revision.settings, definition.scale
    prior = settings.prior or Prior()
    curve = prior.curve
    return Problem(
        catalogue.map, None, 0, Stream.from_seed(definition.key), has_contexts=bool(catalogue.contexts),
        window=settings.window, default=scale.learned(scale.default(settings).loss), bounds=scale.bounds,
        prior=_known_means(prior.states, definition),
        curve=None if curve is None or not curve.tau else (np.array(curve.tau), np.array(curve.weight)),
    )  # fmt: skip


def _known_means(states: dict[str, Any], definition: Definition) -> tuple[Floats, Floats] | None:
    """The prior of each state as a learner takes it: a mean loss, and how many outcomes it is worth."""
    if not states:
        return None
    pairs = [states.get(str(label), (None, 0.0)) for label in definition.states]
    means = [0.0 if mean is None else definition.scale.learned_mean(mean) for mean, _ in pairs]
    return np.array(means), np.array([count for _, count in pairs], float)


def is_held(definition: Definition, settings: Settings) -> bool:
    """Whether outcomes are learnt when their window closes, not when they come."""
    return settings.window is not None and not definition.learner.exposure


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
    settings = dataclasses.asdict(learner)  # type: ignore[call-overload]
    return msgspec.json.encode([name_of(type(learner)), settings]).decode()


def _learner_of(text: str) -> Learner:
    name, settings = msgspec.json.decode(text)
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in settings.items()}
    try:
        return find(name)(**given)
    except TypeError as error:
        raise ValueError(f"learner: {name} was stored with other settings ({error}), by another release") from None


def read_definition(connection: sa.Connection, tables: Tables, name: str) -> Definition | None:
    """The pool of a name, if it is there."""
    p, r = tables.pools.c, tables.revisions.c
    row = connection.execute(sa.select(tables.pools).where(p.name == name)).first()
    if row is None:
        return None
    first = connection.execute(sa.select(r.settings).where(r.pool == row.id, r.revision == 1)).scalar_one()
    learner = _learner_of(row.learner)
    states = tuple(tuple(each) if isinstance(each, list) else each for each in msgspec.json.decode(row.states))
    scale = Scale(check_settings(msgspec.json.decode(first)), learner.scale_free)
    return Definition(row.id, row.name, learner, states, row.key, scale, row.created_at)


def insert_definition(
    connection: sa.Connection, tables: Tables, name: str, learner: Learner, settings: Settings, catalogue: Catalogue,
    at: float,
) -> Definition:  # fmt: skip
    """A new pool; raise IntegrityError if another process was faster."""
    states, key = msgspec.json.encode(catalogue.states).decode(), secrets.randbits(62)
    values = {
        "name": name, "learner": learner_text(learner), "states": states, "key": key, "revision": 1,
        "replay_from": 0, "created_at": at,
    }  # fmt: skip
    made = connection.execute(sa.insert(tables.pools).values(**values).returning(tables.pools.c.id)).scalar_one()
    return Definition(made, name, learner, catalogue.states, key, Scale(settings, learner.scale_free), at)


def insert_revision(
    connection: sa.Connection, tables: Tables, definition: Definition, revision: Revision, before: Catalogue | None,
    version: int, at: float,
) -> None:  # fmt: skip
    """One change: its settings, and the actions and contexts that differ from the catalogue before."""
    catalogue, own = revision.catalogue, {"pool": definition.id, "since": revision.number}
    text = msgspec.json.encode(revision.settings).decode()
    row = {"pool": definition.id, "revision": revision.number, "version": version, "settings": text, "at": at}
    connection.execute(sa.insert(tables.revisions).values(row))
    numbers, contexts = differing(before, catalogue)
    actions = [
        own | {
            "action": number, "label": encoded(catalogue.labels[number]),
            "category": None if catalogue.categories[number] is None else encoded(catalogue.categories[number]),
            "row": catalogue.rows[number].tobytes() if catalogue.active[number] else None,
        }
        for number in numbers
    ]  # fmt: skip
    rows = [
        own | {
            "context": number, "label": encoded(catalogue.contexts[number].label),
            "actions": catalogue.contexts[number].actions.astype(np.int64).tobytes(),
            "rows": np.ascontiguousarray(catalogue.contexts[number].rows).tobytes(),
        }
        for number in contexts
    ]  # fmt: skip
    for table, given in ((tables.actions, actions), (tables.contexts, rows)):
        if given:
            connection.execute(sa.insert(table), given)


def read_revision(connection: sa.Connection, tables: Tables, definition: Definition, number: int) -> Revision:
    """The settings and the catalogue of one revision."""
    r, a, c = tables.revisions.c, tables.actions.c, tables.contexts.c
    one = sa.select(r.settings).where(r.pool == definition.id, r.revision == number)
    settings = connection.execute(one).scalar_one_or_none()
    if settings is None:
        raise ValueError(f"revision: {number} of pool {definition.name!r} is not there")
    labels: dict[int, str] = {}
    categories: dict[int, Any] = {}
    rows: dict[int, bytes] = {}
    active: dict[int, bool] = {}
    query = sa.select(a.action, a.since, a.label, a.category, a.row).where(a.pool == definition.id, a.since <= number)
    for action, since, label, category, row in connection.execute(query.order_by(a.since, a.action)):
        labels[action], active[action] = label, row is not None
        if row is not None:
            rows[action], categories[action] = row, None if category is None else decoded(category)
        if since == 1:
            n_first = action + 1
    n_states = len(definition.states)
    contexts: dict[Hashable, ContextRows] = {}
    query = sa.select(c.label, c.actions, c.rows).where(c.pool == definition.id, c.since <= number)
    for row in connection.execute(query.order_by(c.since, c.context)):
        label, numbers = decoded(row.label), np.frombuffer(row.actions, np.int64)
        contexts[label] = ContextRows(label, numbers, np.frombuffer(row.rows).reshape(-1, n_states))
    catalogue = Catalogue(
        definition.states, tuple(map(decoded, labels.values())), tuple(categories.values()),
        read_only(np.frombuffer(b"".join(rows.values())).reshape(len(labels), n_states).copy()),
        np.array(list(active.values())), tuple(contexts.values()), n_first,
    )  # fmt: skip
    return Revision(number, check_settings(msgspec.json.decode(settings)), catalogue)


def check_same_learner(definition: Definition, learner: Learner | str) -> None:
    """Raise unless a pool has this learner."""
    given = make_learner(learner)
    if name_of(type(given)) is None or learner_text(given) != learner_text(definition.learner):
        known, other = short_name(definition.learner), short_name(given)
        raise Conflict(f"learner: pool {definition.name!r} has {known}, and was opened with {shown(other)}")
