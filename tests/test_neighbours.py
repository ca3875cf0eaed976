"""Every neighbour against its slow textbook version, with fixed, random and missing delays, and its known answers."""

from functools import partial
from math import log

import numpy as np
import pytest

import neighbours
import statepool as sp
import textbook
from neighbours import dimension
from statepool.learners.neighbours.impatient_thompson import Prior, prior_of
from statepool.probes import NO_PROBE

T = 300
LEARNERS = [
    (sp.learners.Anytime, {}),
    (sp.learners.Anytime, {"skip": True}),
    (sp.learners.Anytime, {"pooled": False}),
    (sp.learners.Anytime, {"pooled": False, "skip": True}),
    (sp.learners.Certified, {}),
    (sp.learners.DelayAdapted, {"rate": 0.3}),
    (sp.learners.DelayAdapted, {"pooled": False, "rate": 0.3}),
    (sp.learners.CoinGraph, {}),
    (sp.learners.Evolving, {"rate": 0.2}),
    (sp.learners.AuerEXP3, {}),
    (sp.learners.ZimmertSeldin, {"tuning": "anytime"}),
    (sp.learners.MetaBIO, {"base": sp.learners.Anytime()}),
    (sp.learners.NSDUCRL2, {}),
    (sp.learners.NSDUCRL2, {"window": 40, "radius": 0.1}),
    (sp.learners.NSDUCRL2, {"known_map": True}),
    (sp.learners.SurrogateIndex, {"history": 50}),
    (sp.learners.SurrogateIndex, {"history": 20}),
    (sp.learners.ImpatientThompson, {}),
    (sp.learners.ImpatientThompson, {"prior": prior_of(*textbook.random_instance(9, K=30))}),
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
        if cls is sp.learners.Certified:
            assert run.certificate == pytest.approx(slow[4].certificate(), rel=1e-9)


@pytest.mark.parametrize("delay", [0, 13])
@pytest.mark.parametrize(
    "make",
    [
        sp.learners.Anytime,
        partial(sp.learners.Anytime, skip=True),
        lambda pooled: (sp.StateEXP3 if pooled else sp.ActionEXP3)(),
        sp.learners.DelayAdapted,
    ],
    ids=["anytime", "skip", "plain", "adapted"],
)
def test_the_identity_map_makes_a_pooled_learner_its_action_level_twin(make, delay):
    theta = np.random.default_rng(1).random((2_000, 9))
    runs = [sp.simulate(sp.Instance(np.eye(9), theta), make(pooled), delay, seed=3) for pooled in (True, False)]
    np.testing.assert_array_equal(runs[0].actions, runs[1].actions)
    assert runs[0].regret == runs[1].regret


def test_without_delay_the_delay_adapted_and_the_evolving_are_plain():
    instance = sp.families.band(1, horizon=2_000)
    plain, adapted, evolving = (
        sp.simulate(instance, learner, 0, seed=7)
        for learner in (sp.StateEXP3(rate=0.1), sp.learners.DelayAdapted(rate=0.1), sp.learners.Evolving(rate=0.1))
    )
    assert plain.actions.tobytes() == adapted.actions.tobytes()
    assert plain.policies().tobytes() == adapted.policies().tobytes()
    np.testing.assert_array_equal(plain.actions, evolving.actions)
    np.testing.assert_allclose(plain.policies(), evolving.policies(), atol=1e-9)


def test_coins_cost_the_number_of_states_where_pooling_costs_the_dimension():
    """The second moment of an estimate under the policy, exactly, with every loss 1."""
    P = np.random.default_rng(3).dirichlet(0.6 * np.ones(5), size=12)
    x = np.full(12, 1 / 12)
    q = x @ P
    coins = sum(q[s] * (x @ P[:, s]) / q[s] ** 2 for s in range(5))
    assert coins == pytest.approx(5)
    drawn = np.zeros(12)
    for seed in range(400):
        player = sp.learners.CoinGraph(rate=1.0).player(P, 10, seed=seed)
        decision = player.act(0.5)
        player.observe(decision, 2 if P[decision.action, 2] > 0 else 0)
        player.update(decision, 1.0)
        drawn += player.memory.totals
    error = np.sqrt(P[:, 2] * (1 - P[:, 2]) / 400) / q[2]
    assert (np.abs(drawn / 400 - P[:, 2] / q[2]) <= 5 * error + 1e-12).all()
    assert dimension(P, x) < 5


def test_coins_are_certain_and_pooling_is_a_graph_of_cliques_when_the_map_is_deterministic():
    P = np.eye(4)[np.random.default_rng(0).integers(4, size=9)]
    instance = sp.Instance(P, np.random.default_rng(1).random((1_000, 4)))
    runs = [sp.simulate(instance, learner, 5, seed=2) for learner in (sp.StateEXP3(), sp.learners.CoinGraph())]
    np.testing.assert_array_equal(runs[0].actions, runs[1].actions)


def test_giving_up_on_what_never_comes_is_worth_more_than_half():
    """A tenth of the outcomes missing, the funnel at a delay of 50."""
    regrets = {}
    for skip in (False, True):
        runs = [
            sp.simulate(
                sp.families.funnel(s), sp.learners.Anytime(skip=skip), sp.delays.missing(s, 20_000, 50), 80_000 + s
            )
            for s in (8, 9)
        ]
        regrets[skip] = np.mean([run.regret for run in runs])
    assert regrets[True] <= regrets[False] / 2


def test_impatient_thompson_ignores_states_that_its_prior_says_nothing_about():
    P, _ = textbook.random_instance(7, K=6, S=3, T=400)
    prior = prior_of(*textbook.random_instance(8, K=40, S=3))
    between = np.array(prior.between)
    between[-1, :-1] = between[:-1, -1] = 0
    within = np.diag(np.diag(prior.within))
    blind = Prior(prior.mean, tuple(map(tuple, between)), tuple(map(tuple, within)))
    moved = []
    for chosen in (prior, blind):
        player = sp.learners.ImpatientThompson(chosen).player(P, 400)
        decision = player.act(0.5)
        before = player.memory.centres.copy()
        player.observe(decision, int(np.flatnonzero(P[decision.action])[0]))
        moved.append((player.memory.centres != before).any())
    assert moved == [True, False]


def test_a_prior_made_of_many_rows_is_their_sample_moments():
    """Against a plain simulation: draw actions, states and outcomes."""
    P, theta = textbook.random_instance(3, K=5, S=3, zeros=False)
    prior, rng = prior_of(P, theta), np.random.default_rng(0)
    means, draws = theta.mean(axis=0), []
    for row in P:
        states = rng.choice(3, p=row, size=40_000)
        outcomes = rng.random(40_000) < means[states]
        draws.append(np.column_stack([states == 0, states == 1, outcomes]).astype(float))
    np.testing.assert_allclose(prior.mean, np.mean([d.mean(axis=0) for d in draws], axis=0), atol=0.01)
    np.testing.assert_allclose(prior.within, np.mean([np.cov(d.T) for d in draws], axis=0), atol=0.01)
    np.testing.assert_allclose(
        prior.between, np.cov(np.transpose([d.mean(axis=0) for d in draws]), bias=True), atol=0.01
    )


def test_zimmert_seldin_without_delay_is_tsallis_inf():
    player = sp.learners.ZimmertSeldin(tuning="anytime").player(np.eye(3), 20)
    for _ in range(8):
        decision = player.act(0.5)
        player.observe(decision, decision.action)
        player.update(decision, 0.0)
    player.memory.totals[:] = 0, 3, 7
    player.act(0.5)
    np.testing.assert_allclose(player.policy(), [0.710151, 0.209141, 0.080708], atol=5e-7)
    assert player.memory.solution["mu"][0] == pytest.approx(3.559967, abs=5e-7)


def test_waiting_is_the_sum_of_the_delays():
    delays = np.random.default_rng(4).integers(0, 60, size=T)
    instance = sp.Instance(*textbook.random_instance(4, T=T))
    memory = sp.simulate(instance, sp.learners.Anytime(), delays, seed=1).measure(NO_PROBE)
    waited = memory.outstanding.tally["waited"][0]
    assert waited == np.minimum(delays, T - 1 - np.arange(T)).sum() == sp.guarantees.total_wait(delays, T)


def test_certified_without_losses_keeps_its_first_rate_and_bound():
    instance = sp.Instance(np.random.default_rng(0).dirichlet(np.ones(4), size=6), np.zeros((500, 4)))
    run = sp.simulate(instance, sp.learners.Certified(), 0, seed=1)
    ledger = run.measure(NO_PROBE).ledger[0]
    assert ledger["rate"] == 0.5
    assert run.certificate == 2 * log(6) + 1  # b0, and the last outcome, which has not come


def test_other_learners_keep_no_certificate():
    run = sp.simulate(sp.families.band(0, horizon=50), sp.StateEXP3(), 3, seed=1)
    with pytest.raises(ValueError, match="certificate: StateEXP3 keeps none"):
        _ = run.certificate


def test_after_the_guard_certified_is_anytime_afresh():
    """The guard is made to ring by hand, since nothing known rings it; what follows is a fresh Anytime."""
    P, theta = textbook.random_instance(5, T=T)
    certified, fresh = sp.learners.Certified().player(P, T), sp.learners.Anytime().player(P, T)
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
            np.testing.assert_allclose(certified.policy(), fresh.policy(), rtol=1e-12)
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
    assert sp.learners.Certified().certificate(certified.memory) == pytest.approx(own + ledger["in_flight"] + rest)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sp.learners.Anytime(pooled=1), "pooled: is 1, expected True or False"),
        (lambda: sp.learners.ZimmertSeldin(tuning="anytme"), "tuning: 'anytme' is not known; did you mean anytime"),
        (lambda: sp.StateEXP3(copies="busy"), "copies: is 'busy', expected .*, or 'd\\+1'"),
        (lambda: sp.StateEXP3(rate="fast"), r"rate: is 'fast', expected a finite number in \(0, inf\]"),
        (lambda: sp.learners.DelayAdapted(pooled=None), "pooled: is None"),
        (
            lambda: sp.learners.MetaBIO(base="anytime"),
            "base: is 'anytime', expected a learner that learns from outcomes",
        ),
        (lambda: sp.learners.MetaBIO(base=sp.learners.MetaBIO()), "base: is MetaBIO.*expected a learner .* wraps none"),
        (lambda: sp.learners.MetaBIO(base=sp.learners.GreedyStale()), "base: is GreedyStale"),
        (
            lambda: sp.learners.NSDUCRL2(window=11).player(np.eye(2), 10),
            "window: is 11, expected at most the horizon, 10",
        ),
        (lambda: sp.learners.SurrogateIndex(history=0), "history: is 0"),
        (lambda: sp.learners.ImpatientThompson(prior=3), "prior: is int, expected a Prior"),
        (
            lambda: sp.learners.ImpatientThompson(prior_of(np.eye(3), [[0.5] * 3])).player(np.eye(2), 9),
            "prior: mean has shape .3,., expected .2,.",
        ),
        (lambda: prior_of(np.eye(3), [[0.5] * 2]), "theta: has 2 columns, expected 3"),
        (lambda: sp.learners.AuerEXP3(exploration=0), "exploration: is 0"),
    ],
)
def test_bad_settings(make, message):
    with pytest.raises(ValueError, match=message):
        make()
