"""Regret below what is proved, in the mean over many runs, on every family, with losses and delays fixed ahead."""

import inspect
from math import log

import numpy as np
import pytest

import statepool as sp
from shares_known import SharesKnownExp3
from statepool import guarantees
from statepool.probes import NO_PROBE

T, RUNS = 300, 200
OF_REQUESTS = ["crowds", "routes", "segments"]
FAMILIES = [name for name in sp.families.REGISTRY if name not in ("direct", "moving-map", *OF_REQUESTS)]
"""Not those that break the assumption on purpose."""


def small(family):
    make = sp.families.find(family)
    known = inspect.signature(make).parameters
    return make(1, **{name: size for name, size in {"n_actions": 9, "horizon": T}.items() if name in known})


def delays_of(seed):
    return sp.delays.missing(seed, T, 10, 0.05)


def mean_and_error(values):
    return np.mean(values), np.std(values, ddof=1) / np.sqrt(len(values))


@pytest.mark.parametrize("family", FAMILIES)
def test_regret_stays_below_its_bounds(family):
    """One instance and one set of delays a family, many runs; three standard errors are allowed."""
    instance, delays = small(family), delays_of(3)
    K, S = instance.n_actions, instance.n_states
    regrets, certificates, spreads = {}, [], {}
    for name, learner in {
        "certified": sp.learners.Certified(), "anytime": sp.learners.Anytime(),
        "skip": sp.learners.Anytime(skip=True), "state": sp.StateEXP3(0.1),
    }.items():  # fmt: skip
        runs = [sp.simulate(instance, learner, delays, seed) for seed in range(RUNS)]
        regrets[name] = mean_and_error([run.regret for run in runs])
        if name == "certified":
            certificates = [run.certificate for run in runs]
        if name in ("anytime", "skip"):
            ends = [run.measure(NO_PROBE) for run in runs[:20]]
            spreads[name] = float(np.mean([end.pace["spread"][0] for end in ends])), ends[0].outstanding.tally[0]
    mean, error = mean_and_error(np.array(certificates))
    assert regrets["certified"][0] - 3 * regrets["certified"][1] <= mean + 3 * error
    spread, tally = spreads["anytime"]
    assert tally["waited"] == guarantees.total_wait(delays, T)
    assert regrets["anytime"][0] <= guarantees.theorem_a_anytime(K, S, spread, float(tally["waited"]))
    spread, tally = spreads["skip"]
    bound = guarantees.theorem_a_anytime(K, S, spread, float(tally["waited"])) + tally["given_up"]
    assert regrets["skip"][0] <= bound
    assert regrets["state"][0] <= guarantees.theorem_a(K, T, delays, (min(K, S) - 1) * T, rate=0.1).value


@pytest.mark.soak
@pytest.mark.parametrize("means", ["steady", "switching"])
@pytest.mark.parametrize("family", OF_REQUESTS)
def test_regret_stays_below_theorem_d(family, means):
    """New contexts in every run, as the theorem has them; at the best rate for the bracket of all maps."""
    make, delay, horizon = sp.families.find(family), 10, 400
    instance = make(1, n_contexts=8, n_actions=9, horizon=horizon, means=means)
    budget = (sp.dimension.bracket(instance.P, 0.2, 0.5).upper - 1) * horizon
    bound = guarantees.theorem_d(guarantees.choices_of(instance), horizon, delay, budget)
    regrets, spent = [], []
    for seed in range(60):
        contexts = np.random.default_rng(seed).integers(8, size=horizon)
        run = sp.simulate(instance.replaced(contexts=contexts), SharesKnownExp3(bound.rate), delay, seed)
        regrets.append(run.regret)
        spent.append((run.dimension - 1) * horizon)
    assert max(spent) <= budget
    mean, error = mean_and_error(regrets)
    assert mean + 3 * error <= guarantees.theorem_d(log(9), horizon, delay, np.mean(spent), bound.rate).value


@pytest.mark.parametrize("family", FAMILIES)
def test_regret_stays_below_theorem_b(family):
    instance, delay = small(family), 6
    bound = guarantees.theorem_b(instance.n_actions, T, delay, (min(instance.P.shape) - 1) * T)
    regrets = [sp.simulate(instance, sp.StateEXP3(bound.rate), delay, seed).regret for seed in range(RUNS)]
    assert bound.covered
    assert np.mean(regrets) <= bound.value


def test_neighbours_bounds():
    assert guarantees.zimmert_seldin(4, 100, 50) == pytest.approx(80 + np.sqrt(400 * np.log(4)))
