"""How often the audit is right, on many generated logs whose truth is known: the table of docs/audit.md.

    python benchmarks/audit_truth.py [--seed 700000] [--scale 1.0] [PART …]

Parts: windows, unclear, verdicts, whatif, variance. `--scale 0.1` takes a tenth of the logs. Rules were designed on
seeds below 100 000; the figures in the docs are of seeds from 700 000 on, looked at once.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent.parent / "tests" / "audit"))
import truths

from statepool import families
from statepool.audit.verdict import ALONE, CORRECT, POOL, UNCLEAR

FAMILIES = ("funnel", "clustered", "overlap", "band")


def windows(first: int, scale: float) -> None:
    found = truths.windowed_logs(range(first, first + round(2_000 * scale)))
    mean = {name: float(np.mean(values)) for name, values in found.items()}
    print(f"windowed logs: {len(found['false alarm'])}")
    for part in ("drift", "floor"):
        ratio = mean[f"{part} windowed"] / max(mean[f"{part} full"], 1e-12)
        print(
            f"  {part}: {mean[f'{part} windowed']:.4g}, all outcomes in {mean[f'{part} full']:.4g}: ratio {ratio:.2f}"
        )
    print(f"  drift if the window is ignored: {mean['drift untold']:.4g}")
    print(f"  false alarms of sufficiency: {mean['false alarm']:.4f}; coverage of state means: {mean['covered']:.4f}")
    for name in sorted(name for name in found if name.startswith("found")):
        print(f"  {name}: {mean[name]:.3f} of {len(found[name])}")
    none = truths.unwindowed_logs(range(first, first + round(1_000 * scale)))
    for name in sorted(none):
        print(f"  {name}: {np.mean(none[name]):.4f} of {len(none[name])}")


def unclear(first: int, scale: float) -> None:
    for kind in ("200 rows", "one action at 98 %", "immature only"):
        verdicts, told, skipped = truths.unclear_logs(kind, range(first, first + round(100 * scale)))
        shown = f"{kind}: cannot tell {np.mean([v == UNCLEAR for v in verdicts]):.3f} of {len(verdicts)}"
        if told:
            shown += (
                f"; with the rows named, a verdict in {np.mean(told):.3f} of {len(told)} ({skipped} too long to try)"
            )
        print(shown, dict(Counter(verdicts)))


def verdicts(first: int, scale: float) -> None:
    for verdict, more in ((POOL, 1), (CORRECT, 5), (ALONE, 1)):
        found, beaten = truths.clear_logs(verdict, range(first, first + round(100 * more * scale)))
        right = np.mean([each == verdict for each in found])
        print(f"{verdict}: right {right:.3f} of {len(found)} {dict(Counter(found))}")
        print(f"  advised learner beaten in {np.mean(beaten):.3f}")


def whatif(first: int, scale: float) -> None:
    seeds = range(first, first + round(500 * scale))
    covered, warned, _ = truths.what_ifs(seeds)
    shown = ", ".join(f"{name} {share:.3f}" for name, share in zip(("pooled", "plain", "robust"), covered, strict=True))
    print(f"what if, coverage at 95 %: {shown}; warned {warned:.3f}")
    covered, warned, right = truths.what_ifs(seeds, effect=0.15)
    print(f"  effects of .15: robust {covered[2]:.3f}, pooled {covered[0]:.3f}")
    print(f"  warned {warned:.3f}, bound holds {right:.3f}")


def variance(first: int, scale: float) -> None:
    for name in FAMILIES:
        P = getattr(families, name)(seed=0).P
        ratio = truths.variance_ratio(P, range(first, first + round(400 * scale)))
        print(f"variance of pooled over plain, over v/K: {name} {ratio:.2f}")


PARTS = {part.__name__: part for part in (windows, unclear, verdicts, whatif, variance)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--seed", type=int, default=700_000)
    parser.add_argument("--scale", type=float, default=1.0)
    given = parser.parse_args()
    for part in given.parts or PARTS:
        PARTS[part](given.seed, given.scale)


if __name__ == "__main__":
    main()
