"""Compiling side by side: on a new machine, other processes compile what a command will need while it is at work.

`statepool compile` does that alone, for all learners, where nobody should wait later: in an image, before tests.
Helpers of other commands begin when the first kernel begins to be compiled, so where all are on disk there are none.
Whoever needs a kernel that another process is at waits for that one and loads it (`statepool.turns`).
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from statepool.compiling import told_of_compiling

DIMENSION = "dimension"
"""The search for the dimension; all other names are those of learners."""


@contextmanager
def compiling_ahead(names: Sequence[str]) -> Iterator[None]:
    """Compile what has these names in as many processes as there are idle cores, those first that come first."""
    helpers: list[subprocess.Popen[bytes]] = []

    def begin(busy: bool) -> None:
        if busy and not helpers:
            count = min(len(names), (os.cpu_count() or 1) - 1)
            helpers.extend(_start(names[i::count]) for i in range(count))

    try:
        with told_of_compiling(begin):
            yield
    finally:
        for helper in helpers:
            helper.kill()
            helper.wait()


def _start(names: Sequence[str]) -> subprocess.Popen[bytes]:
    code = f"from statepool.commands.ahead import compile_all; compile_all({list(names)!r})"
    nothing = subprocess.DEVNULL
    return subprocess.Popen([sys.executable, "-c", code], stdin=nothing, stdout=nothing, stderr=nothing)


def run(names: Sequence[str]) -> None:
    """Compile what has these names, or all there is, a process for each core."""
    from statepool.commands.progress import working
    from statepool.learners import REGISTRY, find

    for name in names:
        find(name)
    wanted = list(names) or [DIMENSION, *REGISTRY]
    count = min(len(wanted), os.cpu_count() or 1)
    with working(f"compiling {len(wanted)} learners and searches, once"):
        processes = [_start(wanted[i::count]) for i in range(count)]
        ended = [process.wait() for process in processes]
        if any(ended):
            raise ValueError("compile: a kernel cannot be compiled here; `statepool simulate funnel` says why")


def compile_all(names: Sequence[str]) -> None:
    """Play each learner, as a simulation, a live pool and somebody by hand do, or search, on the smallest instance."""
    from statepool.dimension import bracket
    from statepool.engine import simulate
    from statepool.exact_run import play_exactly
    from statepool.learners import find
    from statepool.model import Instance
    from statepool.stream import Stream

    smallest = Instance([[0.5, 0.5]], [[0.5, 0.5]])
    for name in names:
        if name == DIMENSION:
            bracket([[0.6, 0.3, 0.1], [0.1, 0.6, 0.3]])
            continue
        learner = find(name)()
        simulate(smallest, learner)
        if learner.sums() is not None:
            play_exactly(smallest, learner, 0, Stream.from_seed(0))
        player = learner.player(smallest.P, 1, instance=smallest)
        made = player.act(0.5)
        player.observe(made, 0)
        player.update(made, 1.0)
