"""Running studies: on any executor, with results kept under what determines them, whole or not at all."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from statepool.studies.runner import check_writable, read_result, run_studies, write_result
from statepool.studies.study import Cell, Study, Sweep, Table, Task, paired

CELL = Cell("band", "band", {"n_actions": 4, "horizon": 60}, 5, {"state": ("state-exp3", {})})
TASK = Task(paired, CELL, seed=1, stream=2)
STUDY = Study("tiny", "T", "Tiny", "ours", "?", "!", ".", [Sweep("s", [CELL], 3, 10)], lambda results: [Table("t", {})])


def only_file(folder):
    (path,) = folder.rglob("*.json")
    return path


def test_a_result_comes_back_with_every_bit(tmp_path):
    assert read_result(tmp_path, TASK) is None
    write_result(tmp_path, TASK, {"state": 0.1 + 0.2, "action": 1e-300})
    assert read_result(tmp_path, TASK) == {"state": 0.1 + 0.2, "action": 1e-300}


def test_another_task_has_another_result(tmp_path):
    write_result(tmp_path, TASK, {"state": 1.0})
    others = [
        replace(TASK, seed=2), replace(TASK, stream=3), replace(TASK, function=len),
        *(replace(TASK, cell=replace(CELL, **change)) for change in (
            {"delay": 6}, {"settings": {"n_actions": 5}}, {"extra": {"draws": 2}}, {"arms": {}},
        )),
    ]  # fmt: skip
    assert [read_result(tmp_path, other) for other in others] == [None] * len(others)


@pytest.mark.parametrize("damage", ["", "{", "null", "3"])
def test_what_cannot_be_read_is_computed_again(tmp_path, damage):
    with ThreadPoolExecutor(1) as executor:
        before = run_studies([STUDY], tmp_path, executor, most_seeds=1)["tiny"].of("s", "band", "state")
        only_file(tmp_path).write_text(damage)
        after = run_studies([STUDY], tmp_path, executor, most_seeds=1)["tiny"].of("s", "band", "state")
    assert before == after
    assert json.loads(only_file(tmp_path).read_text()) == {"state": after[0]}


class Lazy(ThreadPoolExecutor):
    """An executor of the user's that counts what it is given."""

    given = 0

    def submit(self, *arguments, **more):
        self.given += 1
        return super().submit(*arguments, **more)


def test_any_executor_runs_what_is_missing_only(tmp_path):
    done = []
    with Lazy(1) as executor:
        first = run_studies([STUDY], tmp_path, executor, on_task=done.append)
        again = run_studies([STUDY], tmp_path, executor, on_task=done.append)
        assert executor.given == 3
    assert done == ["tiny"] * 6
    assert (first["tiny"].of("s", "band", "state") == again["tiny"].of("s", "band", "state")).all()


def test_a_task_that_fails_stops_the_run_and_keeps_what_is_finished(tmp_path):
    def fail(task):
        raise ValueError("no such thing")

    broken = replace(STUDY, sweeps=[*STUDY.sweeps, Sweep("f", [CELL], 2, 10, fail)])
    with ThreadPoolExecutor(1) as executor, pytest.raises(ValueError, match="no such thing"):
        run_studies([broken], tmp_path, executor)
    assert len(list(tmp_path.rglob("*.json"))) == 3


def test_an_unwritable_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="out: cannot write"):
        check_writable(tmp_path / "file" / "cells")
