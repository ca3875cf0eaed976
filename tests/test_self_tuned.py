"""SelfTuned: it knows no horizon and no delay, forgets by play and not by arrival, and keeps what it promises."""

import numpy as np
import pytest

import statepool as sp

FUNNEL = sp.families.funnel(0, horizon=4_000)


@pytest.mark.parametrize("learn_map", [False, True])
def test_actions_on_the_first_half_are_those_of_a_run_on_the_whole(learn_map):
    learner = sp.SelfTuned(learn_map)
    whole = sp.simulate(FUNNEL, learner, 50, seed=3)
    half = sp.simulate(sp.Instance(FUNNEL.P, FUNNEL.theta[:2_000]), learner, 50, seed=3)
    assert (whole.actions[:2_000] == half.actions).all()


def play_then_update(order, learn_map):
    """Two hundred decisions, then every outcome in the given order, then a play."""
    rng = np.random.default_rng(1)
    P = sp.families.spread(0, horizon=1).P * 0.9 + 0.1 / 6
    player = sp.SelfTuned(learn_map).player(P)
    decisions = []
    for _ in range(200):
        decision = player.act(rng.random())
        player.observe(decision, int(rng.choice(6, p=P[decision.action])))
        decisions.append(decision)
    losses = (rng.random(200) < 0.5).astype(float)
    for i in order:
        player.update(decisions[i], losses[i])
    player.act(0.5)
    return player.play()


@pytest.mark.parametrize("learn_map", [False, True])
def test_the_order_of_arrival_does_not_matter(learn_map):
    forwards = play_then_update(range(200), learn_map)
    shuffled = play_then_update(np.random.default_rng(2).permutation(200), learn_map)
    np.testing.assert_allclose(shuffled, forwards, atol=1e-9)


def test_an_unknown_map_is_not_read():
    rng = np.random.default_rng(0)
    maps = [rng.dirichlet(np.ones(4), size=10) for _ in range(2)]
    players = [sp.SelfTuned(learn_map=True).player(P) for P in maps]
    for _ in range(100):
        u, state, loss = rng.random(), int(rng.integers(4)), float(rng.random() < 0.5)
        decisions = [player.act(u) for player in players]
        assert decisions[0].action == decisions[1].action
        for player, decision in zip(players, decisions, strict=True):
            player.observe(decision, state)
            player.update(decision, loss)


def test_it_beats_state_exp3_tuned_in_hindsight_on_the_funnel():
    for delay, hindsight in ((10, 27.0), (50, 95.9), (200, 199.7)):
        regrets = [
            sp.simulate(sp.families.funnel(seed), sp.SelfTuned(), delay, seed + 80_000).regret for seed in range(8)
        ]
        assert np.mean(regrets) < hindsight


def test_it_follows_a_switch_and_is_not_locked_out():
    for family, settings in (("switching", {}), ("locked", {"kind": "private-states"})):
        instance = sp.families.find(family)(seed=1, horizon=8_000, **settings)
        ours = sp.simulate(instance, sp.SelfTuned(), 50, seed=5).regret
        assert ours < sp.simulate(instance, sp.StateEXP3(), 50, seed=5).regret / 2


def test_outcomes_that_never_arrive_do_not_stop_it():
    delays = sp.delays.missing(0, 4_000, mean=50, share=0.5)
    run = sp.simulate(FUNNEL, sp.SelfTuned(), delays, seed=1)
    assert run.regret < sp.simulate(FUNNEL, sp.StateEXP3(), delays, seed=1).regret / 5
