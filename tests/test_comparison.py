"""`compare` takes what people have, and what it gives can be read, printed, framed and drawn."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest

import statepool as sp

P = np.array([[0.8, 0.2], [0.4, 0.6], [0.0, 1.0]])
MINE = sp.Instance(P, np.tile([0.9, 0.3], (300, 1)))
SMALL = {"delays": [5], "seeds": range(3)}


@pytest.fixture(scope="module")
def found():
    return sp.compare(MINE, [sp.SelfTuned(), sp.StateEXP3(), sp.StateEXP3(rate=0.5)], delays=[0, 5], seeds=range(4))


def test_an_instance_and_a_list_of_learners(found):
    assert found.families == ("instance 0",)
    assert found.learners == ("SelfTuned", "StateEXP3", "StateEXP3(rate=0.5)")
    assert found.delays == (0, 5)
    run = sp.simulate(MINE, sp.StateEXP3(rate=0.5), 5, seed=80_002)
    assert found.of("instance 0", "StateEXP3(rate=0.5)", 5)[2] == run.regret
    np.testing.assert_allclose(found.paths[0, 1, 2, 2][[0, -1]], run.regret_path[[0, -1]])


def test_families_by_name_as_functions_and_together():
    spread = partial(sp.families.spread, horizon=100)
    known = sp.compare([spread, MINE], "state-exp3", **SMALL)
    assert known.families == ("spread", "instance 1")
    assert sp.compare({"mine": MINE}, {"a": sp.Uniform()}, **SMALL).learners == ("a",)


def test_delays_one_a_round_never_and_drawn_by_seed():
    ragged = np.where(np.arange(300) % 3 == 0, sp.delays.never, 4)
    waits = {"ragged": ragged, "never": sp.delays.never, "drawn": partial(sp.delays.geometric, mean=20)}
    found = sp.compare(MINE, sp.StateEXP3(), waits, seeds=[1, 2])
    for name, delay in (("ragged", ragged), ("never", 300), ("drawn", sp.delays.geometric(2, 300, 20))):
        assert found.of("instance 0", "StateEXP3", name)[1] == sp.simulate(MINE, sp.StateEXP3(), delay, 80_002).regret
    listed = sp.compare(MINE, sp.StateEXP3(), [ragged, 7, partial(sp.delays.geometric, mean=20)], seeds=[1])
    assert listed.delays == ("delays 0", 7, "geometric")
    assert sp.compare(MINE, sp.StateEXP3(), 7, seeds=[1]).delays == (7,)


def test_printed_it_is_a_table(found):
    lines = repr(found).splitlines()
    assert lines[0] == "Comparison over 4 seeds, mean regret"
    assert lines[1].split() == ["family", "delay", "learner", "regret", "±", "saved", "over", "SelfTuned", "±"]
    assert len(lines) == 2 + 6
    gain, error = found.gain("instance 0", "StateEXP3", "SelfTuned", 5)
    assert lines[6].split()[-2:] == [f"{gain:.1f}", f"{error:.1f}"]
    assert found.table(over="StateEXP3").splitlines()[0].split()[-2] == "StateEXP3"
    assert found._repr_html_().count("<tr>") == 7


@pytest.mark.parametrize(("library", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_frames(found, library, kind):
    frame = found.frame(library)
    assert isinstance(frame, kind)
    assert list(frame.columns) == ["family", "delay", "learner", "seed", "settings", "regret", "loss", "seconds"]
    rows = frame[(frame["learner"] == "StateEXP3") & (frame["delay"] == 5)] if library == "pandas" else frame.filter(
        (pl.col("learner") == "StateEXP3") & (pl.col("delay") == 5)
    )  # fmt: skip
    np.testing.assert_array_equal(rows["regret"], found.of("instance 0", "StateEXP3", 5))
    assert set(rows["settings"]) == {repr(sp.StateEXP3())}
    losses = [sp.simulate(MINE, sp.StateEXP3(), 5, seed=80_000 + seed).loss for seed in range(4)]
    np.testing.assert_array_equal(rows["loss"], losses)
    assert (np.asarray(rows["seconds"]) > 0).all()
    run = sp.simulate(MINE, sp.SelfTuned(), 5, seed=1).frame(library)
    assert run.shape == (300, 5)


def test_plots_show_what_was_found(found):
    from matplotlib import pyplot as plt

    axes = found.plot(delay=5)
    names = [line.get_label() for line in axes.get_lines()]
    assert names == list(found.learners)
    end = axes.get_lines()[0].get_ydata()[-1]
    assert end == pytest.approx(found.mean("instance 0", "SelfTuned", 5))
    assert len(axes.collections) == 3, "a band each"
    run = sp.simulate(MINE, sp.StateEXP3(), 5, seed=1)
    again = run.plot(ax=axes)
    assert again is axes
    assert again.get_lines()[-1].get_ydata()[-1] == pytest.approx(run.regret)
    plt.close("all")


def test_plots_have_a_panel_for_each_delay_and_a_logarithmic_axis_where_a_line_lies_on_zero(found):
    from matplotlib import pyplot as plt

    axes = found.plot().figure.axes
    assert [ax.get_title(loc="left") for ax in axes] == ["instance 0, delay 0", "instance 0, delay 5"]
    ends = [found.mean("instance 0", name, delay) for name in found.learners for delay in (0, 5)]
    assert {ax.get_yscale() for ax in axes} == {"symlog" if min(ends) < 0.05 * max(ends) else "linear"}
    both = sp.compare({"a": MINE, "b": MINE}, [sp.Uniform(), sp.SelfTuned()], delays=[0, 1, 2], seeds=[1])
    assert len(both.plot().axes) == 6
    assert both.plot(family="b", delay=1).get_yscale() == "symlog"
    plt.close("all")


def test_a_run_says_how_it_went():
    run = sp.simulate(MINE, sp.StateEXP3(rate=0.5), 5, seed=1)
    assert repr(run) == f"Run(StateEXP3(rate=0.5), 300 rounds: regret {run.regret:.1f})"


def test_frames_go_in_wherever_arrays_do():
    for frame in (pd.DataFrame(P, columns=["a", "b"]), pl.DataFrame(P, schema=["a", "b"])):
        instance = sp.Instance(frame, frame[["a", "b"]] * 0 + 0.5 if isinstance(frame, pd.DataFrame) else P * 0 + 0.5)
        np.testing.assert_array_equal(instance.P, P)
        assert sp.dimension.effective(frame, [0.5, 0.5, 0.0]) == sp.dimension.effective(P, [0.5, 0.5, 0.0])
    for series in (pd.Series(np.arange(300)), pl.Series(np.arange(300))):
        one, other = (sp.simulate(MINE, sp.StateEXP3(), delay, seed=1) for delay in (series, np.arange(300)))
        assert one.regret == other.regret
    assert sp.StateEXP3(groups=pd.Series([0, 1, 0])) == sp.StateEXP3(groups=[0, 1, 0])


WRONG = {
    "families": [3, [3], {"a": 3}, "nosuch", [], {"a": lambda seed: 3}, [MINE, "nosuch"]],
    "learners": [3, ["nosuch"], [sp.Uniform(), sp.Uniform()], {"a": sp.Uniform}, []],
    "delays": ["ten", [-1], [1, 1], {"a": "b"}, [np.arange(7)], 1.5, []],
    "seeds": ["ten", [-1], [], 3],
    "jobs": [0, "two"],
    "stream": [-1, "a"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_bad_input_is_one_sentence(name, value):
    given = {"families": MINE, "learners": sp.Uniform(), "delays": [0], "seeds": [0], name: value}
    with pytest.raises(ValueError, match=r"^\w+: ") as refused:
        sp.compare(**given)
    assert "\n" not in str(refused.value)


def test_a_map_that_does_not_sum_to_one_says_how_to_scale_it():
    with pytest.raises(ValueError, match=r"row 0 sums to 0\.99.*P / P\.sum\(axis=1, keepdims=True\) scales every row"):
        sp.Instance([[0.49, 0.5]], [[0.5, 0.5]])


def test_a_player_with_names_and_random_numbers_of_its_own():
    shop = {"actions": ["tea", "coffee", "cake"], "states": ["left", "cart"]}
    first, second = (sp.StateEXP3(rate=0.1).player(P, seed=4, **shop) for _ in range(2))
    for player in (first, second):
        for _ in range(50):
            decision = player.act()
            player.observe(decision, "cart")
            player.update(decision, reward=0.25)
    assert decision.action in shop["actions"]
    assert first.act().action == second.act().action
    np.testing.assert_array_equal(first.policy(), second.policy())
    plain = sp.StateEXP3(rate=0.1).player(P)
    decision = plain.act(0.5)
    plain.observe(decision, 1)
    plain.update(decision, 0.75)
    assert isinstance(decision.action, int)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"actions": ["a"]}, "actions: has 1 names, expected 3"),
        ({"actions": "abc"}, "actions: is 'abc', expected a list of 3 names"),
        ({"states": ["a", "a"]}, "states: has a name twice"),
    ],
)
def test_names_that_do_not_fit(more, sentence):
    with pytest.raises(ValueError, match=sentence):
        sp.Uniform().player(P, **more)


def test_outcomes_and_states_that_are_none():
    player = sp.Uniform().player(P, states=["left", "cart"])
    decision = player.act()
    with pytest.raises(ValueError, match=r"state: 'card' is not known; did you mean cart\?"):
        player.observe(decision, "card")
    player.observe(decision, "cart")
    for given in ({}, {"loss": 0.5, "reward": 0.5}):
        with pytest.raises(ValueError, match="expected a loss or a reward, and one of them only"):
            player.update(decision, **given)
    with pytest.raises(ValueError, match="reward: is 2"):
        player.update(decision, reward=2)


def test_one_array_is_the_delay_of_each_round():
    band = sp.families.band(0, horizon=60)
    waits = np.arange(60) % 7
    found = sp.compare(band, "uniform", delays=waits, seeds=[1])
    assert found.regret.shape == (1, 1, 1, 1)
    assert found.regret.item() == sp.simulate(band, "uniform", waits, 80_001).regret
    with pytest.raises(ValueError, match=r"delay: has shape \(2,\)"):
        sp.compare(band, "uniform", delays=np.array([10, 50]))
