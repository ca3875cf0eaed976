"""`statepool dimension`: what a map's dimension is, what it promises, and a picture of it."""

import json
from collections.abc import Sequence
from math import log
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from statepool import families
from statepool.checks import Floats, Ints
from statepool.commands.mapfile import read_map, read_names
from statepool.commands.progress import working
from statepool.commands.tables import make_table
from statepool.dimension import Bracket, bracket, effective
from statepool.frames import terminal_width
from statepool.guarantees import interleaving_pays, theorem_1, theorem_a

MOST_PAIRED = 1_000
"""Pairs are compared among this many actions at most: those of the play first."""


def run(
    file: Path | None, funnel: int | None, horizon: int, delay: int, gap: float, seconds: float | None, normalise: bool,
    picture: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Inspect the map of a file, or of the funnel with so many actions; draw it if asked, and print."""
    if (file is None) == (funnel is None):
        raise ValueError("file: expected a file, or --funnel K, and not both")
    P = read_map(file, normalise) if file else families.funnel(seed=0, n_actions=funnel or 0, horizon=1).P
    names = read_names(file) if file else None
    with working("bracketing the dimension"):
        seen = inspect_map(P, horizon, delay, gap, seconds, names if names and len(names) == len(P) else None)
    if picture:
        draw_inspection(P, seen, picture)
    if as_json:
        print(json.dumps(seen, indent=1))
    else:
        print_inspection(Console(width=terminal_width()), seen)


def inspect_map(
    P: Floats, horizon: int, delay: int, gap: float, seconds: float | None, names: Sequence[str] | None = None
) -> dict[str, Any]:
    """The bracket, Theorems A and 1 with and without pooling, and the most distinguishable pairs, as plain data."""
    found = bracket(P, gap=gap, seconds=seconds)
    n_actions, n_states = P.shape
    budgets = {"pooled": (found.upper - 1) * horizon, "alone": (n_actions - 1.0) * horizon}
    a = {name: theorem_a(n_actions, horizon, delay, budget) for name, budget in budgets.items()}
    one = {name: theorem_1(n_actions, horizon, delay, budget) for name, budget in budgets.items()}
    return {
        "actions": n_actions, "states": n_states, "lower": found.lower, "upper": found.upper,
        "gap": found.upper / found.lower - 1, "reached": found.reached, "proof": str(found.proof),
        "seconds": found.seconds, "play": {int(a): float(found.play[a]) for a in np.flatnonzero(found.play)},
        "horizon": horizon, "delay": delay, "theorem_a_pooled": a["pooled"].value, "theorem_a_rate": a["pooled"].rate,
        "theorem_a_alone": a["alone"].value, "theorem_1_pooled": one["pooled"].value,
        "theorem_1_rate": one["pooled"].rate, "theorem_1_alone": one["alone"].value,
        "interleaving_pays": interleaving_pays(found.upper, n_actions, delay),
        "pairs": [_named(pair, names) for pair in most_distinguishable(P, found)],
    }  # fmt: skip


def _named(pair: dict[str, float], names: Sequence[str] | None) -> dict[str, Any]:
    """The pair with the names of its rows, where there is one for each."""
    if names is None:
        return dict(pair)
    return pair | {f"{place}_name": names[int(pair[place])] for place in ("first", "second")}


def most_distinguishable(P: Floats, found: Bracket, count: int = 5) -> list[dict[str, float]]:
    """The pairs of actions that an even play of the two tells apart best: v between 1 (alike) and 2 (never alike)."""
    order = np.argsort(-found.play, kind="stable")[:MOST_PAIRED]
    rows = P[order]
    best: list[Any] = []
    for i in range(len(rows) - 1):
        sums = rows[i] + rows[i + 1 :]
        squares = rows[i] ** 2 + rows[i + 1 :] ** 2
        v = np.divide(squares, sums, out=np.zeros_like(sums), where=sums > 0).sum(axis=1)
        top = np.argsort(-v, kind="stable")[:count]
        best += [(float(v[j]), *sorted((int(order[i]), int(order[i + 1 + j])))) for j in top]
    best.sort(key=lambda pair: (-pair[0], pair[1], pair[2]))
    return [{"first": a, "second": b, "dimension": v} for v, a, b in best[:count]]


def print_inspection(console: Console, seen: dict[str, Any]) -> None:
    """For people."""
    reached = "" if seen["reached"] else " (time ran out before the gap was reached)"
    console.print(f"[bold]Effective dimension between {seen['lower']:.4f} and {seen['upper']:.4f}[/bold]{reached}")
    console.print(
        f"{seen['actions']} actions over {seen['states']} states behave like at most {seen['upper']:.2f} actions; "
        f"{len(seen['play'])} of them attain the lower value. Upper bound by {seen['proof']}."
    )
    headings = ("", "regret at most (Theorem A)", "a round", "the paper's Theorem 1")
    table = make_table(f"What is promised, T={seen['horizon']}, d={seen['delay']}", headings)
    for name, key in (("pooled through the state", "pooled"), ("action by action", "alone")):
        best, printed = seen[f"theorem_a_{key}"], seen[f"theorem_1_{key}"]
        table.add_row(name, f"{best:.0f}", f"{best / seen['horizon']:.3f}", f"{printed:.0f}")
    console.print(table)
    verdict = "pays" if seen["interleaving_pays"] else "does not pay"
    scale = seen["upper"] * (seen["delay"] + 1) * log(seen["actions"])
    limit = seen["actions"] + seen["delay"]
    console.print(f"Interleaving d+1 copies {verdict}: vbar (d+1) log K = {scale:.0f} against K + d = {limit}.")
    if seen["pairs"]:
        pairs = ", ".join(
            f"{p.get('first_name', p['first'])} and {p.get('second_name', p['second'])} ({p['dimension']:.2f})"
            for p in seen["pairs"]
        )
        console.print(f"Most distinguishable pairs of actions (2 is never alike, 1 the same): {pairs}.")


def draw_inspection(P: Floats, seen: dict[str, Any], path: Path) -> None:
    """v on the way from uniform play to the maximiser, and the rows of P ordered by similarity."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    play = np.zeros(P.shape[0])
    play[list(seen["play"])] = list(seen["play"].values())
    shares = np.linspace(0, 1, 101)
    along = [effective(P, (1 - share) / P.shape[0] + share * play) for share in shares]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.plot(shares, along, color="#0072b2")
    left.axhspan(seen["lower"], seen["upper"], color="#d55e00", alpha=0.3, linewidth=0)
    left.annotate("proved bracket", (0.0, seen["upper"]), xytext=(0, 4), textcoords="offset points", color="#a04000")
    left.set(xlabel="share of the maximising play (0: uniform)", ylabel="effective dimension v")
    left.set_ylim(1, 1 + 1.12 * (seen["upper"] - 1) + 0.02)
    image = right.imshow(P[similarity_order(P)], aspect="auto", cmap="cividis", vmin=0, interpolation="nearest")
    right.set(xlabel="state", ylabel="actions, by similarity", title="P")
    figure.colorbar(image, ax=right)
    try:
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    except (OSError, ValueError) as error:
        raise ValueError(f"picture: cannot write {path} ({error})") from None
    finally:
        plt.close(figure)


def similarity_order(P: Floats) -> Ints:
    """Rows ordered so that neighbours are alike: along the direction in which they differ most."""
    centred = P - P.mean(axis=0)
    _, _, directions = np.linalg.svd(centred[:MOST_PAIRED], full_matrices=False)
    return np.argsort(centred @ directions[0], kind="stable")
