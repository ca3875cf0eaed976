"""The instance's quantities against brute force on T×K tables, which the package itself never holds."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import statepool as sp
import textbook


def tables(seed, K, S, T, effects=False):
    P, theta = textbook.random_instance(seed, K, S, T)
    if not effects:
        return P, theta, None, theta @ P.T
    theta = 0.25 + theta / 2
    extra = np.random.default_rng(seed).uniform(-0.25, 0.25, P.shape)
    c = np.array([[P[a] @ (theta[t] + extra[a]) for a in range(K)] for t in range(T)])
    return P, theta, extra, c


sizes = {"seed": st.integers(0, 10**6), "K": st.integers(1, 9), "S": st.integers(1, 6), "T": st.integers(1, 40)}


@given(**sizes, delay=st.integers(0, 50), effects=st.booleans())
@settings(max_examples=150)
def test_everything_against_brute_force(seed, K, S, T, delay, effects):
    P, theta, extra, c = tables(seed, K, S, T, effects)
    instance = sp.Instance(P, theta, extra)
    assert (instance.n_actions, instance.n_states, instance.horizon) == (K, S, T)
    stale = np.array([c[max(t - delay, 0)] for t in range(T)])
    moved = c - stale
    np.testing.assert_allclose(instance.e2(delay), (np.abs(moved).max(axis=1) ** 2).sum(), atol=1e-11)
    W = sum(np.abs(theta[t] - theta[t - 1]).max() ** 2 for t in range(1, T))
    np.testing.assert_allclose(instance.total_losses, c.sum(axis=0), atol=1e-11)
    totals = c.sum(axis=0)
    assert totals[instance.best_action] <= totals.min() + 1e-11
    actions = np.random.default_rng(seed).integers(K, size=T)
    loss = c[np.arange(T), actions]
    np.testing.assert_allclose(instance.pseudo_loss(actions), loss.sum(), atol=1e-11)
    np.testing.assert_allclose(instance.regret(actions), loss.sum() - totals.min(), atol=1e-11)
    path = instance.regret_path(actions)
    np.testing.assert_allclose(path, np.cumsum(loss - c[:, instance.best_action]), atol=1e-11)
    # The lemma of Appendix C.
    assert instance.e2(delay) <= delay**2 * W + 1e-9


def test_delay_window_is_nearly_tight_for_steady_drift():
    T, d = 2_000, 5
    instance = sp.Instance(np.eye(2), np.column_stack([np.linspace(0, 1, T), np.full(T, 0.5)]))
    assert 0.98 < instance.e2(d) / (d**2 * (T - 1) / (T - 1) ** 2) <= 1 + 1e-9


def test_movement_in_chunks(monkeypatch):
    P, theta, _, _ = tables(1, 7, 3, 90)
    whole = sp.Instance(P, theta)
    expected = whole.e2(4)
    monkeypatch.setattr("statepool.model._CHUNK_ENTRIES", 20)
    np.testing.assert_allclose(whole.e2(4), expected, rtol=1e-13)


def test_effects_of_zero_change_nothing():
    P, theta, _, _ = tables(2, 6, 3, 300)
    plain, zero = sp.Instance(P, theta), sp.Instance(P, theta, np.zeros_like(P))
    runs = [sp.simulate(i, sp.StateEXP3(), 5, seed=1) for i in (plain, zero)]
    np.testing.assert_array_equal(runs[0].outcomes, runs[1].outcomes)
    assert runs[0].regret == runs[1].regret


def test_effects_change_the_best_action_and_the_outcomes():
    P, theta = np.full((2, 2), 0.5), np.full((400, 2), 0.5)
    instance = sp.Instance(P, theta, [[0.5, 0.5], [-0.5, -0.5]])
    assert instance.best_action == 1
    run = sp.simulate(instance, sp.Uniform(), 0, seed=0)
    np.testing.assert_array_equal(run.outcomes, run.actions == 0)
    assert run.regret == pytest.approx((run.actions == 0).sum())


def test_nothing_of_an_instance_can_be_changed():
    """Totals are computed once: a map that changed under them would give the regret of two problems at once."""
    P, theta, extra, _ = tables(3, 6, 3, 40, effects=True)
    made = sp.Instance(P, theta, extra)
    totals, regret = made.total_losses.copy(), made.regret(np.zeros(40, int))
    for instance in (made, pickle.loads(pickle.dumps(made)), copy.deepcopy(made), copy.copy(made)):
        for name in ("P", "theta", "effects", "total_losses", "direct"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(instance, name)[0] = 0.0
            with pytest.raises(AttributeError, match=f"{name}: an Instance does not change"):
                setattr(instance, name, np.zeros(3))
        np.testing.assert_array_equal(instance.total_losses, totals)
        assert instance.regret(np.zeros(40, int)) == regret


def test_an_instance_costs_one_copy_of_its_tables():
    P = np.full((50_000, 4), 0.25)
    tracemalloc.start()
    try:
        instance = sp.Instance(P, np.full((10, 4), 0.5))
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 1.1 * instance.P.nbytes


def test_instance_owns_its_arrays():
    P, theta = np.eye(2), np.full((5, 2), 0.5)
    effects = np.zeros((2, 2))
    instance = sp.Instance(P, theta, effects)
    P[:], theta[:], effects[:] = 0.5, 0.0, 0.4
    assert (np.eye(2) == instance.P).all()
    assert (instance.theta == 0.5).all()
    assert not instance.effects.any()
    assert "2 actions, 2 states, 5 rounds, with direct effects" in repr(instance)
