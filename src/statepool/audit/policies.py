"""Plays to ask about: a distribution over the log's actions, from a few words.

ACTION or fixed:ACTION     that action always
best                       the action that looks best through the states
uniform                    every action alike
logged                     the mix of actions in the log
sqlite:///pool.db#home     what a saved pool would play now (holdout and shares included)
"""

from collections.abc import Callable

import numpy as np

from statepool.audit.offpolicy import Evidence
from statepool.checks import Floats, unknown_name


def read_policy(text: str, seen: Evidence) -> Floats:
    """The play that the text names, one probability for each action of the log."""
    known: dict[str, Callable[[], Floats]] = {
        "best": lambda: _always(int(seen.effects.pooled.argmin()), len(actions)),
        "uniform": lambda: np.full(len(actions), 1 / len(actions)),
        "logged": lambda: seen.counts.k.sum(axis=1) / seen.counts.k.sum(),
    }
    actions = seen.counts.actions
    if "://" in text:
        return _play_of_pool(text, actions)
    label = text.removeprefix("fixed:")
    if label in actions:
        return _always(actions.index(label), len(actions))
    if text in known:
        return known[text]()
    raise ValueError(unknown_name("policy", text, [*known, *actions[:20]]))


def _always(place: int, n_actions: int) -> Floats:
    play = np.zeros(n_actions)
    play[place] = 1.0
    return play


def _play_of_pool(address: str, actions: tuple[str, ...]) -> Floats:
    try:
        from statepool.live.anchors import shown
        from statepool.live.pool import Pool
        from statepool.live.stores import open_store
    except ImportError as error:
        raise ValueError(f'policy: {error.name} is not installed, expected pip install "statepool[live]"') from None
    url, _, name = address.partition("#")
    store = open_store(url, create=False, to_read=True)
    try:
        names = store.pools()
        name = name or (names[0] if len(names) == 1 else "")
        if name not in names:
            held = ", ".join(names) or "no pool"
            raise ValueError(f"policy: {shown(url)} holds {held}, expected one of them after a #")
        shares = {str(label): share for label, share in Pool(store, name).status().distribution.items()}
    finally:
        store.close()
    missing = [label for label, share in shares.items() if label not in actions and share > 1e-6]
    if missing:
        raise ValueError(
            f"policy: the pool plays {missing[0]!r}, which the log never tried, expected actions of the log"
        )
    play = np.array([shares.get(action, 0.0) for action in actions])
    return play / play.sum()
