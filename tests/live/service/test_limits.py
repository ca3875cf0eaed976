"""Rates, logs and metrics."""

import io
import json
import time

import pytest

from live.service.clients import DECISIONS, POOL
from statepool.live.service import admission, limits, owned
from statepool.live.service.keys import add_key
from statepool.live.service.limits import TokenBuckets
from statepool.live.service.logs import RequestLog
from statepool.live.service.refusals import Refused
from statepool.live.stores import open_store

HOME = "/v1/pools/home"


def test_too_many_requests(start):
    client = start(rate_limit=5)
    answers = [client.get("/v1/pools") for _ in range(10)]
    late = next(answer for answer in answers if answer.status_code == 429)
    assert int(late.headers["retry-after"]) >= 1
    assert "more than 5 decisions or other requests a second" in late.json()["error"]
    assert client.get("/healthz").status_code == 200


def test_a_batch_counts_by_its_decisions(start):
    client = start(rate_limit=50)
    began, passed = time.monotonic(), 0
    for _ in range(20):
        answer = client.post(DECISIONS, json={"count": 25})
        passed += 25 * (answer.status_code == 200)
        assert answer.status_code in (200, 429)
    assert passed <= 50 * (time.monotonic() - began + 1)
    assert client.app.pools.get("home")._fold().decisions == passed
    time.sleep(0.1)  # the request itself has to be paid too
    too_many = client.post(DECISIONS, json={"tickets": [str(number) for number in range(51)]})
    assert (too_many.status_code, "at most 50 at once" in too_many.json()["error"]) == (429, True)


@pytest.fixture
def key(url):
    store = open_store(url)
    made = add_key(store, "shop", "admin")
    store.close()
    return made


def test_wrong_keys_are_limited_and_a_right_one_is_not(start, key, monkeypatch):
    monkeypatch.setattr(admission, "WRONG_KEYS_A_SECOND", 0.01)  # the test may take seconds
    client = start(None)
    wrong, right = ({"authorization": f"Bearer {each}"} for each in ("sp_wrong", key))
    asked = [client.get("/v1/pools", headers=wrong).status_code for _ in range(60)]
    assert asked[0] == 401
    assert asked.count(429) >= 30
    late = client.get("/v1/pools", headers=wrong)
    assert (late.status_code, int(late.headers["retry-after"]) >= 1) == (429, True)
    for _ in range(60):
        assert client.get("/v1/pools", headers=right).status_code == 200, "it was locked out by another's mistakes"
    assert client.post("/login", data={"key": "sp_wrong"}).status_code == 429
    assert client.post("/login", data={"key": key}).status_code == 303


def test_the_login_is_limited_by_address(start, key):
    client = start(None)
    tried = [client.post("/login", data={"key": "guess"}).status_code for _ in range(40)]
    assert (tried[0], tried[-1]) == (401, 429)
    assert "Too many wrong keys" in client.post("/login", data={"key": "guess"}).text


def test_tickets_of_a_keys_own_are_limited_by_what_is_open(start, key):
    client = start(None, most_pending=5)
    headers = {"authorization": f"Bearer {key}"}
    client.put(HOME, json={**POOL, "settings": {"expire_after": 1e-6, "default_loss": 1.0}}, headers=headers)

    def decide(**body):
        return client.post(DECISIONS, json=body, headers=headers)

    for number in range(5):
        assert decide(ticket=str(number)).status_code == 200
    refused = decide(ticket="5")
    assert refused.status_code == 429
    assert "'shop': 5 tickets of its own wait" in refused.json()["error"]
    assert decide(tickets=["5", "6"]).status_code == 429
    assert decide(ticket="3").status_code == 200, "repeating is harmless"
    assert decide(count=50).status_code == 200, "the pool's own tickets are no choice of the caller's"
    client.put(f"{DECISIONS}/2/outcome", json={"loss": 0.5}, headers=headers)
    assert decide(ticket="5").status_code == 200
    assert decide(ticket="6").status_code == 429
    client.post(f"{HOME}/expire", headers=headers)
    time.sleep(owned.LOOK_EVERY)
    assert decide(ticket="6").status_code == 200, "what expired is open no more"


def test_a_ticket_that_was_refused_is_not_open(start, key):
    client = start(None, most_pending=2)
    headers = {"authorization": f"Bearer {key}"}
    client.put(HOME, json=POOL, headers=headers)
    for number in range(6):
        client.post(DECISIONS, json={"ticket": "t" * 201 + str(number)}, headers=headers)
        client.post(DECISIONS, json={"ticket": f"\n{number}"}, headers=headers)
    assert client.post(DECISIONS, json={"tickets": ["a", "b"]}, headers=headers).status_code == 200


def test_a_refusal_closes_no_ticket_that_was_open(start, key):
    """Else whoever asks for something wrong has as many open as they like."""
    client = start(None, most_pending=2)
    headers = {"authorization": f"Bearer {key}"}
    client.put(HOME, json=POOL, headers=headers)
    rows = {"tea": [0.5, 0.5]}
    assert client.post(DECISIONS, json={"tickets": ["a", "b"]}, headers=headers).status_code == 200
    assert client.post(DECISIONS, json={"ticket": "a", "candidates": rows}, headers=headers).status_code == 409
    assert client.post(DECISIONS, json={"tickets": ["a", "b"], "candidates": rows}, headers=headers).status_code == 409
    assert client.post(DECISIONS, json={"ticket": "c"}, headers=headers).status_code == 429


def test_a_ticket_decided_elsewhere_may_be_repeated_at_the_limit(start, key):
    one, two = start(None, most_pending=2), start(None, most_pending=2)
    headers = {"authorization": f"Bearer {key}"}
    one.put(HOME, json=POOL, headers=headers)
    made = [one.post(DECISIONS, json={"ticket": name}, headers=headers).json() for name in "ab"]
    assert two.post(DECISIONS, json={"tickets": ["c", "d"]}, headers=headers).status_code == 200
    again = two.post(DECISIONS, json={"tickets": ["a", "b"]}, headers=headers)
    assert again.json()["decisions"] == made


def test_buckets_fill_again_and_are_each_ones_own(monkeypatch):
    now = 0.0
    monkeypatch.setattr(limits, "monotonic", lambda: now)
    buckets = TokenBuckets(2)
    for _ in range(2):
        buckets.take("a")
    with pytest.raises(Refused, match="more than 2"):
        buckets.take("a")
    buckets.take("b")
    now = 0.5
    buckets.take("a")
    with pytest.raises(Refused):
        buckets.take("a")


def test_buckets_do_not_grow_for_ever(monkeypatch):
    monkeypatch.setattr(limits, "MOST_CALLERS", 3)
    buckets = TokenBuckets(1)
    for caller in "abcdef":
        buckets.take(caller)
    assert list(buckets._left) == ["d", "e", "f"]


def test_one_json_line_a_request(start):
    stream = io.StringIO()
    client = start(log=RequestLog(stream))
    client.post(DECISIONS, json={"ticket": "secret"})
    client.get(f"{DECISIONS}/secret")
    client.get("/nowhere/secret")
    client.stop()
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    told = [(line["method"], line["path"], line["status"], line["pool"]) for line in lines]
    assert told == [
        ("PUT", "/v1/pools/{name}", 201, "home"),
        ("POST", "/v1/pools/{name}/decisions", 200, "home"),
        ("GET", "/v1/pools/{name}/decisions/{ticket}", 200, "home"),
        ("GET", "other", 404, None),
    ]
    assert all(line["ms"] >= 0 and line["time"] for line in lines)
    assert "secret" not in stream.getvalue()


def test_metrics(client):
    client.post(DECISIONS, json={"ticket": "t"})
    client.put(f"{DECISIONS}/t/outcome", json={"loss": 0.5})
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    for line in (
        'statepool_decisions_total{pool="home"} 1.0',
        'statepool_events_total{kind="outcome",pool="home"} 1.0',
        'statepool_pending{pool="home"} 0.0',
        'statepool_mean_loss{arm="learner",pool="home"} 0.5',
        'statepool_requests_total{route="/v1/pools/{name}/decisions",status="200"} 1.0',
        'statepool_request_seconds_count{route="/v1/pools/{name}/decisions"} 1.0',
    ):
        assert line in lines, line
