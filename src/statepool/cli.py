"""The command `statepool`: thin, no logic."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from statepool import __version__
from statepool.extras import how_to_install

# Help in plain text: drawing it with rich takes longer than all the rest of the start.
app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
    context_settings={"max_content_width": 100},
)  # fmt: skip
keys = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The API keys of a service.")
app.add_typer(keys, name="keys")

StoreOption = Annotated[str, Option("--store", help="sqlite:///file.db or postgresql://…")]


def _say_version(asked: bool) -> None:
    if asked:
        print(f"statepool {__version__}")
        raise typer.Exit


@app.callback()
def _statepool(
    version: Annotated[
        bool, Option("--version", is_eager=True, callback=_say_version, help="Say which version this is.")
    ] = False,
) -> None:
    """Learn from late outcomes by pooling each one through the state that was seen at once."""


@app.command()
def reproduce(
    studies: Annotated[
        list[str] | None, Argument(help="Studies, by name (docs/studies.md lists them); else the paper's.")
    ] = None,
    quick: Annotated[bool, Option("--quick", help="Fewer seeds: under a minute.")] = False,
    jobs: Annotated[int, Option(help="Tasks at a time; -1 for one a core.")] = -1,
    cluster: Annotated[str | None, Option(help="Address of a Dask scheduler.")] = None,
    out: Annotated[Path, Option(help="Folder for the report, the figures and finished cells.")] = Path("reproduction"),
    as_json: Annotated[bool, Option("--json", help="Print the numbers as JSON and nothing else.")] = False,
) -> None:
    """Run the paper's studies: every published number beside ours."""
    from statepool.commands.reproduce import run

    run(studies or [], quick, jobs, cluster, out, as_json)


@app.command()
def simulate(
    family: Annotated[str, Argument(help="A family of instances, such as funnel.")],
    learners: Annotated[
        list[str] | None, Argument(help="Learners to compare; state-exp3 and self-tuned when none is named.")
    ] = None,
    delay: Annotated[int, Option(help="Rounds before an outcome is delivered.")] = 50,
    seeds: Annotated[int, Option(help="How many instances; seeds 0, 1, …")] = 10,
    stream: Annotated[
        int | None, Option(help="A run's seed is the instance's seed plus this; 80 000 by default.")
    ] = None,
    setting: Annotated[list[str] | None, Option("--set", help="A setting of the family: n_actions=400.")] = None,
    as_json: Annotated[bool, Option("--json", help="Print the numbers as JSON and nothing else.")] = False,
) -> None:
    """Compare learners on a family, paired on the same luck: regret, and what each saves over the first."""
    from statepool.commands.simulate import run

    run(family, learners or ["state-exp3", "self-tuned"], delay, seeds, stream, setting or [], as_json)


@app.command()
def dimension(
    file: Annotated[Path | None, Argument(help="A map: CSV, Parquet, NPY or AUDIT.json.")] = None,
    funnel: Annotated[int | None, Option(help="Instead of a file: the funnel family with so many actions.")] = None,
    horizon: Annotated[int, Option(help="Rounds, for what Theorem 1 promises.")] = 20_000,
    delay: Annotated[int, Option(help="Delay, for what Theorem 1 promises.")] = 50,
    gap: Annotated[float, Option(help="Relative gap of the bracket to stop at.")] = 0.01,
    seconds: Annotated[float | None, Option(help="Stop after so many seconds with the best bracket so far.")] = 60,
    normalise: Annotated[bool, Option("--normalise", help="Scale rows to sum to 1.")] = False,
    picture: Annotated[Path | None, Option(help="Draw to this PNG, SVG or PDF file.")] = None,
    as_json: Annotated[bool, Option("--json", help="Print the numbers as JSON and nothing else.")] = False,
) -> None:
    """Bracket a map's effective dimension, and say what it promises."""
    from statepool.commands.dimension import run

    run(file, funnel, horizon, delay, gap, seconds, normalise, picture, as_json)


@app.command()
def audit(
    log: Annotated[str, Argument(help="A file or folder (CSV, Parquet, JSON lines), or postgresql://… and --table.")],
    table: Annotated[str | None, Option(help="Of a database: its table, or a query in brackets.")] = None,
    action: Annotated[str | None, Option(help="Column of the action; found by name when not given.")] = None,
    state: Annotated[str | None, Option(help="Column of the state.")] = None,
    outcome: Annotated[str | None, Option(help="Column of the outcome.")] = None,
    decided: Annotated[str | None, Option(help="Column of the decision time.")] = None,
    observed: Annotated[str | None, Option(help="Column of the time the state was seen.")] = None,
    resolved: Annotated[str | None, Option(help="Column of the time the outcome came.")] = None,
    propensity: Annotated[str | None, Option(help="Column of the action's probability when chosen.")] = None,
    group: Annotated[str | None, Option(help="Column of a group that actions of the log fall into.")] = None,
    ticket: Annotated[str | None, Option(help="Column that names a decision; repeated ones are dropped.")] = None,
    holdout: Annotated[str | None, Option(help="Column that marks rows of a holdout.")] = None,
    context: Annotated[
        list[str] | None,
        Option(help="Column that says who is asking; may be repeated: does it pay to personalise?"),
    ] = None,
    reward: Annotated[
        bool | None, Option("--reward/--loss", help="Larger outcomes are better, or worse; else by their name.")
    ] = None,
    rescale: Annotated[bool, Option("--rescale", help="Not needed any more: outcomes of any range are read.")] = False,
    window: Annotated[
        str | None,
        Option(help="Outcomes are final so long after a decision: 30d, 12h (bare if times are numbers); 0: no window."),
    ] = None,
    missing: Annotated[str | None, Option(help="What a blank outcome means: 0, 1, a number, or drop.")] = None,
    delay: Annotated[int | None, Option(help="Delay in decisions, if the log has no outcome times.")] = None,
    horizon: Annotated[int | None, Option(help="Decisions to simulate; by default as time allows.")] = None,
    level: Annotated[float, Option(help="Level of intervals.")] = 0.95,
    seconds: Annotated[float, Option(help="Time allowed for the dimension's bracket.")] = 5.0,
    seed: Annotated[int, Option(help="Seed of everything drawn.")] = 0,
    out: Annotated[Path | None, Option(help="Folder or .html file for the report and AUDIT.json.")] = None,
    details: Annotated[bool, Option("--details", help="Print everything that the answer rests on.")] = False,
    as_json: Annotated[bool, Option("--json", help="Print the findings as JSON and nothing else.")] = False,
) -> None:
    """Should you pool? The answer from a log, and the pool to start with."""
    from statepool.commands.audit import run

    run(
        log, out, as_json, details, table=table, action=action, state=state, outcome=outcome, decided=decided,
        observed=observed, resolved=resolved, propensity=propensity, group=group, ticket=ticket, holdout=holdout,
        context=context, reward=reward, rescale=rescale, window=window, missing=missing, delay=delay, horizon=horizon,
        level=level, seconds=seconds, seed=seed,
    )  # fmt: skip


@app.command()
def whatif(
    log: Annotated[str, Argument(help="A log as of `statepool audit`.")],
    policy: Annotated[
        list[str] | None,
        Option(help="An action, best, uniform, logged, or a pool such as sqlite:///pool.db#home; may be repeated."),
    ] = None,
    table: Annotated[str | None, Option(help="Of a database: its table, or a query in brackets.")] = None,
    action: Annotated[str | None, Option(help="Column of the action; found by name when not given.")] = None,
    state: Annotated[str | None, Option(help="Column of the state.")] = None,
    outcome: Annotated[str | None, Option(help="Column of the outcome.")] = None,
    decided: Annotated[str | None, Option(help="Column of the decision time.")] = None,
    resolved: Annotated[str | None, Option(help="Column of the time the outcome came.")] = None,
    propensity: Annotated[str | None, Option(help="Column of the action's probability when chosen.")] = None,
    ticket: Annotated[str | None, Option(help="Column that names a decision; repeated ones are dropped.")] = None,
    holdout: Annotated[str | None, Option(help="Column that marks rows of a holdout.")] = None,
    context: Annotated[list[str] | None, Option(help="Column that says who is asking; may be repeated.")] = None,
    reward: Annotated[
        bool | None, Option("--reward/--loss", help="Larger outcomes are better, or worse; else by their name.")
    ] = None,
    rescale: Annotated[bool, Option("--rescale", help="Not needed any more: outcomes of any range are read.")] = False,
    window: Annotated[str | None, Option(help="As of `statepool audit`.")] = None,
    missing: Annotated[str | None, Option(help="As of `statepool audit`.")] = None,
    level: Annotated[float, Option(help="Level of intervals.")] = 0.95,
    export: Annotated[Path | None, Option(help="Write the rows for off-policy packages: .parquet, .csv.")] = None,
    as_json: Annotated[bool, Option("--json", help="Print the estimates as JSON and nothing else.")] = False,
) -> None:
    """What would the log have been worth under another policy? Through the states, and by propensities."""
    from statepool.commands.whatif import run

    parts = {"action": action, "state": state, "outcome": outcome, "decided": decided, "resolved": resolved}
    run(
        log, policy or ["best", "uniform", "logged"], outcome or "the outcome's own unit", as_json,
        columns=parts | {"propensity": propensity, "ticket": ticket, "holdout": holdout, "context": context},
        table=table, reward=reward, rescale=rescale, window=window, missing=missing, level=level, export=export,
    )  # fmt: skip


@app.command()
def replay(
    store: Annotated[str, Argument(help="The database of the pool: sqlite:///pool.db or postgresql://…")],
    name: Annotated[str, Argument(help="The pool.")],
    redraw: Annotated[bool, Option("--redraw", help="Also draw every action again.")] = False,
    export: Annotated[Path | None, Option(help="Write the rows to this file: .csv, .parquet or .jsonl.")] = None,
    as_json: Annotated[bool, Option("--json", help="Print what was found as JSON and nothing else.")] = False,
) -> None:
    """Compute every policy version again from the stored rows, and compare."""
    from statepool.commands.replay import run

    if not run(store, name, redraw, export, as_json):
        raise typer.Exit(1)


@app.command()
def export(
    store: Annotated[str, Argument(help="The database of the pool: sqlite:///pool.db or postgresql://…")],
    name: Annotated[str, Argument(help="The pool.")],
    file: Annotated[Path, Argument(help="A new file: .csv, .parquet or .jsonl.")],
    after: Annotated[int | None, Option(help="A cursor: only decisions that changed since.")] = None,
    as_json: Annotated[bool, Option("--json", help="Print the number of rows and the cursor as JSON.")] = False,
) -> None:
    """Write a pool's decisions to a file, one row each."""
    from statepool.commands.export import run

    run(store, name, file, after, as_json)


@app.command()
def backup(
    store: Annotated[str, Argument(help="What to copy, also while it is used: sqlite:///…")],
    file: Annotated[Path, Argument(help="A new file; it is a database itself, as sqlite:///FILE.")],
    verify: Annotated[bool, Option("--verify", help="Replay every pool of the copy.")] = False,
    as_json: Annotated[bool, Option("--json", help="Print what it holds as JSON and nothing else.")] = False,
) -> None:
    """Copy a SQLite database to a file, as it is at one moment (for PostgreSQL use pg_dump)."""
    from statepool.commands.backup import run

    if not run(store, file, verify, as_json):
        raise typer.Exit(1)


@app.command()
def archive(
    store: Annotated[str, Argument(help="Also while it is used: sqlite:///… or postgresql://…")],
    name: Annotated[str, Argument(help="The pool.")],
    file: Annotated[Path, Argument(help="A new Parquet file.")],
    older_than: Annotated[str, Option(help="Settled decisions older than this are moved: 90d, 12h.")] = "90d",
    as_json: Annotated[bool, Option("--json", help="Print what was done as JSON and nothing else.")] = False,
) -> None:
    """Move old settled decisions from the database to a Parquet file."""
    from statepool.commands.archive import run

    run(store, name, file, older_than, as_json)


@app.command()
def erase(
    store: Annotated[str, Argument(help="Also while it is used: sqlite:///… or postgresql://…")],
    name: Annotated[str, Argument(help="The pool.")],
    tickets: Annotated[list[str], Argument(help="The tickets to erase: all of them, or none.")],
) -> None:
    """Erase the ticket, context and candidates of decisions; the numbers that were learnt stay."""
    from statepool.commands.erase import run

    run(store, name, tickets)


@app.command()
def serve(
    store: Annotated[
        str | None, Option(help="sqlite:///statepool.db by default, or postgresql://…; --demo: a temporary one.")
    ] = None,
    host: Annotated[str, Option(help="Where to listen; beyond this machine only with keys.")] = "127.0.0.1",
    port: Annotated[int, Option(help="0: any free port.")] = 8000,
    workers: Annotated[int, Option(help="Processes; more than one pays with PostgreSQL.")] = 1,
    map_file: Annotated[Path | None, Option("--map", help="JSON with actions, states and P: a pool.")] = None,
    name: Annotated[str, Option(help="The name of the pool of --map.")] = "home",
    demo: Annotated[bool, Option("--demo", help="Run a pool against a simulated shop.")] = False,
    follow: Annotated[bool, Option("--follow", help="Only read: dashboard, metrics and rows.")] = False,
    open_: Annotated[bool, Option("--open", help="Serve others without keys.")] = False,
    quiet: Annotated[bool, Option("--quiet", help="Do not log every request.")] = False,
) -> None:
    """Serve pools over HTTP: the API, the dashboard at /, metrics."""
    from statepool.commands import serve as serving

    options = serving.Options(store or serving.DEFAULT_STORE, host, port, workers, open_, quiet, follow)
    if demo:
        if map_file is not None:
            raise ValueError("map: the demo has a map of its own, expected --demo or --map")
        serving.serve_demo(options, store is not None)
    else:
        serving.serve(options, map_file, name)


@keys.command("add")
def add_key(
    name: Annotated[str, Argument(help="Its name.")],
    role: Annotated[str, Option(help="read, decide, report, write (decide and report) or admin.")],
    expires: Annotated[str | None, Option(help="How long it is valid: 90d, 12h; for ever by default.")] = None,
    pool: Annotated[list[str] | None, Option(help="A pool it is for; may be repeated. None: all.")] = None,
    store: StoreOption = "sqlite:///statepool.db",
) -> None:
    """Create a key. It is shown only once."""
    from statepool.commands import keys

    print(keys.add_key(store, name, role, expires, pool or []))


@keys.command("renew")
def renew_key(
    name: Annotated[str, Argument(help="Which one.")],
    expires: Annotated[str | None, Option(help="How long the new key is valid: 90d, never.")] = None,
    overlap: Annotated[str, Option(help="How long the old key still works.")] = "1d",
    store: StoreOption = "sqlite:///statepool.db",
) -> None:
    """Create a successor of a key with the same name and rights; the old one works for a while longer."""
    from statepool.commands import keys

    print(keys.renew_key(store, name, expires, overlap))


@keys.command("list")
def list_keys(store: StoreOption = "sqlite:///statepool.db") -> None:
    """List names, roles, expiry and pools."""
    from statepool.commands import keys

    for line in keys.list_keys(store):
        print(line)


@keys.command("drop")
def drop_key(name: Annotated[str, Argument(help="Which one.")], store: StoreOption = "sqlite:///statepool.db") -> None:
    """Delete a key, and the one it replaced; a running service notices within seconds."""
    from statepool.commands import keys

    keys.drop_key(store, name)


def main() -> None:
    """Bad input is one sentence on standard error and exit code 2; never a traceback."""
    try:
        app()
    except ValueError as error:
        print(f"statepool: {error}", file=sys.stderr)
        sys.exit(2)
    except ImportError as error:
        sentence = how_to_install(error)
        if sentence is None:
            raise
        print(f"statepool: {sentence}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("statepool: interrupted; what was finished is kept", file=sys.stderr)
        sys.exit(130)
