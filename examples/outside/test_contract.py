"""The contract of every learner and family, on these."""

import pytest
from statepool_mine import FollowTheLeader, two_shelves

from statepool.testing import check_family, learner_checks


@pytest.mark.parametrize("check", learner_checks(FollowTheLeader()), ids=str)
def test_learner(check):
    check()


def test_family():
    check_family(two_shelves)
