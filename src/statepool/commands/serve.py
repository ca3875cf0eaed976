"""`statepool serve`: open the database, print the address, run until it is stopped."""

import gc
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from statepool.commands import DEFAULT_STORE, opened, say_compiling

UVICORN: dict[str, Any] = {
    "ws": "none", "lifespan": "on", "access_log": False, "log_level": "error", "server_header": False,
    "date_header": False, "timeout_keep_alive": 75, "timeout_graceful_shutdown": 30, "timeout_worker_healthcheck": 60,
}  # fmt: skip


@dataclass(frozen=True)
class Options:
    store: str = DEFAULT_STORE
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    open: bool = False
    quiet: bool = False
    follow: bool = False
    keyed: bool = False
    """Whether the store had keys at the start; then every worker requires one."""


def serve(
    store: Annotated[str | None, Option(help=f"{DEFAULT_STORE} by default; with --demo a temporary one.")] = None,
    host: Annotated[str, Option(help="Address to listen on; beyond this machine only with keys.")] = "127.0.0.1",
    port: Annotated[int, Option(help="Port to listen on; 0: any free one.")] = 8000,
    workers: Annotated[int, Option(help="Processes; more than one pays only with PostgreSQL.")] = 1,
    map_file: Annotated[Path | None, Option("--map", help="Create a pool from this AUDIT.json.")] = None,
    name: Annotated[str, Option(help="The name of the pool that --map creates.")] = "home",
    demo: Annotated[bool, Option("--demo", help="Run a pool against a simulated shop.")] = False,
    follow: Annotated[bool, Option("--follow", help="Read only: dashboard, metrics and rows.")] = False,
    open_: Annotated[bool, Option("--open", help="Let other machines in without keys.")] = False,
    quiet: Annotated[bool, Option("--quiet", help="Do not log every request.")] = False,
) -> None:
    """Serve pools over HTTP: the API, the dashboard at /, metrics."""
    options = Options(store or DEFAULT_STORE, host, port, workers, open_, quiet, follow)
    if not 0 <= port < 1 << 16:
        raise ValueError(f"port: is {port}, expected a number from 0 to 65535")
    if workers < 1:
        raise ValueError(f"workers: is {workers}, expected at least 1")
    if demo + follow + (map_file is not None) > 1:
        raise ValueError("serve: expected at most one of --demo, --map and --follow")
    if demo and workers > 1:
        raise ValueError(f"demo: runs in one process, and workers is {workers}")
    from rich.console import Console

    say_compiling(Console(stderr=True))
    with ExitStack() as stack:
        if demo and store is None:
            from statepool.live.demo import temporary_store

            options = replace(options, store=stack.enter_context(temporary_store()))
        database = stack.enter_context(opened(options.store, read_only=follow))
        options = replace(options, keyed=_is_keyed(database, options))
        if map_file is not None:
            _open_map(database, map_file, name)
        database.close()
        listening = stack.enter_context(_bind(options))
        shown, bound = listening.getsockname()[:2]
        address = f"http://{f'[{shown}]' if ':' in shown else shown}:{bound}/"
        print(f"statepool: {address}, stop with Ctrl-C", file=sys.stderr, flush=True)
        _run(options, listening, demo)


def make_service(options: Options, worker: str = "1") -> Any:
    """The application of these options."""
    from statepool.live.service import create_app
    from statepool.live.service.monitoring import RequestLog, log_as_json

    log_as_json(sys.stderr)
    service = create_app(
        opened(options.store, options.follow),
        exposure="anyone" if options.open else "localhost" if _is_local(options.host) else "none",
        keyed=options.keyed,
        follow=options.follow,
        worker=worker,
        log=RequestLog(None if options.quiet else sys.stderr),
    )
    gc.collect()
    gc.freeze()  # what is loaded by now would be scanned again and again
    return service


def make_worker(options: Options) -> Any:
    """The application of a worker process."""
    from multiprocessing import current_process

    return make_service(options, worker=current_process().name.rpartition("-")[2])  # SpawnProcess-1, -2, …


def _is_local(host: str) -> bool:
    from ipaddress import ip_address

    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _is_keyed(database: Any, options: Options) -> bool:
    """Whether there are keys; without any, other machines are served only with --open."""
    from statepool.live.service.keys import list_keys

    keyed = bool(list_keys(database))
    if not (_is_local(options.host) or keyed or options.open):
        raise ValueError(
            f"host: {options.host} can be reached by others and the store has no keys, "
            "expected `statepool keys add` first, or --open"
        )
    return keyed


def _open_map(database: Any, file: Path, name: str) -> None:
    import msgspec

    from statepool.live.service.messages import PoolBody
    from statepool.live.service.pools import make_pool

    try:
        given = msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
        advice = given.get("advice")
        if isinstance(advice, dict) and advice.get("verdict") == "cannot tell":
            raise ValueError(
                f"{file}: this audit cannot tell whether to pool, expected another one of a longer log: give a part of "
                "the visitors an action drawn at random (a holdout), then audit again"
            )
        known = {key: value for key, value in given.items() if key in PoolBody.__struct_fields__}
        body = msgspec.convert(known, PoolBody)
    except OSError as error:
        raise ValueError(f"{file}: cannot be read ({error.strerror or error})") from None
    except msgspec.DecodeError as error:
        raise ValueError(f"{file}: is not a map as JSON ({error})") from None
    make_pool(database, name, body).close()


def _bind(options: Options) -> Any:
    import socket

    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    try:
        return socket.create_server((options.host, options.port), family=family, backlog=2048)
    except OSError as error:
        raise ValueError(f"cannot listen at {options.host}, port {options.port} ({error})") from None


def _run(options: Options, listening: Any, demo: bool) -> None:
    import signal

    import uvicorn
    from uvicorn.supervisors import Multiprocess

    # uvicorn sends itself the signal again after a graceful stop, which would end this process as a failure.
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: None)
    if options.workers == 1:
        service = make_service(options)
        if demo:
            from statepool.live.demo import Demo, create

            service.demo = Demo(service.pools.adopt(create(service.pools.database)))
        uvicorn.Server(uvicorn.Config(service, **UVICORN)).run([listening])
        return
    config = uvicorn.Config(partial(make_worker, options), factory=True, workers=options.workers, **UVICORN)
    Multiprocess(config, sockets=[listening]).run()
