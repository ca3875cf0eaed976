"""What a new process pays: `import statepool` and a first run, against `import numba` alone; all that is kept is there.

Kept are the kernels and the bytecode of the sources.

The clock is the processor time of the process, from its first instruction to its last.
"""

import os
import subprocess
import sys
from resource import RUSAGE_CHILDREN, getrusage

from rows import Row

TURNS = 7
UNUSUAL = ("NUMBA_CACHE_DIR", "PYTHONDONTWRITEBYTECODE")
"""Settings that would make a process of ours, but not one of Numba's, start from its sources."""

NUMBA = "import numba"
FIRST_RUN = "import statepool as sp; sp.simulate(sp.families.funnel(seed=0), sp.StateEXP3(), delay=50, seed=80_000)"


def row() -> Row:
    _seconds(FIRST_RUN)  # fills the cache
    best = {NUMBA: float("inf"), FIRST_RUN: float("inf")}
    for _ in range(TURNS):
        for code in best:
            best[code] = min(best[code], _seconds(code))
    note = f"{best[FIRST_RUN]:.2f} s against {best[NUMBA]:.2f} s"
    return Row("start-up + first run / import numba", best[FIRST_RUN] / best[NUMBA], at_most=2.5, note=note)


def _seconds(code: str) -> float:
    environment = {name: value for name, value in os.environ.items() if name not in UNUSUAL}
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
