"""The page as text: every number there, every label escaped, whatever the pool is like."""

import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from starlette.applications import Starlette

import statepool as sp
import statepool.live.dashboard as package
from live.dashboard.watching import Shelf, app_of, get, open_pool, play
from live.service.clients import Client
from statepool.live import StoreUnavailable
from statepool.live.dashboard import routes
from statepool.live.dashboard.formatting import label, loss, number, share, signed, span
from statepool.live.errors import NoSuchPool
from statepool.live.lift import lift
from statepool.live.service import create_app
from statepool.live.stores import open_store
from statepool.report.palette import COLOURS

ADDRESSES = ("/", "/pools/home", "/pools/home/live", "/pools/home/curves", "/pools/home/delays")
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


def check_all(app, name="home"):
    """Every address answers, and no number is none."""
    for address in ADDRESSES:
        answer = get(app, address.replace("home", name))
        assert answer.status_code == 200, address
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert not re.search(r"\b(nan|inf|None|NaN|Infinity)\b", answer.text), address
        if answer.headers["content-type"] == "application/json":
            json.loads(answer.text, parse_constant=lambda text: pytest.fail(text))
        else:
            Balanced(answer.text)
    return get(app, "/").text


def test_a_pool_without_decisions(tmp_path):
    page = check_all(app_of(open_pool(tmp_path)))
    assert "Nothing has been decided yet" in page
    assert page.count('<th scope="row"') == 3 + 2


def test_a_pool_with_one_action_and_one_state(tmp_path):
    pool = open_pool(tmp_path, P=[[1.0]])
    play(pool, 30)
    page = check_all(app_of(pool))
    assert "100 %" in page
    assert ">1 action<" in page


def test_a_pool_with_decisions_and_nothing_after(tmp_path):
    pool = open_pool(tmp_path, holdout=0.2)
    pool.decide_many(30)
    page = check_all(app_of(pool))
    assert "waits for outcomes of both" in page


def test_a_pool_at_work(tmp_path):
    pool = open_pool(tmp_path, n_actions=30, n_states=4, holdout=0.2, expire_after=60, default_loss=1.0)
    for seed in range(5):
        play(pool, 60, seed=seed)
    pool.retire_action("a3")
    pool.add_action("newcomer", [0.25] * 4)
    app = app_of(pool)
    page = check_all(app)
    assert "the 20</span>" in page
    assert "most played of" in page
    assert "of 30 actions, 1 retired" in page
    assert '<b id="n-decisions">300</b>' in page
    assert re.search(r"95 %: [+−]\d\.\d{3} to [+−]\d\.\d{3}", page)
    assert "after 1 min, as loss 1" in page
    curves = get(app, "/pools/home/curves").json()
    assert {len(curves[name]) for name in curves} == {len(curves["time"])}
    assert sum(get(app, "/pools/home/delays").json()["counts"]) == 300


def test_the_lift_is_that_of_the_tallies(tmp_path):
    pool = open_pool(tmp_path, P=[[1.0, 0.0], [0.0, 1.0]], holdout=0.5)
    for seed in range(10):
        play(pool, 40, lost=lambda action, state: 0.9 if state == "s0" else 0.1, seed=seed)
    arms = pool._fold().tallies
    found = lift(**arms, share=0.5)
    page = get(app_of(pool), "/").text
    assert f"<b>{signed(arms['holdout'].mean - arms['learner'].mean)}</b>" in page
    assert f"95 %: {signed(found.low)} to {signed(found.high)}" in page
    assert "look as often as you like" in page
    assert "outcomes teach the learner too" in page


def test_labels_are_escaped_everywhere(tmp_path):
    pool = open_pool(tmp_path, actions=[SCRIPT, '"><img src=x>', ("a", "pair")], states=[SCRIPT + "s", "'quoted\""])
    play(pool, 60)
    page = check_all(app_of(pool))
    assert page.count("<script") == 4, "ours only"
    assert "alert(1)" in page
    assert "<img src=x" not in page
    assert "a / pair" in page
    assert get(app_of(pool), "/pools/<script>").status_code == 404
    assert "<script>" not in get(app_of(pool), "/pools/<script>").text.split("<main")[1]


@pytest.mark.parametrize(
    "learner", [sp.StateEXP3(rate=0.1), sp.PooledGreedy(), sp.Uniform(), sp.SelfTuned(learn_map=True)]
)
def test_every_kind_of_learner(tmp_path, learner):
    pool = open_pool(tmp_path, n_actions=6, n_states=3, learner=learner)
    check_all(app_of(pool))
    play(pool, 50)
    play(pool, 50, seed=1)
    assert type(learner).__name__ in check_all(app_of(pool))


def test_a_thousand_states(tmp_path):
    pool = open_pool(tmp_path, n_actions=20, n_states=1000)
    play(pool, 200)
    app = app_of(pool)
    page = check_all(app)
    assert "988 more states" in page
    assert len(page) < 100_000
    assert len(get(app, "/pools/home/live").text) < 100_000


def test_a_million_actions(tmp_path):
    P = np.random.default_rng(0).dirichlet(np.ones(3), 1_000_000)
    pool = open_pool(tmp_path, P=P, learner=sp.StateEXP3(rate=0.01))
    play(pool, 30)
    page = check_all(app_of(pool))
    assert "of 1\u202f000\u202f000 actions" in page
    assert page.count('class="leads"') == 20
    assert len(page) < 100_000


def test_several_pools_are_listed(tmp_path):
    app = app_of(open_pool(tmp_path, "home"), open_pool(tmp_path, "mail"))
    page = get(app, "/").text
    Balanced(page)
    assert 'href="/pools/home"' in page
    assert 'href="/pools/mail"' in page
    assert "<b>mail</b>" in get(app, "/pools/mail").text
    assert get(app, "/pools/other").status_code == 404


def test_a_store_without_pools():
    page = get(app_of(), "/")
    assert page.status_code == 200
    assert "no pools yet" in page.text


def test_a_store_that_is_away(tmp_path):
    pool = open_pool(tmp_path)
    app = app_of(pool)
    pool.close()
    answer = get(app, "/pools/home/live")
    assert answer.status_code == 503
    assert "Traceback" not in answer.text


class Gone(Shelf):
    def names(self):
        raise StoreUnavailable("away")


def test_a_store_that_does_not_even_know_its_pools():
    app = Starlette(routes=routes(Gone()))
    assert [get(app, address).status_code for address in ADDRESSES] == [503] * 5


class Empty(Shelf):
    def names(self):
        return ["home", "other"]

    def get(self, name):
        raise NoSuchPool(name)


def test_a_pool_whose_first_event_is_still_to_come():
    app = Starlette(routes=routes(Empty()))
    assert [get(app, address).status_code for address in ADDRESSES] == [200, 404, 404, 404, 404]


def test_the_same_on_both_stores(place):
    pool = place.make(holdout=0.2, expire_after=0.001, default_loss=1.0)
    play(pool, 60)
    pool.decide_many(5)
    page = check_all(app_of(pool), place.name)
    assert '<b id="n-decisions">65</b>' in page
    assert "5</b>" in page


def test_the_service_shows_it_to_those_with_a_key_only(tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/pools.db")
    client = Client(create_app(store))
    try:
        pool = {"actions": ["a", "b"], "states": ["s", "t"], "P": [[0.5, 0.5], [0.1, 0.9]]}
        assert client.put("/v1/pools/home", json=pool).status_code == 201
        assert [client.get(address).status_code for address in ADDRESSES] == [200] * 5
        store.add_key("someone", "0" * 64, "admin")
        client.app.keys.reload()
        assert [client.get(address).status_code for address in ADDRESSES] == [303] * 5
    finally:
        client.stop()


def test_the_colours_are_those_of_the_report():
    style = Path(package.__file__).with_name("static").joinpath("dashboard.css").read_text()
    light, dark, system = re.findall(r"color-scheme: (?:light|dark);(.*?)}", style, re.DOTALL)
    for theme, place in ((light, 0), (dark, 1), (system, 1)):
        used = dict(re.findall(r"--(\w+): (#\w+)", theme))
        assert len(used) == 10
        assert used == {name: COLOURS[name][place] for name in used}


def test_vendored_files_carry_their_licences_and_nothing_comes_from_elsewhere():
    static = Path(package.__file__).with_name("static")
    assert "Zero-Clause BSD" in static.joinpath("htmx.min.js").read_text()[:1000]
    for name in ("uPlot.iife.min.js", "uPlot.min.css"):
        assert "The MIT License" in static.joinpath(name).read_text()[:300]
    pages = Path(package.__file__).with_name("templates").glob("*.html")
    assert not [page.name for page in pages if re.search(r"https?://|style=|onclick|<style", page.read_text())]


def test_numbers_as_people_read_them():
    assert [number(value) for value in (0, 1234567, 12.34, 1234.5, None, math.nan)] == [
        "0", "1\u202f234\u202f567", "12.3", "1\u202f234", "–", "–",
    ]  # fmt: skip
    assert [loss(value) for value in (0.12345, math.nan, None)] == ["0.123", "–", "–"]
    assert [signed(value) for value in (0.5, -0.25)] == ["+0.500", "−0.250"]
    assert [share(value) for value in (0, 0.0001, 0.123, 1.0, math.nan)] == ["0.0 %", "<0.1 %", "12.3 %", "100 %", "–"]
    assert [span(value) for value in (0.35, 1, 4.096, 16.4, 59.8, 72, 3600, 11100, 200_000, None)] == [
        "350 ms", "1 s", "4.1 s", "16 s", "1 min", "1 min 12 s", "1 h", "3 h 5 min", "2 d 7 h", "–",
    ]  # fmt: skip
    assert label(("a", 1)) == "a / 1"


def test_the_shelf_is_what_a_service_has():
    from statepool.live.service.pools import Pools

    assert {"names", "get"} <= {name for name in dir(Shelf) if not name.startswith("_")} <= set(dir(Pools))


def test_a_seed_is_marked_as_one_for_tests(tmp_path):
    for seed, marked in ((1, True), (None, False)):
        pool = sp.Pool.open(f"sqlite:///{tmp_path}/{seed}.db", "home", [[1.0]], ["a"], ["s"], seed=seed)
        assert ("test seed" in get(app_of(pool), "/pools/home").text) == marked
        pool.close()
