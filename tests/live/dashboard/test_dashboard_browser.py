"""The dashboard as a visitor sees it, in a real browser: it moves, it fits, it complains of nothing."""

import time

import pytest

from live.dashboard.watching import open_pool, play, served, service_of
from statepool.live.demo import NAME, Demo, create
from studies.chromium import Chromium, find_chromium


class Browser(Chromium):
    def visit(self, address, width, dark):
        """As `open`, over HTTP; what is asked of that address is no complaint."""
        self.open(_Address("about:blank"), width, dark)  # the page before may still ask a server that is gone
        self.complaints.clear()
        self.open(_Address(address), width, dark)

    def wait(self, script, seconds=20):
        """Until a JavaScript expression is true."""
        end = time.monotonic() + seconds
        while not self.run(script):
            assert time.monotonic() < end, script
            time.sleep(0.1)

    def complaints_about(self, address):
        return [each for each in self.complaints if not each.startswith(f"network: {address}/")]


class _Address:
    def __init__(self, text):
        self._text = text

    def resolve(self):
        return self

    def as_uri(self):
        return self._text


@pytest.fixture(scope="module")
def browser():
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium on this machine: install Debian's chromium, or name a program in CHROMIUM")
    with Browser(program) as opened:
        yield opened


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    service = service_of(tmp_path_factory.mktemp("demo"))
    create(service.pools.database).close()
    service.demo = Demo(service.pools.get(NAME))
    with served(service) as address:
        yield address


DECISIONS = "Number(document.getElementById('n-decisions').textContent.replace(/\\D/g, ''))"


def test_numbers_move_within_ten_seconds(browser, demo):
    browser.visit(demo, 1400, False)
    first = browser.run(DECISIONS)
    browser.wait(f"{DECISIONS} > {first + 20}", 10)
    browser.wait("Number(document.getElementById('charts').dataset.points) > 3", 10)
    second = browser.run(DECISIONS)
    browser.wait(f"{DECISIONS} > {second + 20}", 10)
    assert browser.complaints_about(demo) == []


@pytest.mark.parametrize(
    ("width", "dark"),
    [
        (400, True),
        (1400, False),
        *(pytest.param(*each, marks=pytest.mark.soak) for each in [(400, False), (1400, True)]),
    ],
)
def test_fits_and_is_legible(browser, demo, width, dark):
    browser.visit(demo, width, dark)
    browser.wait("document.querySelectorAll('.chart canvas').length === 2")
    browser.wait("document.getElementById('charts').dataset.points > 0")
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    assert outside(browser) == []
    brightness = browser.run("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)")
    letters = browser.run("getComputedStyle(document.body).color.match(/\\d+/g).slice(0, 3).map(Number)")
    assert (sum(brightness) < 150) is dark
    assert abs(sum(letters) - sum(brightness)) > 450
    assert browser.complaints_about(demo) == []


def outside(browser):
    """Elements of the panels that stick out of the window."""
    return browser.run(
        "[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1"
        " && !e.closest('.hidden, .u-wrap')).map(e => e.outerHTML.slice(0, 80))"
    )


@pytest.mark.parametrize("width", [400, 1400])
def test_long_labels_and_alarms_fit_too(browser, tmp_path, width):
    long = "<script>throw 1</script>" + "w" * 300
    with open_pool(tmp_path, P=[[0.9, 0.1], [0.9, 0.1]], actions=[long, "b"], states=[long + "s", "t" * 200]) as pool:
        play(pool, 200, seen=lambda action: "t" * 200)
    with served(service_of(tmp_path)) as address:
        browser.visit(address, width, False)
        browser.wait("document.getElementById('charts').dataset.points !== undefined")
        assert browser.run("document.documentElement.scrollWidth <= innerWidth")
        assert outside(browser) == []
        assert browser.run("document.querySelectorAll('.alarm.map').length") == 1
        assert browser.complaints_about(address) == []


def test_the_theme_can_be_chosen_and_is_kept(browser, demo):
    browser.visit(demo, 1400, False)
    before = browser.run("getComputedStyle(document.body).backgroundColor")
    browser.run("document.getElementById('theme').click()")
    chosen = browser.run("getComputedStyle(document.body).backgroundColor")
    browser.visit(demo, 1400, False)
    assert browser.run("getComputedStyle(document.body).backgroundColor") == chosen != before
    browser.run("localStorage.clear()")


def test_every_figure_of_the_page_has_a_name(browser, demo):
    browser.visit(demo, 1400, False)
    unnamed = (
        "[...document.querySelectorAll('svg:not([aria-hidden]), [role=img], section, button, table th[scope]')]"
        ".filter(e => !(e.ariaLabel || e.getAttribute('aria-labelledby') || e.textContent.trim()))"
        ".map(e => e.outerHTML.slice(0, 80))"
    )
    assert browser.run(unnamed) == []
    assert browser.run("document.documentElement.lang") == "en"


def test_says_when_nobody_answers(browser, tmp_path):
    open_pool(tmp_path).close()
    with served(service_of(tmp_path)) as address:
        browser.visit(address, 400, True)
        browser.wait("document.getElementById('pulse-words').textContent.startsWith('live,')")
    browser.wait("document.getElementById('pulse-words').textContent.startsWith('no answer')")
