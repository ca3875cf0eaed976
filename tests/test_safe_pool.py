"""Safe-Pool where it must pool, and where it must abstain."""

import numpy as np
import pytest

import statepool as sp
import textbook


def alike(K, T, rarity=1.0):
    """Two states and rows that nearly agree: estimated rows become good, and sharing is worth a lot."""
    P = np.column_stack([np.linspace(0.4, 0.6, K), np.linspace(0.6, 0.4, K)])
    return P, rarity * np.clip(np.random.default_rng(0).normal((0.2, 0.8), 0.05, (T, 2)), 0.01, 0.99)


class Counting:
    """How many (round, action) pairs a run pooled, read off the learner's own memory."""

    def __init__(self, learner):
        self.memories = []
        start = type(learner).start

        class Watched(type(learner)):
            def start(inner, problem):
                self.memories.append(start(inner, problem))
                return self.memories[-1]

        self.learner = Watched(**{f: getattr(learner, f) for f in learner.__dataclass_fields__})

    @property
    def n_pooled(self):
        return int(self.memories[0].n_pooled[0])


CASES = {
    # Losses are rare here, or rounding would have grown into other actions before the radii are small enough.
    "certified": (4, 2_500, 0.1, {"rate": 6.0, "mixing": 0.7}),
    "heuristic": (8, 1_000, 1.0, {"certified": False, "rate": 0.8, "mixing": 0.4}),
    "heuristic, a part of the rows": (8, 1_000, 1.0, {"certified": False, "rate": 1.0, "mixing": 0.1}),
}


@pytest.mark.parametrize("case", CASES)
def test_it_pools_where_it_must_and_as_the_textbook_does(case):
    K, T, rarity, settings = CASES[case]
    P, theta = alike(K, T, rarity)
    watched = Counting(sp.learners.SafePool(**settings))
    run = sp.simulate(sp.Instance(P, theta), watched.learner, 5, seed=1)
    slow = textbook.simulate(P, theta, textbook.SafePool, 5, 1, **settings)
    assert watched.n_pooled == slow[4].n_pooled > T
    assert (watched.n_pooled % K != 0) == ("part" in case)
    np.testing.assert_array_equal(run.actions, slow[0])
    np.testing.assert_array_equal(run.outcomes, slow[2])
    alone = sp.simulate(
        sp.Instance(P, theta), sp.ActionEXP3(rate=settings["rate"], mixing=settings["mixing"]), 5, seed=1
    )
    assert (run.actions != alone.actions).any()


@pytest.mark.parametrize("family", ["band", "hostile", "funnel"])
@pytest.mark.parametrize("certified", [True, False])
def test_it_abstains_at_the_studies_rates_and_is_then_action_level_exp3(family, certified):
    instance = sp.families.find(family)(0, n_actions=40, horizon=3_000)
    watched = Counting(sp.learners.SafePool(certified=certified))
    run = sp.simulate(instance, watched.learner, 50, seed=10_000)
    assert watched.n_pooled == 0
    action = sp.simulate(instance, sp.ActionEXP3(), 50, seed=10_000)
    np.testing.assert_array_equal(run.actions, action.actions)
    assert run.regret == action.regret
