"""The fuzz for bad families: the same numbers give the same families and the same regrets."""

import numpy as np
import pytest

import statepool as sp
from fuzz_self_tuned import MOTIONS, ROWS, Recipe, draw_recipe, report, run


def test_recipes_come_from_their_seed():
    assert draw_recipe(1, 7) == draw_recipe(1, 7)
    assert len({draw_recipe(1, number) for number in range(20)}) == 20


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("motion", MOTIONS)
def test_every_recipe_makes_an_instance(rows, motion):
    recipe = Recipe(5, 3, 200, 10, rows, motion, 0.4, 40, 0.5, "fixed")
    rng = np.random.default_rng(0)
    instance = sp.Instance(ROWS[rows](recipe, rng), np.clip(MOTIONS[motion](recipe, rng), 0, 1))
    assert (instance.n_actions, instance.n_states, instance.horizon) == (5, 3, 200)


def test_regrets_are_the_same_twice_and_the_worst_is_reported(capsys):
    number = next(n for n in range(100) if draw_recipe(1, n).horizon == 4_000)
    first, second = run(1, number, seeds=1), run(1, number, seeds=1)
    assert first.regrets == second.regrets
    report([first], show=2)
    assert f"{number}: K=" in capsys.readouterr().out
