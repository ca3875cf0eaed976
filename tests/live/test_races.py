"""Many clients of several processes at once, on both stores: each thing happens once."""

from collections import Counter

import pytest

import statepool as sp
from live.places import PostgresPlace, SQLitePlace, check_chain, fold_of
from live.worker import Team

PROCESSES, CLIENTS = 4, 16


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def raced(request, tmp_path_factory):
    """A pool and the processes at it; starting them takes longer than the races."""
    if request.param == "sqlite":
        place = SQLitePlace(tmp_path_factory.mktemp("races") / "pool.db")
    else:
        place = PostgresPlace(request.getfixturevalue("database"))
    place.make(sp.SelfTuned()).close()
    with Team(place.url, place.name, PROCESSES, CLIENTS) as team:
        yield place, team
    place.close()


def test_sixty_four_clients_race_on_one_outcome_and_it_is_applied_once(raced):
    place, team = raced
    with place.open() as pool:
        pool.decide("x")
        pool.observe("x", "buy")
    # Half of them say one thing and half another: who comes first is right, the others are told so.
    calls = [["resolve", "x", 0.25 if client % 2 else 0.75] for client in range(CLIENTS)]
    answers = team.do([calls] * PROCESSES)
    assert (len(answers), answers.count(None)) == (64, 32)
    assert all(answer.startswith("Conflict: outcome: ticket 'x' had loss") for answer in answers if answer)
    events = place.events()
    assert Counter((kind, ticket) for _, kind, ticket, *_ in events)["outcome", "x"] == 1
    pool_state = fold_of(events)
    assert pool_state.counts["outcome"] == pool_state.tallies["learner"].count == 1
    assert pool_state.dump() == place.open()._fold().dump()


def test_processes_decide_on_overlapping_tickets_and_all_get_one_answer(raced):
    place, team = raced
    shares = [[["decide", f"t{(n + 5 * process) % 40}"] for n in range(30)] for process in range(PROCESSES)]
    answers = team.do(shares)
    told = {ticket: (action, probability) for ticket, action, probability in answers}
    assert sorted(told) == sorted({call[1] for share in shares for call in share})
    assert all(told[ticket] == (action, probability) for ticket, action, probability in answers)
    kept = {row["ticket"]: (row["action"], row["probability"]) for row in place.open().rows()}
    assert {ticket: kept[ticket] for ticket in told} == told
    events = place.events()
    check_chain(events)
    assert [number for _, kind, _, number, *_ in events if kind == "decision"] == list(range(len(kept)))


def test_handles_make_one_pool_together(place):
    pools = [place.make() for _ in range(3)]
    assert len({pool.decide("x").action for pool in pools}) == 1
    assert [kind for _, kind, *_ in place.events()] == ["catalogue", "refresh", "decision"]
