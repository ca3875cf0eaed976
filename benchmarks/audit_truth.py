"""How often the audit is right, on many generated logs whose truth is known.

    python benchmarks/audit_truth.py [--seed 5000000] [--scale 1.0] [PART …]

Parts: windows, unclear, whatif. `--scale 0.1` takes a tenth of the logs. Seeds below 100 000, from 700 000 to 711 200,
from 4 200 000 to 4 201 500 and from 4 300 000 to 4 301 500 were looked at while rules were chosen: use others for
figures to quote.
Drift is that of false alarms, since no mean moves in these logs: rare and unequal, so many logs are needed.
Coverage of 150 what-ifs (`--scale 0.3`) has a standard error of .018: take the whole scale to judge three points.
Verdicts, first actions and regret are measured on shops (`audit_shops.py`).
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent.parent / "tests" / "audit"))
import truths

from statepool.audit.advice import UNCLEAR


def windows(first: int, scale: float) -> None:
    found = truths.windowed_logs(range(first, first + round(6_000 * scale)))
    mean = {name: float(np.mean(values)) for name, values in found.items()}
    print(f"windowed logs: {len(found['false alarm'])}, counted by exposure {mean['exposed']:.2f}")
    part, full = mean["drift windowed"], mean["drift full"]
    print(f"  drift: {part:.4g}, all outcomes in {full:.4g}: ratio {part / max(full, 1e-12):.2f}")
    print(f"  false alarms of sufficiency: {mean['false alarm']:.4f}; coverage of state means: {mean['covered']:.4f}")
    for name in sorted(name for name in found if name.startswith("found")):
        print(f"  {name}: {mean[name]:.3f} of {len(found[name])}")
    none = truths.unwindowed_logs(range(first, first + round(1_000 * scale)))
    for name in sorted(none):
        print(f"  {name}: {np.mean(none[name]):.4f} of {len(none[name])}")


def unclear(first: int, scale: float) -> None:
    for kind in ("200 rows", "one action at 98 %"):
        verdicts, told, skipped = truths.unclear_logs(kind, range(first, first + round(100 * scale)))
        print(f"{kind}: cannot tell {np.mean([v == UNCLEAR for v in verdicts]):.3f} of {len(verdicts)}", end="; ")
        print(
            f"with the rows named, a verdict in {np.mean(told):.3f} of {len(told)} ({skipped} too long to try)", end=" "
        )
        print(dict(Counter(verdicts)))


def whatif(first: int, scale: float) -> None:
    seeds = range(first, first + round(500 * scale))
    covered, warned, _ = truths.what_ifs(seeds)
    shown = ", ".join(f"{name} {share:.3f}" for name, share in zip(("pooled", "plain", "robust"), covered, strict=True))
    print(f"what if, coverage at 95 %: {shown}; warned {warned:.3f}")
    covered, warned, right = truths.what_ifs(seeds, effect=0.15)
    print(f"  effects of .15: robust {covered[2]:.3f}, pooled {covered[0]:.3f}")
    print(f"  warned {warned:.3f}, bound holds {right:.3f}")


PARTS = {part.__name__: part for part in (windows, unclear, whatif)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--seed", type=int, default=5_000_000)
    parser.add_argument("--scale", type=float, default=1.0)
    given = parser.parse_args()
    for part in given.parts or PARTS:
        PARTS[part](given.seed, given.scale)


if __name__ == "__main__":
    main()
