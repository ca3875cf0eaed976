"""Requests that bring rows: contexts and candidates."""

import math

import numpy as np
import pytest

import statepool as sp
from live.places import ACTIONS, STATES, P, play
from statepool.live.errors import Conflict
from statepool.live.pool import read_version

MAPS = {"new": P, "old": {"a": [0.2, 0.3, 0.5], "c": [0.6, 0.2, 0.2]}}
OFFER = {"a": [0.2, 0.3, 0.5], "poster": [1.0, 0.0, 0.0], "banner": [0.0, 0.5, 0.5], "mail": [0.1, 0.8, 0.1]}
LEARNERS = [sp.StateEXP3(rate=0.3), sp.PooledGreedy(exploration=0.2), sp.PooledThompson(samples=4)]


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_a_context_is_answered_with_its_own_rows(place, learner):
    pool = place.make(learner, P=MAPS, update_every=2)
    for n in range(30):
        context = "old" if n % 2 else "new"
        made = pool.decide(f"{n}", context=context)
        assert made.action in (ACTIONS if context == "new" else ["a", "c"])
        pool.observe(f"{n}", STATES[n % 3])
        pool.resolve(f"{n}", n % 2)
    assert pool.find("1")["context"] == "old"
    with pytest.raises(Conflict, match="context"):
        pool.decide("1", context="new")
    assert set(pool.policy("old")) == {"a", "c"}
    found = pool.replay()
    assert (found.fault, found.redrawn) == (None, 30)


def test_what_is_stored_with_candidates_is_of_their_rows_whatever_other_threads_draw(place):
    pool = place.make("self-tuned")
    play(pool, 60)
    pool.learn()
    saved = []
    for others in ([], [dict(zip("abcd", OFFER.values(), strict=True)), dict.fromkeys("abcd", (0, 0, 1))]):
        version = read_version(pool.database, place.name)
        offer = version.offer(None, OFFER)
        drawn = version.distribution(offer, version.round)
        for other in others:
            version.distribution(version.offer(None, other), version.round)
        saved.append(version.saved_with(offer, drawn, 0))
    assert saved[0] == saved[1]


def test_contexts_that_a_pool_does_not_have_are_refused(place):
    pool = place.make(P=MAPS)
    with pytest.raises(ValueError, match="'else' is not known, expected one of 'new', 'old'"):
        pool.decide(context="else")
    with pytest.raises(ValueError, match="context: is missing"):
        pool.decide()
    plain = place.make(name="plain")
    with pytest.raises(ValueError, match="opened without contexts"):
        plain.decide(context="new")


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("maps", [P, MAPS], ids=["plain", "contexts"])
def test_candidates_are_drawn_learnt_and_replayed(place, kept, maps):
    pool = place.make(P=maps, keep_candidates=kept, update_every=1)
    for n in range(20):
        made = pool.decide(f"{n}", candidates=OFFER)
        assert made.action in OFFER
        assert pool.decide(f"{n}", candidates=OFFER) == made
        pool.observe(f"{n}", "browse")
        pool.resolve(f"{n}", 1.0)
    with pytest.raises(Conflict, match="candidates"):
        pool.decide("1", candidates={"a": [1, 0, 0]})
    assert pool.find("3")["action"] in OFFER
    found = pool.replay()
    assert (found.fault, found.redrawn) == (None, 20 if kept else 0)


def test_more_candidates_than_actions(place):
    rows = np.random.default_rng(0).dirichlet(np.ones(3), 500)
    offer = {f"item {n}": row for n, row in enumerate(rows)}
    pool = place.make(keep_candidates=True, update_every=1)
    for n in range(5):
        pool.decide(f"{n}", candidates=offer)
        pool.observe(f"{n}", "bounce")
        pool.resolve(f"{n}", 1.0)
    assert pool.replay().ok


@pytest.mark.parametrize(
    ("candidates", "words"),
    [({}, "candidates"), ([1], "candidates"), ({"a": [0.5, 0.5]}, "shape"), ({"a": [0.5, 0.6, 0]}, "sums to 1.1")],
)
def test_bad_candidates_are_refused(sqlite, candidates, words):
    with pytest.raises(ValueError, match=words):
        sqlite.make().decide(candidates=candidates)


def test_what_was_learnt_counts_for_candidates(place):
    pool = place.make(update_every=1)
    for n in range(30):
        pool.decide(f"{n}")
        pool.observe(f"{n}", STATES[n % 3])
        pool.resolve(f"{n}", 1.0 if n % 3 == 0 else 0.0)
    made = [pool.decide(candidates={"good": [0, 0.5, 0.5], "bad": [1, 0, 0]}) for _ in range(10)]
    assert {each.action for each in made} == {"good"}
    assert all(math.isclose(each.probability, 1, abs_tol=0.1) for each in made)


def test_contexts_can_be_updated(place):
    pool = place.make(P=MAPS, update_every=1)
    pool.decide("1", context="old")
    pool.observe("1", "buy")
    pool.resolve("1", 1.0)
    more = MAPS | {"third": P[::-1]}
    with pytest.raises(Conflict):
        place.make(P=more)
    pool = place.make(P=more, update=True)
    assert pool.catalogue.contexts == ("new", "old", "third")
    pool.decide("2", context="third")
    pool.add_action("d", [0, 0, 1])
    assert "d" in pool.policy("old")
    pool.retire_action("b")
    pool = place.make(P=MAPS | {"fourth": P}, actions=["a", "c", "d"], update=True)
    pool.decide("3", context="fourth")
    again = place.open()
    assert again.catalogue.contexts == ("new", "old", "third", "fourth")
    np.testing.assert_array_equal(again.catalogue.map, pool.catalogue.map)
    assert set(again.policy("fourth")) == {"a", "c", "d"}
    assert pool.replay().ok


def learnt(pool):
    """{(context, action): numbers} of what the learner knows of pairs, and of actions alone (context None)."""
    memory, size = pool._version._stepper_for(1).memory, len(pool.catalogue.labels)
    if hasattr(memory, "cells"):
        known = {}
        for place in np.flatnonzero(memory.cells.keys):
            above, action = divmod(int(memory.cells.keys[place]) - 1, size)
            known[above - 1 if above else None, action] = memory.cells.table[place].copy()
        return known
    numbers = np.stack([memory.counts[0], memory.sums, memory.squares, memory.played]).reshape(4, -1, size)
    return {(context, action): numbers[:, context, action] for context, action in np.ndindex(numbers.shape[1:])}


@pytest.mark.parametrize("window", [None, 1_000.0])
@pytest.mark.parametrize("learner", ["self-tuned", "action-thompson", "action-ucb", "action-greedy"])
def test_what_was_learnt_of_a_pair_stays_with_it_when_an_action_is_added(sqlite, clock, learner, window):
    pool = sqlite.make(learner, P={"new": P, "old": P[::-1]}, window=window, update_every=10**6, clock=clock)
    for n in range(60):
        clock.now = n
        context = "old" if n % 3 else "new"
        action = pool.decide(f"{n}", context=context, uniform=(n * 0.618) % 1).action
        pool.observe(f"{n}", STATES[n % 3])
        pool.resolve(f"{n}", (ACTIONS.index(action) + n % 3) / 4)
    pool.decide("waiting", context="old")
    pool.learn()
    before = learnt(pool)
    pool.add_action("d", [0, 0.5, 0.5])
    pool.add_action("e", [0.5, 0.5, 0])
    after = learnt(pool)
    for pair, numbers in before.items():
        np.testing.assert_allclose(after[pair], numbers, rtol=1e-12, err_msg=str(pair))
    assert all(action >= 3 and not np.any(after[context, action]) for context, action in set(after) - set(before))
    pool.observe("waiting", "buy")
    pool.resolve("waiting", 1.0)
    pool.learn()
    played = 1, ACTIONS.index(pool.find("waiting")["action"])
    assert (learnt(pool)[played] != after.get(played, 0.0)).any()
    changed = {pair for pair, numbers in learnt(pool).items() if (numbers != after.get(pair, 0.0)).any()}
    assert changed - {(None, played[1])} == {played}
    assert pool.replay().ok


def test_an_erased_decision_among_candidates_of_a_context_replays(place):
    pool = place.make(P=MAPS, keep_candidates=True, update_every=1)
    for n in range(5):
        pool.decide(f"{n}", context="new", candidates=OFFER)
        pool.observe(f"{n}", "browse")
        pool.erase(f"{n}")
    assert pool.replay().fault is None
