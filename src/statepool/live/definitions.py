"""What a pool is made of: its learner, which never changes, and its revisions of settings and catalogue."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import sqlalchemy as sa

from statepool.checks import Floats, read_only, shown
from statepool.learners import find, make_learner, name_of
from statepool.learners.contract import Learner, Problem, short_name
from statepool.live.catalogue import Catalogue, Change, ContextRows, decoded, encoded
from statepool.live.errors import Conflict
from statepool.live.settings import Scale, Settings, check_settings
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
    prior = settings.prior or {}
    curve = prior.get("curve")
    return Problem(
        catalogue.map, None, 0, Stream.from_seed(definition.key), has_contexts=bool(catalogue.contexts),
        window=settings.window, default=scale.learned(scale.default(settings).loss), bounds=scale.bounds,
        prior=_known_means(prior.get("states"), definition),
        curve=None if not curve else (np.array(curve["tau"], float), np.array(curve["weight"], float)),
    )  # fmt: skip


def _known_means(states: dict[str, Any] | None, definition: Definition) -> tuple[Floats, Floats] | None:
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
    states = tuple(_label(each) for each in msgspec.json.decode(row.states))
    scale = Scale(check_settings(msgspec.json.decode(first)), learner.scale_free)
    return Definition(row.id, row.name, learner, states, row.key, scale, row.created_at)


def _label(value: Any) -> Hashable:
    return tuple(value) if isinstance(value, list) else value


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
    connection: sa.Connection, tables: Tables, definition: Definition, revision: Revision, version: int, at: float,
    changes: Sequence[Change], contexts: Sequence[ContextRows], by: str | None,
) -> None:  # fmt: skip
    """One change: its settings, and the rows of the actions and contexts that it sets."""
    catalogue, pool = revision.catalogue, definition.id
    text = msgspec.json.encode(revision.settings).decode()
    row = {"pool": pool, "revision": revision.number, "version": version, "settings": text, "by": by, "at": at}
    connection.execute(sa.insert(tables.revisions).values(row))
    if changes:
        connection.execute(sa.insert(tables.actions), [
            {"pool": pool, "action": catalogue.number_of[change.label], "since": revision.number,
             "label": encoded(change.label), "category": None if change.category is None else encoded(change.category),
             "row": None if change.row is None else change.row.tobytes()}
            for change in changes
        ])  # fmt: skip
    if contexts:
        connection.execute(sa.insert(tables.contexts), [
            {"pool": pool, "context": catalogue.context_number[each.label], "since": revision.number,
             "label": encoded(each.label), "actions": each.actions.astype(np.int64).tobytes(),
             "rows": np.ascontiguousarray(each.rows).tobytes()}
            for each in contexts
        ])  # fmt: skip


def read_revision(connection: sa.Connection, tables: Tables, definition: Definition, number: int) -> Revision:
    """The settings and the catalogue of one revision."""
    r, a, c = tables.revisions.c, tables.actions.c, tables.contexts.c
    settings = connection.execute(
        sa.select(r.settings).where(r.pool == definition.id, r.revision == number)
    ).scalar_one_or_none()
    if settings is None:
        raise ValueError(f"revision: {number} of pool {definition.name!r} is not there")
    columns = sa.select(a.action, a.since, a.label, a.category, a.row)
    query = columns.where(a.pool == definition.id, a.since <= number).order_by(a.since, a.action)
    labels: list[Hashable] = []
    categories: list[Any] = []
    rows: list[bytes] = []
    active: list[bool] = []
    for action, since, label, category, row in connection.execute(query):
        if action == len(labels):
            labels.append(label)
            categories.append(None)
            rows.append(b"")
            active.append(False)
        active[action] = row is not None
        if row is not None:
            rows[action], categories[action] = row, category
        if since == 1:
            n_first = action + 1
    n_states = len(definition.states)
    table = np.frombuffer(b"".join(rows)).reshape(len(labels), n_states)
    tables_of: dict[Hashable, ContextRows] = {}
    query = sa.select(c.label, c.actions, c.rows).where(c.pool == definition.id, c.since <= number)
    for row in connection.execute(query.order_by(c.since, c.context)):
        label, numbers = decoded(row.label), np.frombuffer(row.actions, np.int64)
        tables_of[label] = ContextRows(label, numbers, np.frombuffer(row.rows).reshape(-1, n_states))
    catalogue = Catalogue(
        definition.states, tuple(map(decoded, labels)),  # type: ignore[arg-type]
        tuple(None if each is None else decoded(each) for each in categories), read_only(table.copy()),
        np.array(active), tuple(tables_of.values()), n_first,
    )  # fmt: skip
    return Revision(number, check_settings(msgspec.json.decode(settings)), catalogue)


def all_revisions(connection: sa.Connection, tables: Tables, definition: Definition) -> Iterator[tuple[int, int]]:
    """The number of every revision, and the version that was made with it."""
    r = tables.revisions.c
    rows = connection.execute(sa.select(r.revision, r.version).where(r.pool == definition.id).order_by(r.revision))
    for row in rows:
        yield row[0], row[1]


def check_same_learner(definition: Definition, learner: Learner | str) -> None:
    """Raise unless a pool has this learner."""
    given = make_learner(learner)
    if name_of(type(given)) is None or learner_text(given) != learner_text(definition.learner):
        known, other = short_name(definition.learner), short_name(given)
        raise Conflict(f"learner: pool {definition.name!r} has {known}, and was opened with {shown(other)}")


def holdout_rule(settings: str) -> tuple[float, Any]:
    """The holdout's share and action, of stored settings."""
    read = check_settings(msgspec.json.decode(settings))
    return read.holdout, read.holdout_action if read.holdout else None
