"""The effective dimension of a map: its value at a policy, and a proved bracket of its supremum."""

from statepool.dimension.measure import effective, estimate
from statepool.dimension.search import Bracket, bracket

__all__ = ["Bracket", "bracket", "effective", "estimate"]
