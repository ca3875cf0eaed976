"""A version is a value: whatever happens after it was made, it draws what it drew, as often as it says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import chisquare

import statepool as sp
from live.places import ACTIONS, STATES
from statepool.live.events import Refreshed
from statepool.live.pool_state import PoolState, Records
from statepool.live.replay import replay
from statepool.live.requests import Observe, Resolve
from statepool.live.versions import Part, Version, draw_from, spread, within
from statepool.live.writer import share_of

LEARNERS = [sp.StateEXP3(rate=0.3), sp.SelfTuned(), sp.SelfTuned(learn_map=True), sp.PooledGreedy(exploration=0.2)]
GRID = (np.arange(2_000) + 0.5) / 2_000


def teach(pool, rounds):
    for t in range(rounds):
        made = pool.decide()
        pool.run([Observe(made.ticket, STATES[1]), Resolve(made.ticket, t % 2)])


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_a_newer_version_changes_nothing_of_an_older_one(sqlite, learner):
    pool = sqlite.make(learner, refresh=1, holdout=0.1)
    teach(pool, 3)
    older = pool._journal.playing.version
    play, drawn = older.distribution.copy(), [older.draw(u) for u in GRID]
    teach(pool, 40)
    pool.add_action("d", [0.2, 0.2, 0.6])
    newer, _ = pool._fold().make_version()
    assert newer != older
    np.testing.assert_array_equal(older.distribution, play)
    assert [older.draw(u) for u in GRID] == drawn
    for array in (older.distribution, older.ids, *(part.sums for part in older.parts if part.sums is not None)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def check_warming_up_changes_nothing(place, learner, **given):
    """What an idempotent PUT does between the decisions of a version that is played for long."""
    pool = place.make(learner, **given)
    teach(pool, 30)
    play = pool._journal.playing.version.distribution.copy()
    made = []
    for _ in range(40):
        pool.warm_up()
        made += pool.decide_many(25)
        teach_late(pool, made[-25:])
    counts = np.array([sum(each.action == action for each in made) for action in ACTIONS])
    reached = play > 0
    assert not counts[~reached].any()
    assert chisquare(counts[reached], play[reached] * len(made)).pvalue > 1e-4, "drawn otherwise than recorded"
    found, _ = replay(pool._journal.store, place.name, redraw=True)
    assert not found.faults
    assert found.redrawn == found.decisions


def teach_late(pool, made):
    pool.run([Observe(each.ticket, STATES[2]) for each in made if each.action != "a"])
    pool.run([Resolve(each.ticket, 1.0) for each in made])


@pytest.mark.parametrize(
    ("learner", "given"),
    [(sp.StateEXP3(rate=0.3), {"refresh": 10**6}), (sp.SelfTuned(), {"refresh_seconds": 1e6})],
    ids=["exp3", "tuned"],
)
def test_warming_up_changes_nothing(sqlite, learner, given):
    check_warming_up_changes_nothing(sqlite, learner, **given)


def test_a_version_that_looks_into_moving_memory_is_caught(sqlite, monkeypatch):
    """The mutant of the release before: drawing goes by what is known now."""
    make_version = PoolState.make_version

    def moving(self):
        version, record = make_version(self)
        shared = self.__dict__.setdefault("shared", version.parts)
        if shared is not version.parts:
            for mine, part in zip(shared, version.parts, strict=True):
                mine.sums.setflags(write=True)
                mine.sums[:] = part.sums
        made = Version(version.ids, version.distribution.copy(), shared, 0.0, None)
        return made, record

    monkeypatch.setattr(PoolState, "make_version", moving)
    with pytest.raises(AssertionError):
        check_warming_up_changes_nothing(sqlite, sp.StateEXP3(rate=0.3), refresh=10**6)


def test_shares_that_leave_nothing_still_give_a_decision(place):
    shares = {"a": (0.0, 1.0), "b": (0.0, 0.0), "c": (0.0, 0.0)}
    pool = place.make(shares=shares)
    pool.retire_action("a")
    assert {each.probability for each in pool.decide_many(20)} == {0.5}
    pool.retire_action("b")
    made = pool.decide()
    assert (made.action, made.probability) == ("c", 1.0)


def test_a_probability_that_is_none_is_never_journaled(sqlite, monkeypatch):
    pool = sqlite.make()
    for wrong in (0.0, float("nan"), 1.5):
        drawn = (0, wrong, False)
        monkeypatch.setattr(Version, "draw", lambda self, uniform, drawn=drawn: sp.live.versions.Drawn(*drawn))
        with pytest.raises(RuntimeError, match="nothing of its batch is kept"):
            pool.decide()
    monkeypatch.undo()
    assert [kind for _, kind, *_ in sqlite.events() if kind == "decision"] == []


@pytest.mark.parametrize("play", [[np.nan, 1.0], [0.0, 0.0], [0.7, 0.7], [1.5, -0.5]])
def test_what_is_no_distribution_is_no_version(play):
    play = np.array(play)
    with pytest.raises(ValueError, match="sum to 1"):
        Version(np.arange(2), play, (spread(play),), 0.0, None)


weights = arrays(float, st.integers(1, 12), elements=st.sampled_from([0.0, 1e-300, 1e-17, 0.1, 0.5, 1.0]))


@settings(max_examples=200, deadline=None)
@given(weights.filter(lambda w: w.sum() > 0), st.floats(0, 1, exclude_max=True))
def test_nothing_of_probability_nothing_is_drawn(values, uniform):
    play = values / values.sum()
    assert play[draw_from(np.cumsum(play), uniform)] > 0
    assert play[draw_from(np.cumsum(play), 1 - 2**-53)] > 0


@settings(max_examples=200, deadline=None)
@given(weights.filter(lambda w: w.sum() > 0), st.data())
def test_whatever_the_shares_there_is_a_play(values, data):
    bounds = st.lists(st.sampled_from([0.0, 1e-320, 1e-9, 0.2, 1.0]), min_size=values.size, max_size=values.size)
    one, other = np.array(data.draw(bounds)), np.array(data.draw(bounds))
    fitted = within(values / values.sum(), np.minimum(one, other), np.maximum(one, other))
    assert (fitted >= 0).all()
    assert fitted.sum() == pytest.approx(1)


def test_parts_are_drawn_one_after_another():
    play = np.array([0.1 * 0.5 + 0.9 * 0.25, 0.9 * 0.75 + 0.05])
    parts = (Part(0.75, place=1), Part(1.0, place=0))
    version = Version(np.array([3, 7]), np.array([0.25, 0.75]), parts, 0.1, np.array([0.5, 0.5]))
    np.testing.assert_allclose(version.distribution, play)
    drawn = [version.draw(u) for u in GRID]
    assert sum(each.is_holdout for each in drawn) == 200
    for action, probability in zip((3, 7), version.distribution, strict=True):
        assert sum(each.action == action for each in drawn) == pytest.approx(2_000 * probability, abs=1)


@pytest.mark.parametrize(("said", "versions"), [({}, range(30, 50)), ({"refresh": 1}, range(200, 201))])
def test_versions_have_a_budget_in_bytes_unless_it_is_said_when(sqlite, monkeypatch, said, versions):
    """A fifth of what decisions cost, after a start that is free; `refresh` is obeyed whatever it costs."""
    monkeypatch.setattr("statepool.live.writer.FREE_BYTES", 2_000)
    pool = sqlite.make(sp.SelfTuned(), **said)
    for number in range(200):
        made = pool.decide()
        pool.observe(made.ticket, "browse")
        pool.resolve(made.ticket, loss=number % 2)
    sizes = [(kind, len(body)) for _, kind, *_, body, _ in sqlite.events()]
    spent = sum(size + 70 for kind, size in sizes if kind == "refresh")
    rest = sum(size + 70 for kind, size in sizes if kind in ("decision", "state", "outcome"))
    assert sum(kind == "refresh" for kind, _ in sizes) in versions
    assert said or spent <= 0.2 * rest + 2_000


@pytest.mark.parametrize("n_states", [2, 300, 6_000])
def test_a_version_of_any_size_is_made_again_and_costs_at_most_what_decisions_cost(sqlite, monkeypatch, n_states):
    """Four are free, whatever they cost; then the large ones are as dear together as what they are learnt from."""
    monkeypatch.setattr("statepool.live.writer.FREE_BYTES", 0)
    states, rows = [f"s{n}" for n in range(n_states)], np.full((2, n_states), 1 / n_states)
    learner = sp.StateEXP3(rate=0.1)
    pool = sqlite.open(P=rows, actions=["a", "b"], states=states, learner=learner, seed=1)
    played, rounds = pool._journal.played, 0
    while played.versions_made < 6:
        for made in pool.decide_many(200):
            pool.run([Observe(made.ticket, "s1"), Resolve(made.ticket, loss=1.0)])
            rounds += 1
    sizes = [(kind, len(body) + 70) for _, kind, *_, body, _ in sqlite.events()]
    rest = sum(size for kind, size in sizes if kind in ("decision", "state", "outcome"))
    cost = max(size for kind, size in sizes if kind == "refresh")
    assert sum(size for kind, size in sizes if kind == "refresh") <= share_of(cost) * rest + 4 * cost
    assert share_of(cost) == {2: 0.2, 300: pytest.approx(0.2 * (cost / 1_000) ** 0.5), 6_000: 1.0}[n_states]


def test_records_in_memory_have_a_budget_in_bytes():
    found = []
    records = Records(lambda seq: found.append(seq) or Refreshed(0, 0, {"q": b"x" * 400}))
    records.BYTES = 1_000
    for version in range(10):
        records.keep(version, {"q": b"x" * 400})
    assert records._bytes <= 1_000
    records.find(9), records.find(8), records.find(1)
    assert found == [1]
    assert records._bytes == sum(len(each["q"]) for each in records._kept.values()) <= 1_000
