"""A state machine: whatever is called, twice, in any order, with crashes between, a pool is a dictionary."""

import json
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import statepool as sp
from live.forked import Child
from live.places import ACTIONS, STATES, P, PostgresPlace, SQLitePlace, check_chain, fold_of
from statepool.live.errors import Conflict, StoreUnavailable, UnknownTicket
from statepool.live.replay import replay
from statepool.live.requests import Decide, Observe, Resolve

LIFE, DEFAULT = 100.0, 0.5
LEARNERS = [sp.StateEXP3(rate=0.3), sp.SelfTuned(), sp.SelfTuned(learn_map=True), sp.PooledGreedy(exploration=0.2)]
tickets = st.sampled_from(["t1", "t2", "t3", "t4", "t5"])
states, losses, handles = st.sampled_from(STATES), st.sampled_from([0.0, 0.3, 1.0]), st.integers(0, 1)
actions = st.sampled_from([*ACTIONS, "d", ("e", 1)])
rows = st.sampled_from([(1.0, 0.0, 0.0), (0.0, 0.5, 0.5), (0.2, 0.3, 0.5)])
OFFERS = {"r1": {"a": [0.2, 0.3, 0.5], "poster": [1.0, 0.0, 0.0]}, "r2": {"q": [0.5, 0.5, 0.0], "b": [0.1, 0.1, 0.8]}}
"""Candidates by the ticket of a request that brings them first."""
requested = st.sampled_from(sorted(OFFERS))
reported = tickets | requested
calls = st.one_of(
    st.builds(Decide, tickets), st.builds(Observe, reported, states), st.builds(Resolve, reported, losses)
)  # fmt: skip


class Model:
    """What a pool is: tickets, each with what was said about it first."""

    def __init__(self):
        self.rows, self.rows_of = {}, {label: tuple(row) for label, row in zip(ACTIONS, P.tolist(), strict=True)}
        self.active = set(ACTIONS)

    def answer(self, request):
        """None, or what must be raised; of a decision only what it was before."""
        row = self.rows.get(request.ticket)
        if isinstance(request, Decide):
            return row and (row["action"], row["probability"])
        if row is None:
            return UnknownTicket
        name, value = ("state", request.state) if isinstance(request, Observe) else ("loss", request.loss)
        if row[name] is not None and row[name] != value and not (name == "loss" and row["expired"]):
            return Conflict
        row[name], row["expired"] = value, row["expired"] and name == "state"
        return None

    def decided(self, made, at, among=None):
        known = self.rows.get(made.ticket)  # deciding again changes nothing, whatever was retired meanwhile
        if known is None:
            assert made.action in (among or self.active)
            fresh = {"action": made.action, "probability": made.probability, "state": None, "loss": None}
            self.rows[made.ticket] = fresh | {"expired": False, "at": at}
        else:
            assert (made.action, made.probability) == (known["action"], known["probability"])

    def expire(self, now):
        overdue = [row for row in self.rows.values() if row["loss"] is None and row["at"] < now - LIFE]
        for row in overdue:
            row["loss"], row["expired"] = DEFAULT, True
        return len(overdue)


SHARES = [(), (("a", 0.0, 0.0),), (("a", 0.1, 0.5), ("b", 0.0, 0.4)), (("b", 0.0, 0.0), ("c", 0.0, 0.0))]
SETTINGS = st.one_of(
    st.builds(lambda share: {"holdout": share}, st.sampled_from([0.0, 0.1, 0.5])),
    st.builds(lambda action: {"holdout_action": action}, st.sampled_from(ACTIONS)),
    st.builds(lambda shares: {"shares": shares}, st.sampled_from(SHARES)),
    st.just({"refresh_seconds": 30.0}),
    st.just({"loss_bounds": (0.0, 2.0)}),
)  # fmt: skip
DAMAGE = {
    "a snapshot": "UPDATE %ssnapshots SET seq = seq + 1",
    "a head": "UPDATE %spools SET hash = epoch",
    "an event": "UPDATE %sevents SET body = hash",
    "pending tickets": "DELETE FROM %spending",
    "the number of decisions": "UPDATE %spools SET plays = plays + 1",
}


class Pools(RuleBasedStateMachine):
    """Two handles on one pool, as of two processes."""

    make_place = None

    @initialize(learner=st.sampled_from(LEARNERS), refresh=st.sampled_from([1, 3, None]))
    def start(self, learner, refresh):
        self.now, self.model, self.place = 1e6, Model(), self.make_place()
        given = {"refresh": refresh, "expire_after": LIFE, "default_loss": DEFAULT}
        self.pools = [self.place.make(learner, clock=lambda: self.now, **given) for _ in range(2)]

    def ask(self, handle, requests):
        answers = self.pools[handle].run(requests)
        for request, answer in zip(requests, answers, strict=True):
            wanted = self.model.answer(request)
            if not isinstance(request, Decide):
                assert answer is None if wanted is None else type(answer) is wanted
            elif wanted is None:
                self.model.decided(answer, self.now)
            else:
                assert (answer.action, answer.probability) == wanted

    @rule(handle=handles, requests=st.lists(calls, min_size=1, max_size=6))
    def call(self, handle, requests):
        self.ask(handle, requests)

    @rule(handle=handles)
    def decide_without_a_ticket(self, handle):
        self.model.decided(self.pools[handle].decide(), self.now)

    @rule(handle=handles, ticket=requested, brought=requested)
    def decide_among_candidates(self, handle, ticket, brought):
        """A request brings rows of its own; asking again gives the same answer, with other rows none."""
        pool, known = self.pools[handle], self.model.rows.get(ticket)
        if pool._fold().live_learner.learns_map:
            with pytest.raises(ValueError, match="request: brings rows"):
                pool.decide(ticket, candidates=OFFERS[brought])
        elif known is None:
            made = pool.decide(ticket, candidates=OFFERS[ticket])
            self.model.decided(made, self.now, OFFERS[ticket])
        elif ticket != brought:
            with pytest.raises(Conflict):
                pool.decide(ticket, candidates=OFFERS[brought])
        else:
            made = pool.decide(ticket, candidates=OFFERS[ticket])
            assert (made.action, made.probability) == (known["action"], known["probability"])

    @rule(handle=handles, requests=st.lists(calls, min_size=1, max_size=4), data=st.data())
    def say_it_all_twice_in_another_order(self, handle, requests, data):
        self.ask(handle, requests)
        self.ask(1 - handle, data.draw(st.permutations(requests)))

    @rule(handle=handles)
    def crash(self, handle):
        """Nothing is closed, nothing is said; another process goes on."""
        self.pools[handle] = self.place.open(clock=lambda: self.now)

    @rule(handle=handles, requests=st.lists(calls, min_size=1, max_size=4))
    def fail_before_the_commit(self, handle, requests):
        store = self.pools[handle]._journal.store
        store.batch, store.lane = failing(store.batch), failing(store.lane)
        answers = self.pools[handle].run(requests)
        del store.batch, store.lane
        assert all(isinstance(answer, StoreUnavailable) for answer in answers)

    @rule(handle=handles)
    def close_and_open_again(self, handle):
        self.pools[handle].close()
        self.crash(handle)

    @rule(handle=handles, ticket=tickets)
    def fork(self, handle, ticket):
        """A child decides with the pool that its parent has open; both go on."""
        answer = Child(lambda: plain(self.pools[handle].decide(ticket))).answer()
        made = self.pools[handle].decide(ticket)
        assert answer == plain(made)
        self.model.decided(made, self.now)

    @rule(handle=handles)
    def snapshot(self, handle):
        self.pools[handle].snapshot()

    @rule(handle=handles)
    def warm_up_and_look(self, handle):
        """What a PUT of the same pool, a dashboard and a scrape of the metrics do."""
        pool = self.pools[handle]
        pool.warm_up()
        pool.status()
        pool.listing()
        pool.vitals()
        self.place.open(P=P, actions=ACTIONS, states=STATES, clock=lambda: self.now)._journal.look(
            lambda pool_state: pool_state.size
        )

    @rule(handle=handles, given=SETTINGS)
    def change_settings(self, handle, given):
        """Some are refused, as the catalogue leaves no room for them; then nothing changes."""
        pool = self.pools[handle]
        if "loss_bounds" in given and any(row["loss"] is not None for row in self.model.rows.values()):
            return  # the model compares what was said, and not what it means
        before = pool._fold().settings
        try:
            pool.change(**given)
        except ValueError:
            assert pool._fold().settings == before
        if "loss_bounds" in given:
            pool.change(loss_bounds=(0.0, 1.0))

    @rule(handle=handles, extra=st.integers(0, 3))
    def restore_an_older_copy(self, handle, extra):
        """Decisions that were made since are lost; both handles go on from the copy, and mint no ticket twice."""
        kept = self.place.keep()
        lost = [self.pools[handle].decide().ticket for _ in range(1 + extra)]
        self.place.restore(kept)
        anew = [self.pools[1 - handle].decide() for _ in range(1 + extra)]
        assert not {each.ticket for each in anew} & set(lost), "a ticket was minted twice"
        for each in anew:
            self.model.decided(each, self.now)
        with pytest.raises(UnknownTicket):
            self.pools[handle].observe(lost[0], STATES[0])

    @rule(what=st.sampled_from(sorted(DAMAGE)))
    def damage(self, what):
        """Whatever is spoilt is named, and mended by putting the copy back."""
        kept = self.place.keep()
        before = self.place.tables()
        self.place.damage(DAMAGE[what])
        if self.place.tables() != before:
            store = self.place.store()
            try:
                assert replay(store, self.place.name)[0].faults, what
            except (ValueError, StoreUnavailable):
                pass  # refused is as good as named
            finally:
                store.close()
        self.place.restore(kept)

    @rule(handle=handles, seconds=st.sampled_from([10.0, 60.0, 150.0]))
    def expire(self, handle, seconds):
        self.now += seconds
        assert self.pools[handle].expire() == self.model.expire(self.now)

    @rule(handle=handles, action=actions, row=rows)
    def add(self, handle, action, row):
        if action not in self.model.active:
            self.pools[handle].add_action(action, row)
            self.model.active.add(action)
            self.model.rows_of[action] = row
        elif not np.array_equal(row, self.model.rows_of[action]):
            with pytest.raises(Conflict):
                self.pools[handle].add_action(action, row)

    @rule(handle=handles, action=actions)
    def retire(self, handle, action):
        if action in self.model.active and len(self.model.active) > 1:
            self.model.active.remove(action)
            self.pools[handle].retire_action(action)
        elif action in self.model.active or action not in self.model.rows_of:
            with pytest.raises(ValueError, match=r"last one|not in the catalogue"):
                self.pools[handle].retire_action(action)

    @rule(handle=handles, action=actions, row=rows)
    def reweight(self, handle, action, row):
        if action in self.model.active:
            self.pools[handle].reweight_action(action, row)
            self.model.rows_of[action] = row

    @invariant()
    def rows_are_those_of_the_model(self):
        kept = ("action", "probability", "state", "loss", "expired")
        found = {row["ticket"]: {name: row[name] for name in kept} for row in self.pools[0].rows()}
        assert found == {ticket: {name: row[name] for name in kept} for ticket, row in self.model.rows.items()}

    @invariant()
    def everything_can_be_drawn_again(self):
        if not hasattr(self, "pools"):
            return
        found, _ = replay(self.pools[0]._journal.store, self.place.name, redraw=True)
        assert not found.faults
        assert found.redrawn == found.decisions == len(self.model.rows)
        assert all(0 < row["probability"] <= 1 for row in self.model.rows.values())

    @rule()
    def audit(self):
        """The table as it is: chained, and folded from nothing it is what both handles hold."""
        events = self.place.events()
        check_chain(events)
        dump = fold_of(events).dump()
        assert [pool._fold().dump() for pool in self.pools] == [dump, dump]
        waiting = sorted(ticket for ticket, row in self.model.rows.items() if row["loss"] is None)
        assert sorted(each.ticket for each in self.pools[1].pending()) == waiting
        assert self.pools[0].n_pending == len(waiting)

    def teardown(self):
        if hasattr(self, "place"):
            try:
                self.audit()
            finally:
                self.place.close()


def plain(made):
    """A decision as JSON has it, where a label may be a tuple."""
    return json.loads(json.dumps([made.ticket, made.action, made.probability]))


def failing(batch):
    @contextmanager
    def fail(*given):
        with batch(*given) as opened:
            yield opened
            raise StoreUnavailable("as if the disk were full")

    return fail


def run_on(make_place, **how):
    machine = type("Machine", (Pools,), {"make_place": staticmethod(make_place)})
    run_state_machine_as_test(machine, settings=settings(**how))


def test_a_pool_is_a_dictionary_sqlite(tmp_path):
    run_on(lambda: SQLitePlace(Path(mkdtemp(dir=tmp_path)) / "pool.db"), max_examples=15, stateful_step_count=25)


def test_a_pool_is_a_dictionary_postgres(database):
    run_on(lambda: PostgresPlace(database), max_examples=8, stateful_step_count=25)
