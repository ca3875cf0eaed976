"""Every figure in the docs that follows from a formula, computed; each is read from its page, which must say it."""

import re
from decimal import Decimal
from math import ceil, e, exp, log, log2, pi, sqrt
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

import statepool as sp
from statepool import guarantees
from statepool.exact_sums import BITS
from statepool.learners.parts.alarms import GUARD
from statepool.learners.parts.safe import SHARE
from statepool.live.pool_state import CHEAP
from statepool.live.settings import check_settings, loss_of
from statepool.studies.beyond.certified_dimension import PROMISED
from statepool.studies.tasks import make_instance

DOCS = Path(__file__).parent.parent / "docs"
FUNNEL = {"n_actions": 200, "delay": 50}


def said(page, pattern):
    """The figures that a pattern finds on a page, which must have it exactly once."""
    text = " ".join((DOCS / page).read_text().split())
    found = re.findall(pattern, text)
    assert len(found) == 1, f"{page}: {pattern} is there {len(found)} times"
    return found[0]


def rows(page, columns):
    """The cells of all table rows of a page that have so many."""
    lines = [line for line in (DOCS / page).read_text().splitlines() if line.startswith("|")]
    cells = [[cell.strip().strip("*") for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if len(row) == columns]


def number(text):
    """As printed: with a true minus, thin groups, and a power of ten perhaps."""
    digits, _, power = text.replace("−", "-").replace(",", "").replace(" ", "").partition("·10^")
    return float(digits) * 10.0 ** int(power or 0)


def reads(text, value):
    """Whether a value, rounded to as many digits as the text has, is the text."""
    digits = Decimal(text.replace("−", "-").replace(",", "").replace(" ", "").split("·")[0])
    power = text.partition("·10^")[2]
    return abs(value / 10.0 ** int(power or 0) - float(digits)) <= 0.5 * 10.0 ** digits.as_tuple().exponent + 1e-12


def first_below(bound):
    """The first horizon at which a bound says less than the horizon."""
    low, high = 1, 10**12
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) < middle else (middle, high)
    return high


def drift_lemma_floor_by_hand(K, S, T, d):
    """The closed form of self-tuned.md, letter by letter."""
    w = 1 / 32
    return (
        3.42 * (sqrt(2 * (3.3 * (S - 1) / w + 2 * d + 1) * T * log(K * T)) + 3 * sqrt(T / w))
        + (1 + log2(T)) * (e * (d + 1) * log(K * T) / w + 2 * d + 1)
        + 2 * d
        + 5
    )


def floor_by_hand(K, S, delays):
    """The theorem of self-tuned.md round by round: what each epoch waits for is counted."""
    w, T, longest, floor, s = 1 / 32, len(delays), max(delays), 0.0, 0
    while s < T:
        rounds = range(s, min(2 * s or 1, T))
        come = [delays[r] for r in range(s) if r + delays[r] + 1 <= s]
        d = sum(come) / len(come) if come else 0.0
        size = log(K * max(s, 1))
        rate = min(sqrt(2 * size / ((3.3 * (S - 1) / w + 2 * d + 1) * max(s, 1))), w / (e * (d + 1)))
        waits = [sum(r + delays[r] + 1 > t for r in range(max(s, t - longest), t)) for t in rounds]
        kappa1 = (exp(rate / w) - 1 - rate / w) / (rate / w) ** 2
        epoch = size / rate + rate * (kappa1 * len(rounds) * (min(K, S) - 1) / w + sum(waits))
        floor += min(len(rounds), epoch + 3 * sqrt(s / w) + max(waits) + 1)
        s = 2 * s or 1
    return floor


@pytest.mark.parametrize(("K", "S", "T", "d"), [(200, 6, 10**6, 50), (3, 2, 10, 0), (40, 40, 12_345, 7)])
def test_the_closed_form_of_the_floor_is_the_one_of_the_page(K, S, T, d):
    found = guarantees.drift_lemma_floor(K, S, T, d)
    assert found == pytest.approx(drift_lemma_floor_by_hand(K, S, T, d), rel=1e-14)
    assert guarantees.self_tuned_floor(K, S, T, d) <= min(found, T)


@pytest.mark.parametrize(("K", "S"), [(2, 2), (2, 3), (3, 2)])
@pytest.mark.parametrize("kind", ["none", "one", "in order"])
def test_the_floor_is_the_one_of_the_page(K, S, kind):
    """At a horizon where it says something."""
    T = 16_000
    delays = np.full(T, 3 if kind == "one" else 0)
    if kind == "in order":  # the round that an outcome comes in never falls
        rounds = np.arange(T)
        delays = np.maximum.accumulate(rounds + np.random.default_rng(3).integers(0, 6, size=T)) - rounds
    by_hand = floor_by_hand(K, S, delays)
    assert guarantees.self_tuned_floor(K, S, T, delays) == pytest.approx(by_hand, rel=1e-9)
    if kind != "in order":
        assert guarantees.self_tuned_floor(K, S, T, int(delays[0])) == pytest.approx(by_hand, rel=1e-9)
    assert by_hand < T


def test_the_floor_asks_for_outcomes_in_order():
    with pytest.raises(ValueError, match=r"round 1's outcome \(5 late\) comes after that of round 2 \(3 late\)"):
        guarantees.self_tuned_floor(3, 2, 9, [0, 5, *[3] * 7])
    assert guarantees.self_tuned_floor(3, 2, 9, [0, 5, 4, *[3] * 6]) == 9


def test_where_the_floors_and_theorem_1_begin_to_say_something():
    floor, theorem = said(
        "self-tuned.md", r"from about T = ([\d.·^]+) on \(Theorem 1 at its best rate: from about ([\d ]+)\)"
    )
    first = first_below(lambda T: guarantees.self_tuned_floor(n_states=6, horizon=T, **FUNNEL))
    assert reads(floor, first)
    assert first <= 250_000
    found = first_below(lambda T: guarantees.theorem_1(horizon=T, budget=5 * T, **FUNNEL).value)
    assert round(found, -2) == number(theorem)
    lemma = said("self-tuned.md", r'says less than "T" only from about T = ([\d.·^]+) on, and is the closed form')
    assert reads(lemma, first_below(lambda T: guarantees.drift_lemma_floor(n_states=6, horizon=T, **FUNNEL)))


def test_where_the_floor_would_begin_without_the_cap():
    K, S, d, w = 200, 6, 50, 1 / 32

    def floor(T):
        total, s = 1.0, 1  # round 0
        while s < T:
            n, seen = min(s, T - s), d if s > d else 0
            rate = sqrt(log(K * s) / ((0.55 * (S - 1) / w + seen + 1) * s))
            most = min(d, n - 1)
            cost = guarantees.first_cost(rate / w) * n * (S - 1) / w + most * (most - 1) / 2 + most * (n - most)
            total += min(n, log(K * s) / rate + rate * cost + 3 * sqrt(s / w) + most + 1)
            s *= 2
        return total

    said_first = said("self-tuned.md", r'the floor would say less than "T" from about T = ([\d.·^]+) on')
    assert reads(said_first, first_below(floor))


def test_where_the_floor_of_corrected_pool_begins_to_say_something():
    floor = said("corrected-pool.md", r"at K=200, d=50 the bound says less than T only from about T = ([\d.·^]+) on")
    assert reads(floor, first_below(lambda T: guarantees.self_tuned_floor(n_states=200, horizon=T, **FUNNEL)))


def test_constants_of_the_floor():
    assert said("self-tuned.md", r"`w = SHARE = 1/(\d+)`") == "32" == said("corrected-pool.md", r"w = 1/(\d+)\.")
    assert SHARE == 1 / 32
    assert reads(said("self-tuned.md", r"at most sqrt\(1/w\) = ([\d.]+)`"), sqrt(1 / SHARE))
    assert number(said("self-tuned.md", r"> Γ = (\d) sqrt\(s/w\)`")) == GUARD
    # Powers of two up to T: the largest sum for its T is that of T = 2^n.
    sums = [sum(sqrt(2.0**i) for i in range(n + 1)) / sqrt(2.0**n) for n in range(60)]
    assert max(sums) <= number(said("self-tuned.md", r"`sum sqrt\(s\) ≤ ([\d.]+) sqrt\(T\)`")) < max(sums) + 0.01
    # kappa1 at the largest rate, which is that of no delay.
    largest = guarantees.first_cost(1 / e)
    assert largest <= number(said("self-tuned.md", r"which is below ([\d.]+) at these rates")) < largest + 0.01


def test_figures_of_the_worst_found():
    found = said("self-tuned.md", r"The first two are the worst found: ([\d.]+) and ([\d.]+) times State-EXP3")
    for recipe, ratio in zip(("179", "288"), found, strict=True):
        row = next(row for row in rows("self-tuned.md", 5) if row[0].startswith(recipe))
        assert reads(ratio, number(row[3].split()[0]) / number(row[1]))


def test_shares_closed():
    """(State-EXP3 - SelfTuned) / (State-EXP3 - best rule), from figures that are rounded to whole numbers."""
    listed = [row for row in rows("self-tuned.md", 5) if re.fullmatch(r"-?\d+", row[4])]
    assert len(listed) == 4
    for _, state, best, ours, closed in listed:
        state, best, ours = number(state), number(best.split()[0]), number(ours.split(" (")[0])
        ends = [100 * (state + x - ours) / (state + x - best) for x in (-1, 1)]
        assert min(ends) - 0.5 <= number(closed) <= max(ends) + 0.5


def test_a_million_rounds_to_tell_two_hundred_actions_apart():
    """Until the standard error of the difference of two actions' means, of 0/1 outcomes, is as small as the gap."""
    K, gap = said("corrected-pool.md", r"Telling (\d+) actions apart that differ by (\.\d+) takes a million rounds")
    assert reads("1·10^6", int(K) * 2 * 0.25 / number(gap) ** 2)


def test_why_the_published_grouping_fails():
    page = "grouping.md"
    n, states, error = said(page, r"With ([\d,]+) rounds over (\d+) states a mean has a standard error near ([\d.]+)")
    sigma = sqrt(0.25 / (number(n) / int(states)))
    assert reads(error, sigma)
    apart, T, again, charge = said(page, r"look about ([\d.]+) apart and are charged 2 · (\d+) · ([\d.]+) ≈ (\d+),")
    assert reads(apart, 2 * sigma / sqrt(pi))  # the mean distance of two normal numbers
    assert apart == again
    assert round(2 * int(T) * number(apart), -2) == number(charge)


def test_bonferroni():
    for z, states in zip(
        *[iter(said("grouping.md", r"Bonferroni: ([\d.]+) for (\d+) states, ([\d.]+) for (\d+)\)"))] * 2, strict=True
    ):
        assert reads(z, NormalDist().inv_cdf(1 - 0.05 / (int(states) - 1)))


def test_shares_of_the_gap_by_grouping():
    listed = [row for row in rows("grouping.md", 8) if row[0] in ("clustered 0", "clustered .12")]
    assert len(listed) == 2
    for _, identity, published, ours, true, _, difference, share in listed:
        identity, published, ours, true = map(number, (identity, published, ours, true))
        assert abs(number(difference.split(" ±")[0]) - (ours - identity)) < 0.16  # three figures rounded to a tenth
        assert reads(re.match(r"\d+", share.strip("* "))[0], 100 * (identity - ours) / (identity - true))
        if rule := re.search(r"published rule (\d+) %", share):
            assert reads(rule[1], 100 * (identity - published) / (identity - true))


def test_what_the_rate_alone_gains():
    at_rate, part, whole = said(
        "grouping.md", r"identity at the true clusters' rate has ([\d.]+), so (\d+) of the (\d+) units"
    )
    row = next(row for row in rows("grouping.md", 8) if row[0] == "clustered 0")
    assert reads(part, number(row[1]) - number(at_rate))
    assert reads(whole, number(row[1]) - number(row[4]))


def test_one_copy_has_its_share_of_the_rounds():
    assert "ceil((T − prefix)/(d+1))" in (DOCS / "grouping.md").read_text()
    lengths = [len(range(copy, 4_800, 51)) for copy in range(51)]
    assert max(lengths) == ceil(4_800 / 51)


def test_a_supremum_that_is_not_attained():
    first, second, limit = said("dimension.md", r"for rows \((1, 0)\) and \((0\.4, 0\.6)\) it is ([\d.]+), approached")
    P = np.array([[number(x) for x in row.split(", ")] for row in (first, second)])
    assert sp.dimension.effective(P, [1 - 1e-9, 1e-9]) == pytest.approx(number(limit), abs=1e-8)
    assert sp.dimension.bracket(P, gap=1e-3).upper >= number(limit) - 1e-9


def test_gaps_of_the_brackets():
    listed = [row for row in rows("dimension.md", 8) if re.fullmatch(r"[\d.]+ %", row[3])]
    assert len(listed) == 22
    for _, lower, upper, gap, *_ in listed:
        slack = 0.01 / number(lower)  # of the two last digits, in per cent
        assert abs(100 * (number(upper) / number(lower) - 1) - number(gap.split()[0])) <= 0.005 + slack


def test_how_far_random_search_was_off():
    search, attained, more = said("dimension.md", r"it says ([\d.]+) where a play attains ([\d.]+) \(([\d.]+) % more\)")
    ends = [100 * (number(attained) / (number(search) + x) - 1) for x in (-0.005, 0.005)]
    assert min(ends) - 0.05 <= number(more) <= max(ends) + 0.05


def test_theorem_1_on_every_family():
    listed = [row for row in rows("dimension.md", 5) if row[0] in PROMISED]
    assert [row[0] for row in listed] == list(PROMISED)
    for name, upper, bound, *_ in listed:
        instance = make_instance(*PROMISED[name], 0)
        K, T = instance.n_actions, instance.horizon
        ends = [guarantees.theorem_1(K, T, 50, (number(upper) + x - 1) * T).value for x in (-0.005, 0.005)]
        # The page has the mean of five bounds; a bound hardly bends between their dimensions.
        assert ends[0] - 1 <= number(bound) <= ends[1] + 1


def test_the_floor_of_the_flights():
    delay = number(said("audit.md", r"Half of the outcomes come within [\d.]+ hours, (\d+) departures later"))
    e2, floor = said("audit.md", r"\(E2 = ([\d.]+) at that delay: the floor of (\d+) over the year")
    rows_a_year = number(said("audit.md", r"holds the ([\d ]+) departures from New York"))
    drifting = 5
    assert "Five of the seven state means drift" in (DOCS / "audit.md").read_text()
    # E2 is printed to one digit, which leaves the floor some room.
    at_most, at_least = (
        sqrt(delay * (number(e2) + half) * min(1 + log(drifting), rows_a_year / delay)) for half in (0.05, -0.05)
    )
    assert at_least - 0.5 <= number(floor) <= at_most + 0.5


def test_default_rates():
    """The rule of learners.md, and with copies."""
    assert "`sqrt(2 log K / ((V + d) T))`" in (DOCS / "learners.md").read_text()
    assert "`sqrt(2 log K / ((V + floor(d/m)) T/m))`" in (DOCS / "learners.md").read_text()
    K, V, T, d = 200, 6, 20_000, 50
    assert sp.rates.default_rate(K, V, T, d) == pytest.approx(sqrt(2 * log(K) / ((V + d) * T)))
    assert sp.rates.default_rate(K, V, T, d, 7) == pytest.approx(sqrt(2 * log(K) / ((V + d // 7) * T / 7)))


def test_figures_of_live():
    assert number(said("live.md", r"`K·\|S\| / ([\d ]+)` lessons")) == CHEAP
    of = said("live.md", r"starts on the first action, (\d+) of (\d+) decisions")
    assert int(of[0]) / int(of[1]) == 1 - SHARE
    assert "whole numbers of 2⁻¹⁰⁰" in (DOCS / "live.md").read_text()
    assert BITS == 100
    reward, most, loss = said("live.md", r"(\d+) of at most (\d+) is a loss of ([\d.]+)")
    assert loss_of(check_settings({"reward_bounds": (0, int(most))}), None, int(reward)) == number(loss)


def test_the_first_screen_of_the_readme():
    """The rows that are quick to play; `benchmarks/first_screen.py` plays all."""
    listed = {row[0].strip("*`"): row[1].replace("*", "") for row in rows("../README.md", 4) if "±" in row[1]}
    quick = {"SelfTuned": sp.SelfTuned(), "pooled Thompson": sp.PooledThompson(), "pooled greedy": sp.PooledGreedy()}
    found = sp.compare("funnel", quick, delays=[50], seeds=range(10))
    for name in quick:
        mean, error = next(said for row, said in listed.items() if row.startswith(name)).split(" ± ")
        regrets = found.of("funnel", name, 50)
        assert reads(mean, regrets.mean())
        assert reads(error, regrets.std(ddof=1) / sqrt(10))
