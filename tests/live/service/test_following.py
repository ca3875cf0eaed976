"""A follower shows what others write, and writes nothing."""

from live.places import ask
from live.service.clients import DECISIONS, POOL, Client
from statepool.live.service import create_app
from statepool.live.stores import open_store


def everything(url):
    tables = ("pools", "events", "pending", "snapshots", "keys", "calls", "sessions", "probes")
    return [ask(url, f"SELECT * FROM {table}") for table in tables]


def test_a_follower_shows_everything_and_writes_nothing(start, url):
    client = start()
    made = [client.post(DECISIONS).json() for _ in range(3)]
    follower = Client(create_app(open_store(url), follow=True))
    try:
        before = everything(url)
        assert follower.get("/v1/pools/home").json()["decisions"] == 3
        assert len(follower.get("/v1/pools/home/rows").text.splitlines()) == 3
        assert 'statepool_decisions_total{pool="home"} 3.0' in follower.get("/metrics").text
        assert [follower.get(address).status_code for address in ("/", "/pools/home", "/readyz", "/healthz")] == [
            200
        ] * 4
        for method, address, body in (
            ("POST", DECISIONS, None), ("PUT", f"{DECISIONS}/{made[0]['ticket']}/outcome", {"loss": 0.5}),
            ("PUT", "/v1/pools/new", POOL), ("PATCH", "/v1/pools/home", {"refresh": 3}),
            ("DELETE", "/v1/pools/home/actions/tea", None), ("POST", "/v1/pools/home/expire", None),
        ):  # fmt: skip
            answer = follower.request(method, address, json=body)
            assert (answer.status_code, "follows" in answer.json()["error"]) == (405, True), (method, address)
        assert everything(url) == before
        client.post(DECISIONS)
        assert follower.get("/v1/pools/home").json()["decisions"] == 4
        before = everything(url)
    finally:
        follower.stop()
    assert everything(url) == before
