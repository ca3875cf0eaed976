"""Time and cells needed to close the bracket: `python benchmarks/dimension.py [name …]`, one core.

The first call of a process loads (or, once, compiles) the kernels; it is made before the clock starts.
"""

import resource
import sys

import numpy as np

import statepool as sp
from statepool.dimension import bracket, estimate


def funnel(seed, n_actions):
    return sp.families.funnel(seed, n_actions, horizon=1).P


def overlapping(overlap, seed=0):
    return sp.families.overlap(seed, horizon=1, overlap=overlap).P


def report(name, P, gap, seconds, target):
    found = bracket(P, gap, seconds)
    width = found.upper / found.lower - 1
    print(
        f"| {name} | {found.lower:.4f} | {found.upper:.4f} | {100 * width:.2f} % | {found.seconds:.1f} s "
        f"| {found.nodes} | {target} | {found.proof} |",
        flush=True,
    )


def catalogue():
    for K in (25, 50, 100, 200, 400, 800):
        P = funnel(0, K)
        guess = estimate(P, np.random.default_rng(0), 2000)
        report(f"funnel K={K} (random search: {guess:.2f})", P, 0.01, 90, "-")


def huge():
    P = np.random.default_rng(0).dirichlet(np.full(50, 0.3), size=100_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report("Dirichlet(.3) K=100000 S=50", P, 0.01, 30, "30 s, < 3 x map")
    extra = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    print(f"peak memory with the map: {1 + extra / P.nbytes:.2f} x the map", flush=True)


BENCHES = {
    "funnel200": lambda: report("funnel K=200 S=6", funnel(0, 200), 0.01, 30, "1 % in 30 s"),
    "funnel800": lambda: report("funnel K=800 S=6", funnel(0, 800), 0.02, 90, "2 % in 90 s"),
    "overlap0": lambda: report("overlap 0, K=40 S=8", overlapping(0.0), 0.05, 60, "5 % in 60 s"),
    "overlap25": lambda: report("overlap .25, K=40 S=8", overlapping(0.25), 0.05, 60, "5 % in 60 s"),
    "overlap50": lambda: report("overlap .5, K=40 S=8", overlapping(0.5), 0.05, 60, "5 % in 60 s"),
    "others": lambda: [report(f"funnel K=200, seed {seed}", funnel(seed, 200), 0.01, 30, "-") for seed in (1, 2, 3)],
    "huge": huge,
    "catalogue": catalogue,
}

if __name__ == "__main__":
    bracket(funnel(0, 120), 0.02)
    print("| map | lower | upper | gap | time | cells | target | proof |\n|---|---|---|---|---|---|---|---|")
    for name in sys.argv[1:] or BENCHES:
        BENCHES[name]()
