"""Saying the same outcome again is harmless, whatever was changed in between; saying another is refused."""

import msgspec
import pytest

from statepool.live import Conflict
from statepool.live.errors import StoreUnavailable
from statepool.live.events import Resolved, decode, encode
from statepool.live.requests import Observe, Resolve
from statepool.live.writer import Writer


@pytest.fixture
def pool(place):
    return place.make(loss_bounds=(0, 10), reward_bounds=(0, 200), expire_after=60, default_loss=5.0, clock=lambda: 1e6)


OTHER_BOUNDS = [
    {"loss_bounds": (0, 20), "reward_bounds": (0, 400)},
    {"loss_bounds": (-5, 10), "reward_bounds": (100, 200)},
    {"loss_bounds": (5, 6), "default_loss": 5.5, "reward_bounds": (0, 1)},  # too narrow for what was said
]


@pytest.mark.parametrize("bounds", OTHER_BOUNDS)
@pytest.mark.parametrize("said", [{"loss": 4.0}, {"loss": 0}, {"reward": 120}])
@pytest.mark.parametrize("late", [False, True])
def test_an_outcome_may_be_said_again_under_other_bounds(pool, said, bounds, late):
    pool.decide("x")
    if late:
        assert pool.expire(now=1e6 + 61) == 1
    pool.resolve("x", **said)
    before = [row["loss"] for row in pool.rows()]
    pool.change(**bounds)
    for _ in range(2):
        pool.resolve("x", **said)
    with pytest.raises((Conflict, ValueError), match=r"had (loss|reward)|expected"):
        pool.resolve("x", **{name: value + 0.5 for name, value in said.items()})
    assert [row["loss"] for row in pool.rows()] == before


def test_another_outcome_that_comes_to_the_same_loss_is_another_outcome(pool):
    pool.decide("x")
    pool.resolve("x", loss=4.0)
    pool.change(loss_bounds=(0, 20))
    with pytest.raises(Conflict, match=r"had loss 4\.0 before, and now 8\.0"):
        pool.resolve("x", loss=8.0)


def test_a_reward_may_say_the_loss_that_was_said(pool):
    pool.decide("x")
    pool.resolve("x", loss=4.0)
    pool.resolve("x", reward=120)
    with pytest.raises(Conflict, match=r"had loss 0\.4 before, and now 0\.5"):
        pool.resolve("x", reward=100)


@pytest.mark.parametrize("said", [{}, {"loss": 4.0, "reward": 120}])
def test_a_repeat_must_say_one_thing(pool, said):
    pool.decide("x")
    pool.resolve("x", loss=4.0)
    with pytest.raises(ValueError, match="one of them only"):
        pool.resolve("x", **said)


def test_an_outcome_of_an_earlier_version_is_read_and_compared_by_its_loss():
    """Its event ended with the loss."""
    event = Resolved(1, "x", 0, 2, 1, False, 5, None, 0.4, 4.0, False)
    whole = encode(event)
    fields = msgspec.msgpack.decode(whole)
    assert fields[9:11] == [0.4, 4.0]
    older = msgspec.msgpack.encode(fields[:10])
    assert decode(older) == Resolved(1, "x", 0, 2, 1, False, 5, None, 0.4)
    assert decode(whole) == event


def test_a_closed_pool_says_so_and_its_store_goes_on(place):
    store = place.store()
    pool = place.make()
    pool.close()
    shared = type(pool).open(store, place.name)
    shared.decide("x")
    shared.close()
    shared.close()
    for call in (shared.decide, shared._fold, shared.expire, lambda: shared.resolve("x", 0.5)):
        with pytest.raises(StoreUnavailable, match=f"pool '{place.name}' is closed"):
            call()
    assert store.pools()
    assert type(pool).open(store, place.name).find("x")["loss"] is None


def test_a_store_that_goes_away_in_the_middle_of_a_request_is_unavailable(place, monkeypatch):
    """The request has been written by then, into a batch of which nothing can be kept."""
    with place.make() as pool:
        pool.decide("x")
    pool = place.open()

    def away(self, seq):
        raise StoreUnavailable("as if the server were gone")

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "event", away)
        answers = pool.run([Observe("x", "buy"), Resolve("x", 0.5)])
    assert [type(answer) for answer in answers] == [StoreUnavailable] * 2
    assert pool.run([Observe("x", "buy"), Resolve("x", 0.5)]) == [None, None]
