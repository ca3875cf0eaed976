"""The store of finished tasks: keyed by what determines them, whole or not at all, damage noticed."""

import json
from dataclasses import replace

import pytest

from statepool.studies.cells import CellStore, key_of
from statepool.studies.study import Task

TASK = Task("statepool.studies.tasks:paired", {"family": "band", "seed": 1}, rounds=10)


def only_file(folder):
    (path,) = folder.rglob("*.json")
    return path


def test_a_result_comes_back_with_every_bit(tmp_path):
    store = CellStore(tmp_path)
    store.put(TASK, {"state": 0.1 + 0.2, "action": 1e-300})
    assert CellStore(tmp_path).get(TASK) == {"state": 0.1 + 0.2, "action": 1e-300}


def test_another_task_has_another_key():
    other = replace(TASK, arguments={**TASK.arguments, "seed": 2})
    assert key_of(TASK) != key_of(other)
    assert key_of(TASK) != key_of(replace(TASK, function="statepool.studies.paper.funnel:shares"))
    assert key_of(TASK) == key_of(replace(TASK, rounds=99)), "rounds only move the progress bar"


@pytest.mark.parametrize("damage", ["", "{", "null", "[]", '{"key": 1}'])
def test_damage_is_noticed(tmp_path, damage):
    store = CellStore(tmp_path)
    store.put(TASK, {"state": 1.0})
    only_file(tmp_path).write_text(damage)
    assert store.get(TASK) is None
    assert store.damaged == 1


def test_a_changed_number_is_noticed(tmp_path):
    store = CellStore(tmp_path)
    store.put(TASK, {"state": 1.0})
    entry = json.loads(only_file(tmp_path).read_text())
    entry["result"]["state"] = 2.0
    only_file(tmp_path).write_text(json.dumps(entry))
    assert store.get(TASK) is None
    assert store.damaged == 1


def test_nothing_stored_is_no_damage(tmp_path):
    store = CellStore(tmp_path)
    assert store.get(TASK) is None
    assert store.damaged == 0


def test_an_unwritable_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="out: cannot write"):
        CellStore(tmp_path / "file" / "cells")
