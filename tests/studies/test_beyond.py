"""Studies without published numbers, on their first seed: what their texts claim holds."""

import pytest

from statepool.studies import STUDIES
from statepool.studies.beyond.direct_effects import crossing
from statepool.studies.cells import CellStore
from statepool.studies.runner import LocalExecutor, run_studies


class Unwatched:
    def started(self, study, rounds):
        pass

    def finished(self, study, rounds, stored):
        pass


@pytest.fixture
def tables(request, tmp_path):
    study = STUDIES[request.param]
    results = run_studies([study], LocalExecutor(1), CellStore(tmp_path), Unwatched(), most_seeds=1)
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


@pytest.mark.parametrize("tables", ["phase-diagram"], indirect=True)
def test_pooling_with_a_known_map_gains_where_rows_differ(tables):
    assert all(value.number > 0 for value in tables["Gain of known over action-level play"]["overlap 0"].values())


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
