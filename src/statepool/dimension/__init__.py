"""The effective dimension of a map: its value at a policy, and a proved bracket of its supremum."""

from statepool.dimension.measure import chi_square, effective, estimate
from statepool.dimension.search import Bracket, bracket

__all__ = ["Bracket", "bracket", "chi_square", "effective", "estimate"]
