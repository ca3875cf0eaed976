"""Alarms ring when an assumption fails, and are quiet when it is only luck."""

import numpy as np
import pytest

from live.dashboard.watching import app_of, get, open_pool, play
from statepool.live.dashboard.alarms import alarms_of, contradictions, drifts, threshold
from statepool.live.dashboard.lessons import Lessons

STATES = ["left", "click"]


def lessons_of(losses, actions, states, age=5):
    lessons = Lessons()
    for play_, (action, state, loss) in enumerate(zip(actions, states, losses, strict=True)):
        lessons.add(play_, age, int(action), int(state), float(loss))
    return lessons


def draw(seed, n=4000, n_actions=20):
    rng = np.random.default_rng(seed)
    actions = np.minimum(rng.geometric(0.2, n) - 1, n_actions - 1)
    states = (rng.random(n) < 0.2 + 0.6 * actions / n_actions).astype(int)
    return rng, actions, states


def names(lessons, oddities=None):
    return [alarm.kind for alarm in alarms_of(lessons, oddities or {}, lambda number: f"a{number}", STATES)]


@pytest.mark.parametrize("seed", range(20))
def test_quiet_when_states_tell_all(seed):
    rng, actions, states = draw(seed)
    assert names(lessons_of(rng.random(actions.size) < np.array([0.8, 0.3])[states], actions, states)) == []


def test_an_action_at_odds_with_its_states_rings_alone():
    rng, actions, states = draw(1)
    means = np.array([0.7, 0.2])[states] + 0.25 * (actions == 2)
    numbers, z, gaps = contradictions(lessons_of(rng.random(actions.size) < means, actions, states))
    assert numbers.tolist() == [2]
    assert z[0] > 5
    assert gaps[0] == pytest.approx(0.25, abs=0.06)


def test_drift_is_not_taken_for_a_contradiction():
    """A late favourite meets other state means than the others did: only the time differs."""
    rng, actions, states = draw(2, n=8000)
    late = np.arange(8000) / 8000
    actions = np.where(rng.random(8000) < late, 7, actions)
    losses = rng.random(8000) < np.array([0.8, 0.2])[states] - 0.15 * late * (states == 0)
    assert "contradiction" not in names(lessons_of(losses, actions, states))


def test_drift_rings_for_the_state_that_moved():
    rng, actions, states = draw(3)
    late = np.arange(actions.size) > 3000
    losses = rng.random(actions.size) < np.where(states == 1, 0.3 + 0.3 * late, 0.8)
    [(state, before, now, z)] = drifts(lessons_of(losses, actions, states), 2)
    assert state == 1
    assert (before, now) == (pytest.approx(0.3, abs=0.05), pytest.approx(0.6, abs=0.06))
    assert z > 5


def test_young_plays_whose_slow_outcomes_are_to_come_are_left_out():
    """Wins come fast, losses slowly: of the latest decisions only wins are known. That is no drift."""
    rng = np.random.default_rng(4)
    lessons = Lessons()
    arrivals = []
    for play_ in range(3000):
        loss = float(rng.random() < 0.5)
        age = 900 if loss else 1
        arrivals.append((play_ + age, play_, age, loss))
    for when, play_, age, loss in sorted(arrivals):
        if when < 3000:
            lessons.add(play_, age, 0, 0, loss)
    assert drifts(lessons, 1) == []


def test_impossible_states_ring_with_their_labels(tmp_path):
    pool = open_pool(tmp_path, P=[[1.0, 0.0], [0.5, 0.5]], actions=["<b>bold</b>", "plain"], states=STATES)
    made = play(pool, 40, seen=lambda action: "click" if action == "<b>bold</b>" else "left")
    count = sum(each.action == "<b>bold</b>" for each in made)
    page = get(app_of(pool), "/").text
    assert "Impossible state" in page
    assert f"“click” was seen {count} times after “&lt;b&gt;bold&lt;/b&gt;”" in page


def test_nothing_rings_on_nothing():
    assert names(Lessons()) == []
    assert names(lessons_of([1.0], [0], [0])) == []
    assert names(lessons_of([1.0] * 100, [0] * 100, [0] * 100)) == []


def test_the_bar_rises_with_the_number_looked_at():
    assert threshold(0) == threshold(1) < threshold(100) < threshold(10_000)
