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
keys = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="The keys of a service: who may decide, report, or all."
)
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


@app.command("compile")
def compile_kernels(
    learners: Annotated[list[str] | None, typer.Argument(help="Learners, by name; else all of them.")] = None,
) -> None:
    """Compile now what else is compiled when it is first used."""
    from statepool.commands.ahead import run

    run(learners or [])


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
    outcome: Annotated[str | None, Option(help="Column of the outcome, in [0, 1] unless --rescale.")] = None,
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
    rescale: Annotated[bool, Option("--rescale", help="Map the range of outcomes to [0, 1].")] = False,
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
    as_json: Annotated[bool, Option("--json", help="Print the findings as JSON and nothing else.")] = False,
) -> None:
    """Should you pool? Answer from a log: map, sufficiency, delays, drift, and the learner to run."""
    from statepool.commands.audit import run

    run(
        log, out, as_json, table=table, action=action, state=state, outcome=outcome, decided=decided, observed=observed,
        resolved=resolved, propensity=propensity, group=group, ticket=ticket, holdout=holdout, context=context,
        reward=reward, rescale=rescale, window=window, missing=missing, delay=delay, horizon=horizon, level=level,
        seconds=seconds, seed=seed,
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
    reward: Annotated[
        bool | None, Option("--reward/--loss", help="Larger outcomes are better, or worse; else by their name.")
    ] = None,
    rescale: Annotated[bool, Option("--rescale", help="Map the range of outcomes to [0, 1].")] = False,
    window: Annotated[str | None, Option(help="As of `statepool audit`.")] = None,
    missing: Annotated[str | None, Option(help="As of `statepool audit`.")] = None,
    level: Annotated[float, Option(help="Level of intervals.")] = 0.95,
    export: Annotated[Path | None, Option(help="Write the rows for off-policy packages: .parquet, .csv.")] = None,
    as_json: Annotated[bool, Option("--json", help="Print the estimates as JSON and nothing else.")] = False,
) -> None:
    """What would the log have been worth under another play? Through the states, and by propensities."""
    from statepool.commands.whatif import run

    parts = {"action": action, "state": state, "outcome": outcome, "decided": decided, "resolved": resolved}
    run(
        log, policy or ["best", "uniform", "logged"], outcome or "the outcome's own unit", as_json,
        columns=parts | {"propensity": propensity}, table=table, reward=reward, rescale=rescale, window=window,
        missing=missing, level=level, export=export,
    )  # fmt: skip


@app.command()
def replay(
    store: Annotated[str, Argument(help="Where the pool is: sqlite:///pool.db or postgresql://…")],
    name: Annotated[str, Argument(help="The pool.")],
    redraw: Annotated[bool, Option("--redraw", help="Make every version and draw every action again.")] = False,
    export: Annotated[Path | None, Option(help="Write flat rows to this file: .csv, .parquet or .jsonl.")] = None,
    expect: Annotated[
        str | None, Option(help="The hash of an event that was noted before: a journal without it was cut short.")
    ] = None,
    anchors: Annotated[
        str | None, Option(help="Where heads were noted (see `statepool anchor`): each is compared.")
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print what was found as JSON and nothing else.")] = False,
) -> None:
    """Rebuild a live pool from its journal, and check every link of it."""
    from statepool.commands.replay import run

    if not run(store, name, redraw, export, expect, anchors, as_json):
        raise typer.Exit(1)


@app.command()
def backup(
    store: Annotated[str, Argument(help="What to copy, also while it is used: sqlite:///… or postgresql://…")],
    file: Annotated[Path, Argument(help="A new file; it is a store itself, as sqlite:///FILE.")],
    verify: Annotated[bool, Option("--verify", help="Replay every journal of the copy.")] = False,
    as_json: Annotated[bool, Option("--json", help="Print what it holds as JSON and nothing else.")] = False,
) -> None:
    """Copy all pools and keys of a store, as they are at one moment, to a file."""
    from statepool.commands.backup import run_backup

    if not run_backup(store, file, verify, as_json):
        raise typer.Exit(1)


@app.command()
def restore(
    file: Annotated[Path, Argument(help="What `statepool backup` wrote.")],
    store: Annotated[str, Argument(help="A new sqlite:///… file, or an empty postgresql://… database.")],
    verify: Annotated[bool, Option("--verify", help="Replay every journal before it is put there.")] = False,
    place: Annotated[
        str | None, Option(help="Where the segments of `compact` lie now; where they lay before when not given.")
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print what it holds as JSON and nothing else.")] = False,
) -> None:
    """Put a backup into an empty store: all of it, or nothing."""
    from statepool.commands.backup import run_restore

    if not run_restore(file, store, verify, place, as_json):
        raise typer.Exit(1)


@app.command()
def compact(
    store: Annotated[str, Argument(help="Also while it is used: sqlite:///… or postgresql://…")],
    pools: Annotated[list[str] | None, Argument(help="Pools; all when none is named.")] = None,
    older_than: Annotated[str, Option(help="Events older than this are sealed: 90d, 12h.")] = "90d",
    place: Annotated[
        str | None, Option(help="A folder, or an object store (s3://…); beside the file when not given.")
    ] = None,
    least: Annotated[int, Option(help="Seal nothing of a pool with fewer old events than this.")] = 10_000,
    as_json: Annotated[bool, Option("--json", help="Print what was done as JSON and nothing else.")] = False,
) -> None:
    """Move old events out of the database into sealed, compressed files, which stay a part of the journal."""
    from statepool.commands.compact import run

    run(store, pools or [], older_than, place, least, as_json)


@app.command()
def forget(
    store: Annotated[str, Argument(help="Also while it is used: sqlite:///… or postgresql://…")],
    name: Annotated[str, Argument(help="The pool.")],
    tickets: Annotated[list[str], Argument(help="The tickets to forget: all of them, or none.")],
) -> None:
    """Erase what names tickets, in the database and in segments; what was learnt stays, and the chain is provable."""
    from statepool.commands.forget import run

    run(store, name, tickets)


@app.command()
def anchor(
    store: Annotated[str, Argument(help="Whose pools: sqlite:///… or postgresql://…")],
    where: Annotated[str, Argument(help="A file, https://…, or another database: postgresql://…, sqlite:///…")],
) -> None:
    """Note the number and hash of every pool's last event elsewhere, for `statepool replay --anchors`."""
    from statepool.commands.anchor import run

    run(store, where)


@app.command()
def serve(
    store: Annotated[
        str | None, Option(help="sqlite:///statepool.db unless said; or postgresql://…; --demo: none is kept.")
    ] = None,
    host: Annotated[str, Option(help="Where to listen; beyond this machine only with keys.")] = "127.0.0.1",
    port: Annotated[int, Option(help="0: any that is free.")] = 8000,
    workers: Annotated[int, Option(help="Processes; more than one pays with PostgreSQL.")] = 1,
    map_file: Annotated[Path | None, Option("--map", help="JSON with actions, states and P: a pool.")] = None,
    name: Annotated[str, Option(help="The name of the pool of --map.")] = "home",
    demo: Annotated[bool, Option("--demo", help="Let a pool play against itself.")] = False,
    rate_limit: Annotated[
        float | None, Option(help="Decisions or other requests a second, of each key or address, in a process.")
    ] = None,
    max_body: Annotated[int, Option(help="Bytes of a request's body at most.")] = 1 << 20,
    max_connections: Annotated[
        int, Option(help="Connections at most, in a process; a quarter of them from one address.")
    ] = 1000,
    max_pending: Annotated[
        int, Option(help="Tickets of a key's own that may wait for an outcome, in a pool and a process.")
    ] = 100_000,
    proxy: Annotated[
        str | None, Option(help="Address of a proxy whose X-Forwarded-For and -Proto are believed.")
    ] = None,
    max_pools: Annotated[int, Option(help="Pools that the store may hold; no more are made over HTTP.")] = 10_000,
    anchor: Annotated[
        str | None, Option(help="Where to note the pools' heads: a file, https://…, postgresql://…, sqlite:///…")
    ] = None,
    anchor_every: Annotated[float, Option(help="Seconds between such notes.")] = 60.0,
    follow: Annotated[
        bool, Option("--follow", help="Only read: dashboard, metrics and rows beside those who decide.")
    ] = False,
    open_: Annotated[bool, Option("--open", help="Serve others without keys.")] = False,
    quiet: Annotated[bool, Option("--quiet", help="Do not log every request.")] = False,
) -> None:
    """Run pools over HTTP: the API, the dashboard at /, metrics."""
    from statepool.commands import serve as serving

    url = store or serving.DEFAULT_STORE
    options = serving.Options(
        url, host, port, workers, rate_limit, max_body, open_, quiet, max_connections, max_pending, proxy,
        anchor, anchor_every, max_pools, follow,
    )  # fmt: skip
    if demo:
        if map_file is not None:
            raise ValueError("map: the demo has a map of its own, expected --demo or --map")
        serving.serve_demo(options, store is not None)
    else:
        serving.serve(options, map_file, name)


@keys.command("add")
def add_key(
    name: Annotated[str, Argument(help="What to call it.")],
    role: Annotated[str, Option(help="read, decide, report or admin.")],
    expires: Annotated[str | None, Option(help="How long it lasts: 90d, 12h; for ever when not given.")] = None,
    pool: Annotated[list[str] | None, Option(help="A pool it is for; may be repeated. None: all.")] = None,
    store: StoreOption = "sqlite:///statepool.db",
) -> None:
    """Make a key and print it: it is told this once."""
    from statepool.commands import keys

    print(keys.add_key(store, name, role, expires, pool or []))


@keys.command("renew")
def renew_key(
    name: Annotated[str, Argument(help="Which one.")],
    expires: Annotated[str | None, Option(help="How long the new one lasts: 90d, never.")] = None,
    overlap: Annotated[str, Option(help="How long the one before goes on.")] = "1d",
    store: StoreOption = "sqlite:///statepool.db",
) -> None:
    """Make another key with the same name and rights and print it; the one before goes on for a while."""
    from statepool.commands import keys

    print(keys.renew_key(store, name, expires, overlap))


@keys.command("calls")
def list_calls(
    limit: Annotated[int, Option(help="How many, the latest.")] = 100,
    store: StoreOption = "sqlite:///statepool.db",
) -> None:
    """What administrators did: when, whose key, from where, the answer, what."""
    from statepool.commands import keys

    for line in keys.list_calls(store, limit):
        print(line)


@keys.command("list")
def list_keys(store: StoreOption = "sqlite:///statepool.db") -> None:
    """Names, roles, until when, and for which pools."""
    from statepool.commands import keys

    for line in keys.list_keys(store):
        print(line)


@keys.command("drop")
def drop_key(name: Annotated[str, Argument(help="Which one.")], store: StoreOption = "sqlite:///statepool.db") -> None:
    """Forget a key, and the one before it where it was renewed; a running service does within seconds."""
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
