"""Studies without published numbers: what their texts claim holds on the first seeds, and they run what they name."""

import pytest

import statepool as sp
from statepool.comparison import threads
from statepool.learners.neighbours.impatient_thompson import prior_of
from statepool.studies import STUDIES
from statepool.studies.neighbours import ARMS, COVERED, bounds
from statepool.studies.runner import run_studies
from statepool.studies.self_tuned import GREEDY, THOMPSON, crossing
from statepool.studies.study import Cell, Task, paired

BAND = {"n_actions": 9, "horizon": 300}


@pytest.fixture
def tables(request, tmp_path):
    study = STUDIES[request.param]
    with threads(-1) as executor:
        results = run_studies([study], tmp_path, executor, most_seeds=1)
    return {table.title: table.rows for table in study.tables(results[study.name])}


@pytest.mark.soak
@pytest.mark.parametrize("tables", ["certified-dimension"], indirect=True)
def test_random_search_lies_below_every_proved_bracket_and_theorem_1_holds(tables):
    promised = tables.pop("Theorem 1 at its own rate, d=50")
    for row in (row for rows in tables.values() for row in rows.values()):
        assert row["vhat, random search"].number < row["proved lower"].number <= row["proved upper"].number
    assert all(row["largest / bound"].number < 1 for row in promised.values())


@pytest.mark.soak
@pytest.mark.parametrize("tables", ["self-tuned"], indirect=True)
def test_self_tuned_is_far_below_state_exp3_and_below_its_hindsight_tuning(tables):
    for row in tables["SelfTuned against the best rule of each setting"].values():
        assert row["self-tuned"].number < row["state"].number / 2
    for row in tables["The funnel of study 14"].values():
        assert row["self-tuned"].number < row["state, hindsight"].number


@pytest.mark.soak
@pytest.mark.parametrize("tables", ["overlap-and-drift"], indirect=True)
def test_hints_save_most_of_the_regret_where_drift_is_slow(tables):
    (rows,) = (rows for title, rows in tables.items() if title.startswith("Periods"))
    assert all(rows[f"period {p} d"]["saved %"].number > 80 for p in (25, 50, 100))
    assert rows["period 4 d"]["saved"].number < 0


@pytest.mark.parametrize("tables", ["phase-diagram"], indirect=True)
def test_pooling_with_a_known_map_gains_where_rows_differ(tables):
    assert all(value.number > 0 for value in tables["Gain of known over action-level learning"]["overlap 0"].values())


@pytest.mark.soak
@pytest.mark.parametrize("tables", ["direct-effects"], indirect=True)
def test_self_tuned_leads_at_first_and_action_level_learners_overtake_state_exp3(tables):
    for row in tables["Regret by the size of direct effects, T=10000, d=50"].values():
        assert row["self-tuned"].number < row["action"].number
    for base in ("spread", "dirichlet"):
        assert "action below state" in tables["Crossing points in the size, T=10000, d=50"][base]


def test_crossings_are_interpolated():
    assert crossing((0.0, 1.0, 2.0), (3.0, 2.0, 1.0), (2.0, 2.5, 3.0)) == pytest.approx(2 / 3)
    assert crossing((0.0, 1.0), (1.0, 1.0), (2.0, 2.0)) == 0.0
    assert crossing((0.0, 1.0), (1.0, 3.0), (2.0, 2.0)) is None


def test_simple_rules_are_compared_with_self_tuned_throughout():
    for sweep in STUDIES["self-tuned"].sweeps:
        if sweep.name != "unknown":
            assert all({*GREEDY, *THOMPSON, "self-tuned"} <= set(cell.arms) for cell in sweep.cells)


def test_neighbours_are_built_from_plain_data():
    task = Task(paired, Cell("all", "band", BAND, 10, ARMS), seed=3, stream=2)
    for label, (name, _) in ARMS.items():
        assert isinstance(task.learner(label), sp.learners.REGISTRY[name])
    sibling = task.instance(shift=5_000)
    assert task.learner("impatient Thompson").prior == prior_of(sibling.P, sibling.theta)
    assert task.learner("MetaBIO on ZS").base == sp.learners.ZimmertSeldin(tuning="anytime")


def test_regrets_are_those_of_the_runs():
    arms = {name: ARMS[name] for name in ("State-EXP3", "Certified")}
    late = paired(Task(paired, Cell("late", "band", BAND, 10, arms, {"kind": "missing"}), seed=1, stream=2))
    delays, instance = sp.delays.missing(1, 300, 10), sp.families.band(1, n_actions=9, horizon=300)
    learners = {"State-EXP3": sp.StateEXP3(), "Certified": sp.learners.Certified()}
    assert late == {name: sp.simulate(instance, learner, delays, 2).regret for name, learner in learners.items()}


def test_bounds_are_above_the_regrets_they_cover():
    cell = Cell("bounded", "band", BAND, 10, {arm: ARMS[arm] for arm in COVERED})
    numbers = bounds(Task(bounds, cell, seed=1, stream=2))
    for arm, covered in COVERED.items():
        assert all(numbers[arm] <= numbers[bound] for bound in covered)
