"""Requests that bring rows of their own, a context's or those of candidates: drawn, learnt from, drawn again."""

import numpy as np
import pytest

import statepool as sp
from live.places import check_chain, fold_of
from statepool.exact_run import play_exactly
from statepool.live.events import Brought, Decided, Seen, decode, rows_name
from statepool.live.replay import replay
from statepool.live.requests import Decide, DecideAll, Resolve
from statepool.stream import Stream

ACTIONS, STATES = ["a", "b", "c"], ["x", "y", "z"]
TABLES = {
    "new": [[0.7, 0.2, 0.1], [0.2, 0.4, 0.4], [0.1, 0.1, 0.8]],
    "known": {"a": [0.1, 0.2, 0.7], "b": [0.6, 0.4, 0.0]},
}
OFFERS = [{"poster": [0.7, 0.2, 0.1], "a": [0.0, 0.5, 0.5]}, {"q": [0.3, 0.3, 0.4], "r": [0.5, 0.5, 0.0]}]
LEARNERS = [sp.SelfTuned(), sp.StateEXP3(rate=0.1), sp.CorrectedPool(), sp.PooledThompson()]


def open_pool(place, learner=None, **given):
    catalogue = {"P": TABLES, "actions": ACTIONS, "states": STATES, "contexts": ["new", "known"]}
    return place.open(**catalogue, learner=learner or sp.StateEXP3(rate=0.1), seed=3, **given)


def requests(pool, rounds, draws):
    """Contexts and candidates in turn, each with a state and an outcome."""
    for t in range(rounds):
        asked = {"candidates": OFFERS[t % 2]} if t % 3 == 0 else {"context": ("new", "known")[t % 2]}
        made = pool.decide(**asked)
        yield asked, made
        pool.observe(made.ticket, STATES[draws.integers(3)])
        pool.resolve(made.ticket, loss=float(draws.random() < 0.5))


def replayed(place, name):
    store = place.store()
    try:
        return replay(store, name, redraw=True)
    finally:
        store.close()


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_every_decision_is_drawn_again_and_the_journal_folds_to_the_same_bits(sqlite, learner):
    pool = open_pool(sqlite, learner, holdout=0.1, shares={"a": (0.05, 0.9)})
    for _ in requests(pool, 30, np.random.default_rng(0)):
        pass
    found, pool_state = replayed(sqlite, sqlite.name)
    assert not found.faults
    assert (found.redrawn, found.decisions) == (30, 30)
    check_chain(sqlite.events())
    assert fold_of(sqlite.events()).dump() == pool._fold().dump() == pool_state.dump() == sqlite.open()._fold().dump()


def test_whole_tables_are_of_the_actions_as_the_caller_names_them(sqlite):
    """In whichever order, then and later."""
    pool = open_pool(sqlite)
    swapped = {"new": [TABLES["new"][place] for place in (2, 0, 1)], "known": TABLES["known"]}
    again = sqlite.open(P=swapped, actions=["c", "a", "b"], states=STATES)
    assert again._fold().dump() == pool._fold().dump()
    for context in TABLES:
        assert np.array_equal(again._fold().catalogue.table(context)[1], pool._fold().catalogue.table(context)[1])
    other = {"new": [[0.5, 0.5, 0.0], *swapped["new"][1:]], "known": TABLES["known"]}
    changed = sqlite.open(P=other, actions=["c", "a", "b"], states=STATES, update=True)
    assert changed._fold().catalogue.table("new")[1].tolist() == [*TABLES["new"][:2], [0.5, 0.5, 0.0]]


def test_contexts_of_many_decisions_may_be_an_array(sqlite):
    pool = open_pool(sqlite)
    made = pool.decide_many(3, contexts=np.array(["new", "known", "known"]))
    assert [pool.find(each.ticket)["context"] for each in made] == ["new", "known", "known"]


def test_both_stores_keep_them(place):
    pool = open_pool(place)
    made = [made for _, made in requests(pool, 12, np.random.default_rng(1))]
    rows = {row["ticket"]: row for row in pool.rows()}
    assert [rows[each.ticket]["action"] for each in made] == [each.action for each in made]
    assert pool.find(made[1].ticket)["context"] == "known"
    assert not replayed(place, place.name)[0].faults


def test_a_context_is_answered_with_its_own_actions_only(sqlite):
    pool = open_pool(sqlite)
    played = {"new": set(), "known": set()}
    for asked, made in requests(pool, 120, np.random.default_rng(2)):
        if "context" in asked:
            played[asked["context"]].add(made.action)
        else:
            assert made.action in asked["candidates"]
    assert played == {"new": {"a", "b", "c"}, "known": {"a", "b"}}


def test_recorded_probabilities_are_those_of_the_draw(sqlite):
    pool = open_pool(sqlite, sp.SelfTuned())
    for _ in requests(pool, 40, np.random.default_rng(3)):
        pass
    made = pool.decide_many(1_000, candidates=[OFFERS[0]] * 1_000)
    told = {each.action: each.probability for each in made}
    for action, probability in told.items():
        share = sum(each.action == action for each in made) / len(made)
        assert abs(share - probability) < 4 * np.sqrt(probability * (1 - probability) / len(made)) + 1e-9


def test_rows_are_kept_once_and_within_their_budget(sqlite):
    pool = open_pool(sqlite, request_bytes=2 * 3 * 8)
    for n in range(6):
        pool.decide(candidates=OFFERS[n % 2])
    kept = [event for *_, body, _ in sqlite.events() if isinstance(event := decode(body), Brought)]
    assert [event.labels for event in kept] == [list(OFFERS[0])]
    found, _ = replayed(sqlite, sqlite.name)
    assert (found.redrawn, found.without_rows, found.faults) == (3, 3, [])


@pytest.mark.parametrize("first", [True, False])
def test_a_ticket_that_is_called_as_rows_are_is_a_ticket_like_any_other(place, first):
    """In one batch with the rows of that name, before or after them."""
    pool = open_pool(place)
    own = rows_name(pool._fold().answers.offers.of_candidates(OFFERS[0]).digest)
    asked = [Decide(own, None, "new"), Decide(candidates=OFFERS[0]), Decide(own, None, "new")]
    made = pool.run(asked if first else [asked[1], *asked[::2]])
    assert [each.ticket == own for each in made] == ([True, False, True] if first else [False, True, True])
    assert len(set(made)) == 2
    assert pool.decide(own, context="new") in made


@pytest.mark.parametrize("held", [1 << 26, 1])
def test_several_decisions_are_made_all_or_none(place, held, monkeypatch):
    """Each is checked before the first is drawn: who is refused has no decision whose ticket they do not know."""
    monkeypatch.setattr("statepool.live.requests.MOST_HELD", held)
    pool = open_pool(place)
    for _ in range(2):
        pool.decide("open", candidates=OFFERS[0])
    unlike = {"poster": [0.1, 0.2, 0.7]}
    for tickets, asked, why in (
        (3, {"contexts": ["new", "known", "NOPE"]}, r"context: .*'NOPE'.* \(number 3 of 3, so that none"),
        (2, {"contexts": ["new", None]}, r"context: is missing.* \(number 2 of 2"),
        (2, {"candidates": [OFFERS[0], {"a": [0.5, 0.6, 0.7]}]}, r"\(number 2 of 2"),
        (3, {"candidates": [unlike, OFFERS[0], {}]}, r"candidates: has 0.* \(number 3 of 3"),
        (["x", "y\n"], {"contexts": ["new", "new"]}, r"ticket: .* \(number 2 of 2"),
        (["x", "open"], {"candidates": [OFFERS[0], OFFERS[1]]}, r"'open' was decided among others.* \(number 2 of 2"),
        (["x", "x"], {"contexts": ["new", "known"]}, r"'x' was decided for 'new', and now for 'known' \(number 2 of 2"),
        (["x", "x"], {"candidates": [OFFERS[1], unlike]}, r"'x' was decided among others.* \(number 2 of 2"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=why):
            pool.decide_many(tickets, **asked)
    assert (pool.status().decisions, pool.n_pending) == (1, 1)
    together = DecideAll([Decide("x", None, "new"), Decide("y", None, "NOPE")])
    first, refused, after = pool.run([Decide(context="new"), together, Decide("x", None, "known")])
    assert (type(first), type(refused)) == (sp.live.Decision, ValueError)
    assert after == pool.decide("x", context="known"), "others of the same batch are answered as without it"
    assert pool.status().decisions == 3
    asked = [{"candidates": unlike}, {"candidates": OFFERS[0]}, {"candidates": unlike}, {"context": "new"}]
    made = pool.run([DecideAll([Decide(ticket, **each) for ticket, each in zip("pqpr", asked, strict=True)])])[0]
    assert [each.ticket for each in made] == list("pqpr")
    assert made[0] == made[2] == pool.decide("p", candidates=unlike)
    assert pool.decide_many(0) == []
    assert replayed(place, place.name)[0].faults == []


def test_what_travels_is_what_the_play_reached(sqlite):
    """q and P(s|a) of each state, from the rows and the play alone."""
    pool = open_pool(sqlite, sp.StateEXP3(rate=0.1))
    for _ in requests(pool, 9, np.random.default_rng(4)):
        pass
    rows = np.array(TABLES["new"])
    made = pool.decide("own", context="new", uniform=0.5)
    events = [decode(body) for *_, body, _ in sqlite.events()]
    decided = next(event for event in events if isinstance(event, Decided) and event.ticket == "own")
    table = np.frombuffer(decided.carry).reshape(3, -1)
    charges = pool._fold().live_learner.sums("charges", 0)[0]
    x = np.exp(-0.1 * (rows @ charges - (rows @ charges).min()))
    x /= x.sum()
    np.testing.assert_allclose(table[:, 0], x @ rows, rtol=1e-9)
    np.testing.assert_array_equal(table[:, 1], rows[ACTIONS.index(made.action)])
    past = [np.frombuffer(event.reached) for event in events if isinstance(event, Seen) and event.reached]
    assert len(past) == 9


def test_repeating_is_harmless_and_another_request_is_refused(place):
    pool = open_pool(place)
    first = pool.decide("one", context="new")
    assert pool.decide("one", context="new") == first
    second = pool.decide("two", candidates=OFFERS[0])
    assert pool.decide("two", candidates=dict(OFFERS[0])) == second
    before = place.events()
    for asked in ({"context": "known"}, {}, {"candidates": OFFERS[0]}):
        with pytest.raises(sp.live.Conflict):
            pool.decide("one", **asked)
    with pytest.raises(sp.live.Conflict, match="decided among others"):
        pool.decide("two", candidates=OFFERS[1])
    assert place.events() == before


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"context": "nobody"}, "context: 'nobody' is not known, expected one of 'new', 'known'"),
        ({}, "context: is missing"),
        ({"candidates": {}}, "candidates: has 0"),
        ({"candidates": {"a": [0.5, 0.4, 0.0]}}, "sums to 0.9"),
        ({"candidates": {"a": [0.5, 0.5]}}, "has shape"),
        ({"candidates": [1, 2]}, "candidates: is list"),
        ({"context": "new", "candidates": OFFERS[0]}, "expected one of them at most"),
    ],
)
def test_bad_requests_are_refused_in_one_sentence_and_journal_nothing(sqlite, asked, message):
    pool = open_pool(sqlite)
    before = sqlite.events()
    with pytest.raises(ValueError, match=message):
        pool.decide(**asked)
    assert sqlite.events() == before


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"P": {"new": TABLES["new"]}, "contexts": ["new", "known"]}, "expected one for each of the contexts"),
        ({"P": {"new": {"nobody": [1, 0, 0]}}}, "has a row of 'nobody'"),
        ({"P": {"new": {}}}, "has no action"),
        ({"P": {"new": TABLES["new"][:2]}}, "has 2 rows, expected 3"),
        ({"P": TABLES["new"], "contexts": ["new"]}, "expected {context: rows}"),
        ({"P": {"new": {"a": [1, 0, 0]}}}, "has no row of 'b' in any context"),
    ],
)
def test_bad_contexts_make_no_pool(sqlite, given, message):
    with pytest.raises(ValueError, match=message):
        sqlite.open(actions=ACTIONS, states=STATES, **given)
    assert sqlite.name not in sqlite.store().pools()


def test_a_pool_without_contexts_refuses_one_and_takes_candidates(sqlite):
    pool = sqlite.make(sp.SelfTuned())
    with pytest.raises(ValueError, match="opened without contexts"):
        pool.decide(context="new")
    assert pool.decide(candidates={"poster": [0.2, 0.3, 0.5]}).action == "poster"
    assert pool.decide().action in ("a", "b", "c")


def test_opening_again_with_the_same_contexts_goes_on_and_others_are_a_change(sqlite):
    open_pool(sqlite).close()
    open_pool(sqlite).close()
    other = TABLES | {"new": TABLES["new"][::-1]}
    catalogue = {"actions": ACTIONS, "states": STATES, "learner": sp.StateEXP3(rate=0.1)}
    with pytest.raises(sp.live.Conflict, match="expected update=True"):
        sqlite.open(P=other, **catalogue)
    pool = sqlite.open(P=other, **catalogue, update=True)
    np.testing.assert_array_equal(pool._fold().catalogue.table("new")[1], other["new"])


def test_an_impossible_state_of_a_request_teaches_nothing(sqlite):
    pool = open_pool(sqlite)
    made = next(made for made in pool.decide_many(50, contexts=["known"] * 50) if made.action == "b")
    before = pool._fold().live_learner.dump()
    pool.observe(made.ticket, "z")
    pool.resolve(made.ticket, loss=1.0)
    assert pool._fold().live_learner.dump() == before
    assert pool._fold().counts["impossible"] == 1


@pytest.mark.parametrize("learner", [sp.StateEXP3(rate=0.05), sp.SelfTuned(), sp.CorrectedPool()], ids=repr)
def test_a_pool_with_contexts_plays_as_the_exact_simulation_to_the_bit(sqlite, learner):
    rounds, delay = 200, 9
    instance = sp.families.crowds(0, n_contexts=3, n_actions=6, n_states=4, horizon=rounds)
    tables = {context: instance.P[context] for context in range(3)}
    catalogue = {"P": tables, "actions": range(6), "states": range(4), "learner": learner, "refresh": 1}
    pool = sqlite.open(**catalogue, seed=5)
    exact = play_exactly(instance, learner, delay, Stream.from_seed(7))
    uniforms = iter(Stream.from_seed(7).uniforms(3 * rounds))
    for t in range(rounds):
        late = [Resolve(f"{t - delay - 1}", float(exact.outcomes[t - delay - 1]))] if t > delay else []
        context = int(instance.contexts[t])
        made = pool.run([*late, Decide(f"{t}", next(uniforms), context)])[-1]
        assert made.action == exact.actions[t]
        assert made.probability == min(exact.plays[t, made.action], 1.0), f"round {t}"
        next(uniforms)
        pool.observe(f"{t}", int(exact.states[t]))
        if instance.theta[t, exact.states[t]] > 0:
            next(uniforms)


def test_a_status_is_a_value_of_one_moment(place):
    pool = open_pool(place)
    before = pool.status()
    for _ in requests(pool, 9, np.random.default_rng(5)):
        pass
    after = pool.status()
    assert (before.decisions, after.decisions, after.pending) == (0, 9, 0)
    assert before.sums["charges"].sum() == 0 < after.sums["charges"].sum()
    assert sum(after.distribution.values()) == pytest.approx(1)
    assert list(after.distribution) == ACTIONS
    assert (after.contexts, after.counts["outcome"]) == (("new", "known"), 9)
    for change in (lambda: after.counts.update(outcome=0), lambda: after.sums["charges"].fill(0)):
        with pytest.raises((AttributeError, ValueError)):
            change()
    with pytest.raises(AttributeError):
        after.decisions = 0
