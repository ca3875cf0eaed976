"""Two hundred maps: the bracket holds what an independent search finds, and closes."""

import pytest

from maps import independent_search, random_map
from statepool.dimension import bracket

pytestmark = pytest.mark.soak


@pytest.mark.parametrize("seed", range(200))
def test_bracket_holds_the_independent_search_and_closes(seed):
    P = random_map(seed)
    found = bracket(P, gap=0.01, seconds=20)
    best = independent_search(P, seed)
    assert best <= found.upper
    assert found.upper / found.lower - 1 <= (0.01 if P.shape[1] <= 3 else 0.05)
