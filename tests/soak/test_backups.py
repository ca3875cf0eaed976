"""Fifty backups of a store under load, each restored and judged by what the clients had been told before it began."""

import pytest

from live.backups import take_under_load
from live.killed import moments

pytestmark = pytest.mark.soak


def test_backups_at_fifty_moments(url, tmp_path):
    targets = [f"sqlite:///{tmp_path}/restored-{n}.db" for n in range(50)]
    taken = take_under_load(url, "home", tmp_path, moments(50, longest=0.5, seed=16), targets)
    print(f"{len(taken)} backups, {len(taken[-1][0])} answers told before the last")
