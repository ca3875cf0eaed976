"""Actions come, go and change their rows while decisions are made."""

import numpy as np
import pytest

import statepool as sp
from live.places import ACTIONS, play
from statepool.live.errors import Conflict

LEARNERS = [sp.StateEXP3(rate=0.3), sp.PooledGreedy(exploration=0.2), sp.ActionThompson()]


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_actions_come_and_go_and_replay_agrees(place, learner):
    pool = place.make(learner, update_every=3)
    play(pool, 10)
    waiting = pool.decide("waiting")
    pool.add_action("d", [0.0, 0.5, 0.5], category="shelf")
    play(pool, 10)
    pool.retire_action("b")
    made = pool.decide_many(50)
    assert "b" not in {each.action for each in made}
    assert "b" not in pool.policy()
    pool.reweight_action("a", [0.1, 0.1, 0.8])
    pool.observe("waiting", "browse")
    pool.resolve("waiting", 1.0)
    pool.add_action("b", [0.2, 0.2, 0.6])
    play(pool, 10)
    assert pool.find("waiting")["action"] == waiting.action
    assert pool.status().revision == 5
    again = place.open()
    assert again.catalogue.labels == ("a", "b", "c", "d")
    assert again.catalogue.categories[3] == "shelf"
    assert again.policy() == pool.policy()
    assert pool.replay().ok


def test_a_new_action_starts_from_what_its_states_have_taught(place):
    pool = place.make(update_every=1)
    play(pool, 40, loss=lambda n: float(n % 3 == 0))
    pool.add_action("good", [0.0, 0.5, 0.5])
    pool.add_action("bad", [1.0, 0.0, 0.0])
    policy = pool.policy()
    assert policy["good"] > 0.3 > 0.01 > policy["bad"]


def test_another_process_plays_a_change_at_once(place):
    pool, other = place.make(), place.make()
    other.decide()
    pool.retire_action("a")
    pool.add_action("z", [0, 0, 1])
    actions = {other.decide().action for _ in range(40)} | {each.action for each in other.decide_many(40)}
    assert actions == {"b", "c", "z"}
    assert {row["action"] for row in other.rows()} >= actions


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda pool: pool.add_action("a", [1, 0, 0]), Conflict, "another row"),
        (lambda pool: pool.add_action("d"), ValueError, "row: of 'd' is missing"),
        (lambda pool: pool.add_action("d", [1, 0]), ValueError, "shape"),
        (lambda pool: pool.add_action("d", [0.5, 0.6, 0]), ValueError, "sums to 1.1"),
        (lambda pool: pool.retire_action("z"), ValueError, "'z' is not known"),
        (lambda pool: pool.reweight_action("z", [1, 0, 0]), ValueError, "'z' is not known"),
        (lambda pool: pool.change(holdout=3), ValueError, "holdout"),
        (lambda pool: pool.change(colour=3), ValueError, "'colour' is not known"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(place, call, kind, words):
    pool = place.make()
    with pytest.raises(kind, match=words):
        call(pool)
    assert pool.status().revision == 1
    assert place.open().catalogue.labels == tuple(ACTIONS)


def test_repeating_a_change_is_harmless(place):
    pool = place.make()
    for _ in range(2):
        pool.add_action("d", [0, 0, 1])
        pool.retire_action("a")
        pool.change(holdout=0.25)
    assert pool.status().revision == 4


def test_the_last_action_stays(place):
    pool = place.make()
    pool.retire_action("a")
    pool.retire_action("b")
    with pytest.raises(ValueError, match="last active one"):
        pool.retire_action("c")


def test_actions_are_drawn_by_their_cumulative_probability_and_never_one_of_probability_zero():
    from statepool.live.learning import Distribution

    rng = np.random.default_rng(0)
    policy = rng.random(100_000) * (rng.random(100_000) < 0.5)
    policy /= policy.sum()
    uniforms = np.append(rng.random(2_000), [0.0, 1 - 2**-53])
    distribution = Distribution(policy, 0.0, policy)
    choices = np.array([distribution.draw(each)[0] for each in uniforms.tolist()])
    expected = np.minimum(np.searchsorted(np.cumsum(policy), uniforms), np.flatnonzero(policy)[-1])
    assert (policy[choices] > 0).all()
    assert (choices == expected).mean() > 0.999


def test_only_the_map_of_a_learner_that_learns_it_may_be_left_out(place):
    with pytest.raises(ValueError, match="P: is missing"):
        place.make(P=None)
