"""The most memory a run holds at once beyond its instance, as a multiple of the map."""

import tracemalloc

import statepool as sp
from growth import instance
from rows import Row
from statepool.learners import Learner

N_ACTIONS = 200_000
HORIZON = 200


def row(name: str, learner: Learner) -> Row:
    problem = instance(N_ACTIONS, HORIZON)
    tracemalloc.start()
    sp.simulate(problem, learner, delay=50)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    note = f"{peak / 2**20:.1f} MB beyond a map of {problem.P.nbytes / 2**20:.1f} MB"
    return Row(f"{name}: peak, K=200 000", peak / problem.P.nbytes, at_most=2, note=note)
