"""Certified beside SelfTuned and State-EXP3: on the recipes of the fuzz, and on the settings of SelfTuned's study.

python benchmarks/fuzz_certified.py                              the five hundred recipes; a few minutes on one core
python benchmarks/fuzz_certified.py --recipes 500 --first 6      the same recipes on fresh instances
python benchmarks/fuzz_certified.py --recipes 0 --seeds 10       the study's settings; with --fresh on other seeds

Also how often the guard rang, and the mean certificate (the figure that Theorem C says the mean regret is below).
"""

import argparse
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import statepool as sp
from fuzz_self_tuned import MOTIONS, ROWS, STREAM, draw_recipe, make_delays
from statepool.learners.certified import NEVER
from statepool.probes import NO_PROBE
from statepool.studies.beyond.self_tuned_sweeps import SWEEPS
from statepool.studies.study import Cell, Sweep
from statepool.studies.tasks import make_instance

Floats = NDArray[np.float64]
ARMS = {"state": sp.StateEXP3(), "self-tuned": sp.SelfTuned(), "certified": sp.Certified()}
COMPARED = ("settings", "hostile", "delays", "locked", "shifting", "hard", "resonance", "funnel")
LONGEST = 20_000
FRESH = 10_000
"""Added to the seeds of a study for instances and streams that no figure was ever read from."""


class Tally:
    """Regrets of the arms, certificates and guards, one row a case."""

    def __init__(self) -> None:
        self.means: dict[str, dict[str, float]] = {}
        self.rang = 0

    def add(self, label: str, runs: Iterator[tuple[sp.Instance, object, int]]) -> None:
        regrets: dict[str, list[float]] = {name: [] for name in (*ARMS, "certificate")}
        for instance, delay, stream in runs:
            for name, learner in ARMS.items():
                run = sp.simulate(instance, learner, delay, stream)
                regrets[name].append(run.regret)
            memory = run.measure(NO_PROBE)
            regrets["certificate"].append(ARMS["certified"].certificate(memory))
            self.rang += int(memory.ledger["rang"][0] != NEVER)
        self.means[label] = {name: float(np.mean(values)) for name, values in regrets.items()}

    def report(self, show: int) -> None:
        state, own, tuned, promised = (
            np.array([row[name] for row in self.means.values()])
            for name in ("state", "certified", "self-tuned", "certificate")
        )
        print(f"{len(state)} cases; means: State-EXP3 {state.mean():.0f}, Certified {own.mean():.0f}", end=", ")
        print(f"SelfTuned {tuned.mean():.0f}; Certified below State-EXP3 on {(own < state).sum()}", end=", ")
        print(f"below SelfTuned on {(own < tuned).sum()}; its mean above its certificate", end=" ")
        print(f"on {(own > promised).sum()}; guard rang in {self.rang} runs")
        for title, worse in (("State-EXP3", own - state), ("SelfTuned", own - tuned)):
            print(f"\n| worst against {title} | {' | '.join((*ARMS, 'certificate'))} |\n|---|---|---|---|---|")
            for i in np.argsort(-worse)[:show]:
                label, row = list(self.means.items())[i]
                print(f"| {label} | {' | '.join(f'{value:.0f}' for value in row.values())} |")


def recipe_runs(seed: int, number: int, first: int, seeds: int) -> Iterator[tuple[sp.Instance, object, int]]:
    recipe = draw_recipe(seed, number)
    for i in range(first, first + seeds):
        rng = np.random.default_rng((seed, number, i))
        theta = np.clip(MOTIONS[recipe.motion](recipe, rng), 0, 1)
        instance = sp.Instance(ROWS[recipe.rows](recipe, rng), theta)
        yield instance, make_delays(recipe, rng), i + STREAM


def study_runs(sweep: Sweep, cell: Cell, seeds: int, shift: int) -> Iterator[tuple[sp.Instance, object, int]]:
    for i in range(seeds):
        seed = sweep.instance[0] * i + sweep.instance[1] + shift
        instance = make_instance(cell.family, cell.settings, seed)
        delay = cell.delay
        if "kind" in cell.extra:
            delay = sp.delays.KINDS[cell.extra["kind"]](seed, instance.horizon, delay)
        yield instance, delay, sweep.stream[0] * i + sweep.stream[1] + shift


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipes", type=int, default=500)
    parser.add_argument("--seed", type=int, default=2024)
    parser.add_argument("--seeds", type=int, default=6, help="instances of each recipe or setting")
    parser.add_argument("--first", type=int, default=0, help="the first instance of each recipe")
    parser.add_argument("--fresh", action="store_true", help="other seeds for the study's settings")
    parser.add_argument("--show", type=int, default=6)
    given = parser.parse_args()
    tally = Tally()
    for number in range(given.recipes):
        label = f"{number}: {draw_recipe(given.seed, number)}"
        tally.add(label, recipe_runs(given.seed, number, given.first, given.seeds))
    for sweep in SWEEPS if not given.recipes else ():
        for cell in sweep.cells if sweep.name in COMPARED else ():
            if cell.settings.get("horizon", 0) <= LONGEST:
                tally.add(f"{sweep.name}: {cell.label}", study_runs(sweep, cell, given.seeds, FRESH * given.fresh))
    tally.report(given.show)


if __name__ == "__main__":
    main()
