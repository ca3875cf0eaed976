"""Safe-Pool where it must pool, and where it must abstain."""

import numpy as np
import pytest
import textbook

import statepool as sp


def alike(K=6, S=2, T=3_000):
    """Few states and rows that nearly agree: estimated rows become good, and sharing is worth a lot."""
    rng = np.random.default_rng(0)
    P = np.column_stack([np.linspace(0.4, 0.6, K), np.linspace(0.6, 0.4, K)])[:, :S]
    return P, np.clip(rng.normal((0.2, 0.8), 0.05, (T, S)), 0.01, 0.99)


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


@pytest.mark.parametrize(
    "settings", [{"rate": 0.9, "mixing": 0.5}, {"certified": False, "rate": 0.5, "mixing": 0.3}], ids=["certified", "heuristic"]
)
def test_it_pools_where_it_must_and_as_the_textbook_does(settings):
    P, theta = alike(T=1_200 if "certified" in settings else 6_000)
    watched = Counting(sp.SafePool(**settings))
    run = sp.simulate(sp.Instance(P, theta), watched.learner, 5, seed=1)
    slow = textbook.simulate(P, theta, textbook.SafePool, 5, 1, **settings)
    assert watched.n_pooled == slow[4].n_pooled
    assert watched.n_pooled > 500
    np.testing.assert_array_equal(run.actions[:400], slow[0][:400])
    action = sp.simulate(sp.Instance(P, theta), sp.ActionEXP3(rate=settings["rate"], mixing=settings["mixing"]), 5, seed=1)
    assert (run.actions != action.actions).any()


@pytest.mark.parametrize("family", ["band", "hostile", "funnel"])
@pytest.mark.parametrize("certified", [True, False])
def test_it_abstains_at_the_studies_rates_and_is_then_action_level_exp3(family, certified):
    instance = sp.families.find(family)(0, n_actions=40, horizon=3_000)
    watched = Counting(sp.SafePool(certified=certified))
    run = sp.simulate(instance, watched.learner, 50, seed=10_000)
    assert watched.n_pooled == 0
    action = sp.simulate(instance, sp.ActionEXP3(), 50, seed=10_000)
    np.testing.assert_array_equal(run.actions, action.actions)
    assert run.regret == action.regret


def test_partial_pooling_takes_the_best_known_rows_only():
    """One action is visited far less: it stays outside the pooled prefix, and a tie of radii is pooled together."""
    P, theta = alike(K=8, T=1_500)
    slow = textbook.simulate(P, theta, textbook.SafePool, 3, 2, certified=False, rate=1.5, mixing=0.2)
    watched = Counting(sp.SafePool(certified=False, rate=1.5, mixing=0.2))
    run = sp.simulate(sp.Instance(P, theta), watched.learner, 3, seed=2)
    same = int((np.append(run.actions != slow[0], True)).argmax())
    assert same > 200
    assert 0 < watched.n_pooled
    assert watched.n_pooled % 8 != 0  # some round pooled a part of the eight actions
