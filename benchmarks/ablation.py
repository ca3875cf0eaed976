"""Each ingredient of SelfTuned removed in turn, on the settings of `practice.py`: regret in per cent of blind choice.

    python benchmarks/ablation.py --settings 48 --seeds 4 --draw 1

An ingredient is removed by changing one or two constants in a copy of the package, so the rule itself has no switches.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

import statepool as sp
from practice import setting

WITHOUT: dict[str, list[tuple[str, str, str]]] = {
    "nothing removed": [],
    "effects of actions (5)": [
        ("self_tuned.py", "PRIOR = 1 / 4,", "PRIOR = 1e-300,"),
        ("self_tuned.py", "ASK, LOOK, SPREAD = 1 / 64,", "ASK, LOOK, SPREAD = 0.0,"),
    ],
    "looks at rare states (6)": [("predictions.py", "SEEN_ENOUGH = 10.0", "SEEN_ENOUGH = -1.0")],
    "common level (1)": [
        ("predictions.py", "(COMPLEXITY if j > 0", "(1e9 if j == N_MEMORIES else COMPLEXITY if j > 0")
    ],
    "shorter memories (1)": [("predictions.py", "COMPLEXITY = 2.0", "COMPLEXITY = 1e9")],
    "optimism (4)": [("predictions.py", "OPTIMISM = 0.4", "OPTIMISM = 0.0")],
    "the longer memory as prior of the shorter (1)": [("predictions.py", "NESTED = 2.0", "NESTED = 0.1")],
    "votes of other states (3)": [("predictions.py", "VOTE = 3.0", "VOTE = 0.0")],
    "doubts about rows (7)": [("effects.py", "PRIOR_DOUBT = 1 / 32", "PRIOR_DOUBT = 1e-300")],
    "safe part and guard": [("safe.py", "SHARE = 1 / 64", "SHARE = 1e-9")],
}


def make_copy(folder: Path, changes: list[tuple[str, str, str]]) -> None:
    """The package with some constants changed."""
    shutil.copytree(Path(sp.__file__).parent, folder / "statepool", ignore=shutil.ignore_patterns("__pycache__"))
    for name, before, after in changes:
        source = folder / "statepool" / "learners" / name
        text = source.read_text()
        assert text.count(before) == 1, (name, before)
        source.write_text(text.replace(before, after))


def play(draw: int, settings: int, seeds: int) -> list[Any]:
    """[kind, regret, regret of blind choice] of each run."""
    found = []
    for number in range(settings):
        for seed in range(seeds):
            made, rng = setting(draw, number), np.random.default_rng((draw, number, seed))
            instance, delay = made.make(rng), made.delay(rng)
            run_seed = (draw * 1_000 + number) * 100 + seed
            regrets = [sp.simulate(instance, name, delay, seed=run_seed).regret for name in ("self-tuned", "uniform")]
            found.append([made.kind, *regrets])
    return found


def run_without(changes: list[tuple[str, str, str]], arguments: list[str]) -> dict[str, float]:
    """Regret in per cent of blind choice, by kind."""
    with tempfile.TemporaryDirectory() as folder:
        make_copy(Path(folder), changes)
        environment = os.environ | {"PYTHONPATH": folder, "NUMBA_CACHE_DIR": folder}
        command = [sys.executable, __file__, "--play", *arguments]
        said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    regrets = defaultdict(list)
    for kind, ours, blind in json.loads(said):
        regrets[kind].append((ours, blind))
    sums = {kind: np.sum(pairs, axis=0) for kind, pairs in regrets.items()}
    return {kind: 100 * float(ours / blind) for kind, (ours, blind) in sums.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("--settings", 48), ("--seeds", 4), ("--draw", 1)):
        parser.add_argument(name, type=int, default=default)
    parser.add_argument("--play", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.play:
        print(json.dumps(play(given.draw, given.settings, given.seeds)))
        return
    arguments = ["--settings", str(given.settings), "--seeds", str(given.seeds), "--draw", str(given.draw)]
    kinds: list[str] = []
    for name, changes in WITHOUT.items():
        found = run_without(changes, arguments)
        if not kinds:
            kinds = list(found)
            print(f"| without | {' | '.join(kind.replace('_', ' ') for kind in kinds)} | mean |")
            print("|---" * (len(kinds) + 2) + "|")
        cells = " | ".join(f"{found[kind]:.1f}" for kind in kinds)
        print(f"| {name} | {cells} | {np.mean(list(found.values())):.1f} |", flush=True)


if __name__ == "__main__":
    main()
