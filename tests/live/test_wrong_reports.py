"""Reports that cannot be true: they teach nothing, they are counted, and what is honest teaches as before."""

import numpy as np
import pytest

import statepool as sp
from live.places import STATES
from statepool.live.events import Corrected, Decided, Expired, Refreshed, Resolved, Seen, decode
from statepool.live.requests import Observe, Resolve

ROWS = {"good": [0.9, 0.1, 0.0], "bad": [0.0, 0.5, 0.5]}
LOSSES = {"bounce": 0.1, "browse": 0.5, "buy": 0.9}
LEARNERS = [sp.StateEXP3(rate=0.3), sp.SelfTuned(), sp.NaiveSharing(rate=0.3), sp.PooledGreedy(exploration=0.1)]


def open_pool(place, learner, **given):
    rows = list(ROWS.values())
    return place.open(P=rows, actions=list(ROWS), states=STATES, learner=learner, seed=1, refresh=1, **given)


def play(pool, rounds, draws, wrong_at=()):
    """How often the good action was played; at some rounds the state reported is one that the action cannot lead to."""
    good = 0
    for t in range(rounds):
        made = pool.decide()
        row = ROWS[made.action]
        state = STATES[row.index(0.0)] if t in wrong_at else STATES[draws.choice(3, p=row)]
        pool.run([Observe(made.ticket, state), Resolve(made.ticket, 1.0 if t in wrong_at else LOSSES[state])])
        good += made.action == "good"
    return good


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_one_wrong_report_changes_nothing_that_was_learnt(sqlite, learner):
    pool = open_pool(sqlite, learner)
    play(pool, 150, np.random.default_rng(0))
    made = pool.decide()
    impossible = STATES[ROWS[made.action].index(0.0)]
    resumed = pool._fold().live_learner.dump()
    pool.run([Observe(made.ticket, impossible), Resolve(made.ticket, 1.0)])
    assert pool._fold().live_learner.dump() == resumed
    assert pool._fold().counts["impossible"] == 1
    other = pool.decide()
    pool.run([Resolve(other.ticket, 1.0), Observe(other.ticket, STATES[ROWS[other.action].index(0.0)])])
    assert pool._fold().counts["impossible"] == 2
    assert play(pool, 100, np.random.default_rng(1)) > 60


def test_state_exp3_goes_on_with_the_best_action(sqlite):
    """Late in a run, the states of the others are so rare under the play that one wrong charge would outweigh all."""
    pool = open_pool(sqlite, sp.StateEXP3(rate=0.3))
    play(pool, 300, np.random.default_rng(0))
    assert play(pool, 200, np.random.default_rng(1), wrong_at={0, 50}) > 180


def test_an_expiry_that_is_corrected_teaches_nothing_of_a_wrong_report(sqlite):
    now = [1e6]
    pool = open_pool(sqlite, sp.StateEXP3(rate=0.3), clock=lambda: now[0], expire_after=10.0, default_loss=1.0)
    made = pool.decide()
    pool.observe(made.ticket, STATES[ROWS[made.action].index(0.0)])
    before = pool._fold().live_learner.dump()
    now[0] += 100
    assert pool.expire() == 1
    pool.resolve(made.ticket, loss=0.0)
    assert pool._fold().live_learner.dump() == before


def test_what_was_possible_when_it_was_played_still_teaches(place):
    pool = open_pool(place, sp.StateEXP3(rate=0.3))
    made = [pool.decide() for _ in range(30)]
    late = next(each for each in made if each.action == "good")
    pool.reweight_action("good", [0.0, 0.5, 0.5])
    pool.observe(late.ticket, "bounce")
    pool.resolve(late.ticket, loss=1.0)
    pool_state = pool._fold()
    assert pool_state.counts["impossible"] == 0
    assert pool_state.live_learner.sums("charges", pool_state.decisions)[0, 0] > 0
    pool.close()
    with place.open() as again:  # from the snapshot and the catalogue's events
        wrong = next(each for each in again.decide_many(30) if each.action == "good")
        again.observe(wrong.ticket, "bounce")
        assert again._fold().counts["impossible"] == 1


def test_no_charge_is_larger_than_an_honest_report_allows(sqlite):
    """loss / q(s) ≤ loss / (x(a) P(s|a)): computed here from the table alone, for every lesson."""
    now, draws = [1e6], np.random.default_rng(4)
    given = {"clock": lambda: now[0], "expire_after": 10.0, "default_loss": 1.0, "holdout": 0.05}
    pool = open_pool(sqlite, sp.StateEXP3(rate=0.4), **given)
    for t in range(200):
        now[0] += 1
        made = pool.decide()
        pool.observe(made.ticket, STATES[draws.integers(3)])
        if t % 3:
            pool.resolve(made.ticket, loss=float(draws.random()))
        if t % 10 == 9:
            pool.expire()
    reach, made, charges, events = {}, {}, np.zeros(3), sqlite.events()
    for seq, *_, body, _ in events:
        event = decode(body)
        if isinstance(event, Refreshed):
            reach[seq] = np.frombuffer(event.record["q"])
        if isinstance(event, Decided):
            made[event.number] = event
        if isinstance(event, Seen | Resolved | Expired | Corrected) and None not in (event.state, event.loss):
            decided = made[event.number]
            possible = list(ROWS.values())[event.action][event.state]
            if possible:
                q = reach[event.version][event.state]
                assert q >= decided.probability * possible * (1 - 1e-12)
                charges[event.state] += event.loss / q
                if isinstance(event, Corrected):
                    charges[event.state] -= event.replaced / q
    np.testing.assert_allclose(pool._fold().live_learner.sums("charges", 0)[0], charges, rtol=1e-9)
