"""What not knowing the map costs where requests have contexts, and what each level of shrinkage saves.

    python benchmarks/unknown_rows.py [--seeds 20]

`segments`: 20 contexts, 30 actions, six states, 20 000 rounds, outcomes 50 rounds late. The plug-in learner counts
which states follow (context, action), makes rows of these counts, and plays the best row by optimistic state means, as
the leader of SelfTuned does: with optimism for rows that were seen less than the others of their context. A row seen n
times is shrunk to a prior as if that had been seen kappa times; kappa is read off the counts, as in the audit.

    own          no other row: each begins as an even one that counts as one play
    overall      the row of all plays together
    action       the row of the action in all contexts, itself shrunk to the overall row
    both         action's row times context's row over the overall row: what the state would be if action and context
                 moved it independently of each other
    no context   the action's row alone, whoever asks

Nothing of this is in the package: `SelfTuned(learn_map=True)` with contexts is refused.
"""

import argparse
from collections import deque
from collections.abc import Callable

import numpy as np

import contexts as rivals
import statepool as sp
from statepool.audit.map import shrinkage
from statepool.checks import Floats
from statepool.comparison import standard_error
from statepool.learners.self_tuned import OPTIMISM

N_CONTEXTS, N_ACTIONS, HORIZON, DELAY = 20, 30, 20_000, 50
EVERY = 200
"""Rounds between two looks at the strengths."""
LEVELS = ("own", "overall", "action", "both", "no context")


class PlugIn:
    """Counts [context, action, state], and priors with the strengths read off them."""

    def __init__(self, instance: sp.Instance, level: str) -> None:
        self.level = level
        self.counts = np.zeros(instance.P.shape)
        self.by_action, self.by_context = self.counts[0].copy(), self.counts[:, 0].copy()
        self.sums, self.told, self.played = np.zeros((3, instance.n_states))
        self.kappa, self.of_action = 1.0, 1.0

    def see(self, context: int, action: int, state: int) -> None:
        self.counts[context, action, state] += 1
        self.by_action[action, state] += 1
        self.by_context[context, state] += 1
        self.played[state] += 1

    def read_strengths(self) -> None:
        n, n_states = self.counts, self.counts.shape[-1]
        if self.level == "own" or n.sum() == 0:
            return
        seen = self.by_action[self.by_action.sum(axis=1) > 0]
        self.of_action = shrinkage(seen, np.tile(self._overall(), (len(seen), 1)))
        priors = np.stack([self.priors(context) for context in range(len(n))])
        cells, rows = n.reshape(-1, n_states), priors.reshape(-1, n_states)
        seen = cells.sum(axis=1) > 0
        self.kappa = shrinkage(cells[seen], rows[seen])

    def _overall(self) -> Floats:
        totals = self.played + 1.0 / self.played.size
        return np.asarray(totals / totals.sum())

    def priors(self, context: int) -> Floats:
        """A row for each action in this context, before it is looked at itself."""
        n_actions, n_states = self.counts.shape[1:]
        if self.level == "own":
            return np.full((n_actions, n_states), 1 / n_states)
        overall = self._overall()
        if self.level == "overall":
            return np.tile(overall, (n_actions, 1))
        visits = self.by_action.sum(axis=1, keepdims=True)
        rows = (self.by_action + self.of_action * overall) / (visits + self.of_action)
        if self.level == "both":
            own = self.by_context[context]
            rows = rows * (own + overall) / (own.sum() + 1.0) / overall
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))

    def act(self, context: int) -> int:
        counts, prior = self.counts[context], self.priors(context)
        visits, elsewhere = counts.sum(axis=1), self.by_action.sum(axis=1)
        if self.level == "no context":
            rows, worth = prior, elsewhere
        else:
            rows = (counts + self.kappa * prior) / (visits + self.kappa)[:, None]
            worth = visits
            if self.level in ("action", "both"):  # a prior seen m times stands for no more than m plays
                worth = visits + self.kappa * elsewhere / (self.kappa + elsewhere)
        hopes = _hopes(self.sums, self.told, self.played)
        values = rows @ hopes
        variance = np.maximum(rows @ hopes**2 - values**2, 0.0)
        scarcity = np.maximum((worth.mean() + 1.0) / (worth + 1.0), 1.0)
        return int((values - np.sqrt(OPTIMISM * variance / (worth + 1.0) * np.log(scarcity))).argmin())


def _hopes(sums: Floats, told: Floats, played: Floats) -> Floats:
    means = (sums + 0.5) / (told + 1.0)
    scarcity = np.maximum((played.mean() + 1.0) / (played + 1.0), 1.0)
    return np.asarray(means - np.sqrt(OPTIMISM * 0.25 / (played + 2.0) * np.log(scarcity)))


def plug_in(instance: sp.Instance, level: str, seed: int) -> float:
    learner, rng, actions = PlugIn(instance, level), np.random.default_rng(seed), []
    waiting: deque[tuple[int, float]] = deque()
    for t, context in enumerate(instance.requests.tolist()):
        if len(waiting) > DELAY:
            state, loss = waiting.popleft()
            learner.sums[state] += loss
            learner.told[state] += 1
        if t % EVERY == 0:
            learner.read_strengths()
        action = learner.act(context)
        state = int(rng.choice(instance.n_states, p=instance.P[context, action]))
        learner.see(context, action, state)
        waiting.append((state, float(rng.random() < instance.theta[t, state])))
        actions.append(action)
    return instance.regret(actions)


def ways() -> dict[str, Callable[[sp.Instance, int], float]]:
    def simulated(learner: sp.learners.Learner) -> Callable[[sp.Instance, int], float]:
        return lambda instance, seed: sp.simulate(instance, learner, DELAY, seed).regret

    found = {f"plug-in, {level}": lambda i, seed, level=level: plug_in(i, level, seed) for level in LEVELS}
    found["Apart(SelfTuned(learn_map=True))"] = simulated(sp.Apart(sp.SelfTuned(learn_map=True)))
    found["Apart(): EXP3 for each context"] = simulated(sp.Apart())
    found |= rivals.rivals()
    found.pop("Vowpal Wabbit, rows as features", None)  # it is told the rows
    return {"SelfTuned, told the map": simulated(sp.SelfTuned())} | found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument(
        "--together", type=float, default=0.0, help="how far action and context move the state together"
    )
    options = parser.parse_args()
    regrets: dict[str, list[float]] = {name: [] for name in ways()}
    for seed in range(600, 600 + options.seeds):
        sizes = {"n_contexts": N_CONTEXTS, "n_actions": N_ACTIONS, "horizon": HORIZON}
        instance = sp.families.segments(seed, **sizes, together=options.together)
        for name, way in ways().items():
            regrets[name].append(way(instance, 80_000 + seed))
    for name, each in regrets.items():
        print(f"{name:36} {np.mean(each):8.0f} ± {standard_error(np.array(each)):.0f}")


if __name__ == "__main__":
    main()
