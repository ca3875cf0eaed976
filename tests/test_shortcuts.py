"""What Numba leaves out for this package, it leaves out for nobody else."""

from typing import NamedTuple

import numpy as np
import pytest
from numba import njit, typeof
from numba.core.datamodel import default_manager
from numba.core.errors import NumbaError
from numba.core.types.functions import BaseFunction

import statepool as sp
from statepool.compiling import compiled
from statepool.shortcuts import remembering_calls

NUMBAS_OWN = BaseFunction.get_call_type


class Theirs(NamedTuple):
    number: int
    numbers: np.ndarray


class Holding(NamedTuple):
    number: int
    ours: sp.learners.maps.Maps


def one_argument(value):
    return not isinstance(default_manager[typeof(value)].get_argument_type(), tuple)


def test_only_memories_of_our_own_are_handed_over_whole():
    maps = sp.learners.maps.start_maps(np.ones((2, 3)))
    assert one_argument(maps)
    assert not one_argument(Theirs(1, np.ones(3)))
    assert not one_argument(Holding(1, maps)), "ours inside of theirs"


def test_a_memory_of_theirs_that_holds_ours_arrives_as_it_was_sent():
    @njit
    def inner(holding, scale):
        return scale * holding.ours.columns.sum() + holding.number

    @njit
    def outer(holding):
        return inner(holding, 2.0)

    assert outer(Holding(5, sp.learners.maps.start_maps(np.ones((2, 3))))) == 17.0


def test_numba_is_found_as_it_was_left():
    @compiled
    def add(one, two):
        return one + two

    @compiled
    def wrong(one):
        return one + "text"

    assert add(1.5, 2) == 3.5
    assert BaseFunction.get_call_type is NUMBAS_OWN
    with pytest.raises(NumbaError):
        wrong(1.0)
    assert BaseFunction.get_call_type is NUMBAS_OWN


def test_what_is_remembered_is_told_apart_by_types_and_ends_with_the_outermost():
    with remembering_calls():
        once = BaseFunction.get_call_type
        with remembering_calls():
            assert BaseFunction.get_call_type is once
            add = njit(lambda one, two: one + two)
            assert (add(1, 2), add(1.5, 2), add(True, 2.5)) == (3, 3.5, 3.5)
        assert BaseFunction.get_call_type is once
    assert BaseFunction.get_call_type is NUMBAS_OWN
