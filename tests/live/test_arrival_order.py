"""Given the same journaled decisions, any order of arrivals, and any number of processes, gives the same bits."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from live.arrivals import LEARNERS, bring, check_any_order, learnt, make, state_of
from live.places import SQLitePlace, fold_of
from live.worker import Team


@pytest.fixture(scope="module", params=LEARNERS)
def made(request, tmp_path_factory):
    place = SQLitePlace(tmp_path_factory.mktemp("arrivals") / "pool.db")
    return place, make(place, LEARNERS[request.param])


def orders_of(arrivals):
    numbers = range(len(arrivals))
    cuts = st.lists(st.sampled_from(numbers), max_size=3).map(sorted)
    return st.lists(st.tuples(st.permutations(numbers), cuts), min_size=1, max_size=2)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_order_of_arrivals_gives_the_same_bits(made, tmp_path_factory, data):
    place, arrivals = made
    orders = [(range(len(arrivals)), []), *data.draw(orders_of(arrivals))]
    check_any_order(place, tmp_path_factory.mktemp("orders"), arrivals, orders)


@pytest.mark.parametrize("learner", ["exp3", "tuned"])
def test_processes_that_bring_arrivals_together_give_the_same_bits(tmp_path, learner):
    places = [SQLitePlace(tmp_path / f"{n}.db") for n in (0, 1)]
    for each in places:
        each.name = "home"
        arrivals = make(each, LEARNERS[learner])
    with places[0].open() as pool:
        bring(pool, arrivals)
    with Team(places[1].url, "home", size=3, n_threads=4) as team:
        assert not [answer for answer in team.do([arrivals[n::3] for n in range(3)]) if answer]
    assert state_of(places[0]) == state_of(places[1])
    assert learnt(fold_of(places[1].events())) == state_of(places[1])[0]
