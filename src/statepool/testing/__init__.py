"""The contract that every learner and family keeps, as checks to run on yours.

    import pytest
    from statepool.testing import check_family, learner_checks

    @pytest.mark.parametrize("check", learner_checks(MyLearner()), ids=str)
    def test_my_learner(check):
        check()

    def test_my_family():
        check_family(my_family)

A check that fails raises `ContractError` with one sentence that says what was promised and where it was broken.
The package's own learners and families are held to the same checks.
"""

from statepool.testing.checking import Check, ContractError
from statepool.testing.families import check_family, family_checks
from statepool.testing.learners import check_learner, learner_checks

__all__ = ["Check", "ContractError", "check_family", "check_learner", "family_checks", "learner_checks"]
