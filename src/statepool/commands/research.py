"""`statepool reproduce`, `simulate` and `dimension`: run the paper's studies, compare learners, inspect a map."""

import csv
import json
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from statepool.commands import JsonOption, make_console, make_table, say_compiling, working
from statepool.frames import is_number


def reproduce(
    studies: Annotated[list[str] | None, Argument(help="Names of studies; all of the paper's by default.")] = None,
    quick: Annotated[bool, Option("--quick", help="Fewer seeds: under a minute.")] = False,
    jobs: Annotated[int, Option(help="Tasks at a time; -1 for one per core.")] = -1,
    cluster: Annotated[str | None, Option(help="Address of a Dask scheduler.")] = None,
    out: Annotated[Path, Option(help="Folder for the report, the figures and finished tasks.")] = Path("reproduction"),
    as_json: JsonOption = False,
) -> None:
    """Run the paper's studies, with every published number beside ours.

    The paper is "Pooling and Drift in Delayed Bandits".
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from statepool.comparison import threads
    from statepool.studies import STUDIES, find
    from statepool.studies.report import print_study, print_summary, records_of, write_report
    from statepool.studies.runner import check_writable, run_studies

    chosen = [find(name) for name in studies or [s.name for s in STUDIES.values() if not s.beyond]]
    most_seeds, progress = 2 if quick else None, Console(stderr=True)
    with ExitStack() as stack:
        executor = stack.enter_context(_client(cluster) if cluster else threads(jobs))
        check_writable(out / "cells")
        say_compiling()
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
    # Some studies, or fewer seeds, never replace the report of all. A file's name has limits.
    suffix = "-".join(["", *dict.fromkeys(studies or []), *(["quick"] if quick else [])])[:80]
    (out / f"records{suffix}.json").write_text(text)
    report = write_report(out, chosen, tables, records, results, quick, f"report{suffix}")
    if as_json:
        print(text)
        return
    console = make_console()
    for study in chosen:
        print_study(console, study, tables[study.name], records[study.name], quick)
    print_summary(console, every, quick)
    console.print(f"Report: {report}")


def _client(address: str) -> Any:
    """A Dask client, to be closed."""
    from distributed import Client

    try:
        return Client(address, timeout="5s")
    except (OSError, ValueError, TimeoutError) as error:
        raise ValueError(f"cluster: no scheduler answers at {address} ({type(error).__name__})") from None


def simulate(
    family: Annotated[str, Argument(help="A family of simulated problems, such as funnel.")],
    learners: Annotated[list[str] | None, Argument(help="Learners; state-exp3 and self-tuned by default.")] = None,
    delay: Annotated[int, Option(help="Rounds before an outcome is delivered.")] = 50,
    seeds: Annotated[int, Option(help="How many problems of the family; seeds 0, 1, …")] = 10,
    setting: Annotated[list[str] | None, Option("--set", help="A setting of the family: n_actions=400.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare learners on a family of simulated problems, with common random numbers."""
    from statepool import families
    from statepool.comparison import compare, standard_error

    names = learners or ["state-exp3", "self-tuned"]
    make = families.find(family)
    settings = dict(parse_setting(make, text) for text in setting or [])
    with working(f"running {len(names)} learners on {seeds} seeds of {family}"):
        grid = compare({family: lambda seed: make(seed=seed, **settings)}, names, [delay], range(seeds))
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

    from statepool.checks import check_name

    name, sign, value = text.partition("=")
    if not sign:
        raise ValueError(f"set: is {text!r}, expected name=value")
    known = inspect.signature(family).parameters
    if not any(each.kind is each.VAR_KEYWORD for each in known.values()):  # else it checks the names itself
        check_name("set", name, known.keys() - {"seed"})
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def dimension(
    file: Annotated[Path, Argument(help="The map P(state | action), one row per action: CSV, NPY or AUDIT.json.")],
    horizon: Annotated[int, Option(help="Rounds, for the regret bounds.")] = 20_000,
    delay: Annotated[int, Option(help="Delay in rounds, for the regret bounds.")] = 50,
    gap: Annotated[float, Option(help="Stop when the two bounds differ by at most this share.")] = 0.01,
    seconds: Annotated[float | None, Option(help="Stop after this many seconds, with the best bounds so far.")] = 60,
    as_json: JsonOption = False,
) -> None:
    """Bound a map's effective dimension, and the regret that follows from it."""
    from statepool.dimension import bracket
    from statepool.guarantees import theorem_1, theorem_a

    P = read_map(file)
    theorem_1(len(P), horizon, delay, 0.0)  # refuses wrong numbers before the long part
    with working("bracketing the dimension"):
        found = bracket(P, gap=gap, seconds=seconds)
    n_actions, n_states = P.shape
    seen = {
        "actions": n_actions, "states": n_states, "lower": found.lower, "upper": found.upper,
        "gap": found.upper / found.lower - 1, "reached": found.reached, "proof": str(found.proof),
        "seconds": found.seconds, "play": {int(a): float(found.play[a]) for a in found.play.nonzero()[0]},
        "horizon": horizon, "delay": delay,
    }  # fmt: skip
    for theorem in (theorem_a, theorem_1):
        pooled, alone = (theorem(n_actions, horizon, delay, (v - 1) * horizon) for v in (found.upper, float(n_actions)))
        name = theorem.__name__
        seen |= {f"{name}_pooled": pooled.value, f"{name}_rate": pooled.rate, f"{name}_alone": alone.value}
    if as_json:
        print(json.dumps(seen, indent=1))
        return
    console = make_console()
    reached = "" if found.reached else " (time ran out before the gap was reached)"
    console.print(f"[bold]Effective dimension between {found.lower:.4f} and {found.upper:.4f}[/bold]{reached}")
    console.print(
        f"{n_actions} actions over {n_states} states behave like at most {found.upper:.2f} actions; "
        f"{len(seen['play'])} of them attain the lower value. Upper bound by {found.proof}."
    )
    headings = ("", "regret at most (Theorem A)", "per round", "the paper's Theorem 1")
    table = make_table(f"Regret bounds, T={horizon}, d={delay}", headings)
    for title, key in (("pooled through the state", "pooled"), ("action by action", "alone")):
        best, printed = seen[f"theorem_a_{key}"], seen[f"theorem_1_{key}"]
        table.add_row(title, f"{best:.0f}", f"{best / horizon:.3f}", f"{printed:.0f}")
    console.print(table)


def read_map(path: Path) -> Any:
    """The map in a file, one row for each action.

    CSV may have a header and a first column of names, which are not numbers. JSON is an `AUDIT.json`.
    """
    import numpy as np

    from statepool.checks import check_map

    readers: dict[str, Any] = {".csv": _read_csv, ".json": _read_json, ".npy": np.load}
    if path.suffix.lower() not in readers:
        raise ValueError(f"{path}: ends in {path.suffix!r}, expected one of {', '.join(readers)}")
    try:
        table = np.array(readers[path.suffix.lower()](path), np.float64)
    except (OSError, EOFError, TypeError, KeyError, ValueError) as error:
        raise ValueError(f"{path}: cannot be read, expected a row of numbers for each action ({error})") from None
    return check_map(table, str(path))


def _read_csv(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        rows = [row for row in csv.reader(file) if row]
    if len(rows) > 1 and not any(map(is_number, rows[0])):
        rows = rows[1:]
    if rows and len(rows[0]) > 1 and not any(is_number(row[0]) for row in rows):
        rows = [row[1:] for row in rows]
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]) or not all(map(is_number, row)):
            raise ValueError(f"row {i} is {','.join(row)[:40]!r}, expected numbers, as many as in row 0")
    return rows


def _read_json(path: Path) -> Any:
    """The map under `P`, as in `AUDIT.json`; with contexts a row for each pair."""
    rows = json.loads(path.read_text(encoding="utf-8"))["P"]
    if not isinstance(rows, dict):
        return rows
    return [row for table in rows.values() for row in (table.values() if isinstance(table, dict) else table)]
