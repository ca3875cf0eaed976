"""The pages as text: every number is there, every label escaped, whatever the pool is like."""

import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import sqlalchemy as sa

import statepool.live.dashboard as package
from live.dashboard.watching import open_pool, play, service_of
from live.service.clients import Client
from statepool.live import StoreUnavailable
from statepool.live.dashboard.formatting import label, number, outcome, share, span
from statepool.live.dashboard.page import page_of

ADDRESSES = ("/", "/pools/home", "/pools/home/live")
SCRIPT = "<script>alert(1)</script>"


class Balanced(HTMLParser):
    """Refuses tags that are not closed, and ids that are there twice."""

    EMPTY = ("meta", "link", "img", "input", "br", "rect", "col")

    def __init__(self, page):
        super().__init__()
        self.open, self.ids = [], []
        self.feed(page)
        assert self.open == []
        assert len(self.ids) == len(set(self.ids))

    def handle_starttag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.EMPTY:
            assert self.open.pop() == tag


@pytest.fixture
def look(tmp_path):
    """Every address answers, and no number is none; the page of the pool."""
    clients = []

    def get(folder=tmp_path):
        client = Client(service_of(folder))
        clients.append(client)
        for address in ADDRESSES:
            answer = client.get(address)
            assert answer.status_code == 200, address
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert not re.search(r"\b(nan|inf|None|NaN|Infinity)\b", answer.text), address
            Balanced(answer.text)
            [curves] = re.findall(r"data-curves='(.*?)'", answer.text)
            assert len({len(each) for each in json.loads(curves, parse_constant=pytest.fail).values()}) == 1
        return client.get("/pools/home").text

    yield get
    for client in clients:
        client.stop()


def test_a_pool_without_decisions(tmp_path, look):
    open_pool(tmp_path).close()
    page = look()
    assert "No decision has been made yet" in page
    assert page.count('<th scope="row"') == 3 + 2


def test_a_pool_with_one_action_and_one_state(tmp_path, look):
    with open_pool(tmp_path, P=[[1.0]]) as pool:
        play(pool, 30)
    page = look()
    assert "100 %" in page
    assert "1 active" in page


def test_a_pool_with_decisions_and_nothing_after(tmp_path, look):
    with open_pool(tmp_path, holdout=0.2) as pool:
        pool.decide_many(30)
    page = look()
    assert "waits for outcomes of both" in page
    assert 'data-pace="per 1 s"' in page, "a point of a chart is a second at least"


def test_a_young_pool_with_a_window_says_what_it_waits_for(tmp_path, look):
    with open_pool(tmp_path, holdout=0.2, window=14 * 86_400) as pool:
        pool.decide_many(30)
    assert "A decision counts when its window is over, the first in 14 d." in look()


def test_a_young_pool_shows_what_the_audit_says(tmp_path, look):
    with open_pool(tmp_path, prior={"states": {"s0": [0.25, 50], "s1": [0.75, 50]}}, window=9e9) as pool:
        play(pool, 30)
        view = page_of(pool)
        assert [(state["mean"], state["is_said"]) for state in view["states"]] == [(0.25, True), (0.75, True)]
        assert all(0.25 <= action["by_states"] <= 0.75 for action in view["actions"])
    assert "* What the audit says" in look()


def test_outcomes_out_of_bounds_are_found_also_after_the_bounds_were_widened(tmp_path, look):
    with open_pool(tmp_path, reward_bounds=(0, 10)) as pool:
        for ticket, reward in (("inside", 5), ("outside", 20)):
            pool.decide(ticket)
            pool.resolve(ticket, reward=reward)
        pool.change(reward_bounds=(0, 100))
        page = html.unescape(look())
        assert "The latest is ticket outside." in page
        query = re.search("SELECT ticket, reward, loss FROM decision_log WHERE [^<]*", page)[0]
        with pool.database.read() as connection:
            assert connection.execute(sa.text(query)).all() == [("outside", 20.0, 0.0)]


def test_a_pool_at_work_in_the_users_unit(tmp_path, look):
    with open_pool(tmp_path, n_actions=30, n_states=4, holdout=0.5, reward_bounds=(0, 100)) as pool:
        for seed in range(5):
            play(pool, 60, seed=seed, outcome=lambda action, state: 80.0 if state == "s1" else 20.0)
        pool.retire_action("a3")
        pool.add_action("new", [0.25] * 4)
        status = pool.status()
    page = look()
    assert '<b id="n-decisions">300</b>' in page
    assert "the 20 most likely of 30" in page
    mean = 100 * (1 - status.losses["learner"].mean)
    assert f"<h2>Reward per decision</h2><b>{outcome(mean)}</b>" in page
    assert outcome(status.lift.value, signed=True) in page
    assert re.search(r"95 % interval [+−][\d.]+ to [+−][\d.]+", page)
    assert "<b>80.00</b>" in page, "what a visit in that state is worth"
    assert not re.search(r"version|dimension|rate\b", page), "words for researchers"


def test_labels_are_escaped(tmp_path, look):
    with open_pool(tmp_path, P=[[0.5, 0.5]], actions=[SCRIPT], states=[SCRIPT, "s"]) as pool:
        play(pool, 10)
    page = look()
    assert SCRIPT not in page
    assert page.count("&lt;script&gt;alert(1)") >= 2


@pytest.mark.parametrize(
    ("settings", "options", "kind"),
    [
        ({"reward_bounds": (0, 10)}, {"outcome": lambda action, state: 50.0}, "bounds"),
        ({"P": [[0.9, 0.1], [0.9, 0.1]]}, {"seen": lambda action: "s1"}, "map"),
        ({}, {"outcome": lambda action, state: 0.8 * (action == "a0") + 0.1 * (state == "s1")}, "odds"),
        ({"holdout": 0.5, "prior": {"states": {"s0": [0.9, 50], "s1": [0.9, 50]}}}, {}, "audit"),
    ],
)
def test_alarms(tmp_path, look, settings, options, kind):
    with open_pool(tmp_path, **settings) as pool:
        play(pool, 600, **options)
    assert f'class="alarm {kind}"' in look()


def test_outcomes_that_come_early_only_raise_an_alarm(tmp_path, look):
    now = [1e9]
    with open_pool(tmp_path, clock=lambda: now[0]) as pool:
        bought = pool.decide_many(200)
        pool.decide_many(200)
        for number, decision in enumerate(bought):
            now[0] += 0.01
            pool.resolve(decision.ticket, number % 2)
    assert 'class="alarm early"' in look()


def test_one_action_only_and_back(tmp_path, look):
    open_pool(tmp_path, actions=["a/b", "c"], P=[[0.5, 0.5], [0.2, 0.8]]).close()
    client = Client(service_of(tmp_path))
    answer = client.post("/pools/home/fixed?action=a%2Fb", headers={"origin": "http://localhost"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/pools/home")
    made = client.post("/v1/pools/home/decisions", json={"count": 20}).json()["decisions"]
    assert {each["action"] for each in made} == {"a/b"}
    assert "Everybody but the holdout gets a/b" in client.get("/").text
    assert client.post("/pools/home/fixed?action=z").status_code == 422
    assert client.post("/pools/home/fixed?action=c", headers={"origin": "https://evil.example"}).status_code == 403
    assert client.post("/pools/home/fixed").status_code == 303
    assert "Everybody but" not in client.get("/").text
    client.stop()


def test_no_alarm_without_a_reason(tmp_path, look):
    with open_pool(tmp_path, n_states=5, n_actions=4) as pool:
        play(pool, 1000)
        pool.learn()
    assert "No alarms" in look()


def test_decisions_that_all_expire_raise_an_alarm(tmp_path, look):
    with open_pool(tmp_path, window=1e-6) as pool:
        pool.decide_many(150)
        pool.expire()
    assert 'class="alarm expired"' in look()


def test_tiles_count_all_decisions_and_no_expiry_that_an_outcome_has_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(package.page, "LATEST", 10)
    with open_pool(tmp_path, window=1e-6) as pool:
        made = pool.decide_many(30)
        pool.expire()
        pool.resolve_many([(each.ticket, 0.5) for each in made[:12]])
        page = page_of(pool)
    assert (page["in_reading"], page["recent"], page["expired"]) == (10, 30, 18)


def test_contexts_and_candidates_have_a_page(tmp_path, look):
    P = {"new": [[0.9, 0.1], [0.2, 0.8]], "known": [[0.5, 0.5], [0.6, 0.4]]}
    with open_pool(tmp_path, P=P, actions=["a", "b"], states=["x", "y"]) as pool:
        for decision in pool.decide_many(4, contexts=["new", "known"] * 2):
            pool.observe(decision.ticket, "x")
            pool.resolve(decision.ticket, loss=0.5)
        pool.observe(pool.decide(candidates={"poster": [0.4, 0.6]}).ticket, "y")
    look()


def test_with_contexts_the_page_says_what_was_shown_of_late(tmp_path):
    P = {"new": {"a": [0.9, 0.1]}, "known": {"b": [0.5, 0.5]}}
    with open_pool(tmp_path, P=P, actions=["a", "b"], states=["x", "y"]) as pool:
        pool.decide_many(4, contexts=["new", "known", "known", "known"])
        shown = {action["label"]: action["probability"] for action in page_of(pool)["actions"]}
    assert shown == {"a": 0.25, "b": 0.75}


def test_effects_that_the_audit_has_found_are_no_alarm(tmp_path, look):
    cells = {"a0": {"s0": (0.8, 50.0)}}
    with open_pool(tmp_path, n_actions=2, prior={"states": {"s0": (0.4, 50.0)}, "cells": cells}) as pool:
        play(pool, 3_000, outcome=lambda action, state: 0.8 * (action == "a0") + 0.1 * (state == "s1"))
        assert [alarm.kind for alarm in page_of(pool)["alarms"] if alarm.kind == "odds"] == []
    assert "differ beyond their states" in look()


def test_several_pools_are_listed(tmp_path):
    for name in ("home", "shop"):
        open_pool(tmp_path, name).close()
    client = Client(service_of(tmp_path))
    page = client.get("/").text
    assert [name in page for name in ("/pools/home", "/pools/shop")] == [True, True]
    assert client.get("/pools/away").status_code == 404
    client.stop()


def test_a_store_without_pools_and_one_that_is_away(tmp_path, monkeypatch):
    client = Client(service_of(tmp_path))
    assert "no pools yet" in client.get("/").text

    def fail(_):
        raise StoreUnavailable("store: away")

    monkeypatch.setattr(client.app.pools.database, "pool_names", lambda: fail(None))
    answer = client.get("/")
    assert (answer.status_code, answer.json()["error"]) == (503, "store: away")
    client.stop()


def test_static_files_are_there_and_fetch_nothing(tmp_path):
    client = Client(service_of(tmp_path))
    for file in (Path(package.__file__).parent / "static").iterdir():
        answer = client.get(f"/static/{file.name}")
        assert answer.status_code == 200
        if "min" not in file.name and file.suffix != ".svg":
            assert "http" not in answer.text
    client.stop()


def test_numbers_as_text():
    assert [number(value) for value in (1234567, 0, None)] == ["1\u202f234\u202f567", "0", "–"]
    assert [outcome(value) for value in (0.1234, 12.345, -3.0, 12345.6, float("nan"))] == [
        "0.123", "12.35", "−3.00", "12\u202f346", "–",
    ]  # fmt: skip
    assert [outcome(value, signed=True) for value in (0.1, -0.1)] == ["+0.100", "−0.100"]
    assert [outcome(value, True, signed=True) for value in (0.1, -0.1)] == ["+10.00 points", "−10.00 points"]
    assert outcome(0.123, True) == "12.3 %"
    assert [share(value) for value in (0.5, 0.0001, 1.0)] == ["50.0 %", "<0.1 %", "100 %"]
    assert [span(value) for value in (0.2, 4.14, 72, 11100, 14 * 86_400)] == [
        "200 ms",
        "4.1 s",
        "1.2 min",
        "3.1 h",
        "14 d",
    ]
    assert label(("a", 1)) == "a / 1"
