"""A pool as JSON describes it, made or found in a store."""

from typing import Any

from statepool.learners import find
from statepool.learners.learner import Learner
from statepool.live.pool import Pool
from statepool.live.service.bodies import LearnerBody, PoolBody
from statepool.live.settings import Settings
from statepool.live.stores.store import Store


def make_pool(store: Store, name: str, asked: PoolBody) -> Pool:
    """Continue the pool of that name, or make it; see `Pool.open`."""
    return Pool.open(
        store, name, asked.P, asked.actions, asked.states, make_learner(asked.learner), asked.seed,
        contexts=asked.contexts, categories=asked.categories, update=asked.update, **known_settings(asked.settings),
    )  # fmt: skip


def make_learner(asked: LearnerBody | str | None) -> Learner | None:
    """A learner by its name and options; None stays None, for the default."""
    if asked is None:
        return None
    name, options = (asked, {}) if isinstance(asked, str) else (asked.name, asked.options)
    try:
        return find(name)(**options)
    except TypeError as error:
        raise ValueError(f"learner: {name!r} does not take these options ({error})") from None


def known_settings(given: dict[str, Any]) -> dict[str, Any]:
    """Names that are no settings must not become other arguments of the pool's."""
    unknown = sorted(set(given) - set(Settings.__struct_fields__))
    if unknown:
        known = ", ".join(Settings.__struct_fields__)
        raise ValueError(f"settings: {unknown[0]!r} is not known, expected some of {known}")
    return given
