"""`statepool serve`: open the database, print the address, run until it is stopped."""

import gc
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from typer import Option

from statepool.commands import DEFAULT_STORE, opened, say_compiling

UVICORN: dict[str, Any] = {
    "ws": "none", "lifespan": "on", "access_log": False, "log_level": "error", "server_header": False,
    "date_header": False, "timeout_keep_alive": 75, "timeout_graceful_shutdown": 30, "timeout_worker_healthcheck": 60,
}  # fmt: skip


def serve(
    store: Annotated[
        str | None, Option(help=f"The database: {DEFAULT_STORE} by default, with --demo a temporary one.")
    ] = None,
    host: Annotated[str, Option(help="Address to listen on; other machines need keys or --open.")] = "127.0.0.1",
    port: Annotated[int, Option(help="Port to listen on; 0: any free one.")] = 8000,
    workers: Annotated[int, Option(help="Processes; more than one pays only with PostgreSQL.")] = 1,
    map_file: Annotated[Path | None, Option("--map", help="Create a pool from this AUDIT.json, once.")] = None,
    name: Annotated[str, Option(help="The name of the pool that --map creates.")] = "home",
    demo: Annotated[bool, Option("--demo", help="Run a pool against a simulated shop.")] = False,
    follow: Annotated[bool, Option("--follow", help="Read only: dashboard, metrics and rows.")] = False,
    open_: Annotated[bool, Option("--open", help="Let other machines in without keys.")] = False,
    quiet: Annotated[bool, Option("--quiet", help="Do not log every request.")] = False,
) -> None:
    """Serve pools over HTTP: the API, the dashboard at /, metrics."""
    from statepool.checks import check_count, check_number
    from statepool.live import Pool
    from statepool.live.service.keys import list_keys

    check_number(port, "port", 0, 65_535)
    check_count(workers, "workers")
    if demo + follow + (map_file is not None) > 1:
        raise ValueError("serve: expected at most one of --demo, --map and --follow")
    if demo and workers > 1:
        raise ValueError(f"demo: runs in one process, and workers is {workers}")
    say_compiling()
    with ExitStack() as stack:
        if demo and store is None:
            folder = TemporaryDirectory(prefix="statepool-", ignore_cleanup_errors=True)
            store = f"sqlite:///{stack.enter_context(folder)}/demo.db"
        url, exposure = store or DEFAULT_STORE, _exposure(host, open_)
        given = None if map_file is None else read_map(map_file)
        listening = stack.enter_context(_bind(host, port))
        keyed = False
        with suppress(ValueError), opened(url) as database:  # a new database has no keys
            keyed = bool(list_keys(database))
        if exposure == "none" and not keyed:
            raise ValueError(
                f"host: {host} can be reached by others and the store has no keys, "
                "expected `statepool keys add` first, or --open"
            )
        with opened(url, follow, create=True) as database:
            known = given is not None and name in database.pool_names()
            if given is not None and not known:
                Pool.open(database, name, **given).close()
        shown, bound = listening.getsockname()[:2]
        address = f"http://{f'[{shown}]' if ':' in shown else shown}:{bound}/"
        print(f"statepool: {address}, stop with Ctrl-C", file=sys.stderr, flush=True)
        if known:
            print(f"statepool: pool {name!r} goes on as it is, {map_file} was not read", file=sys.stderr, flush=True)
        _run(partial(make_service, url, exposure, keyed, follow, quiet), listening, workers, demo)


def make_service(store: str, exposure: Any, keyed: bool = False, follow: bool = False, quiet: bool = False) -> Any:
    """The application of one process. `keyed`: the store had keys at the start, so every process requires one."""
    from multiprocessing import current_process

    from statepool.live.service import Service
    from statepool.live.service.monitoring import log_as_json

    log_as_json(sys.stderr)
    number = current_process().name.rpartition("-")[2]  # of SpawnProcess-1, -2, …; or MainProcess
    service = Service(
        opened(store, follow, create=True),
        exposure=exposure,
        keyed=keyed,
        follow=follow,
        worker=number if number.isdigit() else "1",
        log=None if quiet else sys.stderr,
    )
    gc.collect()
    gc.freeze()  # what is loaded by now would be scanned again and again
    return service


def _exposure(host: str, open_: bool) -> Any:
    """Who is answered without a key: "anyone", "localhost" or "none"."""
    from ipaddress import ip_address

    with suppress(ValueError):  # a name
        if not open_ and (host == "localhost" or ip_address(host).is_loopback):
            return "localhost"
    return "anyone" if open_ else "none"


def read_map(file: Path) -> dict[str, Any]:
    """Keyword arguments of `Pool.open` for the pool that an AUDIT.json describes."""
    import msgspec

    from statepool.arguments import pool_arguments

    try:
        return pool_arguments(msgspec.json.decode(file.read_bytes(), type=dict[str, Any]))
    except (OSError, msgspec.DecodeError) as error:
        raise ValueError(f"{file}: cannot be read, expected an AUDIT.json ({error})") from None


def _bind(host: str, port: int) -> Any:
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise ValueError(f"cannot listen at {host}, port {port} ({error})") from None


def _run(service: Callable[[], Any], listening: Any, workers: int, demo: bool) -> None:
    import signal

    import uvicorn
    from uvicorn.supervisors import Multiprocess

    # uvicorn sends itself the signal again after a graceful stop, which would end this process as a failure.
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: None)
    if workers > 1:
        config = uvicorn.Config(service, factory=True, workers=workers, **UVICORN)
        Multiprocess(config, sockets=[listening]).run()
        return
    made = service()
    if demo:
        from statepool.live.demo import NAME, Demo, create

        create(made.pools.database).close()
        made.demo = Demo(made.pools.get(NAME))
    uvicorn.Server(uvicorn.Config(made, **UVICORN)).run([listening])
