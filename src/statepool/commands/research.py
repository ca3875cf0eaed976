"""`statepool reproduce`, `simulate` and `dimension`: run the paper's studies, compare learners, inspect a map."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from statepool.commands.shared import JsonOption, make_table, say_compiling, working

QUICK_SEEDS = 2
LONGEST_SUFFIX = 80
"""Of a file name that lists its studies."""
MOST_PAIRED = 1_000
"""Pairs are compared among at most this many actions, those of the maximising policy first."""


def reproduce(
    studies: Annotated[list[str] | None, Argument(help="Names of studies; all of the paper's by default.")] = None,
    quick: Annotated[bool, Option("--quick", help="Fewer seeds: under a minute.")] = False,
    jobs: Annotated[int, Option(help="Tasks at a time; -1 for one per core.")] = -1,
    cluster: Annotated[str | None, Option(help="Address of a Dask scheduler.")] = None,
    out: Annotated[Path, Option(help="Folder for the report, the figures and finished tasks.")] = Path("reproduction"),
    as_json: JsonOption = False,
) -> None:
    """Run the paper's studies, with every published number beside ours."""
    import os
    from concurrent.futures import ThreadPoolExecutor

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from statepool.frames import terminal_width
    from statepool.studies import STUDIES, find
    from statepool.studies.report import print_study, print_summary, records_of, write_report
    from statepool.studies.runner import check_writable, run_studies

    if jobs == 0 or jobs < -1:
        raise ValueError(f"jobs: is {jobs}, expected a positive number, or -1 for one per core")
    chosen = [find(name) for name in studies or [s.name for s in STUDIES.values() if not s.beyond]]
    most_seeds, progress = QUICK_SEEDS if quick else None, Console(stderr=True)
    check_writable(out)
    say_compiling(progress)
    with ExitStack() as stack:
        executor = stack.enter_context(_client(cluster) if cluster else ThreadPoolExecutor(
            os.cpu_count() if jobs == -1 else jobs))  # fmt: skip
        bars = stack.enter_context(Progress(
            TextColumn("{task.description:<22}"), BarColumn(24), MofNCompleteColumn(), TimeRemainingColumn(),
            console=progress,
        ))  # fmt: skip
        counts = {study.name: sum(len(list(sweep.tasks(most_seeds))) for sweep in study.sweeps) for study in chosen}
        bar = {name: bars.add_task(name, total=count) for name, count in counts.items()}
        results = run_studies(chosen, out / "cells", executor, most_seeds, lambda study: bars.advance(bar[study]))
    tables = {study.name: study.tables(results[study.name]) for study in chosen}
    records = {study.name: records_of(study, tables[study.name]) for study in chosen}
    every = [record for found in records.values() for record in found]
    text = json.dumps([record.as_json() for record in every], indent=1)
    # Some studies, or fewer seeds, never replace the report of all.
    suffix = "-".join(["", *dict.fromkeys(studies or []), *(["quick"] if quick else [])])[:LONGEST_SUFFIX]
    (out / f"records{suffix}.json").write_text(text)
    report = write_report(out, chosen, tables, records, results, quick, f"report{suffix}")
    if as_json:
        print(text)
        return
    console = Console(width=terminal_width())
    for study in chosen:
        print_study(console, study, tables[study.name], records[study.name], quick)
    print_summary(console, every, quick)
    console.print(f"Report: {report}")


def _client(address: str) -> Any:
    """A Dask client, to be closed."""
    try:
        from distributed import Client
    except ImportError:
        raise ValueError('cluster: needs the extra, pip install "statepool[cluster]"') from None
    try:
        return Client(address, timeout="5s")
    except (OSError, ValueError, TimeoutError) as error:
        raise ValueError(f"cluster: no scheduler answers at {address} ({type(error).__name__})") from None


def simulate(
    family: Annotated[str, Argument(help="A family of instances, such as funnel.")],
    learners: Annotated[list[str] | None, Argument(help="Learners; state-exp3 and self-tuned by default.")] = None,
    delay: Annotated[int, Option(help="Rounds before an outcome is delivered.")] = 50,
    seeds: Annotated[int, Option(help="How many instances; seeds 0, 1, …")] = 10,
    stream: Annotated[int | None, Option(help="Added to an instance's seed for its runs; 80 000 by default.")] = None,
    setting: Annotated[list[str] | None, Option("--set", help="A setting of the family: n_actions=400.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare learners on a family with common random numbers."""
    from statepool import families
    from statepool import learners as known
    from statepool.checks import check_count
    from statepool.comparison import compare, standard_error
    from statepool.stream import SEED_GAP

    names = learners or ["state-exp3", "self-tuned"]
    check_count(seeds, "seeds")
    check_count(delay, "delay", lowest=0)
    gap = SEED_GAP if stream is None else check_count(stream, "stream", lowest=0)
    make = families.find(family)
    settings = dict(parse_setting(make, text) for text in setting or [])
    arms = {name: known.find(name)() for name in names}
    with working(f"running {len(names)} learners on {seeds} seeds of {family}"):
        grid = compare({family: lambda seed: make(seed=seed, **settings)}, arms, [delay], range(seeds), gap)
    if not as_json:
        print(grid)
        return
    records = []
    for name in names:
        regrets, (gain, error) = grid.of(family, name, delay), grid.gain(family, name, over=names[0], delay=delay)
        errors = (None, None) if seeds == 1 else (standard_error(regrets), error)
        record = {"learner": name, "regret": float(regrets.mean()), "se": errors[0], "gain": gain, "gain_se": errors[1]}
        records.append(record | {"family": family, "delay": delay, "seeds": seeds})
    print(json.dumps(records, indent=1))


def parse_setting(family: Any, text: str) -> tuple[str, Any]:
    """name=value, where the name is a setting of the family and the value a number or a word."""
    import inspect

    from statepool.checks import unknown_name

    name, sign, value = text.partition("=")
    parameters = inspect.signature(family).parameters.values()
    known = [each.name for each in parameters if each.name != "seed" and each.kind is not each.VAR_KEYWORD]
    passes_on = any(each.kind is each.VAR_KEYWORD for each in parameters)  # and checks the names itself
    if not sign:
        raise ValueError(f"set: is {text!r}, expected name=value with a name of {', '.join(known)}")
    if name not in known and not passes_on:
        raise ValueError(unknown_name("set", name, known))
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def dimension(
    file: Annotated[Path | None, Argument(help="A map: CSV, Parquet, NPY or AUDIT.json.")] = None,
    funnel: Annotated[int | None, Option(help="Instead of a file: the funnel family with so many actions.")] = None,
    horizon: Annotated[int, Option(help="Rounds, for the regret bounds.")] = 20_000,
    delay: Annotated[int, Option(help="Delay in rounds, for the regret bounds.")] = 50,
    gap: Annotated[float, Option(help="Relative gap of the bracket to stop at.")] = 0.01,
    seconds: Annotated[float | None, Option(help="Stop after so many seconds with the best bracket so far.")] = 60,
    normalise: Annotated[bool, Option("--normalise", help="Scale rows to sum to 1.")] = False,
    picture: Annotated[Path | None, Option(help="Draw to this PNG, SVG or PDF file.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Bracket a map's effective dimension, and the regret that follows from it."""
    from rich.console import Console

    from statepool import families
    from statepool.commands.mapfile import read_map, read_names
    from statepool.frames import terminal_width

    if (file is None) == (funnel is None):
        raise ValueError("file: expected a file, or --funnel K, and not both")
    P = read_map(file, normalise) if file else families.funnel(seed=0, n_actions=funnel or 0, horizon=1).P
    names = read_names(file) if file else None
    with working("bracketing the dimension"):
        seen = inspect_map(P, horizon, delay, gap, seconds, names if names and len(names) == len(P) else None)
    if picture:
        _draw(P, seen, picture)
    if as_json:
        print(json.dumps(seen, indent=1))
    else:
        _print_map(Console(width=terminal_width()), seen)


def inspect_map(
    P: Any, horizon: int, delay: int, gap: float, seconds: float | None, names: list[str] | None = None
) -> dict[str, Any]:
    """The bracket, Theorems A and 1 with and without pooling, and the most distinguishable pairs, as plain data."""
    import numpy as np

    from statepool.dimension import bracket
    from statepool.guarantees import interleaving_pays, theorem_1, theorem_a

    found = bracket(P, gap=gap, seconds=seconds)
    n_actions, n_states = P.shape
    seen = {
        "actions": n_actions, "states": n_states, "lower": found.lower, "upper": found.upper,
        "gap": found.upper / found.lower - 1, "reached": found.reached, "proof": str(found.proof),
        "seconds": found.seconds, "play": {int(a): float(found.play[a]) for a in np.flatnonzero(found.play)},
        "horizon": horizon, "delay": delay, "interleaving_pays": interleaving_pays(found.upper, n_actions, delay),
        "pairs": most_distinguishable(P, found),
    }  # fmt: skip
    for theorem in (theorem_a, theorem_1):
        pooled, alone = (theorem(n_actions, horizon, delay, (v - 1) * horizon) for v in (found.upper, float(n_actions)))
        name = theorem.__name__
        seen |= {f"{name}_pooled": pooled.value, f"{name}_rate": pooled.rate, f"{name}_alone": alone.value}
    if names is not None:
        for pair in seen["pairs"]:
            pair |= {"first_name": names[pair["first"]], "second_name": names[pair["second"]]}
    return seen


def most_distinguishable(P: Any, found: Any, count: int = 5) -> list[dict[str, Any]]:
    """The pairs of actions that differ most: v of an even mixture, between 1 (the same) and 2 (never alike)."""
    import numpy as np

    order = np.argsort(-found.play, kind="stable")[:MOST_PAIRED]
    rows = P[order]
    best: list[Any] = []
    for i in range(len(rows) - 1):
        sums = rows[i] + rows[i + 1 :]
        squares = rows[i] ** 2 + rows[i + 1 :] ** 2
        v = np.divide(squares, sums, out=np.zeros_like(sums), where=sums > 0).sum(axis=1)
        top = np.argsort(-v, kind="stable")[:count]
        best += [(-float(v[j]), *sorted((int(order[i]), int(order[i + 1 + j])))) for j in top]
    return [{"first": a, "second": b, "dimension": -v} for v, a, b in sorted(best)[:count]]


def _print_map(console: Any, seen: dict[str, Any]) -> None:
    reached = "" if seen["reached"] else " (time ran out before the gap was reached)"
    console.print(f"[bold]Effective dimension between {seen['lower']:.4f} and {seen['upper']:.4f}[/bold]{reached}")
    console.print(
        f"{seen['actions']} actions over {seen['states']} states behave like at most {seen['upper']:.2f} actions; "
        f"{len(seen['play'])} of them attain the lower value. Upper bound by {seen['proof']}."
    )
    headings = ("", "regret at most (Theorem A)", "per round", "the paper's Theorem 1")
    table = make_table(f"Regret bounds, T={seen['horizon']}, d={seen['delay']}", headings)
    for name, key in (("pooled through the state", "pooled"), ("action by action", "alone")):
        best, printed = seen[f"theorem_a_{key}"], seen[f"theorem_1_{key}"]
        table.add_row(name, f"{best:.0f}", f"{best / seen['horizon']:.3f}", f"{printed:.0f}")
    console.print(table)
    console.print(f"Interleaving d+1 copies {'pays' if seen['interleaving_pays'] else 'does not pay'}.")
    if seen["pairs"]:
        pairs = ", ".join(
            f"{p.get('first_name', p['first'])} and {p.get('second_name', p['second'])} ({p['dimension']:.2f})"
            for p in seen["pairs"]
        )
        console.print(f"Most distinguishable pairs of actions (2 is never alike, 1 the same): {pairs}.")


def _draw(P: Any, seen: dict[str, Any], path: Path) -> None:
    """v on the way from the uniform policy to the maximising one, and the rows of P ordered by similarity."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from statepool.dimension import effective

    play = np.zeros(P.shape[0])
    play[list(seen["play"])] = list(seen["play"].values())
    shares = np.linspace(0, 1, 101)
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    left.plot(shares, [effective(P, (1 - share) / P.shape[0] + share * play) for share in shares], color="#0072b2")
    left.axhspan(seen["lower"], seen["upper"], color="#d55e00", alpha=0.3, linewidth=0, label="proved bracket")
    left.set(xlabel="share of the maximising policy (0: uniform)", ylabel="effective dimension v")
    left.legend(frameon=False)
    # Along the direction in which rows differ most, neighbours are alike.
    centred = P - P.mean(axis=0)
    direction = np.linalg.svd(centred[:MOST_PAIRED], full_matrices=False)[2][0]
    ordered = P[np.argsort(centred @ direction, kind="stable")]
    image = right.imshow(ordered, aspect="auto", cmap="cividis", vmin=0, interpolation="nearest")
    right.set(xlabel="state", ylabel="actions, by similarity", title="P")
    figure.colorbar(image, ax=right)
    try:
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    except (OSError, ValueError) as error:
        raise ValueError(f"picture: cannot write {path} ({error})") from None
