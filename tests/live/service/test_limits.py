"""Rates, logs and metrics."""

import io
import json

import pytest

from live.service.clients import DECISIONS
from statepool.live.service import limits
from statepool.live.service.limits import Buckets
from statepool.live.service.logs import RequestLog
from statepool.live.service.refusals import Refused


def test_too_many_requests(start):
    client = start(rate_limit=5)
    answers = [client.get("/v1/pools") for _ in range(10)]
    late = next(answer for answer in answers if answer.status_code == 429)
    assert int(late.headers["retry-after"]) >= 1
    assert "more than 5 decisions or other requests a second" in late.json()["error"]
    assert client.get("/healthz").status_code == 200


def test_buckets_fill_again_and_are_each_ones_own(monkeypatch):
    now = 0.0
    monkeypatch.setattr(limits, "monotonic", lambda: now)
    buckets = Buckets(2)
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
    buckets = Buckets(1)
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
