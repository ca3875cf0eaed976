"""The client against a served pool: every call, lost answers, conflicts, both clients alike."""

import asyncio
import subprocess
import sys

import httpx
import numpy as np
import pytest

from client.dropping import Dropping
from live.service.servers import serving
from statepool.client import (
    AsyncClient,
    Client,
    ClientError,
    Conflict,
    Invalid,
    NotAllowed,
    NotFound,
    Unavailable,
)

ACTIONS, STATES = ["tea", 3, ("a", "pair")], ["left", "cart"]
P = np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving("--store", f"sqlite:///{tmp_path_factory.mktemp('client')}/pools.db") as served:
        yield served


@pytest.fixture
def client(served):
    with Client(served.url) as client:
        yield client


@pytest.fixture
def pool(client, request):
    name = request.node.name[:64].replace("[", "-").replace("]", "")
    return client.make_pool(name, ACTIONS, STATES, P, settings={"reward_bounds": [0, 100]})


def test_decide_observe_resolve_in_rewards(client, pool):
    decision = pool.decide()
    assert decision.action in ACTIONS
    assert 0 < decision.probability <= 1
    pool.observe(decision.ticket, "cart")
    pool.resolve(decision.ticket, reward=np.float64(25.0))
    pool.resolve(decision.ticket, reward=25.0)
    row = pool.find(decision.ticket)
    assert [row[name] for name in ("action", "state", "loss", "reward")] == [decision.action, "cart", 0.75, 25.0]
    assert row["context"] is None
    assert row["decided_at"] <= row["observed_at"] <= row["resolved_at"]
    assert list(pool.rows()) == [row]
    assert pool.name in client.pools()
    assert pool.status()["decisions"] == 1


def test_the_catalogue_and_the_settings(pool):
    pool.add_action("coffee", np.array([0.5, 0.5]))
    pool.reweight_action("coffee", [0.25, 0.75])
    pool.reweight_action(3, [0.25, 0.75])
    pool.retire_action(("a", "pair"))
    assert pool.status()["actions"] == 3
    assert pool.change(holdout=0.25)["settings"]["holdout"] == 0.25
    with pytest.raises(Invalid, match="window: a pool of SelfTuned has one from the start or none"):
        pool.change(window=60)
    assert pool.status()["settings"]["window"] is None


def test_contexts_and_candidates(client):
    rows = {"new": [[0.8, 0.2], [0.6, 0.4]], "known": np.array([[0.5, 0.5], [0.2, 0.8]])}
    pool = client.make_pool("crowd", ["tea", "cake"], STATES, rows, contexts=["new", "known"])
    decision = pool.decide(context="known")
    pool.observe(decision.ticket, "cart")
    pool.resolve(decision.ticket, loss=0.0)
    assert pool.decide(decision.ticket, context="known") == decision
    with pytest.raises(Conflict):
        pool.decide(decision.ticket, context="new")
    with pytest.raises(Invalid, match="context"):
        pool.decide(context="nobody")
    plain = client.make_pool("offers", ["tea", "cake"], STATES, [[0.9, 0.1], [0.2, 0.8]])
    assert plain.decide(candidates={"cake": np.array([0.4, 0.6])}).action == "cake"
    assert plain.decide(candidates={"poster": P[0], 3: (0.5, 0.5)}).action in ("poster", 3)
    with pytest.raises(Invalid, match=r"row of 'poster': sums to 1\.4"):
        plain.decide(candidates={"poster": [0.9, 0.5]})


@pytest.mark.parametrize("lost", [1, 3])
def test_a_lost_answer_is_asked_for_again_and_decides_once(served, pool, lost):
    way = Dropping(served.address, lost)
    with Client(way.url) as client:
        again = client.pool(pool.name)
        decision = again.decide()
    assert way.dropped == lost
    assert [row["ticket"] for row in pool.rows()] == [decision.ticket]
    assert pool.decide(decision.ticket) == decision
    way.close()


def test_a_lost_answer_with_the_asynchronous_client(served, pool):
    way = Dropping(served.address, 2)

    async def use():
        async with AsyncClient(way.url) as client:
            there = client.pool(pool.name)
            decision = await there.decide()
            await there.observe(decision.ticket, "cart")
            await there.resolve(decision.ticket, loss=0.5)
            await there.resolve(decision.ticket, reward=50.0)
            assert [row["ticket"] async for row in there.rows()] == [decision.ticket]
            with pytest.raises(NotFound):
                async for _ in client.pool("away").rows():
                    pass
            more = await asyncio.gather(there.decide("a"), there.decide("b"))
            return await there.find(decision.ticket), more

    row, more = asyncio.run(use())
    assert (row["state"], row["loss"]) == ("cart", 0.5)
    assert [each.ticket for each in more] == ["a", "b"]
    assert way.dropped == 2
    way.close()


def test_what_is_refused_is_said_in_the_services_words(client, pool):
    decision = pool.decide()
    pool.observe(decision.ticket, "cart")
    with pytest.raises(Conflict, match="was in 'cart' before, and now in 'left'"):
        pool.observe(decision.ticket, "left")
    with pytest.raises(NotFound, match="pool: 'away' is not in this store"):
        client.pool("away").decide()
    with pytest.raises(Invalid, match="expected a loss or a reward"):
        pool.resolve(decision.ticket)
    with pytest.raises(Invalid, match=r"loss: is 1e\+300, expected a finite number in") as refused:
        pool.resolve(decision.ticket, loss=1e300)
    assert refused.value.status == 422
    with pytest.raises(ValueError, match="cannot be written as JSON"):
        pool.resolve(decision.ticket, loss=float("nan"))


ANSWERS = {
    401: (NotAllowed, '{"error": "key: is not known"}', "key: is not known"),
    302: (ClientError, "moved", "the answer was 302: moved"),
    413: (Invalid, '{"error": "too large"}', "too large"),
    500: (ClientError, "<html>oh</html>", "the answer was 500: <html>oh</html>"),
    503: (Unavailable, '{"error": "later"}', "later"),
    200: (ClientError, "[]", "is not as expected"),
    201: (ClientError, "hello", "is not as expected"),
}


@pytest.mark.parametrize("status", ANSWERS)
def test_every_answer_becomes_a_sentence(status):
    kind, text, sentence = ANSWERS[status]
    asked = []

    def answer(request):
        asked.append(request.content)
        return httpx.Response(status, text=text)

    with (
        Client("http://nowhere", tries=2, transport=httpx.MockTransport(answer)) as client,
        pytest.raises(kind) as raised,
    ):
        client.pool("home").decide()
    assert sentence in str(raised.value)
    assert len(asked) == (2 if status == 503 else 1)
    assert len(set(asked)) == 1, "the same ticket each time"


def test_nobody_there():
    with Client("http://127.0.0.1:9", tries=2) as client, pytest.raises(Unavailable, match="did not answer in 2 tries"):
        client.pools()
    with Client("localhost:8000", tries=1) as client, pytest.raises(Unavailable, match="UnsupportedProtocol"):
        client.pools()


def test_the_client_imports_no_numba():
    code = "import sys, statepool.client; print(sorted({'numba', 'numpy', 'sqlalchemy', 'msgspec'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
