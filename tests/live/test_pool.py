"""What a pool promises: durable when a call returns, repeatable by ticket, refused with another value."""

import math
import time

import numpy as np
import pytest

import statepool as sp
from live.places import ACTIONS, STATES, P, play
from statepool.live.errors import Conflict, NoSuchPool, UnknownTicket


def test_a_decision_and_its_reports_are_there_when_the_pool_is_opened_again(place):
    pool = place.make()
    made = pool.decide()
    pool.observe(made.ticket, "buy")
    pool.resolve(made.ticket, loss=0.25)
    pool.close()
    row = place.open().find(made.ticket)
    assert (row["action"], row["probability"]) == (made.action, made.probability)
    assert (row["state"], row["loss"]) == ("buy", 0.25)


def test_the_same_ticket_gets_the_same_answer(place):
    pool = place.make(update_every=1)
    first = pool.decide("mine")
    play(pool, 5)
    assert pool.decide("mine") == first
    assert place.open().decide("mine") == first
    assert place.open().decide_many(["mine", "other", "mine"])[::2] == [first, first]


@pytest.mark.parametrize("change", ["state", "loss"])
def test_another_value_for_the_same_ticket_is_refused_and_changes_nothing(place, change):
    pool = place.make()
    pool.decide("mine", uniform=0.5)
    pool.observe("mine", "buy")
    pool.resolve("mine", loss=0.5)
    before = pool.find("mine")
    calls = {
        "state": lambda: pool.observe("mine", "browse"),
        "loss": lambda: pool.resolve("mine", loss=0.75),
    }
    with pytest.raises(Conflict, match="mine"):
        calls[change]()
    pool.observe("mine", "buy")
    pool.resolve("mine", loss=0.5)
    assert pool.find("mine") == before


def test_reports_of_unknown_tickets_are_refused(place):
    pool = place.make()
    for call in (lambda: pool.observe("x", "buy"), lambda: pool.resolve("x", 0.5), lambda: pool.find("x")):
        with pytest.raises(UnknownTicket, match="'x' is not known"):
            call()


def test_an_outcome_may_come_before_its_state(place):
    pool = place.make(update_every=1)
    made = pool.decide()
    pool.resolve(made.ticket, loss=1.0)
    assert pool.status().round == 0
    before = pool.policy()
    pool.observe(made.ticket, "browse")
    assert pool.status().round == 1
    assert pool.policy() != before, "the outcome was learnt with its state"
    assert pool.replay().ok


def test_several_decisions_are_made_all_or_none(place):
    pool = place.make()
    pool.decide("taken", uniform=0.5)
    assert len(pool.decide_many(7)) == 7
    with pytest.raises(ValueError, match="ticket"):
        pool.decide_many(["new", ""])
    with pytest.raises(UnknownTicket):
        pool.find("new")


def test_of_several_reports_those_that_can_be_kept_are_and_the_first_refusal_is_raised(place):
    pool = place.make()
    pool.decide_many(["1", "2"])
    with pytest.raises(UnknownTicket, match="'x'"):
        pool.observe_many([("1", "buy"), ("x", "buy"), ("2", "browse")])
    with pytest.raises(UnknownTicket, match="'y'"):
        pool.resolve_many({"y": 0.5, "1": 0.25})
    pool.resolve_many([("2", 0.5)])
    assert [(row["state"], row["loss"]) for row in pool.rows()] == [("buy", 0.25), ("browse", 0.5)]


def test_a_reward_is_stored_as_reported_and_learnt_on_the_scale_of_its_bounds(place):
    pool = place.make(reward_bounds=(0, 100))
    pool.decide("1")
    pool.resolve("1", reward=25.0)
    row = pool.find("1")
    assert (row["reward"], row["loss"]) == (25.0, 0.75)
    with pytest.raises(Conflict, match=r"reward 25\.0"):
        pool.resolve("1", reward=26.0)


def test_a_reward_outside_the_bounds_is_kept_counted_and_learnt_as_the_nearest_bound(place):
    pool = place.make(reward_bounds=(0, 100), update_every=1)
    for ticket, reward in (("1", 250.0), ("2", -3.0), ("3", 50.0)):
        pool.decide(ticket)
        pool.observe(ticket, "browse")
        pool.resolve(ticket, reward=reward)
    assert [(row["reward"], row["loss"]) for row in pool.rows()] == [(250.0, 0.0), (-3.0, 1.0), (50.0, 0.5)]
    assert pool.status().counts["out_of_bounds"] == 2
    policy = pool.policy()
    pool.change(reward_bounds=(0, 500))
    assert pool.policy() == policy, "changing the bounds does not change what was learnt"
    assert pool.status().counts["out_of_bounds"] == 2
    assert pool.replay().ok


def test_a_state_that_the_policy_cannot_lead_to_is_kept_and_not_learnt(place):
    pool = place.make(P=[[1, 0, 0], [0.5, 0.5, 0], [0.5, 0.5, 0]], update_every=1)
    made = pool.decide()
    pool.observe(made.ticket, "buy")
    pool.resolve(made.ticket, 1.0)
    assert pool.find(made.ticket)["state"] == "buy"
    assert pool.status().counts["impossible"] == 1
    assert pool.status().round == 0
    assert len(set(pool.policy().values())) == 1
    assert pool.replay().ok


def test_probabilities_stay_within_their_bounds(place):
    pool = place.make(probability_bounds={"a": (0.2, 1), "c": (0, 0.1)}, update_every=1)
    play(pool, 30, loss=lambda n: 1.0, state=lambda n: "bounce")
    policy = pool.policy()
    assert policy["a"] >= 0.2 - 1e-12
    assert policy["c"] <= 0.1 + 1e-12
    assert math.isclose(sum(policy.values()), 1)
    assert pool.replay().ok


def test_bounds_that_leave_no_policy_are_refused(place):
    with pytest.raises(ValueError, match=r"lowest ones and the holdout sum to 1\.2"):
        place.make(probability_bounds={"a": (0.6, 1), "b": (0.6, 1)})
    with pytest.raises(ValueError, match="the holdout alone gives 'a'"):
        place.make(probability_bounds={"a": (0, 0.1)}, holdout=0.5, holdout_action="a")
    with pytest.raises(NoSuchPool):
        place.open()


def test_a_fixed_action_is_played_with_probability_one_and_the_holdout_goes_on(place):
    pool = place.make(fixed_action="b", holdout=0.5)
    made = pool.decide_many(60)
    assert {each.action for each in made if not each.is_holdout} == {"b"}
    assert {each.action for each in made if each.is_holdout} == set(ACTIONS)
    assert math.isclose(pool.policy()["b"], 0.5 + 0.5 / 3)
    pool.change(fixed_action=None)
    assert pool.policy()["b"] < 0.5
    assert pool.replay().ok


def test_decisions_of_the_holdout_are_not_learnt_but_counted(place):
    pool = place.make(holdout=0.5, holdout_action="a", update_every=1)
    pool.decide("held", uniform=0.1)
    pool.observe("held", "bounce")
    pool.resolve("held", 1.0)
    status = pool.status()
    assert len(set(pool.policy().values())) == 2, "the holdout's action has its share, the others are alike"
    assert (status.round, status.losses["holdout"].count, status.losses["learner"].count) == (0, 1, 0)
    assert pool.find("held")["is_holdout"]
    assert [row["ticket"] for row in pool.rows(after=1)] == ["held"]
    assert pool.replay().ok


def test_opening_with_something_else_is_refused_unless_it_is_an_update(place):
    place.make(holdout=0.1)
    for given in ({"learner": sp.StateEXP3(rate=0.2)}, {"holdout": 0.2}, {"P": P[:, ::-1].copy()}):
        with pytest.raises(Conflict):
            place.make(**{"holdout": 0.1} | given)
    pool = place.make(holdout=0.2, P=P[:, ::-1].copy(), update=True)
    assert pool.settings.holdout == 0.2
    np.testing.assert_array_equal(pool.catalogue.rows, P[:, ::-1])
    place.make(holdout=0.2)  # the catalogue that it began with
    assert pool.replay().ok


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"P": [[0.5, 0.6, 0]] * 3}, "row 0 sums to 1.1"),
        ({"actions": ["a", "a", "b"]}, "'a' is there twice"),
        ({"holdout": 2}, "holdout"),
        ({"window": 0}, "window"),
        ({"windows": 3}, "'windows' is not known"),
        ({"reward_bounds": (1, 0)}, "the lowest before the highest"),
        ({"default_reward": 3}, "no reward_bounds"),
        ({"learner": "zimmert-seldin"}, "can only be simulated"),
        ({"learner": "nobody"}, "not known"),
        ({"update_every": 0}, "update_every"),
        ({"prior": {"means": {}}}, "prior"),
        ({"prior": {"states": {"buy": [1]}}}, "'buy'"),
        ({"fixed_action": "z"}, "'z'"),
        ({"name": "a/b"}, "name"),
    ],
)
def test_bad_input_is_refused_in_one_sentence_and_nothing_is_written(sqlite, given, words):
    with pytest.raises(ValueError, match=words) as refused:
        sqlite.make(**given)
    assert "\n" not in str(refused.value)
    with sp.live.Database(sqlite.url) as database:
        assert database.pool_names() == []


@pytest.mark.parametrize("url", ["mysql://x", "sqlite://", "sqlite:///no/folder/x.db", 7, "nonsense"])
def test_other_urls_are_refused(url):
    with pytest.raises(ValueError, match="url:"):
        sp.Pool.open(url, "home", P, ACTIONS, STATES, sp.StateEXP3(rate=0.1))


@pytest.mark.parametrize("value", [float("nan"), "1", None, True, float("inf")])
def test_outcomes_that_are_no_numbers_are_refused(sqlite, value):
    pool = sqlite.make()
    pool.decide("1")
    with pytest.raises(ValueError, match="loss"):
        pool.resolve("1", value)
    assert pool.find("1")["loss"] is None


def test_labels_of_every_kind_come_back_as_they_were(place):
    labels = ["tea", 3, 2.5, True, ("shelf", 4), "naïve ✓"]
    pool = place.open(P=np.full((6, 6), 1 / 6), actions=labels, states=labels, learner=sp.Uniform())
    made = pool.decide_many(40)
    assert {each.action for each in made} <= set(labels)
    for each, state in zip(made, labels, strict=False):
        pool.observe(each.ticket, state)
    again = place.open()
    assert [row["state"] for row in again.rows()][:6] == labels
    assert [type(row["state"]) for row in again.rows()][:6] == [type(label) for label in labels]


def test_a_pool_prints_what_it_is(place):
    pool = place.make()
    play(pool, 1)
    pool.decide()
    shown = f"Pool({place.name!r}: 3 actions, 3 states, StateEXP3(rate=0.3), 2 decisions, 1 waiting)"
    assert repr(pool) == shown
    assert pool.status().pending == 1


def test_it_learns_by_itself_when_a_version_is_due(place):
    pool = place.make()
    play(pool, 20)
    for _ in range(100):
        if pool.status().version > 1:
            break
        time.sleep(0.05)
    assert pool.status().version > 1


def test_a_known_ticket_may_be_asked_for_twice_in_one_call(place):
    pool = place.make()
    first = pool.decide("mine")
    assert pool.decide_many(["mine", "mine"]) == [first, first]


def test_of_decisions_with_a_conflict_none_is_stored(place):
    pool = place.make(P={"new": P, "old": P})
    pool.decide("mine", context="new")
    with pytest.raises(Conflict, match="mine"):
        pool.decide_many(["other", "mine"], contexts=["old", "old"])
    with pytest.raises(UnknownTicket):
        pool.find("other")
