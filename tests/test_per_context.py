"""PerContext: as many learners as contexts, each as if it were alone."""

import numpy as np
import pytest

import statepool as sp
import textbook

BASES = [sp.ActionEXP3(), sp.PooledGreedy(exploration=0.1)]
each_base = pytest.mark.parametrize("base", BASES, ids=lambda base: type(base).__name__)


@each_base
def test_without_contexts_it_is_the_learner_itself(base):
    instance = sp.families.band(1, horizon=300)
    runs = [sp.simulate(instance, learner, 7, seed=3) for learner in (base, sp.PerContext(base))]
    assert runs[0].actions.tobytes() == runs[1].actions.tobytes()


@each_base
@pytest.mark.parametrize("family", ["crowds", "routes"])
def test_every_copy_acts_as_if_it_were_alone(base, family):
    """The same as a player for each context, stepped by hand; every outcome reaches the copy that waits for it."""
    delay, T, C = 5, 240, 4
    instance = sp.families.find(family)(seed=2, n_contexts=C, n_actions=6, horizon=T)
    run = sp.simulate(instance, sp.PerContext(base), delay, seed=9)
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


def test_what_cannot_be_copied_is_refused():
    for base in (3, sp.learners.find("greedy-stale")(), sp.PerContext()):
        with pytest.raises(ValueError, match="expected a learner that learns from outcomes"):
            sp.PerContext(base)
    with pytest.raises(ValueError, match="without interleaved copies"):
        sp.PerContext(sp.StateEXP3(copies="d+1"))
