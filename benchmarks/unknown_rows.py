"""What not knowing the map costs where requests have contexts, and what each level of shrinkage saves.

    python benchmarks/unknown_rows.py [--seeds 20]

`segments`: 20 contexts, 30 actions, six states, 20 000 rounds, outcomes 50 rounds late. `SelfTuned(learn_map=True)`
shrinks the row of (context, action) to the action's row and that to the overall row; both strengths are read off the
counts. Each level is the same learner with strengths that are held where they leave a level out.

    both         as it is
    overall      no row of the action: rows of (context, action) lean on the overall row
    no context   the action's row alone, whoever asks
    nothing      the overall row counts as one round

`margins` is a plug-in of the leader alone, which leans on the action's row times the context's over the overall one:
what the state would be if action and context moved it independently of each other. Other packages take minutes where
ours take seconds, and are run on the first 4 seeds.
"""

import argparse
from collections import deque
from typing import ClassVar

import numpy as np

import contexts as rivals
import statepool as sp
from statepool.audit.map import shrinkage
from statepool.checks import Floats
from statepool.comparison import standard_error
from statepool.learners.learner import Problem
from statepool.learners.self_tuned import OPTIMISM, SelfTunedMemory

N_CONTEXTS, N_ACTIONS, HORIZON, DELAY = 20, 30, 20_000, 50
EVERY = 200
"""Rounds between two looks of the plug-in at its strengths."""
SEEDS_OF_PACKAGES = range(600, 604)
FOR_EVER = 1e12
"""A prior that no count outweighs."""


class Held(sp.SelfTuned):
    """A learner of the map with strengths that are held, of (row of the action, row of the pair); 0 is read."""

    strengths: ClassVar[tuple[float, float]] = (0.0, 0.0)

    def start(self, problem: Problem) -> SelfTunedMemory:
        memory = super().start(problem)
        memory.learnt.rows.held[:] = self.strengths
        memory.learnt.rows.strengths[:] = np.where(np.array(self.strengths) > 0, self.strengths, 1.0)
        return memory


class OverallRow(Held):
    strengths = FOR_EVER, 0.0


class NoContext(Held):
    strengths = 0.0, FOR_EVER


class NothingShared(Held):
    strengths = FOR_EVER, 1.0


class Margins:
    """Counts [context, action, state], and priors with the strengths read off them."""

    def __init__(self, instance: sp.Instance) -> None:
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
        if n.sum() == 0:
            return
        seen = self.by_action[self.by_action.sum(axis=1) > 0]
        self.of_action = shrinkage(seen, np.tile(self._overall(), (len(seen), 1)))
        priors = np.stack([self.priors(context) for context in range(len(n))])
        cells, rows = n.reshape(-1, n_states), priors.reshape(-1, n_states)
        found = cells.sum(axis=1) > 0
        self.kappa = shrinkage(cells[found], rows[found])

    def _overall(self) -> Floats:
        totals = self.played + 1.0 / self.played.size
        return np.asarray(totals / totals.sum())

    def priors(self, context: int) -> Floats:
        """A row for each action in this context, before it is looked at itself."""
        overall, own = self._overall(), self.by_context[context]
        visits = self.by_action.sum(axis=1, keepdims=True)
        rows = (self.by_action + self.of_action * overall) / (visits + self.of_action)
        rows = rows * (own + overall) / (own.sum() + 1.0) / overall
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))

    def act(self, context: int) -> int:
        counts, prior = self.counts[context], self.priors(context)
        visits, elsewhere = counts.sum(axis=1), self.by_action.sum(axis=1)
        rows = (counts + self.kappa * prior) / (visits + self.kappa)[:, None]
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


def margins(instance: sp.Instance, seed: int) -> float:
    learner, rng, actions = Margins(instance), np.random.default_rng(seed), []
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


def quick_ways() -> dict[str, rivals.Way]:
    learners = {
        "SelfTuned, told the map": sp.SelfTuned(), "SelfTuned learning it: both": sp.SelfTuned(learn_map=True),
        "… overall": OverallRow(learn_map=True), "… no context": NoContext(learn_map=True),
        "… nothing": NothingShared(learn_map=True),
        "Apart(SelfTuned(learn_map=True))": sp.Apart(sp.SelfTuned(learn_map=True)),
        "Apart(): EXP3 for each context": sp.Apart(),
    }  # fmt: skip
    ours = {name: rivals.simulated(learner) for name, learner in learners.items()}
    return ours | {"plug-in, margins": margins, rivals.UCB: rivals.ucb}


def slow_ways() -> dict[str, rivals.Way]:
    told = "Vowpal Wabbit, rows as features"
    return {name: way for name, way in rivals.rivals().items() if name not in (told, rivals.UCB)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument(
        "--together", type=float, default=0.0, help="how far action and context move the state together"
    )
    options = parser.parse_args()
    quick, slow = quick_ways(), slow_ways()
    regrets: dict[str, list[float]] = {name: [] for name in quick | slow}
    for seed in range(600, 600 + options.seeds):
        sizes = {"n_contexts": N_CONTEXTS, "n_actions": N_ACTIONS, "horizon": HORIZON}
        instance = sp.families.segments(seed, **sizes, together=options.together)
        for name, way in (quick | slow if seed in SEEDS_OF_PACKAGES else quick).items():
            regrets[name].append(way(instance, 80_000 + seed))
        print(f"seed {seed}: done", flush=True)
    for name, each in regrets.items():
        print(f"{name:36} {np.mean(each):8.0f} ± {standard_error(np.array(each)):3.0f}   ({len(each)} seeds)")


if __name__ == "__main__":
    main()
