"""The pool as its user sees it: every call, on both stores."""

import threading
from datetime import UTC, datetime

import numpy as np
import pytest
from scipy.stats import chisquare

import statepool as sp
from live.places import ACTIONS, STATES, P, fold_of
from statepool.live.luck import mint
from statepool.live.requests import Decide, Observe, Resolve

WEEK = 7 * 86_400


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now


def losses_of(pool):
    return {row["ticket"]: row["loss"] for row in pool.rows()}


def sums_of(pool):
    return pool._fold().live_learner.dump()


def test_a_decision_its_state_and_its_outcome_come_back_as_a_row(place):
    clock = Clock()
    pool = place.make(clock=clock)
    made = pool.decide()
    clock.now += 2
    pool.observe(made.ticket, "browse")
    clock.now += WEEK
    pool.resolve(made.ticket, loss=0.25)
    assert made.action in ACTIONS
    assert made.probability == pytest.approx(1 / 3)
    (row,) = pool.rows()
    start = datetime.fromtimestamp(1_000_000, UTC)
    assert (row["ticket"], row["action"], row["probability"]) == (made.ticket, made.action, made.probability)
    assert (row["state"], row["loss"], row["is_holdout"], row["expired"]) == ("browse", 0.25, False, False)
    assert row["decided_at"] == start
    assert [(row[name] - start).total_seconds() for name in ("observed_at", "resolved_at")] == [2, 2 + WEEK]


def test_rows_of_what_is_in_flight_have_gaps(place):
    pool = place.make()
    pool.decide("x")
    (row,) = pool.rows()
    assert [row[name] for name in ("state", "loss", "observed_at", "resolved_at")] == [None] * 4
    assert pool.n_pending == 1
    assert [each.ticket for each in pool.pending()] == ["x"]


def test_repeating_a_call_changes_nothing(place):
    pool = place.make()
    first = pool.decide("x")
    for _ in range(2):
        assert pool.decide("x") == first
        pool.observe("x", "buy")
        pool.resolve("x", loss=1)
    before = place.events()
    assert pool.decide_many(["x", "x"]) == [first, first]
    pool.observe_many([("x", "buy")] * 2)
    pool.resolve_many([("x", 1.0)] * 2)
    assert place.events() == before
    # Where decisions take no lock, the version that follows from the outcome is made with it.
    ready = ["refresh"] * pool._journal.store.has_lanes
    assert [kind for _, kind, *_ in before] == ["catalogue", "refresh", "decision", "state", "outcome", *ready]


def test_a_ticket_is_never_drawn_again_whatever_was_learnt_meanwhile(place):
    pool = place.make(sp.StateEXP3(rate=5.0))
    first = pool.decide("x")
    for t in range(20):
        made = pool.decide(f"{t}")
        pool.run([Observe(made.ticket, "bounce"), Resolve(made.ticket, 1.0)])
    assert pool.decide("x") == first
    assert place.open().decide("x") == first


def test_a_ticket_with_something_else_in_it_is_refused_and_changes_nothing(place):
    pool = place.make()
    pool.decide("x", uniform=0.5)
    pool.observe("x", "buy")
    pool.resolve("x", loss=0.5)
    before = place.events()
    for call in (
        lambda: pool.observe("x", "browse"),
        lambda: pool.resolve("x", loss=0.25),
        lambda: pool.decide("x", uniform=0.25),
    ):
        with pytest.raises(sp.live.Conflict, match=r"'x'.* now "):
            call()
    assert place.events() == before


def test_an_outcome_waits_for_its_state(place):
    late, usual = place.make(), place.open("other", P=P, actions=ACTIONS, states=STATES, learner=sp.StateEXP3(rate=0.3))
    for pool in (late, usual):
        pool.decide("x", uniform=0.5)
    late.resolve("x", loss=0.75)
    assert late._fold().lessons == 0
    late.observe("x", "browse")
    usual.observe("x", "browse")
    usual.resolve("x", loss=0.75)
    assert sums_of(late) == sums_of(usual)
    assert late.n_pending == 0


def test_what_does_not_come_in_time_gets_the_default_loss(place):
    clock = Clock()
    pool = place.make(clock=clock, expire_after=WEEK, default_loss=1.0)
    pool.decide_many(["old", "seen", "done"])
    pool.observe("seen", "buy")
    pool.resolve("done", loss=0.0)
    clock.now += WEEK + 1
    pool.decide("young")
    assert pool.expire() == 2
    assert pool.expire() == 0
    assert losses_of(pool) == {"old": 1.0, "seen": 1.0, "done": 0.0, "young": None}
    assert [row["expired"] for row in pool.rows()] == [True, True, False, False]
    assert pool.n_pending == 1
    assert pool._fold().counts["expiry"] == 2
    clock.now += WEEK + 1
    assert pool.expire(now=clock.now - 2) == 0
    assert pool.expire(now=clock.now) == 1


def test_thousands_expire_in_one_call(place):
    clock = Clock()
    pool = place.make(clock=clock, expire_after=60, default_loss=0.5)
    pool.decide_many(1500)
    pool.decide_many(600)
    clock.now += 61
    assert pool.expire() == 2100
    assert pool.n_pending == 0
    assert pool._fold().tallies["learner"].mean == 0.5


def test_a_state_after_the_expiry_teaches_the_default(place):
    clock = Clock()
    pool = place.make(clock=clock, expire_after=60, default_loss=1.0)
    pool.decide("x")
    clock.now += 61
    pool.expire()
    assert pool._fold().lessons == 0
    pool.observe("x", "bounce")
    assert pool._fold().lessons == 1
    assert losses_of(pool) == {"x": 1.0}


@pytest.mark.parametrize("observed", ["before", "between", "after"])
def test_an_outcome_after_its_expiry_replaces_the_default(place, observed):
    clock = Clock()
    pool = place.make(clock=clock, expire_after=60, default_loss=1.0)
    timely = place.open("timely", P=P, actions=ACTIONS, states=STATES, learner=sp.StateEXP3(rate=0.3))
    for each in (pool, timely):
        each.decide("x", uniform=0.4)
        each.decide("y", uniform=0.6)
    if observed == "before":
        pool.observe("x", "browse")
    clock.now += 61
    pool.expire()
    if observed == "between":
        pool.observe("x", "browse")
    pool.resolve("x", loss=0.125)
    if observed == "after":
        pool.observe("x", "browse")
    timely.observe("x", "browse")
    timely.resolve("x", loss=0.125)
    timely.resolve("y", loss=1.0)
    assert sums_of(pool) == sums_of(timely)
    assert pool._fold().tallies["learner"].dump() == timely._fold().tallies["learner"].dump()
    assert losses_of(pool) == {"x": 0.125, "y": 1.0}
    pool.resolve("x", loss=0.125)
    with pytest.raises(sp.live.Conflict, match=r"had loss 0\.125"):
        pool.resolve("x", loss=1.0)
    assert pool._fold().counts["correction"] == 1


def test_an_outcome_and_an_expiry_of_one_batch(place):
    from statepool.live.requests import Expire

    clock = Clock()
    pool = place.make(clock=clock, expire_after=60, default_loss=1.0)
    pool.decide_many(["x", "y"])
    clock.now += 61
    at = round(clock.now * 1e6)
    assert pool.run([Resolve("x", 0.0), Expire(at), Expire(at)]) == [None, 1, 0]
    assert losses_of(pool) == {"x": 0.0, "y": 1.0}


def test_expire_needs_to_know_when(place):
    with pytest.raises(ValueError, match="no expire_after"):
        place.make().expire()


def test_rewards_are_losses_the_other_way_round(place):
    pool = place.make(reward_bounds=(-10, 30), loss_bounds=(0, 200))
    pool.decide_many(["best", "worst", "middle", "loss"])
    for ticket, reward in [("best", 30), ("worst", -10), ("middle", 10.0)]:
        pool.resolve(ticket, reward=reward)
    pool.resolve("loss", loss=50)
    assert losses_of(pool) == {"best": 0.0, "worst": 1.0, "middle": 0.5, "loss": 0.25}
    pool.resolve("middle", loss=100)  # the same, said in another way


def test_labels_of_many_kinds(place):
    actions = ["text", 7, ("a", 1), 2.5, False, "ünïcode 🙂"]
    states = [("cart", 3), "", 0]
    rows = np.full((6, 3), 1 / 3)
    given = {"P": rows, "actions": actions, "states": states, "learner": sp.Uniform(), "seed": 1}
    given |= {"shares": {("a", 1): (0.3, 0.5)}, "holdout": 0.1, "holdout_action": ("a", 1)}
    with place.open(**given) as pool:
        made = [pool.decide() for _ in range(60)]
        for decision, state in zip(made, states * 20, strict=True):
            pool.observe(decision.ticket, state)
        pool.retire_action(np.int64(7))
        pool.reweight_action(("a", 1), np.array([1.0, 0, 0]))
        pool.add_action(("new", True), [0, 0, 1])
    again = place.open(**given)
    rows = list(again.rows())
    assert [(row["ticket"], row["action"]) for row in rows] == [(each.ticket, each.action) for each in made]
    assert [row["state"] for row in rows] == states * 20
    assert {type(row["action"]) for row in rows} == {str, int, tuple, float, bool}
    with pytest.raises(sp.live.Conflict):
        place.open(**given | {"holdout_action": "text"})


def test_other_states_are_refused_with_a_way_out(sqlite):
    given = {"P": [[0.5, 0.5]], "actions": ["a"]}
    sqlite.open(**given, states=["x", "y"])
    with pytest.raises(sp.live.Conflict, match=r"are \['x', 'z'\], and .* has \['x', 'y'\].*or another name or file"):
        sqlite.open(**given, states=["x", "z"])


@pytest.mark.parametrize("holdout", [0.0, 0.25])
def test_shares_are_honoured_in_the_probabilities(place, holdout):
    pool = place.make(sp.StateEXP3(rate=50.0), shares={"a": (0.15, 0.2), "b": (0.25, 1.0)}, holdout=holdout)
    probabilities = {}
    for t in range(12):
        made = pool.decide_many(40)
        probabilities |= {each.action: each.probability for each in made}
        play = pool._journal.playing.version.distribution
        assert play.sum() == pytest.approx(1, abs=1e-12)
        assert 0.15 - 1e-12 <= play[0] <= 0.2 + 1e-12
        assert play[1] >= 0.25 - 1e-12
        assert {each.probability for each in made} <= set(play.tolist())
        pool.run([Observe(made[0].ticket, "browse"), Resolve(made[0].ticket, 1.0 if t % 2 else 0.0)])


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"shares": {"a": (0.15, 0.2), "c": (0.5, 1.0)}},
        {"holdout": 0.3},
        {"holdout": 0.2, "holdout_action": "b", "shares": {"a": (0, 0.1)}},
        {"learner": sp.SelfTuned(), "holdout": 0.2},
    ],
)
def test_actions_are_drawn_as_often_as_recorded(sqlite, settings):
    pool = sqlite.make(refresh=10**6, **settings)
    made = pool.decide_many(12_000)
    play = pool._journal.playing.version.distribution
    counts = np.array([sum(each.action == action for each in made) for action in ACTIONS])
    reached = play > 0
    assert not counts[~reached].any()
    assert chisquare(counts[reached], play[reached] * 12_000).pvalue > 1e-4
    is_holdout = sum(each.is_holdout for each in made) / 12_000
    share = settings.get("holdout", 0.0)
    assert abs(is_holdout - share) <= 4 * np.sqrt(share * (1 - share) / 12_000)


def test_the_holdout_measures_what_the_learner_is_worth(sqlite):
    pool = sqlite.make(sp.StateEXP3(rate=0.2), holdout=0.3, refresh=20)
    loss = dict(zip(STATES, (0.9, 0.5, 0.1), strict=True))
    draws = np.random.default_rng(0)
    for _ in range(40):
        made = pool.decide_many(50)
        seen = [STATES[draws.choice(3, p=P[ACTIONS.index(each.action)])] for each in made]
        pool.run([Observe(each.ticket, state) for each, state in zip(made, seen, strict=True)])
        pool.resolve_many([(each.ticket, loss[state]) for each, state in zip(made, seen, strict=True)])
    learner, holdout = (pool._fold().tallies[arm] for arm in ("learner", "holdout"))
    rows = list(pool.rows())
    for tally, is_holdout in ((learner, False), (holdout, True)):
        losses = [row["loss"] for row in rows if row["is_holdout"] is is_holdout]
        assert tally.count == len(losses)
        assert tally.mean == pytest.approx(np.mean(losses), abs=1e-14)
        assert tally.variance == pytest.approx(np.var(losses, ddof=1) / len(losses), rel=1e-9)
    uniform = float(P.mean(axis=0) @ [0.9, 0.5, 0.1])
    assert abs(holdout.mean - uniform) < 4 * np.sqrt(holdout.variance)
    assert learner.mean < holdout.mean - 4 * np.sqrt(learner.variance + holdout.variance)


def versions_of(place):
    return sum(kind == "refresh" for _, kind, *_ in place.events())


def play_and_learn(pool, rounds):
    for _ in range(rounds):
        made = pool.decide()
        pool.run([Observe(made.ticket, "browse"), Resolve(made.ticket, 0.5)])


@pytest.mark.parametrize(("every", "versions"), [(1, 12), (5, 3), (None, 12)])
def test_the_play_is_refreshed_after_so_many_lessons(place, every, versions):
    pool = place.make(refresh=every)
    play_and_learn(pool, 12)
    ready = pool._journal.store.has_lanes and every != 5  # after the last lesson, for whoever decides next
    assert versions_of(place) == versions + ready


def test_the_play_is_refreshed_at_most_so_often(place):
    clock = Clock()
    pool = place.make(clock=clock, refresh_seconds=10)
    play_and_learn(pool, 5)
    assert versions_of(place) == 1
    clock.now += 10
    pool.decide()
    assert versions_of(place) == 2
    clock.now += 100
    pool.decide()
    assert versions_of(place) == 2, "nothing was learnt since"


def test_settings_can_be_changed(place):
    pool = place.make()
    pool.decide()
    pool.change(shares={"a": (0.6, 1.0)}, refresh=7)
    assert pool.decide().probability in (0.6, pytest.approx(0.2))
    assert (pool._fold().settings.refresh, pool._fold().settings.holdout) == (7, 0.0)
    before = place.events()
    pool.change(refresh=7)
    assert place.events() == before
    with pytest.raises(ValueError, match="'rate' is not known"):
        pool.change(rate=3)
    with pytest.raises(ValueError, match="not in the catalogue"):
        pool.change(shares={"nobody": (0, 1)})


def test_opening_again_goes_on(place):
    with place.make() as pool:
        first = pool.decide("x")
        pool.observe("x", "buy")
    for again in (place.make(), place.open()):
        assert again.decide("x") == first
        assert again._fold().counts["state"] == 1
    pool = place.make(seed=None)
    pool.resolve("x", loss=1.0)
    assert [row["loss"] for row in place.open().rows()] == [1.0]


def test_opening_with_something_else_is_refused(place):
    place.make(categories=["k", "k", "m"]).close()
    before = place.events()
    other = P.copy()
    other[0] = [0.7, 0.3, 0]
    for wrong in (
        {"P": other},
        {"P": P[:2], "actions": ["a", "b"]},
        {"P": P[[0, 1, 2, 0]], "actions": ["a", "b", "c", "d"]},
        {"states": ["bounce", "browse", "sell"]},
        {"states": STATES[::-1]},
        {"learner": sp.SelfTuned()},
        {"learner": sp.StateEXP3(rate=0.31)},
        {"seed": 6},
        {"holdout": 0.1},
    ):
        with pytest.raises(ValueError, match=r"pool|states|learner|seed"):
            place.make(**wrong)
    for wrong in ({"P": other}, {"states": ["bounce", "browse"]}, {"refresh": 3}):
        with pytest.raises(ValueError, match=r"pool|states|P"):
            place.open(**wrong)
    assert place.events() == before


def test_opening_with_update_journals_the_difference(place):
    pool = place.make(sp.SelfTuned(learn_map=True), categories=["k", "k", "m"])
    for _ in range(8):
        made = pool.decide()
        pool.observe(made.ticket, "buy")
    moved = np.array([[0.1, 0.6, 0.3], [0.5, 0.5, 0], [0.2, 0.2, 0.6]])
    given = {"P": moved, "actions": ["b", "c", "d"], "states": STATES, "categories": ["k", "m", "m"], "refresh": 2}
    changed = place.open(**given, update=True)
    catalogue = changed._fold().catalogue
    assert [catalogue.is_active(label) for label in "abcd"] == [False, True, True, True]
    assert catalogue.row(2).tolist() == [0.5, 0.5, 0]
    assert catalogue.of_category("m") == [2, 3]
    assert changed._fold().settings.refresh == 2
    before = place.events()
    place.open(**given)
    place.make(sp.SelfTuned(learn_map=True), refresh=2)
    assert place.events() == before


def test_a_newcomer_of_a_learnt_map_takes_its_categorys_row_when_opened_with_update(place):
    given = {"actions": ["a", "b"], "states": STATES, "learner": sp.SelfTuned(learn_map=True), "categories": ["k", "k"]}
    pool = place.open(**given)
    for _ in range(9):
        pool.observe(pool.decide().ticket, "buy")
    later = place.open(**given | {"actions": ["a", "b", "c"], "categories": ["k"] * 3}, update=True)
    assert later._fold().catalogue.row(2)[2] > 0.9


def test_a_pool_whose_maker_was_killed_at_once_can_be_made(place):
    place.store().ensure(place.name)
    with pytest.raises(ValueError, match="is not there"):
        place.open()
    assert place.make().decide().ticket


class OfSomebody(sp.SelfTuned):
    """Could run live, but no journal could name it."""


class OfSomebodyAlone(sp.ActionEXP3):
    """Could not, whether it is in the registry or not."""


def test_a_learner_that_cannot_run_live_is_refused_before_anything_is_made(place):
    for learner, reason in [
        (sp.ActionEXP3(), "cannot run live"),
        (sp.StateEXP3(), "has no rate"),
        (sp.NaiveSharing(), "has no rate"),
        (sp.StateEXP3(rate=0.1, copies=3), "copies"),
        (sp.Certified(), "cannot run live"),
        (sp.StateEXP3(rate=0.1, groups=[0, 1]), "groups"),
        ("SelfTuned", "did you mean self-tuned"),
        (7, "expected a learner"),
        (OfSomebody(), "OfSomebody has no name"),
        (OfSomebodyAlone(), "OfSomebodyAlone cannot run live, expected one whose knowledge is all sums"),
    ]:
        with pytest.raises(ValueError, match=reason):
            place.make(learner)
    assert place.name not in place.store().pools()


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda pool: pool.resolve("x", loss=NAN), "loss: is nan"),
        (lambda pool: pool.resolve("x", loss=INF), "loss: is inf"),
        (lambda pool: pool.resolve("x", loss=True), "loss: is True"),
        (lambda pool: pool.resolve("x", loss="0"), "loss: is '0'"),
        (lambda pool: pool.resolve("x", loss=1.01), r"loss: is 1.01, expected .*\[0.0, 1.0\]"),
        (lambda pool: pool.resolve("x", loss=-1e-9), "loss: is -1e-09"),
        (lambda pool: pool.resolve("x", reward=1), "no reward_bounds, expected a loss, or reward_bounds="),
        (lambda pool: pool.resolve("x"), "a loss or a reward"),
        (lambda pool: pool.resolve("x", loss=1, reward=1), "one of them only"),
        (lambda pool: pool.resolve("y", loss=1), "'y' is not known to this pool"),
        (lambda pool: pool.observe("y", "buy"), "'y' is not known to this pool"),
        (lambda pool: pool.observe("x", "sell"), "'sell' is not known, expected one of 'bounce', 'browse', 'buy'"),
        (lambda pool: pool.observe("x", None), "cannot be a label"),
        (lambda pool: pool.observe("x", {}), "cannot be a label"),
        (lambda pool: pool.observe("x", 10**400), "cannot be a label"),
        (lambda pool: pool.decide(""), "printable"),
        (lambda pool: pool.decide("a\nb"), "printable"),
        (lambda pool: pool.decide("a\0b"), "printable"),
        (lambda pool: pool.decide("\ud800"), "printable"),
        (lambda pool: pool.decide("x" * 201), "1 to 200"),
        (lambda pool: pool.decide(7), "ticket: is '7'"),
        (lambda pool: pool.decide(["x"]), "ticket: is"),
        (lambda pool: pool.decide(uniform=1.0), r"uniform: is 1.0, expected a finite number in \[0, 1\)"),
        (lambda pool: pool.decide(uniform=NAN), "uniform: is nan"),
        (lambda pool: pool.decide_many(-1), "tickets: is -1"),
        (lambda pool: pool.decide_many("abc"), "tickets: is 'abc'"),
        (lambda pool: pool.decide_many(True), "tickets: is True"),
        (lambda pool: pool.add_action("d"), "row: of 'd' is missing"),
        (lambda pool: pool.add_action("d", [0.5, 0.5]), r"shape \(2,\), expected \(3,\)"),
        (lambda pool: pool.add_action("d", [0.5, 0.4, 0]), "row of 'd': sums to 0.9"),
        (lambda pool: pool.add_action("d", ["x", 0, 1]), "not a table of numbers"),
        (lambda pool: pool.add_action(None, [1, 0, 0]), "cannot be a label"),
        (lambda pool: pool.add_action(2**70, [1, 0, 0]), "cannot be a label"),
        (lambda pool: pool.add_action("\ud800", [1, 0, 0]), "cannot be a label"),
        (lambda pool: pool.add_action("a", [1, 0, 0]), "expected reweight_action"),
        (lambda pool: pool.reweight_action("d", [1, 0, 0]), "'d' is not in the catalogue"),
        (lambda pool: pool.retire_action("d"), "'d' is not in the catalogue"),
        (lambda pool: pool.change(holdout=1.0), "holdout: is 1.0"),
        (lambda pool: pool.change(holdout_action={}), "cannot be a label"),
        (lambda pool: pool.change(holdout_action="d"), "'d' is not in the catalogue"),
        (lambda pool: pool.change(expire_after=3), "expire_after and default_loss together"),
        (lambda pool: pool.change(expire_after=3, default_loss=2), "default_loss: is 2"),
        (lambda pool: pool.change(loss_bounds=(1, 1)), "the lowest before the highest"),
        (lambda pool: pool.change(refresh=0), "refresh: is 0"),
        (lambda pool: pool.change(shares={"a": (0.5, 0.4)}), "the smallest before the largest"),
        (lambda pool: pool.change(shares={"a": (0.6, 1), "b": (0.5, 1)}), "sum to 1.1, expected at most 1"),
        (lambda pool: pool.change(shares=dict.fromkeys(ACTIONS, (0, 0.3))), "sum to 0.9, expected at least 1"),
        (lambda pool: pool.change(holdout=0.9, shares={"a": (0, 0.2)}), "the holdout alone gives 'a' 0.3"),
        (
            lambda pool: pool.change(holdout=0.5, holdout_action="b", shares={"a": (0.8, 1)}),
            "smallest shares and the holdout sum to 1.3",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(sqlite, call, sentence):
    pool = sqlite.make()
    pool.decide("x")
    before = sqlite.events()
    with pytest.raises(ValueError, match=sentence) as caught:
        call(pool)
    assert "\n" not in str(caught.value)
    assert sqlite.events() == before


@pytest.mark.parametrize("ticket", ["\0", "\ud800", ["x"], 7, {}, "x" * 500])
def test_a_bad_ticket_spoils_nothing_for_the_others_of_its_batch(place, ticket):
    answers = place.make().run([Decide("x"), Decide(ticket), Observe(ticket, "buy"), Resolve("x", 1.0)])
    assert [isinstance(answer, ValueError) for answer in answers] == [False, True, True, False]
    assert losses_of(place.open()) == {"x": 1.0}


def test_a_ticket_of_another_pool_is_not_known(place):
    one, other = place.make(), place.open("other-" + place.name, P=P, actions=ACTIONS, states=STATES, seed=9)
    ticket = one.decide().ticket
    with pytest.raises(sp.live.UnknownTicket):
        other.resolve(ticket, loss=1)


def test_a_ticket_that_the_pool_mints_cannot_be_taken(place):
    pool, epoch = place.make(), b"\0" * 6
    made = pool.decide()
    assert pool.decide(made.ticket) == made
    with pytest.raises(sp.live.Conflict, match="minted here"):
        pool.decide(mint(pool._fold().secret, epoch, 7)[0])
    twin = place.open("twin-" + place.name, P=P, actions=ACTIONS, states=STATES, seed=5)
    assert twin.decide(made.ticket).ticket == made.ticket  # to another pool it is a ticket like any other


def test_the_seed_gives_the_same_actions_and_never_the_same_tickets(place):
    drawn = [place.make(name=f"{place.name}-{seed}-{n}", seed=seed).decide_many(30) for seed in (3, 4) for n in (0, 1)]
    actions = [[each.action for each in made] for made in drawn]
    assert actions[0] == actions[1] != actions[2] == actions[3]
    assert len({each.ticket for made in drawn for each in made}) == 120


def test_without_a_seed_two_pools_differ(place):
    one, other = (place.make(name=f"{place.name}-{n}", seed=None).decide_many(5) for n in (0, 1))
    assert {each.ticket for each in one}.isdisjoint(each.ticket for each in other)


@pytest.mark.parametrize("learner", [sp.StateEXP3(rate=0.3), sp.SelfTuned(), sp.SelfTuned(learn_map=True)], ids=repr)
def test_a_snapshot_is_only_a_cache(place, learner):
    pool = place.make(learner)
    for t in range(25):
        made = pool.decide()
        pool.run([Observe(made.ticket, STATES[t % 3]), Resolve(made.ticket, t % 2)])
        if t == 15:
            pool.add_action("d", [0.2, 0.2, 0.6])
            pool.snapshot()
    live = pool._fold().dump()
    with_snapshot = place.open()._fold().dump()
    place.delete_snapshot()
    assert live == with_snapshot == place.open()._fold().dump() == fold_of(place.events()).dump()


def test_threads_share_a_pool(place):
    pool = place.make(sp.SelfTuned())
    made, errors = {}, []

    def work(who):
        try:
            for n in range(12):
                decision = pool.decide(f"{who}-{n}" if n % 2 else None)
                pool.observe(decision.ticket, STATES[n % 3])
                pool.resolve(decision.ticket, loss=n / 12)
                made[decision.ticket] = (decision.action, STATES[n % 3], n / 12)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert {row["ticket"]: (row["action"], row["state"], row["loss"]) for row in pool.rows()} == made
    assert len(made) == 96
    assert fold_of(place.events()).dump() == pool._fold().dump()


def test_a_batch_may_be_larger_than_all_versions_kept(place):
    """A version of this very batch may be asked for after it has been dropped from memory, before it is written."""
    pool = place.make(refresh=1)
    pool._journal.read()._records.KEPT = 4
    requests = [each for n in range(20) for each in (Decide(f"{n}"), Observe(f"{n}", "buy"))]
    requests += [each for n in range(20) for each in (Decide(f"x{n}"), Resolve(f"{n}", 1.0))]
    assert not [answer for answer in pool.run(requests) if isinstance(answer, Exception)]
    assert fold_of(place.events()).dump() == pool._fold().dump()


@pytest.mark.parametrize("learner", [sp.StateEXP3(rate=0.3), sp.SelfTuned(), sp.NaiveSharing(rate=0.3)], ids=repr)
def test_a_state_that_is_hardly_possible_charges_no_more_than_numbers_hold(place, learner):
    rows = [[1 - 1e-310, 1e-310], [1.0, 0.0]]
    pool = place.open(P=rows, actions=["a", "b"], states=["usual", "never"], learner=learner, seed=1)
    for n in range(6):
        pool.decide(f"{n}")
        pool.observe(f"{n}", "never")
        pool.resolve(f"{n}", loss=1.0)
    made = pool.decide()
    assert 0 < made.probability <= 1
    assert pool._fold().counts["outcome"] == 6


def test_largest_shares_that_sum_to_a_hair_less_than_one_leave_a_play(sqlite):
    actions = list(range(49))
    rows = np.random.default_rng(0).dirichlet([1, 1], 49)
    shares = dict.fromkeys(actions, (0.0, 1 / 49))
    pool = sqlite.open(P=rows, actions=actions, states=[0, 1], learner=sp.StateEXP3(rate=1.0), shares=shares)
    assert pool.decide().probability == pytest.approx(1 / 49)


def test_bounds_give_way_when_retiring_leaves_no_room(place):
    pool = place.make(shares=dict.fromkeys(ACTIONS, (0.2, 0.4)))
    pool.retire_action("a")
    pool.retire_action("b")
    assert pool.decide().probability == 1.0


def test_a_closed_pool_says_so(place):
    pool = place.make()
    pool.close()
    pool.close()
    with pytest.raises(sp.live.StoreUnavailable, match="closed"):
        pool.decide()


def test_a_store_url_that_is_none_is_one_sentence(tmp_path):
    for url in ("pool.db", "mysql://x", f"sqlite:///{tmp_path}/no/pool.db"):
        with pytest.raises(ValueError, match=r"sqlite:///|no folder"):
            sp.Pool.open(url, "home", P, ACTIONS, STATES)
    for name in ("", "a/b", "x" * 65, 7):
        with pytest.raises(ValueError, match="name: is"):
            sp.Pool.open(f"sqlite:///{tmp_path}/pool.db", name, P, ACTIONS, STATES)


def test_a_learner_may_be_a_name(tmp_path):
    told = {"P": [[0.5, 0.5], [0.2, 0.8]], "actions": ["a", "b"], "states": ["x", "y"]}
    with sp.Pool.open(f"sqlite:///{tmp_path}/pool.db", "home", learner="pooled-greedy", **told) as pool:
        assert pool.status().learner == sp.PooledGreedy()
    with pytest.raises(ValueError, match="did you mean self-tuned"):
        sp.Pool.open(f"sqlite:///{tmp_path}/pool.db", "other", learner="self-tuned!", **told)
