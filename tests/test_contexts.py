"""Instances with contexts: every quantity against brute force on T×K tables, and the loop against a slow copy of it."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import statepool as sp
import textbook
from shares_known import SharesKnownExp3

sizes = {
    "seed": st.integers(0, 10**6), "C": st.integers(1, 5), "K": st.integers(1, 6), "S": st.integers(1, 5),
    "T": st.integers(1, 30),
}  # fmt: skip


def made(seed, C, K, S, T, effects=None):
    """A random instance with contexts, of which some miss some actions."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(S), size=(C, K))
    available = rng.random((C, K)) < 0.6
    available[np.arange(C), rng.integers(K, size=C)] = True
    theta, contexts = rng.uniform(0.25, 0.75, (T, S)), rng.integers(C, size=T)
    given_effects = None if effects is None else rng.uniform(-0.25, 0.25, (C, K, S)[effects:])
    return sp.Instance(P, theta, given_effects, contexts, available), (P, theta, given_effects, contexts, available)


@given(**sizes, delay=st.integers(0, 40), effects=st.sampled_from([None, 0, 1]))
@settings(max_examples=120)
def test_everything_against_brute_force(seed, C, K, S, T, delay, effects):
    instance, (P, theta, extra, contexts, available) = made(seed, C, K, S, T, effects)
    extra = np.zeros((C, K, S)) if extra is None else np.broadcast_to(extra, (C, K, S))
    c = np.array([[[P[k, a] @ (theta[t] + extra[k, a]) for a in range(K)] for t in range(T)] for k in range(C)])
    policy = [min((a for a in range(K) if available[k, a]), key=lambda a, k=k: c[k, :, a].sum()) for k in range(C)]
    rng = np.random.default_rng(seed + 1)
    actions = np.array([rng.choice(np.flatnonzero(available[k])) for k in contexts])
    loss = np.array([c[k, t, a] for t, (k, a) in enumerate(zip(contexts, actions, strict=True))])
    best = np.array([c[k, t, policy[k]] for t, k in enumerate(contexts)])
    np.testing.assert_allclose(instance.pseudo_loss(actions), loss.sum(), atol=1e-11)
    np.testing.assert_allclose(instance.regret(actions), (loss - best).sum(), atol=1e-11)
    np.testing.assert_allclose(instance.regret_path(actions), np.cumsum(loss - best), atol=1e-11)
    if instance.contexts is None:
        assert (C, available.all()) == (1, True)
        return
    assert available[np.arange(C), instance.best_policy].all()
    lowest = [c[k, :, a].sum() for k, a in enumerate(policy)]  # of actions that are alike, rounding chooses
    np.testing.assert_allclose([c[k, :, a].sum() for k, a in enumerate(instance.best_policy)], lowest, atol=1e-11)
    np.testing.assert_allclose(instance.shares, [(contexts == k).mean() for k in range(C)])
    moved = np.array(
        [[P[k, a] @ (theta[t] - theta[max(t - delay, 0)]) for a in range(K)] for t, k in enumerate(contexts)]
    )
    moved[~available[contexts]] = 0
    np.testing.assert_allclose(instance.e2(delay), (moved**2).max(axis=1).sum(), atol=1e-11)


def test_one_context_is_an_instance_without_any():
    P, theta = textbook.random_instance(3, K=6, S=3, T=300)
    effects = np.random.default_rng(1).uniform(-0.1, 0.1, P.shape)
    theta = 0.2 + 0.6 * theta
    plain = sp.Instance(P, theta, effects)
    one = sp.Instance(P[None], theta, effects[None], contexts=np.zeros(300, int), available=np.ones((1, 6)))
    for name in ("P", "theta", "effects"):
        assert getattr(plain, name).tobytes() == getattr(one, name).tobytes()
    assert one.contexts is None
    runs = [sp.simulate(instance, sp.StateEXP3(), 7, seed=4) for instance in (plain, one)]
    assert runs[0].actions.tobytes() == runs[1].actions.tobytes()
    assert runs[0].regret == runs[1].regret


def test_nothing_of_an_instance_with_contexts_can_be_changed():
    instance, tables = made(5, 4, 3, 3, 20, effects=0)
    regret = instance.regret(instance.best_policy[instance.contexts])
    tables[0][:], tables[3][:], tables[4][:] = 0, 0, False
    for again in (instance, pickle.loads(pickle.dumps(instance)), instance.replaced()):
        for name in ("P", "theta", "effects", "contexts", "available", "total_losses", "shares"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(again, name)[0] = 0
            np.testing.assert_array_equal(getattr(again, name), getattr(instance, name))
        assert again.regret(again.best_policy[again.contexts]) == regret == 0
    assert "4 contexts, 3 actions" in repr(instance)
    with pytest.raises(ValueError, match="best_policy"):
        _ = instance.best_action


def slow_run(instance, rate, delay, seed):
    """The learner that knows the shares, and the loop, written again in NumPy."""
    P, contexts, available = instance.P, instance.contexts, instance.available
    shares = np.bincount(contexts, minlength=len(P)) / contexts.size
    stream, G, waiting = iter(np.random.default_rng(seed).random(3 * contexts.size)), np.zeros(P.shape[2]), []
    actions, states, dimensions = [], [], []
    for t, k in enumerate(contexts):
        for due, state, charge in waiting:
            if due == t:
                G[state] += charge
        x = np.where(available, np.exp(-rate * (P @ G - (P @ G).min())), 0)
        x /= x.sum(axis=1, keepdims=True)
        weights = shares[:, None] * x
        q = np.einsum("ka,kas->s", weights, P)
        squares = np.einsum("ka,kas->s", weights, P**2)
        dimensions.append((squares[q > 0] / q[q > 0]).sum())
        action = textbook.draw(x[k], next(stream))
        state = textbook.draw(P[k, action], next(stream))
        mean = instance.theta[t, state] + (0 if instance.effects is None else instance.effects[k, action, state])
        u = next(stream)
        outcome = float(u > 1 - mean) if mean <= 0.5 else float(u <= mean)
        waiting.append((t + delay + 1, state, outcome / q[state]))
        actions.append(action)
        states.append(state)
    return actions, states, dimensions


@pytest.mark.parametrize("effects", [None, 0, 1])
def test_the_loop_draws_from_the_rows_of_the_request(effects):
    instance, _ = made(8, 5, 6, 4, 250, effects)
    run = sp.simulate(instance, SharesKnownExp3(0.2), 6, seed=3)
    actions, states, dimensions = slow_run(instance, 0.2, 6, 3)
    np.testing.assert_array_equal(run.actions, actions)
    np.testing.assert_array_equal(run.states, states)
    np.testing.assert_allclose(run.dimension_path, dimensions, rtol=1e-11)
    plays = run.policies()
    np.testing.assert_allclose(plays.sum(axis=1), 1)
    assert (plays[~instance.available[instance.contexts]] == 0).all()


def test_stepping_by_hand_is_the_loop():
    instance, _ = made(9, 3, 5, 4, 60)
    run = sp.simulate(instance, SharesKnownExp3(0.3), 100, seed=6)
    player = SharesKnownExp3(0.3).player(instance.P, 60, 100, 6, instance, available=instance.available)
    stream = iter(np.random.default_rng(6).random(180))
    for t, context in enumerate(instance.contexts):
        decision = player.act(next(stream), context=int(context))
        state = textbook.draw(instance.P[context, decision.action], next(stream))
        player.observe(decision, state)
        next(stream)
        assert (decision.action, state) == (run.actions[t], run.states[t])


@pytest.mark.parametrize("family", ["crowds", "routes", "segments"])
def test_learners_that_know_no_contexts_are_refused(family):
    instance = sp.families.find(family)(seed=1, horizon=50)
    assert instance.n_contexts > 1
    for learner in (sp.learners.find("zimmert-seldin")(), sp.learners.find("greedy-stale")()):
        with pytest.raises(ValueError, match=r"^learner: \w+ (knows no contexts|reads the true losses)"):
            sp.simulate(instance, learner)
    with pytest.raises(ValueError, match="knows no contexts"):
        sp.learners.find("zimmert-seldin")().player(instance.P, 10, available=instance.available)


def test_families_of_requests():
    routes = sp.families.routes(seed=2, horizon=200)
    assert (routes.available.sum(axis=1) == 4).all()
    alike = sp.families.segments(seed=2, horizon=200, of_context=0)
    assert (alike.P[0] == alike.P).all()
    assert sp.families.crowds(seed=2, horizon=200, n_contexts=1).contexts is None
    np.testing.assert_allclose(sp.families.crowds(seed=2, horizon=20_000).shares, 0.1, atol=0.01)
    steady, moved = (sp.families.crowds(seed=2, horizon=200, means=means) for means in ("steady", "switching"))
    assert steady.e2(1) == 0 < moved.e2(1)
    by_context = sp.families.direct(seed=2, family="crowds", horizon=200)
    assert by_context.effects.shape == by_context.P.shape


@pytest.mark.parametrize("moves", ["drift", "jumps"])
def test_a_moving_map_is_not_known_to_learners(moves):
    """Learners see one map and no contexts; the states are drawn from the epoch's."""
    instance = sp.families.moving_map(seed=3, horizon=4_000, n_epochs=4, moves=moves)
    run = sp.simulate(instance, sp.StateEXP3(), 10, seed=5)
    again = sp.simulate(sp.Instance(instance.given_map, instance.theta), sp.StateEXP3(), 10, seed=5)
    assert run.actions[0] == again.actions[0]
    assert run.dimension == pytest.approx(sp.dimension.effective(instance.given_map, run.policies()[0]), abs=1.5)
    for epoch in range(4):
        seen = np.bincount(run.states[instance.contexts == epoch], minlength=5) / 1000
        played = np.bincount(run.actions[instance.contexts == epoch], minlength=20) / 1000
        np.testing.assert_allclose(seen, played @ instance.P[epoch], atol=0.06)
    assert np.isfinite(run.regret)
    with pytest.raises(ValueError, match="reads the true losses"):
        sp.simulate(instance, sp.learners.find("greedy-stale")())


P2 = np.full((2, 3, 2), 0.5)
ROUNDS, TURNS = np.full((4, 2), 0.5), [0, 1, 0, 1]
WRONG = {
    "no contexts for three axes": ({"P": P2}, "P: has shape .* and contexts is None"),
    "one map and contexts": ({"P": P2[0], "contexts": [0, 0, 0, 0]}, r"P: has shape \(3, 2\)"),
    "too few": ({"P": P2, "contexts": [0, 1]}, r"contexts: has shape \(2,\), expected \(4,\)"),
    "unknown": ({"P": P2, "contexts": [0, 1, 2, 0]}, "contexts: entry 2 is 2, expected 0 to 1"),
    "negative": ({"P": P2, "contexts": [0, -1, 1, 0]}, "contexts: entry 1 is -1"),
    "not whole": ({"P": P2, "contexts": [0, 0.5, 1, 0]}, "contexts: entry 1 is 0.5"),
    "words": ({"P": P2, "contexts": list("abcd")}, "contexts: entry 0 is 'a'"),
    "nothing available": (
        {"P": P2, "contexts": TURNS, "available": [[1, 0, 0], [0, 0, 0]]}, "available: context 1 has no action"
    ),
    "shape of available": ({"P": P2, "contexts": TURNS, "available": [1, 1, 1]}, r"available: has shape \(3,\)"),
    "values of available": ({"P": P2, "contexts": TURNS, "available": np.full((2, 3), 0.5)}, "available: holds other"),
    "available alone": ({"P": P2[0], "available": np.ones((1, 3))}, "available: is given without contexts"),
    "row": ({"P": P2 * [[[1], [1], [0.9]]], "contexts": TURNS}, "P: context 0, row 2 sums to 0.9, expected 1 within"),
    "row that is not available": (
        {"P": P2 * [[[1], [1], [0.9]]], "contexts": TURNS, "available": [[1, 1, 0], [1, 1, 0]]},
        "P: context 0, row 2 sums to 0.9, expected 1, or 0 where",
    ),
    "effects": ({"P": P2, "contexts": TURNS, "effects": np.full((2, 2), 0.1)}, r"effects: has"),
    "effects too large": ({"P": P2, "contexts": TURNS, "effects": np.full((3, 2), 0.6)}, r"effects: entry \(0, 0, 0\)"),
    "given map alone": ({"P": P2[0], "given_map": P2[0]}, "given_map: is given without contexts"),
    "given map shape": ({"P": P2, "contexts": TURNS, "given_map": np.full((2, 2), 0.5)}, "given_map: has shape"),
    "given map less": (
        {"P": P2, "contexts": TURNS, "given_map": np.tile([1.0, 0], (3, 1))}, r"given_map: entry \(0, 1\) is 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_bad_input_is_refused_in_a_sentence(name):
    arguments, sentence = WRONG[name]
    with pytest.raises(ValueError, match=sentence) as refused:
        sp.Instance(theta=ROUNDS, **arguments)
    assert "\n" not in str(refused.value)


def test_bad_actions_and_contexts_by_hand():
    instance, _ = made(2, 4, 6, 3, 40)
    t = int(np.flatnonzero(~instance.available[instance.contexts].all(axis=1))[0])
    actions = instance.best_policy[instance.contexts]
    actions[t] = int(instance.available[instance.contexts[t]].argmin())
    with pytest.raises(
        ValueError, match=f"actions: entry {t} is {actions[t]}, expected 0 to .*, and available in its context"
    ):
        instance.regret(actions)
    player = SharesKnownExp3().player(instance.P, 10, available=instance.available)
    for context, sentence in ((None, "expected one of 4"), (4, "expected 0 to 3"), (0.5, "context: is 0.5")):
        with pytest.raises(ValueError, match=sentence):
            player.act(0.5, context=context)
    with pytest.raises(ValueError, match="expected none, as P is one map"):
        sp.StateEXP3().player(P2[0], 10).act(0.5, context=0)


def test_the_dimension_of_maps_with_contexts():
    """Joint: the pairs of a context and an action are the rows, and rows of 0 are not there."""
    routes = sp.families.routes(seed=4, horizon=20, n_contexts=5, n_actions=6, n_states=3, n_candidates=2)
    found, flat = sp.dimension.bracket(routes.P), sp.dimension.bracket(routes.P[routes.available])
    assert (found.lower, found.upper) == (flat.lower, flat.upper)
    assert found.play.shape == (5, 6)
    assert (found.play[~routes.available] == 0).all()
    assert sp.dimension.effective(routes.P, found.play) == pytest.approx(found.lower)
    fewer = sp.dimension.bracket(P2 * [[[1], [0], [0]], [[0], [0], [1]]])
    assert (fewer.upper, np.count_nonzero(fewer.play[:, 1])) == (1, 0)
    for x, sentence in ((np.ones((5, 6)) / 30, "expected 0 where no row"), (np.ones(6) / 6, r"expected \(5, 6\)")):
        with pytest.raises(ValueError, match=sentence):
            sp.dimension.effective(routes.P, x)


KNOWING = [name for name, cls in sp.learners.REGISTRY.items() if cls.knows_contexts]


@pytest.mark.parametrize("name", KNOWING)
def test_no_learner_looks_at_requests_to_come(name):
    instance, cut = sp.families.routes(seed=3, n_contexts=7, n_actions=9, horizon=60), 25
    later = np.r_[instance.contexts[:cut], (instance.contexts[cut:] + 1) % 7]
    runs = [
        sp.simulate(instance.replaced(contexts=c), sp.learners.find(name)(), 4, 5) for c in (instance.contexts, later)
    ]
    np.testing.assert_array_equal(runs[0].actions[:cut], runs[1].actions[:cut])
    assert (runs[0].actions != runs[1].actions).any()


@pytest.mark.parametrize("learner", [sp.StateEXP3(), sp.SelfTuned(), sp.PooledGreedy()], ids=repr)
def test_contexts_that_are_copies_play_as_one(learner):
    plain = sp.families.spread(4, n_actions=12, horizon=2_000)
    contexts = np.random.default_rng(5).integers(7, size=2_000)
    many = sp.Instance(np.tile(plain.P, (7, 1, 1)), plain.theta, contexts=contexts)
    runs = [sp.simulate(instance, learner, delay=20, seed=6) for instance in (plain, many)]
    np.testing.assert_array_equal(runs[0].actions, runs[1].actions)
    np.testing.assert_allclose(runs[0].policies(), runs[1].policies(), rtol=0, atol=1e-12)


def test_a_learner_of_the_map_of_each_context_does_not_read_it():
    rng = np.random.default_rng(5)
    maps = rng.dirichlet(np.ones(3), (4, 5)), np.tile(rng.dirichlet(np.ones(3), 5), (4, 1, 1))  # the other: all alike
    players = [sp.SelfTuned(learn_map=True).player(P, horizon=300) for P in maps]
    for _ in range(300):
        u, context, state, loss = rng.random(), int(rng.integers(4)), int(rng.integers(3)), float(rng.integers(2))
        one, two = (player.act(u, context=context) for player in players)
        assert one.action == two.action
        for player, decision in zip(players, (one, two), strict=True):
            player.observe(decision, state)
            player.update(decision, loss)


def test_learning_the_map_of_each_context_beats_learning_without_states():
    instance = sp.families.segments(7, n_contexts=5, n_actions=10, horizon=5_000)
    ours, apart = (
        sp.simulate(instance, each, 20, 80_000).regret for each in (sp.SelfTuned(learn_map=True), sp.PerContext())
    )
    assert ours < apart / 2


def test_a_player_of_one_map_takes_no_availability():
    with pytest.raises(ValueError, match="available: is given for one map"):
        sp.StateEXP3().player(np.eye(3), available=[[True, False, True]])
