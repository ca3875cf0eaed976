"""The study of the neighbourhood: its tasks build what they name, and its bounds hold for what they stand beside."""

import statepool as sp
from statepool.learners.neighbours.impatient_thompson import prior_of
from statepool.studies.beyond.neighbours import ARMS, COVERED, OF_ACTIONS, bounds, build, compared

TINY = {"family": "band", "settings": {"n_actions": 9, "horizon": 300}, "seed": 1, "stream": 2, "delay": 10}


def test_arms_are_built_from_plain_data():
    sibling = sp.families.band(3, n_actions=9, horizon=50)
    for name, settings in ARMS.values():
        assert isinstance(build(name, settings, sibling), sp.learners.REGISTRY[name])
    assert build(*ARMS["impatient Thompson"], sibling).prior == prior_of(sibling.P, sibling.theta)
    assert build(*ARMS["MetaBIO on ZS"], sibling).base == sp.learners.ZimmertSeldin(tuning="anytime")


def test_only_arms_below_the_line_see_the_action_alone():
    """Told apart by what happens when states are merged into one: who sees the action alone does not notice."""
    below = list(ARMS)[OF_ACTIONS:]
    assert all(
        name in ("action-exp3", "exp3-ix", "auer-exp3", "anytime", "zimmert-seldin") for name, _ in map(ARMS.get, below)
    )
    assert all(ARMS[arm][1].get("pooled") is False for arm in below if ARMS[arm][0] == "anytime")


def test_regrets_are_those_of_the_runs():
    arms = {name: ARMS[name] for name in ("State-EXP3", "Certified")}
    instance = sp.families.band(1, n_actions=9, horizon=300)
    late = compared(**TINY, arms=arms, kind="missing")
    delays = sp.delays.missing(1, 300, 10)
    arms = {"State-EXP3": sp.StateEXP3(), "Certified": sp.learners.Certified()}
    assert late == {name: sp.simulate(instance, learner, delays, 2).regret for name, learner in arms.items()}


def test_bounds_are_above_the_regrets_they_cover():
    numbers = bounds(**TINY, arms={arm: ARMS[arm] for arm in COVERED})
    for arm, covered in COVERED.items():
        assert all(numbers[arm] <= numbers[bound] for bound in covered)
