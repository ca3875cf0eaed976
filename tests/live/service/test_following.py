"""A follower shows what others write, and writes nothing."""

import sqlalchemy as sa

from live.service.clients import DECISIONS, POOL
from statepool.live.database import Database


def everything(url):
    with Database(url, read_only=True) as database, database.read() as connection:
        tables = database.tables.metadata.sorted_tables
        return [connection.execute(sa.select(table)).all() for table in tables]


def test_a_follower_shows_everything_and_writes_nothing(start, url):
    client = start()
    made = [client.post(DECISIONS).json() for _ in range(3)]
    follower = start(None, follow=True)
    try:
        before = everything(url)
        follower.wait_until_ready()
        assert follower.get("/v1/pools/home").json()["decisions"] == 3
        assert len(follower.get("/v1/pools/home/rows").text.splitlines()) == 3
        assert 'statepool_decisions_total{pool="home"} 3.0' in follower.get("/metrics").text
        assert [follower.get(address).status_code for address in ("/", "/pools/home", "/readyz", "/healthz")] == [
            200
        ] * 4
        for method, address, body in (
            ("POST", DECISIONS, None), ("PUT", f"{DECISIONS}/{made[0]['ticket']}/outcome", {"loss": 0.5}),
            ("PUT", "/v1/pools/new", POOL), ("PATCH", "/v1/pools/home", {"update_every": 3}),
            ("DELETE", "/v1/pools/home/actions/tea", None),
        ):  # fmt: skip
            answer = follower.request(method, address, json=body)
            assert (answer.status_code, "read-only" in answer.json()["error"]) == (405, True), (method, address)
        assert everything(url) == before
        client.post(DECISIONS)
        assert follower.get("/v1/pools/home").json()["decisions"] == 4
        before = everything(url)
    finally:
        follower.stop()
    assert everything(url) == before
