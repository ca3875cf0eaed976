"""Pools, their catalogue and their settings over HTTP."""

import json
import time
from contextlib import closing

import pytest

from live.places import raw_events, raw_sqlite
from live.service.clients import DECISIONS, POOL, until
from statepool.live.pool import Pool
from statepool.live.replay import replay
from statepool.live.stores import open_store

HOME = "/v1/pools/home"


def test_making_a_pool_twice_is_harmless_and_another_is_refused(start):
    client = start(None)
    assert client.put(HOME, json=POOL).status_code == 201
    assert client.put(HOME, json=POOL).status_code == 200
    other = {**POOL, "P": [[0.5, 0.5]] * 4}
    assert client.put(HOME, json=other).status_code == 409
    assert client.put(HOME, json={**POOL, "states": ["a", "b"]}).status_code == 409
    assert client.put(HOME, json={**POOL, "learner": "uniform"}).status_code == 409
    assert client.put(HOME, json={**POOL, "seed": 2}).status_code == 409
    assert client.put(HOME, json={**other, "update": True}).status_code == 200
    assert client.get("/v1/pools").json() == {"pools": ["home"]}


def test_a_learner_with_options(start):
    learner = {"name": "state-exp3", "options": {"rate": 0.1}}
    client = start({**POOL, "learner": learner})
    shown = client.get(HOME).json()["learner"]
    assert (shown["name"], shown["options"]["rate"]) == ("state-exp3", 0.1)


def test_actions_come_and_go(client):
    assert client.put(f"{HOME}/actions/mate", json={"row": [0.5, 0.5], "category": "hot"}).status_code == 200
    assert client.get(HOME).json()["actions"] == 5
    assert client.put(f"{HOME}/actions/mate", json={"row": [0.5, 0.5]}).status_code == 200
    assert client.put(f"{HOME}/actions/mate", json={"row": [0.1, 0.9]}).status_code == 409
    assert client.put(f"{HOME}/actions/mate", json={"row": [0.1, 0.9], "reweight": True}).status_code == 200
    assert client.delete(f"{HOME}/actions/mate").json() == {"action": "mate"}
    assert client.delete(f"{HOME}/actions/mate").status_code == 200
    assert client.delete(f"{HOME}/actions/never").status_code == 404
    assert client.get(HOME).json()["actions"] == 4
    assert client.put(f"{HOME}/actions/x", json={"row": [1.0]}).status_code == 422
    assert client.put(f"{HOME}/actions/x", json={"reweight": True}).status_code == 422


def test_labels_that_are_no_text_are_found_by_how_they_are_written(client):
    assert client.delete(f"{HOME}/actions/3").json() == {"action": 3}
    assert client.delete(f"{HOME}/actions/('a', 'pair')").json() == {"action": ["a", "pair"]}
    added = client.put(f"{HOME}/actions/8", json={"row": [0.5, 0.5], "label": 8})
    assert added.json() == {"action": 8}
    assert client.put(f"{HOME}/actions/9", json={"row": [0.5, 0.5], "label": 8}).status_code == 422
    assert client.put(f"{HOME}/actions/8", json={"row": [0.5, 0.5], "label": "8"}).status_code == 409
    assert client.put(f"{HOME}/actions/a/b", json={"row": [0.5, 0.5]}).json() == {"action": "a/b"}


def test_a_path_means_text_before_anything_else(start):
    client = start({**POOL, "actions": ["3", 3, [3], True]})
    assert client.delete(f"{HOME}/actions/3").json() == {"action": "3"}
    assert client.delete(f"{HOME}/actions/[3]").json() == {"action": [3]}
    assert client.delete(f"{HOME}/actions/true").json() == {"action": True}


def test_settings_change(client):
    changed = client.patch(HOME, json={"holdout": 0.2, "shares": [["tea", 0.1, 0.9]]})
    assert changed.json()["settings"]["holdout"] == 0.2
    assert client.patch(HOME, json={"holdout": None, "shares": None}).json()["settings"]["holdout"] == 0
    assert client.post(DECISIONS).status_code == 200
    assert client.patch(HOME, json={"nothing": 1}).status_code == 422
    assert client.patch(HOME, json={"loss_bounds": None}).status_code == 200
    beside = client.patch(HOME, json={"settings": {"holdout": 0.1}, "sharez": 1})
    assert (beside.status_code, beside.json()) == (422, {"error": "body: 'sharez' is not known beside settings"})


@pytest.mark.parametrize("nothing", [{}, None])
def test_shares_are_set_by_name_and_removed(client, nothing):
    changed = client.patch(HOME, json={"settings": {"shares": {"tea": [0.05, 0.5]}}})
    assert changed.json()["settings"]["shares"] == [["tea", 0.05, 0.5]]
    assert client.patch(HOME, json={"settings": {"shares": nothing}}).json()["settings"]["shares"] == []


def test_expiry_by_request(start):
    client = start({**POOL, "settings": {"expire_after": 1e-6, "default_loss": 1.0}}, expire_every=1000.0)
    client.post(DECISIONS, json={"count": 3})
    time.sleep(0.001)
    assert client.post(f"{HOME}/expire").json() == {"expired": 3}
    assert client.get(HOME).json()["pending"] == 0
    assert start(None).put("/v1/pools/other", json=POOL).status_code == 201
    assert client.post("/v1/pools/other/expire").status_code == 422


def test_expiry_by_itself_also_of_a_pool_that_nobody_asked_for(start, url):
    pool = Pool.open(
        url, "quiet", POOL["P"], POOL["actions"], POOL["states"], expire_after=0.01, default_loss=1.0
    )  # fmt: skip
    pool.decide()
    pool.close()
    client = start(None, expire_every=0.05)
    until(lambda: not client.app.pools.get("quiet").n_pending)


def test_a_label_with_an_end_of_a_line_has_an_address(start):
    client = start({**POOL, "actions": ["tea", "a\nb", "c\n", "d"]})
    for label, path in (("a\nb", "a%0Ab"), ("c\n", "c%0A")):
        assert client.put(f"{HOME}/actions/{path}", json={"row": [0.3, 0.7], "reweight": True}).json() == {
            "action": label
        }
        assert client.delete(f"{HOME}/actions/{path}").json() == {"action": label}
    assert client.get(HOME).json()["actions"] == 2


def test_another_time_to_expire_is_heeded_at_once(start):
    client = start({**POOL, "settings": {"expire_after": 1e5, "default_loss": 1.0}}, expire_every=0.05)
    client.post(DECISIONS).raise_for_status()
    until(lambda: client.app._chores._due == {"home": 1e5})
    client.patch(HOME, json={"expire_after": 1e-6}).raise_for_status()
    until(lambda: client.get(HOME).json()["pending"] == 0)


def test_a_store_that_is_away_is_said_so(client):
    client.app.pools.store.close()
    for answer in (client.post(DECISIONS), client.get("/readyz"), client.get(HOME)):
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert "closed" in answer.json()["error"]
    assert client.get("/healthz").status_code == 200


def test_two_services_of_one_store_tell_the_same(start):
    one, two = start(), start()
    one.post(DECISIONS, json={"ticket": "t"})
    assert two.put(f"{DECISIONS}/t/outcome", json={"loss": 0.5}).status_code == 200
    assert one.get(HOME).json() == two.get(HOME).json()


def test_a_name_without_events_is_no_obstacle(url, start):
    store = open_store(url)
    store.ensure("home")
    store.close()
    client = start(None)
    assert client.get("/metrics").status_code == 200
    assert client.get(HOME).status_code == 404
    assert client.put(HOME, json=POOL).status_code == 201
    assert client.post(DECISIONS).status_code == 200


@pytest.mark.parametrize("address", ["/openapi.json", "/v1/pools", "/healthz"])
def test_heads_and_strange_methods(client, address):
    assert client.request("HEAD", address).status_code == 200
    assert client.request("DELETE", address).status_code == 405


@pytest.mark.parametrize(
    ("learner", "settings"),
    [({"name": "state-exp3", "options": {"rate": 0.3}}, {"refresh": 50}), ("self-tuned", {"refresh_seconds": 60})],
)
def test_an_idempotent_put_changes_nothing(start, url, learner, settings):
    """Between lessons that the version being played does not know yet."""
    asked = {**POOL, "learner": learner, "settings": settings}
    client = start(asked)
    client.post(DECISIONS)
    losses = {"tea": 1.0, "coffee": 0.0}
    for number in range(20):
        for decision in client.post(DECISIONS, json={"count": 4}).json()["decisions"]:
            ticket = f"{DECISIONS}/{decision['ticket']}"
            client.put(f"{ticket}/state", json={"state": "click" if number % 3 else "left"})
            client.put(f"{ticket}/outcome", json={"loss": losses.get(str(decision["action"]), 0.5)})
        before = raw_events(url, "home")
        shown = client.get(HOME).json()
        put = client.put(HOME, json=asked)
        assert (put.status_code, put.json()) == (200, shown)
        assert raw_events(url, "home") == before
    store = open_store(url)
    found, _ = replay(store, "home", redraw=True)
    store.close()
    assert (found.faults, found.redrawn) == ([], 81)


def test_who_stops_reading_rows_holds_nothing(client, url):
    """Else the file beside the database would grow for as long as somebody does not read on."""
    for _ in range(3):
        client.post(DECISIONS, json={"count": 1000})
    pool = client.app.pools.get("home")
    reading = pool.rows()
    first = next(reading)
    with closing(raw_sqlite(url)) as database:
        busy, *_ = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert busy == 0, "a reader holds the log"
    client.post(DECISIONS, json={"count": 5})
    tickets = [first["ticket"], *(row["ticket"] for row in reading)]
    assert len(tickets) == len(set(tickets)) == 3000, "what was decided since is not in it"
    lines = client.get(f"{HOME}/rows").text.splitlines()
    assert [json.loads(line)["ticket"] for line in lines][:3000] == tickets
    assert len(lines) == 3005
