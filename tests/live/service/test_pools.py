"""Pools, their catalogue and their settings over HTTP."""

import json

import pytest
import sqlalchemy as sa

from live.service.clients import DECISIONS, POOL, until
from statepool.live.pool import Pool

HOME = "/v1/pools/home"


def test_making_a_pool_twice_is_harmless_and_another_is_refused(start):
    client = start(None)
    assert client.put(HOME, json=POOL).status_code == 201
    assert client.put(HOME, json=POOL).status_code == 200
    other = {**POOL, "P": [[0.5, 0.5]] * 4}
    assert client.put(HOME, json=other).status_code == 409
    assert client.put(HOME, json={**POOL, "states": ["a", "b"]}).status_code == 409
    assert client.put(HOME, json={**POOL, "learner": "uniform"}).status_code == 409
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
    assert client.put(f"{HOME}/actions/mate", json={"row": [0.5, 0.5], "category": "hot"}).status_code == 200
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
    assert client.delete(f'{HOME}/actions/["a","pair"]').json() == {"action": ["a", "pair"]}
    added = client.put(f"{HOME}/actions/8", json={"row": [0.5, 0.5], "label": 8})
    assert added.json() == {"action": 8}
    assert client.put(f"{HOME}/actions/8", json={"row": [0.5, 0.5]}).json() == {"action": 8}
    assert client.put(f"{HOME}/actions/a/b", json={"row": [0.5, 0.5]}).json() == {"action": "a/b"}


def test_a_path_means_text_before_anything_else(start):
    client = start({**POOL, "actions": ["3", 3, [3], True]})
    assert client.delete(f"{HOME}/actions/3").json() == {"action": "3"}
    assert client.delete(f"{HOME}/actions/[3]").json() == {"action": [3]}
    assert client.delete(f"{HOME}/actions/true").json() == {"action": True}


def test_settings_change(client):
    changed = client.patch(HOME, json={"holdout": 0.2, "probability_bounds": [["tea", 0.1, 0.9]]})
    assert changed.json()["settings"]["holdout"] == 0.2
    assert client.patch(HOME, json={"holdout": None, "probability_bounds": None}).json()["settings"]["holdout"] == 0
    assert client.post(DECISIONS).status_code == 200
    for name in ("nothing", "self"):
        assert client.patch(HOME, json={name: 1}).status_code == 422
    assert client.patch(HOME, json={"loss_bounds": None}).status_code == 200


@pytest.mark.parametrize("nothing", [{}, None])
def test_shares_are_set_by_name_and_removed(client, nothing):
    changed = client.patch(HOME, json={"probability_bounds": {"tea": [0.05, 0.5]}})
    assert changed.json()["settings"]["probability_bounds"] == [["tea", 0.05, 0.5]]
    removed = client.patch(HOME, json={"probability_bounds": nothing})
    assert removed.json()["settings"]["probability_bounds"] == []


def test_expiry_by_itself_also_of_a_pool_without_requests(start, url):
    with Pool.open(url, "quiet", POOL["P"], POOL["actions"], POOL["states"], window=0.01) as pool:
        pool.decide()
        client = start(None)
        until(lambda: not pool.status().pending)
        assert client.get("/v1/pools/quiet").json()["counts"]["expiry"] == 1


def test_a_label_with_an_end_of_a_line_has_an_address(start):
    client = start({**POOL, "actions": ["tea", "a\nb", "c\n", "d"]})
    for label, path in (("a\nb", "a%0Ab"), ("c\n", "c%0A")):
        assert client.put(f"{HOME}/actions/{path}", json={"row": [0.3, 0.7], "reweight": True}).json() == {
            "action": label
        }
        assert client.delete(f"{HOME}/actions/{path}").json() == {"action": label}
    assert client.get(HOME).json()["actions"] == 2


def test_another_window_is_used_at_once(start):
    client = start({**POOL, "settings": {"window": 1e5}})
    client.post(DECISIONS).raise_for_status()
    client.patch(HOME, json={"window": 1e-6}).raise_for_status()
    until(lambda: client.get(HOME).json()["pending"] == 0)


def test_a_store_that_is_away(client, tmp_path):
    (tmp_path / "pools.db").rename(tmp_path / "elsewhere")
    for path in tmp_path.glob("pools.db-*"):
        path.unlink()
    answer = client.post(DECISIONS)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["error"].startswith("store: ")
    assert client.get("/healthz").status_code == 200


def test_two_services_of_one_store_tell_the_same(start):
    one, two = start(), start()
    one.post(DECISIONS, json={"ticket": "t"})
    assert two.put(f"{DECISIONS}/t/outcome", json={"loss": 0.5}).status_code == 200
    assert one.get(HOME).json() == two.get(HOME).json()


@pytest.mark.parametrize("address", ["/schema", "/v1/pools", "/healthz"])
def test_heads_and_strange_methods(client, address):
    assert client.request("HEAD", address).status_code == 200
    assert client.request("DELETE", address).status_code == 405


def test_an_idempotent_put_changes_nothing(start, database):
    asked = {**POOL, "learner": {"name": "state-exp3", "options": {"rate": 0.3}}, "settings": {"update_every": 50}}
    client = start(asked)
    revisions = sa.select(sa.func.count()).select_from(database.tables.revisions)
    for _ in range(3):
        [decision] = client.post(DECISIONS, json={"count": 1}).json()["decisions"]
        client.put(f"{DECISIONS}/{decision['ticket']}/state", json={"state": "click"})
        shown = client.get(HOME).json()
        put = client.put(HOME, json=asked)
        assert (put.status_code, put.json()) == (200, shown)
    with database.read() as connection:
        assert connection.execute(revisions).scalar() == 1


def test_rows_continue_after_a_cursor(client):
    tickets = [each["ticket"] for each in client.post(DECISIONS, json={"count": 3}).json()["decisions"]]
    for ticket in tickets:
        client.put(f"{DECISIONS}/{ticket}/state", json={"state": "click"})
    client.app.pools.get("home").learn()
    rows = [json.loads(line) for line in client.get(f"{HOME}/rows").text.splitlines()]
    assert [row["state"] for row in rows] == ["click"] * 3
    cursor = max(row["cursor"] for row in rows)
    assert client.get(f"{HOME}/rows?after={cursor}").text == ""
    client.put(f"{DECISIONS}/{tickets[1]}/outcome", json={"loss": 0.5})
    client.app.pools.get("home").learn()
    [row] = [json.loads(line) for line in client.get(f"{HOME}/rows?after={cursor}").text.splitlines()]
    assert (row["ticket"], row["loss"]) == (tickets[1], 0.5)
    for wrong in ("x", "9" * 30, "9" * 5_000, "²"):
        refused = client.get(f"{HOME}/rows?after={wrong}")
        assert (refused.status_code, refused.json()["error"][:9]) == (422, "after: is")
