"""Every neighbour against its slow textbook version, with fixed, random and missing delays, and its known answers."""

from math import log

import numpy as np
import pytest

import neighbours
import statepool as sp
import textbook

T = 300
LEARNERS = [
    (sp.Anytime, {}),
    (sp.Anytime, {"skip": True}),
    (sp.Anytime, {"pooled": False}),
    (sp.Anytime, {"pooled": False, "skip": True}),
    (sp.Anytime, {"pooled": False, "rule": "constant", "patience": 5}),
    (sp.Anytime, {"rule": "epochs"}),
    (sp.Certified, {}),
]
IDS = ["-".join([cls.__name__, *(f"{k}={v}" for k, v in settings.items())]) for cls, settings in LEARNERS]


def delays_of(kind, seed):
    """One delay, random delays out of order, and the same with a tenth that never come."""
    delays = np.random.default_rng(seed).integers(0, 40, size=T)
    if kind == "missing":
        delays[np.random.default_rng(seed + 1).random(T) < 0.1] = 10**6
    return {"none": 0, "fixed": 7}.get(kind, delays)


@pytest.mark.parametrize("kind", ["none", "fixed", "random", "missing"])
@pytest.mark.parametrize(("cls", "settings"), LEARNERS, ids=IDS)
def test_same_actions_as_the_textbook(cls, settings, kind):
    for seed in range(2):
        P, theta = textbook.random_instance(seed, T=T)
        delay = delays_of(kind, seed)
        run = sp.simulate(sp.Instance(P, theta), cls(**settings), delay, seed=100 + seed)
        slow = textbook.simulate(P, theta, getattr(neighbours, cls.__name__), delay, 100 + seed, **settings)
        np.testing.assert_array_equal(run.actions, slow[0])
        np.testing.assert_array_equal(run.outcomes, slow[2])
        if cls is sp.Certified:
            assert run.certificate == pytest.approx(slow[4].certificate(), rel=1e-9)


@pytest.mark.parametrize("delay", [0, 13])
@pytest.mark.parametrize("make", [lambda pooled: sp.Anytime(pooled), lambda pooled: sp.Anytime(pooled, skip=True)])
def test_the_identity_map_makes_a_pooled_learner_its_action_level_twin(make, delay):
    theta = np.random.default_rng(1).random((2_000, 9))
    runs = [sp.simulate(sp.Instance(np.eye(9), theta), make(pooled), delay, seed=3) for pooled in (True, False)]
    np.testing.assert_array_equal(runs[0].actions, runs[1].actions)
    assert runs[0].plays().tobytes() == runs[1].plays().tobytes()


def test_waiting_is_the_sum_of_the_delays():
    delays = np.random.default_rng(4).integers(0, 60, size=T)
    instance = sp.Instance(*textbook.random_instance(4, T=T))
    memory = sp.simulate(instance, sp.Anytime(), delays, seed=1).measure(sp.probes.NoProbe())
    waited = memory.outstanding.tally["waited"][0]
    assert waited == np.minimum(delays, T - 1 - np.arange(T)).sum() == sp.guarantees.total_wait(delays, T)


def test_certified_without_losses_keeps_its_first_rate_and_bound():
    instance = sp.Instance(np.random.default_rng(0).dirichlet(np.ones(4), size=6), np.zeros((500, 4)))
    run = sp.simulate(instance, sp.Certified(), 0, seed=1)
    ledger = run.measure(sp.probes.NoProbe()).ledger[0]
    assert ledger["rate"] == 0.5
    assert run.certificate == 2 * log(6) + 1  # b0, and the last outcome, which has not come


def test_other_learners_keep_no_certificate():
    run = sp.simulate(sp.families.band(0, horizon=50), sp.StateEXP3(), 3, seed=1)
    with pytest.raises(ValueError, match="certificate: StateEXP3 keeps none"):
        _ = run.certificate


def test_after_the_guard_certified_is_anytime_afresh():
    """The guard is made to ring by hand, since nothing known rings it; what follows is Anytime, told nothing before."""
    P, theta = textbook.random_instance(5, T=T)
    certified, fresh = sp.Certified().player(P, T), sp.Anytime().player(P, T)
    rng, waiting, rang = np.random.default_rng(2), [], None
    for t in range(T):
        while waiting and waiting[0][0].round + 6 < t:
            pair, loss = waiting[0][:2], waiting.pop(0)[2]
            certified.update(pair[0], loss)
            if pair[1] is not None:
                fresh.update(pair[1], loss)
            if t == 50 and rang is None:
                certified.memory.ledger["sum"] = certified.memory.ledger["bound"] = 1e6
            if rang is None and certified.memory.ledger["rang"][0] >= 0:
                rang = t
                assert certified.memory.ledger["in_flight"][0] == len(waiting)
        u, v = rng.random(2)
        decision, twin = certified.act(u), fresh.act(u) if rang is not None else None
        if twin is not None:
            np.testing.assert_allclose(certified.play(), fresh.play(), rtol=1e-12)
            assert decision.action == twin.action
        state = textbook.draw(P[decision.action], v)
        certified.observe(decision, state)
        if twin is not None:
            fresh.observe(twin, state)
        waiting.append((decision, twin, float(rng.random() < theta[t, state])))
    assert rang is not None
    rest = sp.guarantees.theorem_a_anytime(
        7, 4, float(fresh.memory.pace["spread"][0]), float(fresh.memory.outstanding.tally["waited"][0])
    )
    ledger = certified.memory.ledger[0]
    own = 2 * float(ledger["bound"]) - 2 * log(7)
    assert sp.Certified().certificate(certified.memory) == pytest.approx(own + ledger["in_flight"] + rest)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sp.Anytime(pooled=1), "pooled: is 1, expected True or False"),
        (lambda: sp.Anytime(rule="adaptiv"), "rule: 'adaptiv' is not known; did you mean adaptive"),
        (lambda: sp.Anytime(rule="constant"), "patience: is None with rule='constant'"),
        (lambda: sp.Anytime(patience=3), "patience: is 3 with rule='adaptive'"),
        (lambda: sp.Anytime(rule="constant", patience=0), "patience: is 0, expected a whole number of at least 1"),
    ],
)
def test_bad_settings(make, message):
    with pytest.raises(ValueError, match=message):
        make()
