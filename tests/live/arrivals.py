"""A pool with decisions in flight, and what comes for them: to be brought in any order."""

import shutil

import msgspec
import numpy as np

import statepool as sp
from live.places import STATES, SQLitePlace
from statepool.live.requests import Observe, Resolve

LEARNERS = {"exp3": sp.StateEXP3(rate=0.3), "tuned": sp.SelfTuned(), "learnt": sp.SelfTuned(learn_map=True)}


def make(place, learner, in_flight=40):
    """Versions, some outcomes, and tickets of several versions without state, without outcome, or without either."""
    draws = np.random.default_rng(7)
    with place.make(learner, refresh=3) as pool:
        arrivals = []
        for n in range(in_flight):
            pool.decide(f"{n}")
            state, loss = STATES[draws.integers(3)], float(draws.random())
            later = [["observe", f"{n}", state], ["resolve", f"{n}", loss]]
            if n % 4 == 1:
                pool.observe(*later.pop(0)[1:])
            if n % 4 == 2:
                pool.resolve(*later.pop(1)[1:])
            arrivals += later
            if n % 3 == 0:
                pool.decide(f"done {n}")
                pool.run([Observe(f"done {n}", STATES[n % 3]), Resolve(f"done {n}", float(draws.random()))])
    return arrivals


def bring(pool, arrivals):
    make_request = {"observe": Observe, "resolve": Resolve}
    answers = pool.run([make_request[name](*given) for name, *given in arrivals])
    assert answers == [None] * len(arrivals)


def state_of(place):
    """All that the pool knows, read from the journal, and the play it would make of it."""
    with place.open() as pool:
        return learnt(pool._fold()), pool._fold().make_version()[1]


def learnt(pool_state):
    """The pool's state's bits, but for the name of the process that made the latest version."""
    return {name: value for name, value in msgspec.msgpack.decode(pool_state.dump()).items() if name != "epoch"}


def copy_of(place, folder):
    copied = SQLitePlace(shutil.copy(place.path, folder))
    copied.name = place.name
    return copied


def check_any_order(place, folder, arrivals, orders):
    """The same bits after each order, by one process or split over several."""
    wanted = None
    for place_of_order, (order, cuts) in enumerate(orders):
        target = folder / str(place_of_order)
        target.mkdir()
        copied = copy_of(place, target)
        pools = [copied.open() for _ in range(len(cuts) + 1)]
        for part, pool in zip(np.split(np.array(order, dtype=int), cuts), pools, strict=True):
            bring(pool, [arrivals[n] for n in part])
        found = state_of(copied)
        copied.close()
        wanted = wanted or found
        assert found == wanted, "another order of arrivals gave other bits"
        shutil.rmtree(target)
