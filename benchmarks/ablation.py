"""Each ingredient of SelfTuned removed in turn, on the settings of the study: a table in Markdown.

python benchmarks/ablation.py               twenty seeds, about five minutes, most of it compiling
python benchmarks/ablation.py --seeds 4
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from statepool import delays
from statepool.engine import simulate
from statepool.learners import Learner
from statepool.studies.beyond.self_tuned import STUDY, best_of
from statepool.studies.beyond.self_tuned_sweeps import RULES
from statepool.studies.cells import CellStore
from statepool.studies.runner import LocalExecutor, run_studies
from statepool.studies.study import Results, Study, Sweep
from statepool.studies.tasks import make_instance
from variants import WITHOUT, build

LARGE_GAP = 100
GROUPS = {
    "easy": ("settings", "hostile", "delays"),
    "lock-out": ("locked",),
    "drift": ("shifting",),
}
DRIFTING = "switching"
"""Settings of this family count as drift wherever they stand."""


class Unwatched:
    def started(self, study: str, rounds: int) -> None: ...
    def finished(self, study: str, rounds: int, stored: bool) -> None: ...


def chosen_sweeps() -> tuple[Sweep, ...]:
    """The study's sweeps, without what is long and what concerns other learners."""
    names = [name for group in GROUPS.values() for name in group] + ["resonance", "funnel", "hard"]
    sweeps = (sweep for sweep in STUDY.sweeps if sweep.name in names)
    return tuple(
        Sweep(s.name, tuple(c for c in s.cells if "80000" not in c.label), s.seeds, s.stream, s.instance, s.function)
        for s in sweeps
    )


def regrets_of(learner: Learner, sweep: Sweep, seeds: int) -> Iterator[tuple[str, float]]:
    """(cell, regret) on every seed: the instances and the luck of the study."""
    for cell, task in sweep.tasks(seeds):
        given = task.arguments
        instance = make_instance(given["family"], given["settings"], given["seed"])
        delay = given["delay"]
        if "kind" in given:
            delay = delays.KINDS[given["kind"]](given["seed"], instance.horizon, delay)
        yield cell, simulate(instance, learner, delay, given["stream"]).regret


def measure(learner: Learner, sweeps: tuple[Sweep, ...], seeds: int) -> dict[tuple[str, str], np.ndarray]:
    found: dict[tuple[str, str], list[float]] = {}
    for sweep in sweeps:
        for cell, regret in regrets_of(learner, sweep, seeds):
            found.setdefault((sweep.name, cell), []).append(regret)
    return {place: np.array(regrets) for place, regrets in found.items()}


def group_of(sweep: str, cell: str) -> str | None:
    if cell.startswith(DRIFTING):
        return "drift"
    return next((group for group, sweeps in GROUPS.items() if sweep in sweeps), None)


def row(own: dict[tuple[str, str], np.ndarray], arms: Results) -> list[str]:
    closed: dict[str, dict[str, float]] = {group: {} for group in GROUPS}
    tails = 0
    for (sweep, cell), regrets in own.items():
        group, state = group_of(sweep, cell), arms.mean(sweep, cell, "state")
        gap = state - best_of(arms, sweep, cell, RULES) if group else 0.0
        if group and gap > LARGE_GAP:
            closed[group][cell] = 100 * (state - float(regrets.mean())) / gap
            tails += bool(regrets.max() >= state)
    every = {cell: share for shares in closed.values() for cell, share in shares.items()}
    worst = min(every, key=lambda cell: every[cell])
    swings = [r.mean() / arms.mean(s, c, "state") for (s, c), r in own.items() if s == "resonance"]
    funnel = [r.mean() for (s, _), r in own.items() if s == "funnel"]
    return [
        *(f"{np.mean(list(shares.values())):.0f}" for shares in closed.values()), f"{every[worst]:.0f} ({worst})",
        f"{tails}", f"{max(swings):.2f}", " / ".join(f"{regret:.0f}" for regret in funnel),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("reproduction"), help="where the study keeps finished cells")
    given = parser.parse_args()
    if given.seeds < 1:
        parser.error(f"seeds: is {given.seeds}, expected at least 1")
    sweeps = chosen_sweeps()
    study = Study(STUDY.name, "", "", "", "", "", "", sweeps, STUDY.tables)
    arms = run_studies([study], LocalExecutor(1), CellStore(given.out / "cells"), Unwatched(), given.seeds)[STUDY.name]
    print(
        "| without | easy | lock-out | drift | worst | tails | resonance | funnel |\n|---|---|---|---|---|---|---|---|"
    )
    with TemporaryDirectory() as root:
        for number, (name, edits) in enumerate(WITHOUT.items()):
            folder = Path(root) / f"variant_{number}"
            folder.mkdir()
            own = measure(build(edits, folder), sweeps, given.seeds)
            print(f"| {name} | {' | '.join(row(own, arms))} |", flush=True)


if __name__ == "__main__":
    main()
