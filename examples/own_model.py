"""Bring your own model: a classifier says what each visitor would do next, the pool learns what that is worth.

The classifier (scikit-learn; any model with probabilities will do) learns from states: what visitors did on the page,
known within seconds, plenty of it. The pool learns from purchases, which come 300 visitors later. Its rows of P are the
classifier's answers for this visitor, passed as candidates. Beside it a pool that ignores who is asking: its rows are
the averages over all visitors.
"""

import tempfile
from collections import deque

import numpy as np
from sklearn.linear_model import LogisticRegression

from statepool import Pool

ACTIONS = ["plain", "discount", "free shipping", "video"]
STATES = ["left", "browsed", "cart"]
BUYS = np.array([0.01, 0.05, 0.50])  # not known to the shop: how likely a purchase is after each state
WANTS = np.random.default_rng(7).normal(scale=1.5, size=(len(ACTIONS), 3, len(STATES)))  # nor what visitors want
PAST, VISITORS, AT_ONCE, DELAY = 4_000, 10_000, 50, 300


def true_rows(person):
    """How likely each state is after each action, for this visitor."""
    scores = np.exp(np.einsum("f,afs->as", person, WANTS))
    return scores / scores.sum(axis=1, keepdims=True)


def features(people, actions):
    """What the classifier sees: the visitor's features, in a place of their own for each action."""
    return (np.eye(len(ACTIONS))[actions][:, :, None] * people[:, None, :]).reshape(len(people), -1)


def predicted_rows(model, people):
    """The classifier's rows for each visitor, as candidates."""
    everything = features(np.repeat(people, len(ACTIONS), axis=0), np.tile(range(len(ACTIONS)), len(people)))
    rows = model.predict_proba(everything).reshape(len(people), len(ACTIONS), -1)
    return [dict(zip(ACTIONS, each, strict=True)) for each in rows]


def visitors(rng, count):
    """New (1) or known (-1), on a phone (1) or not (-1), and how much they looked at before, from -1 to 1."""
    return np.column_stack([rng.choice([-1, 1], count), rng.choice([-1, 1], count), rng.uniform(-1, 1, count)])


def serve(pool, people, candidates, seed):
    """The share of visitors who buy; states are seen at once, purchases are reported 300 visitors later."""
    rng, waiting, bought = np.random.default_rng(seed), deque(), 0
    for start in range(0, len(people), AT_ONCE):
        while len(waiting) > DELAY:
            pool.resolve_many(rewards=[waiting.popleft() for _ in range(AT_ONCE)])
            pool.learn()
        rows = None if candidates is None else candidates[start : start + AT_ONCE]
        decisions = pool.decide_many(AT_ONCE, candidates=rows)
        states = []
        for person, decision in zip(people[start:], decisions, strict=False):
            state = int(rng.choice(len(STATES), p=true_rows(person)[ACTIONS.index(decision.action)]))
            buys = rng.random() < BUYS[state]
            states.append((decision.ticket, STATES[state]))
            waiting.append((decision.ticket, float(buys)))
            bought += buys
        pool.observe_many(states)
    return bought / len(people)


def main():
    rng = np.random.default_rng(1)
    past, shown = visitors(rng, PAST), rng.integers(len(ACTIONS), size=PAST)
    did = [rng.choice(len(STATES), p=true_rows(person)[action]) for person, action in zip(past, shown, strict=True)]
    model = LogisticRegression(max_iter=1_000).fit(features(past, shown), did)
    counts = np.zeros((len(ACTIONS), len(STATES)))
    np.add.at(counts, (shown, did), 1)
    average = counts / counts.sum(axis=1, keepdims=True)

    people = visitors(rng, VISITORS)
    candidates = predicted_rows(model, people)
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in (("ignoring the person", None), ("with the classifier's rows", candidates)):
            store = f"sqlite:///{folder}/{'own' if rows else 'average'}.db"
            with Pool.open(store, "home", average, ACTIONS, STATES, reward_bounds=(0, 1)) as pool:
                print(f"{name:28} {serve(pool, people, rows, seed=5):.3f} buy")
    best = np.mean([(true_rows(person) @ BUYS).max() for person in people])
    print(f"{'if everything were known':28} {best:.3f}")


if __name__ == "__main__":
    main()
