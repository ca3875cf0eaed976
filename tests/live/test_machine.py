"""A state machine: whatever is called, in any order, through any of two handles, a pool is a dictionary."""

from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

import statepool as sp
from live.places import ACTIONS, STATES, Clock, P, Place
from statepool.live.errors import Conflict, UnknownTicket

WINDOW = 100.0
LEARNERS = [sp.StateEXP3(rate=0.3), sp.PooledGreedy(exploration=0.2)]
OFFER = {"a": [0.2, 0.3, 0.5], "poster": [1.0, 0.0, 0.0]}
tickets = st.sampled_from(["t1", "t2", "t3", "t4", "t5"])
states, losses, handles = st.sampled_from(STATES), st.sampled_from([0.0, 0.3, 1.0]), st.integers(0, 1)
actions = st.sampled_from([*ACTIONS, "d", ("e", 1)])
rows = st.sampled_from([(1.0, 0.0, 0.0), (0.0, 0.5, 0.5), (0.2, 0.3, 0.5)])
changes = st.sampled_from([
    {"holdout": 0.5}, {"holdout": 0.0}, {"loss_bounds": (0.0, 2.0)}, {"update_every": 1}, {"update_every": None},
    {"keep_candidates": True}, {"window": 50.0}, {"window": WINDOW},
])  # fmt: skip


class Pools(RuleBasedStateMachine):
    """Two handles on one pool, as of two processes."""

    place_of = None

    @initialize(learner=st.sampled_from(LEARNERS), every=st.sampled_from([1, 3, None]))
    def start(self, learner, every):
        self.clock, self.place, self.known, self.minted = Clock(1e6), self.place_of(), {}, 0
        given = {"update_every": every, "window": WINDOW, "clock": self.clock}
        self.pools = [self.place.make(learner, **given) for _ in range(2)]
        self.active = {label: tuple(row) for label, row in zip(ACTIONS, P.tolist(), strict=True)}

    def expect(self, call, kind):
        """What must be raised, or nothing."""
        if kind is None:
            call()
        else:
            with pytest.raises(kind):
                call()

    @rule(handle=handles, ticket=tickets | st.none(), brought=st.booleans())
    def decide(self, handle, ticket, brought):
        known = self.known.get(ticket)
        if known is not None and known["brought"] != brought:
            self.expect(lambda: self.pools[handle].decide(ticket, candidates=OFFER if brought else None), Conflict)
            return
        made = self.pools[handle].decide(ticket, candidates=OFFER if brought else None)
        if known is None:
            assert made.action in (OFFER if brought else self.active)
            fresh = {"state": None, "loss": None, "expired": False, "at": self.clock.now, "brought": brought}
            self.known[made.ticket] = fresh | {"action": made.action, "probability": made.probability}
        else:
            assert (made.action, made.probability) == (known["action"], known["probability"])

    @rule(handle=handles, ticket=tickets, state=states)
    def observe(self, handle, ticket, state):
        known = self.known.get(ticket)
        refused = UnknownTicket if known is None else Conflict if known["state"] not in (None, state) else None
        self.expect(lambda: self.pools[handle].observe(ticket, state), refused)
        if refused is None:
            known["state"] = state

    @rule(handle=handles, ticket=tickets, loss=losses)
    def resolve(self, handle, ticket, loss):
        known = self.known.get(ticket)
        other = known is not None and not known["expired"] and known["loss"] not in (None, loss)
        refused = UnknownTicket if known is None else Conflict if other else None
        self.expect(lambda: self.pools[handle].resolve(ticket, loss), refused)
        if refused is None:
            known["loss"], known["expired"] = loss, False

    @rule(handle=handles, seconds=st.sampled_from([1.0, 60.0, 86_400.0, -30.0]))
    def pass_time(self, handle, seconds):
        self.clock.now += seconds
        self.pools[handle].refresh()
        window = self.pools[handle].settings.window
        before = self.clock.now - window
        overdue = [each for each in self.known.values() if each["loss"] is None and each["at"] <= before]
        assert self.pools[handle].expire() == len(overdue)
        for each in overdue:
            each["loss"], each["expired"] = "default", True

    @rule(handle=handles, action=actions, row=rows)
    def add(self, handle, action, row):
        other = action in self.active and self.active[action] != row
        self.expect(lambda: self.pools[handle].add_action(action, row), Conflict if other else None)
        self.active.setdefault(action, row)

    @rule(handle=handles, action=actions)
    def retire(self, handle, action):
        if action in self.active and len(self.active) > 1:
            self.pools[handle].retire_action(action)
            del self.active[action]

    @rule(handle=handles, change=changes)
    def change(self, handle, change):
        self.pools[handle].change(**change)

    @rule(handle=handles)
    def learn(self, handle):
        self.pools[handle].learn()

    @rule(handle=handles, ticket=tickets)
    def erase(self, handle, ticket):
        self.expect(lambda: self.pools[handle].erase(ticket), None if ticket in self.known else UnknownTicket)
        if ticket in self.known:
            self.minted += 1
            self.known[f"erased {self.minted}"] = self.known.pop(ticket)

    @rule(handle=handles)
    def open_again(self, handle):
        self.pools[handle].close()
        self.pools[handle] = self.place.open(clock=self.clock)

    def teardown(self):
        if not hasattr(self, "pools"):
            return
        found = {row["ticket"]: row for row in self.pools[0].rows() if row["ticket"] is not None}
        known = {ticket: row for ticket, row in self.known.items() if not ticket.startswith("erased")}
        assert set(found) == set(known)
        for ticket, row in known.items():
            assert found[ticket]["state"] == row["state"]
            assert found[ticket]["expired"] == row["expired"]
            assert (found[ticket]["loss"] is None) == (row["loss"] is None)
        assert self.pools[1].status().decisions == len(self.known)
        replayed = self.pools[1].replay()
        assert replayed.fault is None, replayed
        self.place.close()


def run_on(place_of, **given):
    machine = type("Machine", (Pools,), {"place_of": staticmethod(place_of)})
    run_state_machine_as_test(machine, settings=settings(**given))


def test_on_sqlite():
    folder = Path(mkdtemp())
    run_on(lambda: Place(f"sqlite:///{folder / 'pools.db'}"), max_examples=15, stateful_step_count=25)


def test_on_postgres(server):
    run_on(lambda: Place(server.url()), max_examples=10, stateful_step_count=25)
