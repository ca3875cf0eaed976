"""The family `direct`: the base stays what it was, effects have the size asked for and leave no mean outside [0, 1]."""

import numpy as np
import pytest

import statepool as sp

direct = sp.families.direct


@pytest.mark.parametrize(
    "family", [name for name in sp.families.REGISTRY if name not in ("direct", "shop", "shop-with-prices")]
)
def test_the_base_is_the_familys_instance_of_that_seed(family):
    base, inst = sp.families.find(family)(3, horizon=40), direct(3, family, 0.1, horizon=40)
    np.testing.assert_array_equal(inst.P, base.P)
    np.testing.assert_array_equal(inst.theta, base.theta)
    assert (inst.theta.min(axis=0) + inst.effects >= 0).all()
    assert (inst.theta.max(axis=0) + inst.effects <= 1).all()


def test_one_seed_gives_the_same_directions_at_every_size():
    small, large = (direct(5, "band", size, 100).effects for size in (0.01, 0.02))
    np.testing.assert_allclose(2 * small, large)
    assert (direct(5, "band", 0.0, 100).effects == 0).all()


def test_effects_have_the_size_asked_for_in_every_state():
    effects = direct(0, "band", 0.05, 100, n_actions=4_000).effects
    np.testing.assert_allclose(effects.std(axis=0), 0.05, rtol=0.05)


def test_a_generator_goes_on_from_where_it_stands():
    rng = np.random.default_rng(2)
    first, second = direct(rng, horizon=10), direct(rng, horizon=10)
    assert not np.array_equal(first.P, second.P)
    assert not np.array_equal(first.effects, second.effects)


@pytest.mark.parametrize("name", ["direct", "spraed", 3])
def test_unknown_bases_are_refused(name):
    with pytest.raises(ValueError, match=r"family: .* is not known"):
        direct(0, name)


@pytest.mark.parametrize("size", [-0.1, 1.5, float("nan"), "1", None])
def test_bad_sizes_are_refused(size):
    with pytest.raises(ValueError, match="size: is"):
        direct(0, size=size)


def test_settings_that_the_base_does_not_have_are_refused():
    with pytest.raises(ValueError, match="setting of spread: 'n_states' is not known"):
        direct(0, "spread", n_states=3)
