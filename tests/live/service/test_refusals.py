"""What is refused is refused with a 4xx and one sentence."""

import pytest

from live.service.clients import DECISIONS, POOL


def refused(answer, status):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert set(body) == {"error"}
    assert "Traceback" not in body["error"]
    assert "\n" not in body["error"]
    return body["error"]


async def pieces(piece, count):
    for _ in range(count):
        yield piece


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_none(client, number):
    client.post(DECISIONS, json={"ticket": "t"})
    refused(client.put(f"{DECISIONS}/t/outcome", content='{"loss": ' + number + "}"), 400)


def test_a_number_beyond_all_floats(client):
    client.post(DECISIONS, json={"ticket": "t"})
    refused(client.put(f"{DECISIONS}/t/outcome", content='{"loss": 1e999}'), 422)


@pytest.mark.parametrize("loss", [1e300, "0.5", True, None, [0.5]])
def test_losses_that_are_none(client, loss):
    client.post(DECISIONS, json={"ticket": "t"})
    assert "loss" in refused(client.put(f"{DECISIONS}/t/outcome", json={"loss": loss}), 422)


@pytest.mark.parametrize("body", [{}, {"loss": 0.5, "reward": 0.5}, {"reward": 0.5}, {"lost": 1}])
def test_outcomes_that_are_none(client, body):
    client.post(DECISIONS, json={"ticket": "t"})
    refused(client.put(f"{DECISIONS}/t/outcome", json=body), 422)


def test_unknown_things(client):
    client.post(DECISIONS, json={"ticket": "t"})
    assert "not known" in refused(client.put(f"{DECISIONS}/u/outcome", json={"loss": 0.5}), 404)
    assert "not known" in refused(client.put(f"{DECISIONS}/u/state", json={"state": "left"}), 404)
    assert "expected one of" in refused(client.put(f"{DECISIONS}/t/state", json={"state": "right"}), 422)
    refused(client.get(f"{DECISIONS}/u"), 404)
    refused(client.post("/v1/pools/away/decisions"), 404)
    refused(client.get("/v1/pools/away"), 404)
    refused(client.get("/v1/nothing"), 404)
    refused(client.delete("/v1/pools/home"), 405)
    assert refused(client.get(DECISIONS), 405)


def test_another_pools_ticket(client):
    client.put("/v1/pools/other", json=POOL)
    client.post(DECISIONS, json={"ticket": "t"})
    refused(client.put("/v1/pools/other/decisions/t/outcome", json={"loss": 0.5}), 404)


@pytest.mark.parametrize("ticket", ["", "a\nb", "\x00", "x" * 201, 7])
def test_tickets_that_are_none(client, ticket):
    refused(client.post(DECISIONS, json={"ticket": ticket}), 422)


@pytest.mark.parametrize(
    "body", [{"count": 0}, {"count": 1001}, {"count": 1, "ticket": "t"}, {"tickets": ["t"]}, [], 7]
)
def test_questions_that_are_none(client, body):
    refused(client.post(DECISIONS, json=body), 422)


@pytest.mark.parametrize("content", ["{", b"\xff", "nul", '{"ticket": "\\ud800"}'])
def test_bodies_that_are_no_json(client, content):
    refused(client.post(DECISIONS, content=content), 400)


def test_a_body_that_is_too_deep(client):
    refused(client.patch("/v1/pools/home", content='{"holdout": ' + "[" * 100_000), 400)


@pytest.mark.parametrize(
    "change",
    [
        {"actions": []}, {"actions": ["a", "a"]}, {"actions": [{}]}, {"actions": ["a", "b"]}, {"states": ["one"]},
        {"P": [[1.0]]}, {"P": [[2, -1]] * 4}, {"P": [["x"]]}, {"actions": [[["deep"]]] * 4},
        {"actions": [10**30, 1, 2, 3]}, {"seed": 1}, {"learner": "nobody"},
        {"learner": "state-exp3"}, {"learner": {"name": "state-exp3", "options": {"speed": 1}}},
        {"learner": {"name": "state-exp3", "options": {"rate": "fast"}}}, {"categories": ["one"]},
        {"settings": {"update": True}}, {"settings": {"holdout": 2}}, {"settings": {"probability_bounds": {"tea": 5}}},
        {"settings": {"probability_bounds": [["nothing", 0, 1]]}}, {"settings": {"holdout_action": {}}},
        {"settings": {"window": -5}}, {"settings": {"loss_bounds": [1]}}, {"settings": []}, {"more": 1},
    ],
)  # fmt: skip
def test_pools_that_are_none(client, change):
    refused(client.put("/v1/pools/new", json={**POOL, **change}), 422)
    assert client.get("/v1/pools").json() == {"pools": ["home"]}


@pytest.mark.parametrize("name", ["a b", "a%2Fb", "x" * 65, "%00", "%F0%9F%8D%B5"])
def test_names_that_are_none(client, name):
    assert client.put(f"/v1/pools/{name}", json=POOL).status_code in (404, 405, 422)


def test_a_page_of_another_site_is_refused(client):
    assert "sites" in refused(client.post(DECISIONS, headers={"origin": "https://evil.example"}), 403)
    refused(client.get("/v1/pools", headers={"origin": "https://evil.example"}), 403)
    through_a_proxy = {"origin": "https://shop.example:8443", "host": "shop.example"}  # nginx with `Host $host`
    assert "Host $http_host" in refused(client.get("/login", headers=through_a_proxy), 403)
    assert client.post(DECISIONS, headers={"origin": "http://localhost"}).status_code == 200


def test_a_local_service_goes_by_no_other_name(start):
    client = start(None)
    refused(client.get("/v1/pools", headers={"host": "shop.example"}), 403)
    assert client.get("/v1/pools", headers={"host": "localhost:8000"}).status_code == 200
    assert client.get("/v1/pools", headers={"host": "[::1]:8000"}).status_code == 200


def test_a_mistake_of_ours_shows_nothing_of_the_inside(client, monkeypatch, caplog):
    def fail(*_, **__):
        raise KeyError("secret")

    monkeypatch.setattr("statepool.live.pool.Pool.decide_many", fail)
    assert "secret" not in refused(client.post(DECISIONS), 500)
    assert "KeyError: 'secret'" in caplog.text
    monkeypatch.setattr("statepool.live.pool.Pool.status", fail)
    assert "secret" not in refused(client.get("/v1/pools/home"), 500)
