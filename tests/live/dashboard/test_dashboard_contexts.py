"""What is played by context, and the gain over ignoring it: counted by hand, and right as often as it says."""

import numpy as np
import pytest

from live.dashboard.watching import app_of, get, open_pool
from statepool.live import Pool
from statepool.live.dashboard.contexts import ContextTallies
from statepool.live.dashboard.gain import compare, state_means
from statepool.live.dashboard.page import PageCache
from statepool.live.events import Decided
from statepool.live.status import Listing

ACTIONS, STATES = ["a", "b", "c"], ["left", "cart"]
P = {"new": [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], "known": [[0.1, 0.9], [0.8, 0.2], [0.6, 0.4]]}


def open_contexts(folder, P=P, **settings):
    return Pool.open(
        f"sqlite:///{folder}/home.db", "home", P=P, actions=ACTIONS, states=STATES, contexts=list(P), seed=1, **settings
    )


def play(pool, n, seed=0):
    """n visits of both contexts in turns; a cart loses nothing, whoever leaves all."""
    rng = np.random.default_rng(seed)
    for _ in range(n // 10):
        contexts = [list(P)[t % 2] for t in range(10)]
        for context, made in zip(contexts, pool.decide_many(10, contexts=contexts), strict=True):
            state = STATES[int(rng.random() < P[context][ACTIONS.index(made.action)][1])]
            pool.observe(made.ticket, state)
            pool.resolve(made.ticket, loss=float(state == "left"))


def test_a_panel_says_what_each_context_plays_and_gains(tmp_path):
    pool = open_contexts(tmp_path)
    play(pool, 400)
    panel, rows = PageCache(pool).model().contexts, list(pool.rows())
    assert [(each.label, each.share, each.outcomes) for each in panel.rows] == [("new", 0.5, 200), ("known", 0.5, 200)]
    for each, best in zip(panel.rows, ("b", "a"), strict=True):
        mine = [row for row in rows if row["context"] == each.label]
        label, share = each.actions[0]
        assert label == best
        assert share == np.mean([row["action"] == best for row in mine])
        assert each.loss == pytest.approx(np.mean([row["loss"] for row in mine]))
    played = np.mean([P[row["context"]][ACTIONS.index(row["action"])] for row in rows], axis=0)
    alone = np.mean([P["new"], P["known"]], axis=0)
    for_all = alone[alone[:, 0].argmin()]
    # In a state all outcomes are alike, but two that are added, of mean a half.
    n = np.array([sum(row["state"] == state for row in rows) for state in STATES])
    means = (n * [1.0, 0.0] + 1.0) / (n + 2)
    assert panel.gain.value == pytest.approx((for_all - played) @ means, abs=0.01)  # ripe ones only
    assert 0.2 < panel.gain.low < panel.gain.value < panel.gain.high < 0.4
    page = get(app_of(pool), "/").text
    assert "What is played by context" in page
    assert f"{panel.gain.value:+.3f}" in page


def test_before_there_is_enough_nothing_is_told(tmp_path):
    pool = open_contexts(tmp_path)
    assert "cannot tell yet" in get(app_of(pool), "/").text
    play(pool, 20)
    panel = PageCache(pool).model().contexts
    assert panel.gain is None
    assert len(panel.rows) == 2


def test_a_pool_without_contexts_has_no_panel(tmp_path):
    pool = open_pool(tmp_path)
    assert PageCache(pool).model().contexts is None
    assert "by context" not in get(app_of(pool), "/").text


def test_the_holdout_is_not_what_the_learner_plays(tmp_path):
    pool = open_contexts(tmp_path, holdout=0.5, holdout_action="c")
    play(pool, 200)
    is_holdout = sum(row["is_holdout"] for row in pool.rows())
    panel = PageCache(pool).model().contexts
    assert 50 < is_holdout < 150
    assert sum(each.outcomes for each in panel.rows) == 200 - is_holdout


def test_rows_that_requests_brought_are_theirs(tmp_path):
    """Such actions may be in no catalogue: their numbers are below 0, and no row of it is theirs."""
    pool = open_pool(tmp_path, P=[[0.5, 0.5], [0.5, 0.5]])
    for number in range(40):
        made = pool.decide(candidates={"poster": [1.0, 0.0], "offer": [1.0, 0.0]})
        pool.observe(made.ticket, "s1" if number == 7 else "s0")
        pool.resolve(made.ticket, loss=1.0)
    model = PageCache(pool).model()
    assert [(state.label, state.expected) for state in model.states] == [("s0", 1.0), ("s1", 0.0)]
    [alarm] = [alarm for alarm in model.alarms if alarm.kind == "impossible"]
    assert "a candidate of its own" in alarm.text


def tallies_of(tables, counts):
    """Of each context: so many decisions, by so many of each action."""
    tallies, number = ContextTallies(2), 0
    for context, of_actions in counts.items():
        numbers, rows = tables[context]
        for place, count in enumerate(of_actions):
            for _ in range(count):
                tallies.decide(
                    Decided(0, f"{number}", number, 1, int(numbers[place]), 0.5, False, context=context), rows[place]
                )
                number += 1
    return tallies


def listing_of(tables, n_actions=3):
    arrays = {context: (np.array(numbers), np.array(rows)) for context, (numbers, rows) in tables.items()}
    return Listing(tuple(range(n_actions)), np.full((n_actions, 2), 0.5), np.arange(n_actions), arrays, n_actions)


def test_one_order_for_all_goes_by_what_may_be_played():
    """Action 0 is best, and is not for the second context: there the order's next is played."""
    listing = listing_of({"x": ([0, 1], [[0.0, 1.0], [0.5, 0.5]]), "y": ([1, 2], [[0.5, 0.5], [1.0, 0.0]])})
    tallies = tallies_of(listing.tables, {"x": [0, 10], "y": [0, 30]})
    known = state_means(np.array([0] * 998 + [1] * 998), np.array([1.0] * 998 + [0.0] * 998), 2)
    gain = compare(tallies, known, listing)
    left = (10 * 0.5 + 30 * 1.0) / 40
    instead = (10 * 0.0 + 30 * 0.5) / 40
    assert gain.value == pytest.approx((instead - left) * 0.998)
    assert gain.instead == 1


def test_the_interval_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    is_holdout, above = [], []
    for _ in range(400):
        rows = {context: rng.dirichlet(np.ones(4), 3) for context in "xyz"}
        theta, counts = (
            rng.uniform(0, 1, 4),
            {context: rng.multinomial(40, rng.dirichlet(np.ones(3))) for context in "xyz"},
        )
        tables = {context: (np.arange(3), P) for context, P in rows.items()}
        listing = Listing((0, 1, 2), np.full((3, 4), 0.25), np.arange(3), tables, 3)
        tallies, states = ContextTallies(4), []
        for context, of_actions in counts.items():
            for action in np.repeat(np.arange(3), of_actions):
                number = len(states)
                tallies.decide(
                    Decided(0, "", number, 1, int(action), 0.5, False, context=context), rows[context][action]
                )
                states.append(rng.choice(4, p=rows[context][action]))
        losses = (rng.random(len(states)) < theta[states]).astype(float)
        found = compare(tallies, state_means(np.array(states), losses, 4), listing)
        shares = np.sum([rows[context] for context in "xyz"], axis=0) / 3
        played = np.sum([counts[context] @ rows[context] for context in "xyz"], axis=0) / 120
        truth = (shares @ theta).min() - played @ theta
        is_holdout.append(found.low <= truth <= found.high)
        above.append(truth < found.low)
    assert np.mean(is_holdout) > 0.92
    assert np.mean(above) < 0.04, "it errs to the small side"
