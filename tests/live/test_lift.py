"""The lift: its interval against a plain search and exact enumeration, and which decisions are compared."""

from itertools import product
from math import exp, log
from typing import NamedTuple

import numpy as np
import pytest

import statepool as sp
from live.places import ACTIONS, STATES, P, fold_of
from statepool.live.lift import LEVEL, Bet, Tally, lift, make_tilts
from statepool.live.replay import replay
from statepool.live.service.summary import summarise


class Arm(NamedTuple):
    count: int
    mean: float


def bet(share, counts, totals, means):
    """E as the module's docstring states it, term by term."""
    tilts, weights = make_tilts(share)
    return sum(
        weight
        * exp(
            sum(
                tilt * total - count * log(1 + mean * (exp(tilt) - 1))
                for tilt, count, total, mean in zip(pair, counts, totals, means, strict=True)
            )
        )
        for pair, weight in zip(tilts.T, weights, strict=True)
    )


@pytest.mark.parametrize("share", [1e-9, 0.01, 0.3, 0.5, 0.9])
def test_the_weights_are_a_distribution(share):
    tilts, weights = make_tilts(share)
    assert tilts.shape == (2, weights.size)
    assert weights.min() > 0
    assert 0.9 < weights.sum() <= 1
    assert np.abs(tilts).max() <= 0.5


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_the_bet_is_fair_at_most(share):
    """By enumeration of all losses: E has mean 1 at most, for means that drift and losses between 0 and 1."""
    values = (0.0, 0.25, 1.0)
    chances = [
        (0.2, 0.3, 0.5),
        (0.9, 0.1, 0.0),
        (0.0, 0.0, 1.0),
        (0.1, 0.8, 0.1),
        (0.6, 0.0, 0.4),
        (1 / 3, 1 / 3, 1 / 3),
    ]
    is_holdout = [False, True, False, False, True, True]
    expected = [sum(v * p for v, p in zip(values, each, strict=True)) for each in chances]
    counts = [is_holdout.count(arm) for arm in (False, True)]
    means = [np.mean([m for m, h in zip(expected, is_holdout, strict=True) if h == arm]) for arm in (False, True)]
    total = 0.0
    for drawn in product(range(3), repeat=len(is_holdout)):
        chance = np.prod([each[i] for each, i in zip(chances, drawn, strict=True)])
        totals = [sum(values[i] for i, h in zip(drawn, is_holdout, strict=True) if h == arm) for arm in (False, True)]
        total += float(chance) * bet(share, counts, totals, means) if chance else 0.0
    assert 0.5 < total <= 1


@pytest.mark.parametrize(
    ("share", "counts", "totals"),
    [
        (0.5, (40, 40), (20.0, 25.0)),
        (0.1, (90, 10), (90.0, 10.0)),
        (0.1, (300, 30), (0.0, 30.0)),
        (0.3, (70, 31), (33.5, 30.25)),
        (0.05, (200, 1), (190.0, 0.0)),
        (0.9, (12, 130), (3.0, 120.0)),
    ],
)
def test_the_interval_is_what_is_not_refuted(share, counts, totals):
    """Beside a search of a grid of pairs of means, with nothing of the search that `lift` makes."""
    grid = np.linspace(0, 1, 401)
    tilts, weights = make_tilts(share)
    logs = np.log1p(grid[:, None, None] * np.expm1(tilts.T))
    learner, holdout = (totals[arm] * tilts[arm] - counts[arm] * logs[:, :, arm] for arm in range(2))
    kept = np.exp(learner + np.log(weights)) @ np.exp(holdout).T < exp(LEVEL)
    differences = (grid[None, :] - grid[:, None])[kept]
    found = lift(*(Arm(n, total / n) for n, total in zip(counts, totals, strict=True)), share)
    assert found.value == pytest.approx(totals[1] / counts[1] - totals[0] / counts[0], abs=1e-15)
    step = 1 / 400
    assert differences.min() - 2 * step <= found.low <= differences.min() + 1e-9
    assert differences.max() - 1e-9 <= found.high <= differences.max() + 2 * step
    assert -1 <= found.low <= found.value <= found.high <= 1


def test_the_interval_narrows_with_every_size_of_log():
    widths = [lift(Arm(n, 0.5), Arm(n // 9, 0.5), 0.1) for n in (10**3, 10**5, 10**7, 10**9)]
    for narrow, wide in zip(widths[1:], widths, strict=False):
        assert (narrow.high - narrow.low) < 0.15 * (wide.high - wide.low)


def test_whatever_the_tallies_the_ends_are_where_the_bet_reaches_its_level(monkeypatch):
    """Sizes, rates and shares of every order, and no search that takes long."""
    asked, against = [], Bet.against
    monkeypatch.setattr(Bet, "against", lambda self, means: asked.append(means) or against(self, means))
    rng = np.random.default_rng(5)
    for _ in range(30):
        learner, holdout = (Arm(int(10 ** rng.uniform(0, 9)), float(rng.random() ** rng.uniform(0, 20))) for _ in "ab")
        share = float(rng.choice([0.9 * 10 ** -rng.uniform(0, 8), 0.5, 0.9]))
        asked.clear()
        found = lift(learner, holdout, share)
        assert len(asked) < 5_000
        assert -1 <= found.low <= found.value <= found.high <= 1
        for end in (end for end in (found.low, found.high) if abs(end) < 1):
            assert Bet(learner, holdout, share).against_difference(end)[0] == pytest.approx(LEVEL, abs=1e-3)


def test_without_outcomes_of_both_there_is_no_lift():
    assert lift(Tally(), Arm(5, 0.5), 0.5) is None
    assert lift(Arm(5, 0.5), Tally(), 0.5) is None


def play(pool, n, lost=lambda made: 1.0, start=0):
    made = pool.decide_many([f"t{start + i}" for i in range(n)])
    pool.resolve_many([(each.ticket, lost(each)) for each in made])
    return made


def test_an_arm_without_variance_is_not_taken_for_certain(sqlite):
    """One reward in a hundred, and by chance none in the holdout's fifty: that says nothing."""
    pool = sqlite.make(holdout=0.05)
    made = pool.decide_many(1000)
    learner, is_holdout = ([each for each in made if each.is_holdout == arm] for arm in (False, True))
    assert len(is_holdout) > 30
    pool.resolve_many([(each.ticket, 1.0) for each in is_holdout])
    pool.resolve_many([(each.ticket, float(i >= 10)) for i, each in enumerate(learner)])
    found = summarise(pool).lift
    assert found.value == pytest.approx(10 / len(learner))
    assert found.low < 0 < found.high


CHANGES = {
    "another share": ({"holdout": 0.5, "holdout_action": "a"}, lambda pool: pool.change(holdout=0.4)),
    "another action": ({"holdout": 0.5, "holdout_action": "a"}, lambda pool: pool.change(holdout_action="b")),
    "retired": ({"holdout": 0.5, "holdout_action": "a"}, lambda pool: pool.retire_action("a")),
    "first holdout": ({}, lambda pool: pool.change(holdout=0.4)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_holdout_starts_a_new_comparison(place, change):
    settings, make_change = CHANGES[change]
    pool = place.make(expire_after=60, default_loss=1.0, **settings)
    play(pool, 50)
    expired = pool.decide_many(5)
    assert pool.expire(now=4e9) == 5
    late = pool.decide_many(20)
    make_change(pool)
    assert [tally.count for tally in pool._fold().tallies.values()] == [0, 0]
    pool.resolve_many([(each.ticket, 0.25) for each in (*late, *expired)])
    assert [tally.count for tally in pool._fold().tallies.values()] == [0, 0], "decided before, so not compared"
    made = play(pool, 50, lambda made: 0.75 if made.is_holdout else 0.5, start=50)
    check_tallies(pool._fold(), made)
    check_tallies(fold_of(place.events()), made)
    pool.snapshot()
    check_tallies(place.open()._fold(), made)
    assert replay(place.store(), place.name, redraw=True)[0].faults == []


def check_tallies(pool_state, made):
    is_holdout = sum(each.is_holdout for each in made)
    assert [tally.count for tally in pool_state.tallies.values()] == [len(made) - is_holdout, is_holdout]
    assert pool_state.tallies["learner"].mean == 0.5
    assert pool_state.tallies["holdout"].mean == 0.75


def test_an_action_brought_back_starts_a_new_comparison(sqlite):
    pool = sqlite.make(holdout=0.5, holdout_action="a")
    pool.retire_action("a")
    play(pool, 30)
    pool.add_action("a", P[0])
    assert [tally.count for tally in pool._fold().tallies.values()] == [0, 0]


def test_other_changes_go_on_with_the_comparison(sqlite):
    pool = sqlite.make(holdout=0.5, holdout_action="a")
    play(pool, 30)
    pool.change(shares={"b": (0.1, 0.4)})
    pool.retire_action("c")
    pool.add_action("d", [0.2, 0.3, 0.5])
    play(pool, 30, start=30)
    assert sum(tally.count for tally in pool._fold().tallies.values()) == 60


def test_a_pool_without_holdout_keeps_its_losses(sqlite):
    pool = sqlite.make()
    play(pool, 30)
    pool.change(holdout_action="b")
    assert pool._fold().tallies["learner"].count == 30


def test_outcomes_of_the_holdout_teach(sqlite):
    pool = sqlite.open(P=P, actions=ACTIONS, states=STATES, learner=sp.StateEXP3(rate=0.5), seed=5, holdout=0.9)
    before = pool._fold().live_learner.dump()
    made = next(each for each in pool.decide_many(50) if each.is_holdout)
    pool.observe(made.ticket, "browse")
    pool.resolve(made.ticket, 1.0)
    assert pool._fold().lessons > 0
    assert pool._fold().live_learner.dump() != before
