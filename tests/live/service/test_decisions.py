"""Deciding, observing and resolving over HTTP."""

import json

import pytest

from live.service.clients import DECISIONS, POOL


def test_a_decision_and_what_follows(client):
    made = client.post(DECISIONS)
    assert made.status_code == 200
    decision = made.json()
    assert set(decision) == {"ticket", "action", "probability"}
    assert decision["action"] in POOL["actions"]
    address = f"{DECISIONS}/{decision['ticket']}"
    assert client.put(f"{address}/state", json={"state": "click"}).status_code == 200
    assert client.put(f"{address}/outcome", json={"loss": 0.25}).status_code == 200
    known = client.get(address).json()
    assert (known["state"], known["loss"], known["action"]) == ("click", 0.25, decision["action"])
    pool = client.get("/v1/pools/home").json()
    assert (pool["decisions"], pool["pending"], pool["counts"]["outcome"]) == (1, 0, 1)


def test_a_ticket_of_ones_own_is_never_drawn_again(client):
    first = client.post(DECISIONS, json={"ticket": "order/7 ü"})
    again = client.post(DECISIONS, json={"ticket": "order/7 ü"})
    assert first.json() == again.json()
    assert client.get("/v1/pools/home").json()["decisions"] == 1
    assert client.put(f"{DECISIONS}/order%2F7%20ü/state", json={"state": "left"}).status_code == 200
    assert client.get(f"{DECISIONS}/order%2F7%20ü").json()["state"] == "left"


def test_many_at_once(client):
    some = client.post(DECISIONS, json={"count": 5}).json()["decisions"]
    assert len({decision["ticket"] for decision in some}) == 5
    assert client.get("/v1/pools/home").json()["decisions"] == 5


def test_repeating_is_harmless_and_contradicting_is_refused(client):
    client.post(DECISIONS, json={"ticket": "t"})
    for _ in range(2):
        assert client.put(f"{DECISIONS}/t/outcome", json={"loss": 1}).status_code == 200
        assert client.put(f"{DECISIONS}/t/state", json={"state": "left"}).status_code == 200
    other_loss = client.put(f"{DECISIONS}/t/outcome", json={"loss": 0.5})
    other_state = client.put(f"{DECISIONS}/t/state", json={"state": "click"})
    assert (other_loss.status_code, other_state.status_code) == (409, 409)
    assert "had loss 1.0 before" in other_loss.json()["error"]
    counts = client.get("/v1/pools/home").json()["counts"]
    assert (counts["state"], counts["outcome"], counts["expiry"]) == (1, 1, 0)


def test_several_decisions_are_made_all_or_none(start):
    client = start({**POOL, "P": {"new": POOL["P"], "old": POOL["P"]}})
    good, bad = {"action": "a", "row": [0.5, 0.5]}, {"action": "b", "row": [0.9, 0.9]}
    for body in (
        {"candidates": [good, bad]}, {"candidates": [good, good]}, {"count": 2, "candidates": [good, bad]},
        {"count": 2, "context": "NOPE"}, {"ticket": "\n", "context": "new"},
    ):  # fmt: skip
        answer = client.post(DECISIONS, json=body)
        assert answer.status_code == 422, answer.text
    pool = client.get("/v1/pools/home").json()
    assert (pool["decisions"], pool["pending"]) == (0, 0)
    several, single = client.many(
        [
            ("POST", DECISIONS, {"json": {"count": 2, "context": "NOPE"}}),
            ("POST", DECISIONS, {"json": {"context": "new"}}),
        ]
    )
    assert (several.status_code, single.status_code) == (422, 200)


def test_64_identical_outcomes_at_once_count_once(client):
    client.post(DECISIONS, json={"ticket": "t"})
    answers = client.many([("PUT", f"{DECISIONS}/t/outcome", {"json": {"loss": 0.5}})] * 64)
    assert [answer.status_code for answer in answers] == [200] * 64
    pool = client.get("/v1/pools/home").json()
    assert pool["counts"]["outcome"] == 1
    assert pool["outcomes"]["learner"] == {"count": 1, "mean": 0.5}


def test_64_different_outcomes_at_once_one_wins(client):
    client.post(DECISIONS, json={"ticket": "t"})
    answers = client.many([("PUT", f"{DECISIONS}/t/outcome", {"json": {"loss": i / 64}}) for i in range(64)])
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 63


def test_rewards_need_bounds(start):
    client = start({**POOL, "settings": {"reward_bounds": [0, 10]}})
    client.post(DECISIONS, json={"ticket": "t"})
    assert client.put(f"{DECISIONS}/t/outcome", json={"reward": 7.5}).status_code == 200
    assert client.get(f"{DECISIONS}/t").json()["loss"] == 0.25


def test_labels_of_every_kind(start):
    labels = ["text", 7, 2.5, ["a", 1]]
    even = [[0.25] * 4] * 4
    client = start({"actions": labels, "states": labels, "P": even, "learner": "uniform"})
    assert client.get("/v1/pools/home").json()["states"] == labels
    seen = {str(client.post(DECISIONS).json()["action"]) for _ in range(60)}
    assert seen == set(map(str, labels))
    for number, label in enumerate(labels):
        client.post(DECISIONS, json={"ticket": str(number)})
        assert client.put(f"{DECISIONS}/{number}/state", json={"state": label}).json()["state"] == label
        assert client.get(f"{DECISIONS}/{number}").json()["state"] == label


def test_rows_are_json_lines(client):
    client.post(DECISIONS, json={"count": 700})
    lines = client.get("/v1/pools/home/rows")
    assert lines.headers["content-type"] == "application/jsonl"
    rows = [json.loads(line) for line in lines.text.splitlines()]
    assert len(rows) == 700
    assert set(rows[0]) >= {"ticket", "action", "probability", "state", "loss", "decided_at"}


def test_a_restart_continues(start, url):
    client = start()
    before = [client.post(DECISIONS, json={"ticket": str(i)}).json() for i in range(5)]
    client.stop()
    again = start(None)
    assert [again.post(DECISIONS, json={"ticket": str(i)}).json() for i in range(5)] == before
    assert again.get("/v1/pools/home").json()["decisions"] == 5


@pytest.mark.parametrize("holdout_action", [None, "tea"])
def test_the_lift_over_a_holdout(start, holdout_action):
    client = start({**POOL, "settings": {"holdout": 0.5, "holdout_action": holdout_action}})
    assert client.get("/v1/pools/home").json()["lift"] is None
    for made in client.post(DECISIONS, json={"count": 40}).json()["decisions"]:
        client.put(f"{DECISIONS}/{made['ticket']}/outcome", json={"loss": 0.9 if made["action"] == "tea" else 0.1})
    pool = client.get("/v1/pools/home").json()
    assert pool["outcomes"]["learner"]["count"] + pool["outcomes"]["holdout"]["count"] == 40
    difference = pool["outcomes"]["holdout"]["mean"] - pool["outcomes"]["learner"]["mean"]
    assert pool["lift"]["value"] == pytest.approx(difference)
    assert pool["lift"]["low"] < pool["lift"]["value"] < pool["lift"]["high"]
