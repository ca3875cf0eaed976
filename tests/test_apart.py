"""Apart: as many learners as contexts, each as if it were alone."""

import numpy as np
import pytest

import statepool as sp
import textbook
from statepool.learners.learner import Problem
from statepool.learners.parts.bank import stack
from statepool.stream import Stream

BASES = [sp.ActionEXP3(), sp.PooledGreedy(exploration=0.1)]
each_base = pytest.mark.parametrize("base", BASES, ids=lambda base: type(base).__name__)


@each_base
def test_without_contexts_it_is_the_learner_itself(base):
    instance = sp.families.band(1, horizon=300)
    runs = [sp.simulate(instance, learner, 7, seed=3) for learner in (base, sp.Apart(base))]
    assert runs[0].actions.tobytes() == runs[1].actions.tobytes()


@each_base
@pytest.mark.parametrize("family", ["crowds", "routes"])
def test_every_copy_plays_as_if_it_were_alone(base, family):
    """The same as a player for each context, stepped by hand; every outcome reaches the copy that waits for it."""
    delay, T, C = 5, 240, 4
    instance = sp.families.find(family)(seed=2, n_contexts=C, n_actions=6, horizon=T)
    run = sp.simulate(instance, sp.Apart(base), delay, seed=9)
    candidates = [np.flatnonzero(row) for row in instance.available]
    players = [base.player(instance.P[k, candidates[k]], T // C, -(-delay // C), 9) for k in range(C)]
    stream, waiting = iter(np.random.default_rng(9).random(3 * T)), []
    for t, k in enumerate(instance.contexts):
        for due, context, decision, loss in waiting:
            if due == t:
                players[context].update(decision, loss)
        decision = players[k].act(next(stream))
        action = candidates[k][decision.action]
        state = textbook.draw(instance.P[k, action], next(stream))
        players[k].observe(decision, state)
        mean, u = instance.theta[t, state], next(stream)
        waiting.append((t + delay + 1, k, decision, float(u > 1 - mean) if mean <= 0.5 else float(u <= mean)))
        assert (action, state) == (run.actions[t], run.states[t])


def test_a_bank_shares_the_storage_that_memories_share():
    """The named sums of a memory are views into one array; copies of them would never hear of an outcome."""
    P = np.random.default_rng(0).dirichlet(np.ones(3), size=(5, 4))
    memories = [sp.SelfTuned().start(Problem(rows, 100, 3, Stream.from_seed(1))) for rows in P]
    bank = stack(memories)

    def leaves(memory):
        for part in memory:
            yield from leaves(part) if isinstance(part, tuple) else [part]

    pairs = [
        (a, b) for a, b in zip(leaves(memories[0]), leaves(bank), strict=True) if isinstance(a, np.ndarray) and a.size
    ]
    shared = 0
    for i, (alone, together) in enumerate(pairs):
        np.testing.assert_array_equal(together[0], alone)
        for other, others in pairs[:i]:
            assert np.shares_memory(alone, other) == np.shares_memory(together, others)
            shared += np.shares_memory(alone, other)
    assert shared > 0


def test_what_cannot_stand_apart_is_refused():
    for base in (3, sp.GreedyStale(), sp.Apart()):
        with pytest.raises(ValueError, match="expected a learner that learns from outcomes"):
            sp.Apart(base)
    with pytest.raises(ValueError, match="without interleaved copies"):
        sp.Apart(sp.StateEXP3(copies="d+1"))
    P = np.full((2, 3, 2), 0.5)
    uneven = sp.Instance(P, np.full((5, 2), 0.5), contexts=[0, 1, 0, 1, 0], available=[[1, 1, 1], [1, 1, 0]])
    with pytest.raises(ValueError, match="context 0 has 3 actions and context 1 has 2, expected as many"):
        sp.simulate(uneven, sp.Apart())
    crowds = sp.families.crowds(seed=1, horizon=20)
    with pytest.raises(ValueError, match="tells it for the request at hand"):
        _ = sp.simulate(crowds, sp.Apart()).dimension
