"""`statepool simulate`."""

import inspect
import json
from functools import partial

import numpy as np
import pytest

import statepool as sp
from command_line import statepool

simulate = partial(statepool, "simulate")


def test_it_says_what_simulate_says():
    done = simulate(
        "spread",
        "action-exp3",
        "state-exp3",
        "--delay",
        10,
        "--seeds",
        2,
        "--set",
        "horizon=500",
        "--json",
    )
    action, state = json.loads(done.stdout)
    instances = [sp.families.spread(seed=seed, horizon=500) for seed in range(2)]
    by_hand = [
        sp.simulate(instance, sp.StateEXP3(), 10, seed + 80_000).regret for seed, instance in enumerate(instances)
    ]
    assert state["regret"] == sum(by_hand) / 2
    assert state["gain"] == pytest.approx(action["regret"] - state["regret"])
    assert action["gain"] == 0


def test_the_learner_to_run_is_set_beside_the_papers_when_none_is_named():
    done = simulate("spread", "--seeds", 1, "--set", "horizon=500", "--json")
    assert [record["learner"] for record in json.loads(done.stdout)] == ["state-exp3", "self-tuned"]


def test_by_default_a_run_has_other_random_numbers_than_its_instance():
    """A family that hands out its own numbers as means: of equal seeds, the run would be played with those."""
    numbers, streams = [], []

    def family(seed):
        numbers.append(np.random.default_rng(seed).random(30))
        return sp.Instance(np.eye(2), np.full((10, 2), 0.5))

    class Eavesdropper(sp.Uniform):
        def start(self, problem):
            streams.append(problem.stream.uniforms(30))
            return super().start(problem)

    sp.compare({"numbers": family}, {"eavesdropper": Eavesdropper()}, seeds=range(4), jobs=1)
    assert len(numbers) == len(streams) == 4
    for made, played in zip(numbers, streams, strict=True):
        assert not np.isin(played, made).any()
    assert inspect.signature(sp.compare).parameters["stream"].default == 80_000


def test_the_table_fits():
    done = simulate("funnel", "action-exp3", "state-exp3", "--seeds", 1, "--set", "horizon=200")
    assert done.returncode == 0
    assert "saved over action-exp3" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["funel", "uniform"], "did you mean funnel?"),
        (["funnel", "unifrm"], "did you mean uniform?"),
        (["funnel", "uniform", "--seeds", "0"], "seeds: is empty"),
        (["funnel", "uniform", "--delay", "-1"], "delays: is -1"),
        (["funnel", "uniform", "--set", "n_action=3"], "did you mean n_actions?"),
        (["funnel", "uniform", "--set", "n_actions"], "expected name=value"),
        (["funnel", "uniform", "--set", "n_actions=many"], "n_actions: is 'many'"),
    ],
)
def test_bad_input_is_one_sentence(arguments, sentence):
    done = simulate(*arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
