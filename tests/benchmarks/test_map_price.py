"""What not knowing the map must cost, where it can be counted by hand."""

import numpy as np
import pytest

import statepool as sp
from map_price import floor, informed

PAIR = sp.Instance(np.eye(2), np.tile([0.0, 1.0], (400, 1)))


def test_of_two_actions_the_bad_one_is_tried_first_half_of_the_time():
    losses = PAIR.theta[::20] @ PAIR.P.T
    assert floor(losses, 0.0, np.random.default_rng(0)) == pytest.approx(0.5, abs=0.2)


def test_one_play_tells_two_certain_rows_apart():
    assert max(informed(PAIR, 1, np.random.default_rng(seed)) for seed in range(10)) <= 1
