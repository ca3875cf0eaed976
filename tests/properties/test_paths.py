"""What holds on every path, whatever was drawn and lost: the drift lemma, relabelling."""

from math import e

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import statepool as sp
import textbook
from statepool.learners import Played, Problem
from statepool.learners.contract import make_tables, rows_at
from statepool.learners.stepper import Stepper
from statepool.rates import default_rate, largest_covered_rate
from statepool.stream import Stream

sizes = {"seed": st.integers(0, 10**6), "K": st.integers(2, 7), "S": st.integers(1, 5)}


@given(**sizes, delay=st.integers(1, 6), greed=st.sampled_from([0.0, 0.5, 1.0]))
@settings(max_examples=60)
def test_drift_lemma_and_identity_on_hostile_paths(seed, K, S, delay, greed):
    """Actions and states picked to hurt (the rarest ones), losses anywhere in [0, 1], at the largest covered rate."""
    rng = np.random.default_rng(seed)
    P, _ = textbook.random_instance(seed, K, S, T=1)
    rate = largest_covered_rate(delay)
    assert rate == pytest.approx(1 / (e * (delay + 1)), rel=1e-15)
    player = sp.StateEXP3(rate=rate).player(P, delay=delay)
    waiting, policies = [], []
    for t in range(50):
        if t > delay:
            decision, loss = waiting.pop(0)
            then, before = policies[decision.round], player.memory.losses[0].copy()
            player.update(decision, loss)
            c_hat = P @ (player.memory.losses[0] - before)
            np.testing.assert_allclose(then @ c_hat, loss, atol=1e-9)
            assert (c_hat >= 0).all()
            assert policies[-1] @ c_hat <= e + 1e-9
        rarest = int(np.argmin(policies[-1])) if policies else 0
        x = policies[-1] if policies else np.full(K, 1 / K)
        hurt = rng.random() < greed and x[rarest] > 1e-6  # no float can tell the identity after an estimate of 1e12
        u = x[:rarest].sum() + x[rarest] / 2 if hurt else rng.random()
        decision = player.act(u)
        policies.append(player.policy())
        row = P[decision.action]
        state = int(np.argmin(np.where(row > 0, row, 2))) if rng.random() < greed else textbook.draw(row, rng.random())
        player.observe(decision, state)
        waiting.append((decision, 1.0 if rng.random() < 0.7 else rng.random()))
    policies = np.array(policies)
    assert (policies[1:] <= (1 + 1 / delay) * policies[:-1] * (1 + 1e-12)).all()
    assert (policies[delay:] <= e * policies[:-delay] * (1 + 1e-12)).all()
    assert (policies[:-1] != policies[1:]).any() or K == 1 or S == 1


def test_the_lemma_needs_its_cap():
    """Far above the covered rate the bound fails, so the test above can fail."""
    P, theta = textbook.random_instance(0, K=4, S=4, T=200)
    run = sp.simulate(sp.Instance(P, theta), sp.StateEXP3(rate=3.0), 3, seed=0)
    policies = run.policies()
    assert (policies[1:] / policies[:-1]).max() > 1 + 1 / 3


@pytest.mark.parametrize(("copies", "delay"), [(1, 0), (1, 50), (51, 50), (4, 10), (1, 7)])
def test_default_rate(copies, delay):
    expected = np.sqrt(2 * np.log(40) / ((8 + delay // copies) * 10_000 / copies))
    assert default_rate(40, 8, 10_000, delay, copies) == pytest.approx(expected, rel=1e-14)
    assert default_rate(1, 8, 10_000, delay, copies) == 0


def policies_after(learner, P, history, delay=2):
    """The policies along a given history of (action, state, loss), outcomes `delay` rounds late."""
    stepper = Stepper(learner, Problem(P, 200, delay, Stream.from_seed(0)))
    rows, saved, policies = rows_at.py_func(make_tables(P), 0), [], []
    for t, (action, state, _) in enumerate(history):
        stepper.advance(t, float(t))
        if t > delay:
            r = t - delay - 1
            stepper.learn(_played(r, history[r], delay), history[r][2], saved[r])
        policies.append(stepper.policy(rows, t))
        saved.append(stepper.remember(rows, policies[-1], action, state))
        stepper.see(_played(t, history[t]), saved[-1])
    return np.array(policies)


def _played(t, decision, wait=0):
    return Played(t, float(t), decision[0], decision[1], 0, float(wait))


RELABELLED = [
    sp.StateEXP3(rate=0.2), sp.StateEXP3(copies="d+1", rate=0.2, mixing=0.1), sp.ActionEXP3(rate=0.2),
    sp.learners.EXP3IX(rate=0.2), sp.learners.NaiveSharing(rate=0.2), sp.learners.PlugIn(rate=0.2),
    sp.learners.CountedDenominator(block=10, rate=0.2), sp.learners.SafePool(certified=False, rate=30.0, mixing=0.5),
    sp.learners.ZimmertSeldin(scale=5.0), sp.learners.ZimmertSeldin(shift=True),
    sp.PooledGreedy(exploration=0.1), sp.learners.BestState(), sp.Uniform(),
]  # fmt: skip


@pytest.mark.parametrize("learner", RELABELLED, ids=repr)
def test_relabelling_actions_or_states_commutes(learner):
    K, S, n = 8, 4, 60
    rng = np.random.default_rng(4)
    P = rng.dirichlet(np.ones(S), size=K)
    # Every state is seen, with distinct means, so that no rule has a tie to break by its labels.
    history = [(int(rng.integers(K)), t % S, float(rng.random())) for t in range(n)]
    plain = policies_after(learner, P, history)
    actions, states = rng.permutation(K), rng.permutation(S)
    where_a, where_s = np.argsort(actions), np.argsort(states)
    moved = [(int(where_a[a]), int(where_s[s]), loss) for a, s, loss in history]
    turned = policies_after(learner, P[np.ix_(actions, states)], moved)
    settled = slice(2 * S, None) if isinstance(learner, sp.PooledGreedy | sp.learners.BestState) else slice(None)
    np.testing.assert_allclose(turned[settled], plain[settled][:, actions], rtol=1e-9, atol=1e-12)
    if not isinstance(learner, sp.Uniform):
        assert (plain[-1] != plain[0]).any()
