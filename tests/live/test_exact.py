"""Exact sums: against fractions, in any order, taken back, faded, saved and read again."""

from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from statepool.exact_sums import BITS, ExactSums, fixed

PLACES = 3
values = st.floats(0, 1e200, allow_subnormal=False) | st.floats(-5, 5)
terms = st.lists(st.tuples(st.integers(0, PLACES - 1), st.integers(0, 200_000), values), max_size=30)
factors = st.sampled_from([0.0, log(0.99), log(0.9999)])


def summed(added, log_factor=0.0, sums=ExactSums):
    kept = sums(PLACES, log_factor)
    for place, round_played, value in added:
        kept.add(place, round_played, value)
    return kept


@given(terms)
def test_a_sum_that_does_not_fade_is_that_of_fractions(added):
    totals = [Fraction(0)] * PLACES
    for place, _, value in added:
        totals[place] += Fraction(fixed(value), 2**BITS)
    np.testing.assert_array_equal(summed(added).read(0), [float(total) for total in totals])


@given(terms, factors, st.randoms(use_true_random=False))
def test_the_order_of_terms_leaves_no_trace(added, log_factor, random):
    shuffled = random.sample(added, len(added))
    one, other = summed(added, log_factor), summed(shuffled, log_factor)
    assert one.dump() == other.dump()
    assert one.read(200_000).tobytes() == other.read(200_000).tobytes()


@given(terms, terms, factors)
def test_what_is_taken_back_was_never_there(kept, taken, log_factor):
    sums = summed(kept + taken, log_factor)
    for place, round_played, value in taken:
        sums.add(place, round_played, value, sign=-1)
    assert sums.dump() == summed(kept, log_factor).dump()


@pytest.mark.parametrize("factor", [0.99, 0.999, 0.9999])
def test_terms_fade_by_the_round_played(factor):
    sums, now = ExactSums(1, log(factor)), 70_000
    draws = np.random.default_rng(0)
    rounds, losses = draws.integers(0, now, 500), draws.random(500)
    for round_played, loss in zip(rounds.tolist(), losses.tolist(), strict=True):
        sums.add(0, round_played, loss)
    wanted = sum(
        loss * exp(log(factor) * (now - round_played)) for round_played, loss in zip(rounds, losses, strict=True)
    )
    assert sums.read(now)[0] == pytest.approx(wanted, rel=1e-12)


def test_what_has_faded_to_nothing_is_dropped_whenever_it_comes():
    early, late = ExactSums(1, log(0.99)), ExactSums(1, log(0.99))
    early.add(0, 5, 1.0)
    for sums in (early, late):
        sums.add(0, 1_000_000, 1.0)
        sums.forget(1_000_000)
    late.add(0, 5, 1.0)
    assert early.dump() == late.dump()
    assert len(early.dump()[1]) == 1


@given(terms, factors)
def test_a_dump_read_again_is_the_same(added, log_factor):
    sums, again = summed(added, log_factor), ExactSums(PLACES, log_factor)
    again.load(sums.dump())
    assert again.dump() == sums.dump()
    assert again.read(200_000).tobytes() == sums.read(200_000).tobytes()


def test_the_rarest_charge_beside_the_smallest_loss():
    """A loss of 2^-47 is kept beside one divided by the probability of a state met once in 1e200 rounds."""
    sums = summed([(0, 0, 1e200), (0, 0, 2.0**-47), (1, 0, 2.0**-99)])
    sums.add(0, 0, 1e200, sign=-1)
    assert sums.read(0).tolist() == [2.0**-47, 2.0**-99, 0.0]
