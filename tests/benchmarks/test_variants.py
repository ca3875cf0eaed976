"""The ablation takes out what it says."""

from pathlib import Path

import pytest

import statepool as sp
from variants import LEARNER, WITHOUT, build


def folder(root: Path, name: str) -> Path:
    (root / name).mkdir()
    return root / name


def test_every_ingredient_is_found_in_the_sources(tmp_path):
    for number, edits in enumerate(WITHOUT.values()):
        assert build(edits, folder(tmp_path, f"found_{number}")) != sp.SelfTuned()


@pytest.mark.soak  # a learner of its own is compiled
def test_a_variant_runs_its_own_code(tmp_path):
    instance = sp.families.locked(seed=0, horizon=2_000)
    whole = sp.simulate(instance, sp.SelfTuned(), 50, seed=1).actions
    other = sp.simulate(instance, build(WITHOUT["optimism"], folder(tmp_path, "other")), 50, seed=1).actions
    assert (whole != other).any()


def test_an_edit_of_what_is_not_there_is_refused(tmp_path):
    with pytest.raises(ValueError, match="expected it once"):
        build(((LEARNER, "no such text", ""),), folder(tmp_path, "absent"))
