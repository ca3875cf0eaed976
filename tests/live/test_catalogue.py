"""Actions come and go, with outcomes in flight; what was learnt stays, and what was never seen is not free."""

import shutil

import numpy as np
import pytest

import statepool as sp
from live.places import ACTIONS, STATES, P, SQLitePlace, fold_of
from statepool.live.events import Added, Retired
from statepool.live.live_learner import LiveLearner
from statepool.live.requests import Observe, Resolve

ROWS = dict(zip(ACTIONS, P, strict=True)) | {"d": np.array([0.0, 0.1, 0.9]), "e": np.array([0.5, 0.5, 0.0])}
LEARNERS = [sp.StateEXP3(rate=0.05), sp.SelfTuned(), sp.SelfTuned(learn_map=True), sp.NaiveSharing(rate=0.05)]
LEARNERS += [sp.PooledGreedy(exploration=0.1), sp.BestState(), sp.Uniform()]


def play(pool, rows, states, means, rounds, draws, at_once=100):
    """Rounds with outcomes that come a batch later; how often each action was played."""
    counts, waiting, sums = {}, [], {label: np.cumsum(row) for label, row in rows.items()}
    for _ in range(rounds // at_once):
        made = pool.decide_many(at_once)
        seen = [min(int(np.searchsorted(sums[each.action], draws.random())), len(states) - 1) for each in made]
        requests = [Observe(each.ticket, states[s]) for each, s in zip(made, seen, strict=True)]
        answers = pool.run(requests + waiting)
        assert not [answer for answer in answers if isinstance(answer, Exception)]
        waiting = [Resolve(each.ticket, float(draws.random() < means[s])) for each, s in zip(made, seen, strict=True)]
        for each in made:
            counts[each.action] = counts.get(each.action, 0) + 1
    pool.run(waiting)
    return counts


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_add_retire_and_reweight_with_outcomes_in_flight(place, learner):
    pool = place.make(learner)
    flying = pool.decide_many(30)
    pool.observe_many([(each.ticket, STATES[n % 3]) for n, each in enumerate(flying[:20])])
    pool.resolve_many([(each.ticket, 0.5) for each in flying[:10]])
    pool.add_action("d", ROWS["d"])
    pool.retire_action("a")
    pool.reweight_action("b", [0.2, 0.5, 0.3])
    later = pool.decide_many(60)
    assert {each.action for each in later} <= {"b", "c", "d"}
    pool.retire_action("d")
    pool.observe_many([(each.ticket, STATES[n % 3]) for n, each in enumerate(flying[20:] + later)])
    pool.resolve_many([(each.ticket, 0.25) for each in flying[10:] + later])
    assert {each.action for each in pool.decide_many(30)} <= {"b", "c"}
    assert pool._fold().counts | {"impossible": 0} == {
        "state": 90, "outcome": 90, "expiry": 0, "correction": 0, "impossible": 0
    }  # fmt: skip
    assert fold_of(place.events()).dump() == pool._fold().dump() == place.open()._fold().dump()


def test_a_newcomer_starts_with_all_that_was_learnt_about_its_states(sqlite):
    pool = sqlite.make(sp.StateEXP3(rate=0.05))
    play(pool, ROWS, STATES, [0.9, 0.5, 0.1], 2_000, np.random.default_rng(0))
    charges = pool._fold().live_learner.sums("charges", 0)[0]
    pool.add_action("d", ROWS["d"])
    pool.decide()
    totals = pool._fold().live_learner.memory.weights.totals[0]
    np.testing.assert_allclose(totals, np.vstack([P, ROWS["d"]]) @ charges, rtol=1e-12)
    share = pool._journal.playing.version.distribution
    assert share[3] == share.max() > 0.9, "it leads to the best state, and nobody has played it yet"


def test_repeating_a_change_is_harmless(place):
    pool = place.make()
    for _ in range(2):
        pool.add_action("d", ROWS["d"])
    for _ in range(2):
        pool.reweight_action("d", ROWS["e"])
    with pytest.raises(sp.live.Conflict, match="another row"):
        pool.add_action("d", ROWS["d"])
    for _ in range(2):
        pool.retire_action("d")
    with pytest.raises(ValueError, match="'d' is retired, expected add_action"):
        pool.reweight_action("d", ROWS["d"])
    assert [kind for _, kind, *_ in place.events()] == ["catalogue"] * 4


def test_an_action_added_again_keeps_its_number_and_may_change_its_row(place):
    pool = place.make()
    old = pool.decide("old", uniform=0.1)
    pool.retire_action(old.action)
    pool.add_action(old.action, ROWS["e"])
    assert pool.decide("new", uniform=0.1).action == old.action
    assert [row["action"] for row in pool.rows()] == [old.action] * 2
    assert pool._fold().catalogue.row(ACTIONS.index(old.action)).tolist() == ROWS["e"].tolist()


def test_the_last_action_cannot_be_retired(place):
    pool = place.make()
    pool.retire_action("a")
    pool.retire_action("b")
    with pytest.raises(ValueError, match="'c' is the last one"):
        pool.retire_action("c")
    assert pool.decide().action == "c"


@pytest.mark.parametrize("role", ["leader", "anchor"])
def test_self_tuned_goes_on_when_its_leader_or_anchor_is_retired(sqlite, role):
    pool = sqlite.make(sp.SelfTuned())
    draws = np.random.default_rng(1)
    for rounds in (600, 200, 100):
        play(pool, ROWS, STATES, [0.9, 0.5, 0.1], rounds, draws)
        live_learner = pool._fold().live_learner
        started_on = int(np.argmin(live_learner.memory.anchor @ live_learner.memory.maps.columns[0]))
        place = {"leader": live_learner.memory.clock["leader"], "anchor": started_on}[role]
        label = pool._fold().catalogue.actions[live_learner.ids[place]]
        if pool._fold().catalogue.n_active == 1:
            break
        if pool._fold().catalogue.is_active(label):
            pool.retire_action(label)
        played = play(pool, ROWS, STATES, [0.9, 0.5, 0.1], 100, draws)
        assert label not in played
        assert fold_of(sqlite.events()).dump() == pool._fold().dump()
    assert pool._fold().catalogue.n_active < 3


def test_safe_starts_anew_on_the_best_that_is_left(sqlite):
    pool = sqlite.make(sp.SelfTuned())
    draws = np.random.default_rng(2)
    play(pool, ROWS, STATES, [0.9, 0.5, 0.1], 1_500, draws)
    assert pool._fold().live_learner.memory.clock["leader"] == 1
    pool.retire_action("b")
    played = play(pool, ROWS, STATES, [0.9, 0.5, 0.1], 1_000, draws)
    assert played["c"] > 900


def test_a_newcomer_of_a_learnt_map_starts_from_its_category(sqlite):
    rows = {"a": np.array([0.9, 0.1, 0.0]), "b": np.array([0.8, 0.2, 0.0]), "c": np.array([0.0, 0.2, 0.8])}
    learner = sp.SelfTuned(learn_map=True)
    pool = sqlite.open(actions=ACTIONS, states=STATES, learner=learner, categories=["cheap", "cheap", "dear"], seed=1)
    play(pool, rows, STATES, [0.5, 0.5, 0.5], 1_500, np.random.default_rng(3))
    for label, category in (("like a", "cheap"), ("like c", "dear"), ("unlike", None)):
        pool.add_action(label, category=category)
    cheap, dear, unlike = (pool._fold().catalogue.row(number) for number in (3, 4, 5))
    seen = pool._fold().live_learner.by_action("pairs", 0)
    rounds = np.sum([seen.get(number, [0, 0, 0]) for number in (0, 1)], axis=0)
    assert abs(cheap - rounds / rounds.sum()).max() < 0.01
    assert dear[2] > 0.7
    assert unlike.tolist() == [1 / 3] * 3
    pool.observe(pool.decide(uniform=0.0).ticket, "buy")
    before = sqlite.events()
    pool.add_action("like a", category="cheap")  # again, though the category has moved on
    assert sqlite.events() == before


NEXT = 10_000
KNOWN = np.c_[np.random.default_rng(4).dirichlet([4, 4], 6), np.zeros(6)]
NEWCOMER = np.array([0.05, 0.05, 0.9])
MEANS = [0.25, 0.35, 1.0]
BAD_ROWS = dict(enumerate(KNOWN)) | {"new": NEWCOMER}


def live_a_past(place, learner, rounds):
    """A pool that has never reached the third state."""
    place.name = "home"
    catalogue = {"P": KNOWN, "actions": range(6), "states": range(3), "seed": 1}
    with place.open(**catalogue, learner=learner, refresh=250) as pool:
        play(pool, BAD_ROWS, range(3), MEANS, rounds, np.random.default_rng(5), at_once=500)


def newcomers_share(past, folder):
    """How much of what follows goes to an action with loss .93, beside others with about .3."""
    folder.mkdir()
    place = SQLitePlace(shutil.copy(past.path, folder))
    with place.open("home") as pool:
        pool.add_action("new", NEWCOMER)
        played = play(pool, BAD_ROWS, range(3), MEANS, NEXT, np.random.default_rng(6))
    return played.get("new", 0) / NEXT


def test_a_bad_newcomer_on_states_that_nobody_reached_is_not_free(sqlite, tmp_path, monkeypatch):
    live_a_past(sqlite, sp.StateEXP3(rate=0.01), 20_000)
    assert newcomers_share(sqlite, tmp_path / "charged") < 0.03
    monkeypatch.setattr(LiveLearner, "handicap", lambda self, row, decisions: 0.0)
    assert newcomers_share(sqlite, tmp_path / "a plain P G") > 0.5, "the test above cannot fail"


def test_a_bad_newcomer_is_not_free_for_self_tuned(sqlite, tmp_path):
    live_a_past(sqlite, sp.SelfTuned(), 2_500)
    assert newcomers_share(sqlite, tmp_path / "charged") < 0.03


def test_swaps_cost_the_same_however_many_there_were(sqlite):
    """The arrays of a catalogue are copied a few dozen times in ten thousand swaps, not at each."""
    catalogue = sqlite.make()._fold().catalogue
    copies, rows = 0, catalogue._rows
    for number in range(10_000):
        catalogue.apply(Added(0, f"new {number}", None, P[0].tobytes(), 0.5, number), number)
        catalogue.apply(Retired(0, f"new {number - 1}" if number else "a"), number)
        copies, rows = copies + (rows is not catalogue._rows), catalogue._rows
    assert copies < 100
    assert len(catalogue.actions) == 10_003
    assert catalogue.n_active == 3 == len(catalogue.active()[1])
    assert catalogue.is_active("new 9999")
    assert np.array_equal(catalogue.row(catalogue.action("new 7")), P[0])
