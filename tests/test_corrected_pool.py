"""CorrectedPool: as good as SelfTuned where the state tells all, not biased where it does not."""

import numpy as np
import pytest

import statepool as sp
from statepool.learners.parts.direct_effects import guess_effect


def regrets(learner, size, horizon, delay, seeds=6, family="spread"):
    made = [sp.families.direct(seed, family, size, horizon) for seed in range(seeds)]
    return np.array([sp.simulate(inst, learner, delay, 90_000 + seed).regret for seed, inst in enumerate(made)])


@pytest.mark.parametrize("family", ["spread", "band", "funnel"])
def test_nearly_all_of_the_pooled_gain_is_kept_without_effects(family):
    state, pooled, ours = (
        regrets(learner, 0.0, 10_000, 50, family=family).mean()
        for learner in (sp.StateEXP3(), sp.SelfTuned(), sp.CorrectedPool())
    )
    assert state - ours > 0.95 * (state - pooled)


@pytest.mark.parametrize("family", ["spread", "band"])
def test_regret_is_sublinear_with_effects_where_pooling_alone_is_linear(family):
    def growth(learner):
        short, long = (regrets(learner, 0.1, horizon, 10, 8, family).mean() for horizon in (5_000, 80_000))
        return np.log(long / short) / np.log(16)

    assert growth(sp.SelfTuned()) > 0.85
    assert growth(sp.CorrectedPool()) < 0.75


class Watched(sp.CorrectedPool):
    """Keeps the memory that it starts."""

    def start(self, problem):
        object.__setattr__(self, "memory", super().start(problem))
        return self.memory


def beliefs(size):
    """For eight instances: the belief that there are no effects, and how well those found follow the true ones."""
    found = []
    for seed in range(8):
        inst = sp.families.direct(seed, "band", size, 20_000)
        learner = Watched()
        sp.simulate(inst, learner, 10, seed)
        effects = learner.memory.effects
        seen = [(a, s) for a, s in np.ndindex(inst.P.shape) if effects.load[s, a] > 50]
        guesses = np.array([guess_effect(effects, s, a) for a, s in seen])
        found.append((effects.shares[0], guesses, np.array([inst.effects[cell] for cell in seen])))
    return found


def test_no_effects_are_believed_in_where_there_are_none():
    for none, guesses, _ in beliefs(0.0):
        assert none > 0.6
        assert np.abs(guesses).max(initial=0) < 0.02


def test_effects_are_found():
    found = beliefs(0.12)
    assert np.median([none for none, _, _ in found]) < 0.05
    assert np.median([np.corrcoef(guesses, true)[0, 1] for _, guesses, true in found]) > 0.6


def test_an_action_that_the_states_speak_against_is_found():
    """Two states, a direct effect on one action alone that turns the order of the actions round."""
    P = np.array([[0.9, 0.1], [0.7, 0.3], [0.6, 0.4], [0.5, 0.5]])
    effects = np.zeros((4, 2))
    effects[3] = -0.3
    inst = sp.Instance(P, np.tile([0.4, 0.6], (40_000, 1)), effects)
    ours, pooled = (sp.simulate(inst, learner, 10, seed=2).regret for learner in (sp.CorrectedPool(), sp.SelfTuned()))
    assert ours < 400
    assert pooled > 4_000


def test_actions_on_the_first_half_are_those_of_a_run_on_the_whole():
    inst = sp.families.direct(0, "funnel", 0.1, 4_000)
    whole = sp.simulate(inst, sp.CorrectedPool(), 50, seed=3)
    half = sp.simulate(sp.Instance(inst.P, inst.theta[:2_000], inst.effects), sp.CorrectedPool(), 50, seed=3)
    assert (whole.actions[:2_000] == half.actions).all()


def play_then_update(order):
    """Two hundred decisions, half of the outcomes in the given order, two hundred more, all the others, then a play."""
    rng = np.random.default_rng(1)
    P = sp.families.spread(0, horizon=1).P * 0.9 + 0.1 / 6
    player = sp.CorrectedPool().player(P)
    decisions, losses = [], (rng.random(400) < 0.5).astype(float)
    for half in (0, 200):
        for _ in range(200):
            decision = player.act(rng.random())
            player.observe(decision, int(rng.choice(6, p=P[decision.action])))
            decisions.append(decision)
        for i in order:
            player.update(decisions[half + i], losses[half + i])
    player.act(0.5)
    return player.play(), player.memory.values.copy()


def test_the_order_of_arrival_does_not_matter():
    forwards = play_then_update(range(200))
    shuffled = play_then_update(np.random.default_rng(2).permutation(200))
    for ours, theirs in zip(shuffled, forwards, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_relabelling_actions_commutes():
    inst = sp.families.direct(1, "band", 0.1, 300)
    order = np.r_[0, 1 + np.random.default_rng(0).permutation(inst.n_actions - 1)]  # the first of equals stays first
    players = [sp.CorrectedPool().player(P) for P in (inst.P, inst.P[order])]
    rng = np.random.default_rng(5)
    for _ in range(300):
        first, second = (player.act(0.3) for player in players)  # the leader, whose name alone may differ
        assert first.action == order[second.action]
        state, loss = int(rng.choice(inst.n_states, p=inst.P[first.action])), float(rng.random() < 0.5)
        for player, decision in zip(players, (first, second), strict=True):
            player.observe(decision, state)
            player.update(decision, loss)


def test_outcomes_that_never_arrive_do_not_stop_it():
    inst = sp.families.direct(0, "spread", 0.1, 8_000)
    delays = sp.delays.missing(0, 8_000, mean=50, share=0.5)
    ours, state = (
        sp.simulate(inst, learner, delays, seed=1).regret for learner in (sp.CorrectedPool(), sp.StateEXP3())
    )
    assert ours < state / 2
