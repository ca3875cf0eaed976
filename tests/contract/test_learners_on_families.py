"""Every learner on every family: what is promised of all of them, found through the registries."""

import numpy as np
import pytest
from numba import typeof
from roster import HORIZON, LEARNERS, LOOPED, ORACLES, instance_of, map_of, rows_in, understands

import statepool as sp
import textbook
from statepool.learners.contract import problem_of
from statepool.stream import Stream

T = HORIZON
FEW = ("band", "crowds", "direct", "funnel", "hostile", "moving-map", "routes")
"""Families that differ in kind: plain, with contexts, with effects, with a map that moves."""
PAIRS = [
    (name, family)
    for name, learner in LEARNERS.items()
    for family in sp.families.REGISTRY
    if understands(learner, instance_of(family)) and (family in FEW or name in sp.learners.REGISTRY)
]
each_pair = pytest.mark.parametrize(("name", "family"), PAIRS)
each_of_a_few = pytest.mark.parametrize(("name", "family"), [pair for pair in PAIRS if pair[1] in FEW])
each_learner = pytest.mark.parametrize("name", LEARNERS)


def ragged(seed=0, horizon=T):
    rng = np.random.default_rng(seed)
    delays = rng.integers(0, 12, size=horizon)
    delays[::7] = 10**9
    return delays


def check_sane(run):
    instance = run.instance
    K, T = instance.n_actions, instance.horizon
    if run.learner.known_policy and not isinstance(run.learner, LOOPED):
        policies = run.policies()
        assert policies.shape == (T, K)
        assert (policies >= 0).all()
        np.testing.assert_allclose(policies.sum(axis=1), 1, atol=1e-12)
        assert (policies[np.arange(T), run.actions] > 0).all()
    assert ((run.actions >= 0) & (run.actions < K)).all()
    assert all(rows_in(instance, t)[run.actions[t], run.states[t]] > 0 for t in range(T))
    assert ((run.outcomes >= 0) & (run.outcomes <= 1)).all()
    assert instance.gains is not None or np.isin(run.outcomes, (0, 1)).all()
    assert np.isfinite([run.regret, run.loss]).all()
    assert np.isfinite(run.regret_path).all()


@each_pair
def test_sane_and_the_same_bits_again(name, family):
    instance, learner = instance_of(family), LEARNERS[name]
    for delay in (4, ragged()):
        first, second = (sp.simulate(instance, learner, delay, seed=3) for _ in range(2))
        for field in ("actions", "states", "outcomes"):
            assert getattr(first, field).tobytes() == getattr(second, field).tobytes()
    check_sane(sp.simulate(instance, learner, 4, seed=3))


@each_of_a_few
def test_no_undelivered_outcome_changes_an_action(name, family):
    """Losses are turned round from round `cut` on: nothing before their first delivery may move."""
    instance, learner, cut, delay = instance_of(family), LEARNERS[name], 25, 6
    theta = np.clip(instance.theta, 0.01, 0.99)  # a mean of 0 takes no number, and the streams would part
    turned = theta.copy()
    turned[cut:] = 1 - turned[cut:]
    runs = [
        sp.simulate(instance.replaced(theta=means, effects=None), learner, delay, seed=5) for means in (theta, turned)
    ]
    # m_t = c_{t-d} is handed to oracles one round before the outcome of t-d is.
    safe = cut + delay + (name not in ORACLES)
    np.testing.assert_array_equal(runs[0].actions[:safe], runs[1].actions[:safe])
    np.testing.assert_array_equal(runs[0].states[:safe], runs[1].states[:safe])
    if learner.known_policy and not isinstance(learner, LOOPED):
        np.testing.assert_array_equal(runs[0].policies()[:safe], runs[1].policies()[:safe])
    np.testing.assert_array_equal(runs[0].outcomes[:cut], runs[1].outcomes[:cut])


@pytest.mark.parametrize("name", [name for name in LEARNERS if name not in ORACLES])  # they read c_{t-d} whatever came
def test_no_undelivered_outcome_changes_an_action_when_delays_differ(name):
    instance, now, delays = instance_of("band"), 30, ragged(1)
    waiting = np.arange(T) + delays >= now
    turned = np.where(waiting[:, None], 1 - instance.theta, instance.theta)
    runs = [sp.simulate(sp.Instance(instance.P, m), LEARNERS[name], delays, seed=8) for m in (instance.theta, turned)]
    np.testing.assert_array_equal(runs[0].actions[: now + 1], runs[1].actions[: now + 1])


@each_learner
def test_delivered_outcomes_do_change_actions(name):
    """The guard of the two tests above: with no delay the same change is seen by every learner that learns."""
    rng = np.random.default_rng(0)
    P, theta = rng.dirichlet(np.ones(3), size=5), np.full((400, 3), (0.05, 0.5, 0.95))
    turned = theta.copy()
    turned[20:] = 1 - turned[20:]
    runs = [sp.simulate(sp.Instance(P, m), LEARNERS[name], 0, seed=2) for m in (theta, turned)]
    changed = (runs[0].actions != runs[1].actions).any()
    # The first block of the counted denominator is 400 rounds; the short proxy is frozen after five outcomes.
    frozen = name in ("uniform", "counted-denominator", "surrogate-index short")
    assert changed != frozen


def by_hand(instance, learner, delay, seed):
    """Step through `Player` with the uniforms of the stream; deliveries by arrival, then by round."""
    T = instance.horizon
    delays = np.full(T, delay) if np.ndim(delay) == 0 else delay
    arriving = delays[delays < T]
    typical = delay if np.ndim(delay) == 0 else int(arriving.mean()) if arriving.size else T
    requests = instance.contexts is not None and instance.given_map is None
    known = instance if instance.given_map is None else None
    player = learner.player(
        map_of(instance), T, typical, seed, known, available=instance.available if requests else None
    )
    stream = iter(np.random.default_rng(seed).random(3 * T))
    arrivals = [[] for _ in range(T + 1)]
    decisions, policies = [], []
    for t in range(T):
        for decision, outcome in arrivals[t]:
            player.update(decision, outcome)
        decision = player.act(next(stream), int(instance.contexts[t]) if requests else None)
        policies += [player.policy()] if learner.known_policy else []
        state = textbook.draw(rows_in(instance, t)[decision.action], next(stream))
        player.observe(decision, state)
        direct = 0.0 if instance.effects is None else instance.effects[decision.action, state]  # no family has both
        mean, outcome = instance.theta[t, state] + direct, 0.0
        if mean > 0:
            u = next(stream)
            outcome = float(u > 1 - mean) if mean <= 0.5 else float(u <= mean)
        arrivals[min(t + int(delays[t]) + 1, T)].append((decision, outcome))
        decisions.append(decision)
    return decisions, np.array(policies)


STEPPED = [  # what is for simulation only is stepped in the soak
    pytest.param(name, family, marks=[] if LEARNERS[name].runs_live else pytest.mark.soak)
    for name, family in PAIRS
    if family in FEW and not isinstance(LEARNERS[name], LOOPED)
]


@pytest.mark.parametrize(("name", "family"), STEPPED)
def test_stepping_by_hand_is_the_loop(name, family):
    instance, learner = instance_of(family), LEARNERS[name]
    delay = 5 if len(family) % 2 else np.minimum(ragged(2), T)
    run = sp.simulate(instance, learner, delay, seed=11)
    decisions, policies = by_hand(instance, learner, delay, 11)
    np.testing.assert_array_equal([d.action for d in decisions], run.actions)
    np.testing.assert_array_equal([d.state for d in decisions], run.states)
    if not learner.known_policy:
        check_no_policy_is_reported(run, decisions[0])
        return
    if np.ndim(delay) == 0:
        assert policies.tobytes() == run.policies().tobytes()
    np.testing.assert_array_equal([d.probability for d in decisions], policies[np.arange(T), run.actions])


def check_no_policy_is_reported(run, decision):
    """Who cannot say with which probability it policies says so, wherever it is asked."""
    player = run.learner.player(map_of(run.instance))
    drawn = player.act(0.5)
    asked = [
        lambda: run.dimension, lambda: run.dimension_path, run.policies, player.policy,
        lambda: drawn.probability, lambda: decision.probability,
    ]  # fmt: skip
    for ask in asked:
        with pytest.raises(ValueError, match="without a closed form"):
            ask()


EDGES = {
    "one action": (np.array([[0.3, 0.7]]), 0.5),
    "one state": (np.ones((5, 1)), 0.5),
    "one of each": (np.ones((1, 1)), 0.5),
    "unreached state": (np.array([[0.5, 0.0, 0.5], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), 0.5),
    "always lost": (np.eye(3), 1.0),
    "never lost": (np.eye(3), 0.0),
    "many actions": (np.full((40, 2), 0.5), 0.5),
}


@each_learner
@pytest.mark.parametrize("edge", EDGES)
def test_edges(name, edge):
    P, mean = EDGES[edge]
    for horizon in (1, 2, 33):
        instance = sp.Instance(P, np.full((horizon, P.shape[1]), mean))
        for delay in (0, 1, horizon - 1, horizon, 10**12):
            run = sp.simulate(instance, LEARNERS[name], delay, seed=1)
            assert np.isfinite(run.regret)
            assert (P[run.actions, run.states] > 0).all()
        run = sp.simulate(instance, LEARNERS[name], np.full(horizon, 2**62), seed=1)
        never = sp.simulate(instance, LEARNERS[name], 2**62, seed=1)
        np.testing.assert_array_equal(run.actions, never.actions)
    check_sane(sp.simulate(instance, LEARNERS[name], 3, seed=1))


@pytest.mark.parametrize("name", ["action-exp3", "exp3-ix", "naive-sharing", "optimistic-stale", "state-exp3"])
def test_an_unreached_state_changes_nothing_but_the_rate(name):
    """A column of zeros in the middle, at an explicit rate: the others' policies stay what they were."""
    learner = sp.learners.find(name)(rate=0.2)
    P, theta = textbook.random_instance(3, K=6, S=3, T=200, zeros=False)
    wider = np.insert(P, 1, 0, axis=1), np.insert(theta, 1, 0.9, axis=1)
    runs = [sp.simulate(sp.Instance(*pair), learner, 4, seed=6) for pair in ((P, theta), wider)]
    np.testing.assert_array_equal(runs[0].actions, runs[1].actions)
    np.testing.assert_array_equal(runs[0].outcomes, runs[1].outcomes)


@each_learner
def test_one_kernel_serves_all_families(name):
    """An array that is read-only, or laid out otherwise, for no reason is another kernel, and seconds of compiling."""
    learner, kinds = LEARNERS[name], set()
    for family in sp.families.REGISTRY:
        instance = instance_of(family)
        if understands(learner, instance):
            memory = learner.start(problem_of(instance, learner, 4, Stream.from_seed(0)))
            kinds.add(typeof((memory, instance.rows, instance.requests, instance.theta)))
    assert len(kinds) == 1
