"""`statepool serve`: open the database, print the address, run until it is stopped."""

import gc
import os
import signal
import socket
import sys
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statepool.commands.store import answering, opened

if TYPE_CHECKING:
    from statepool.live.database import Database
    from statepool.live.service.app import Service

OPTIONS = "STATEPOOL_SERVE"
"""The environment variable that passes the options to worker processes."""
DEFAULT_STORE = "sqlite:///statepool.db"
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


def serve(options: Options, map_file: Path | None = None, name: str = "home", demo: bool = False) -> None:
    """Serve until SIGTERM or SIGINT; requests that were accepted are finished."""
    _check(options)
    if options.follow and (demo or map_file is not None):
        raise ValueError("follow: only reads, expected neither --demo nor --map")
    if demo and options.workers > 1:
        raise ValueError(f"demo: runs in one process, and workers is {options.workers}")
    with opened(options.store, read_only=options.follow) as database:
        from statepool.live.service.keys import list_keys

        options = replace(options, keyed=bool(list_keys(database)))
        _refuse_exposure(options)
        if map_file is not None:
            _open_map(database, map_file, name)
        pools = database.pool_names()
    with _bind(options) as listening:
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        what = "the demo" if demo else f"{len(pools)} pool{'' if len(pools) == 1 else 's'}"
        print(f"statepool: http://{shown}:{port}/, {what}, stop with Ctrl-C", file=sys.stderr, flush=True)
        _run(options, listening, demo)


def make_service(options: Options, worker: str | None = None) -> "Service":
    """The application of these options."""
    from statepool.live.database import Database
    from statepool.live.service import create_app
    from statepool.live.service.logs import RequestLog, log_as_json

    log_as_json(sys.stderr)
    with answering():
        database = Database(options.store, read_only=options.follow)
        return create_app(
            database,
            exposure="anyone" if options.open else "localhost" if _is_local(options.host) else "nobody",
            keyed=options.keyed,
            follow=options.follow,
            worker=worker,
            log=RequestLog(sys.stderr, with_requests=not options.quiet),
        )


def make_worker() -> "Service":
    """The application of a worker process, which finds its options in the environment."""
    from multiprocessing import current_process

    import msgspec

    number = current_process().name.rpartition("-")[2]  # SpawnProcess-1, -2, …
    service = make_service(msgspec.json.decode(os.environ[OPTIONS], type=Options), worker=number)
    _freeze()
    return service


def _freeze() -> None:
    """Exempt what is loaded by now from garbage collection, which would scan it again and again."""
    gc.collect()
    gc.freeze()


def _check(options: Options) -> None:
    if not 0 <= options.port < 1 << 16:
        raise ValueError(f"port: is {options.port}, expected a number from 0 to 65535")
    if options.workers < 1:
        raise ValueError(f"workers: is {options.workers}, expected at least 1")


def _is_local(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _refuse_exposure(options: Options) -> None:
    """Every request checks this again: keys may be dropped later."""
    if not (_is_local(options.host) or options.keyed or options.open):
        raise ValueError(
            f"host: {options.host} can be reached by others and the store has no keys, "
            "expected `statepool keys add` first, or --open"
        )


def _open_map(database: "Database", file: Path, name: str) -> None:
    import msgspec

    from statepool.live.service.messages import PoolBody
    from statepool.live.service.pools import make_pool

    try:
        given = msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
        known = {key: value for key, value in given.items() if key in PoolBody.__struct_fields__}
        body = msgspec.convert(known, PoolBody)
    except OSError as error:
        raise ValueError(f"{file}: cannot be read ({error.strerror or error})") from None
    except msgspec.DecodeError as error:
        raise ValueError(f"{file}: is not a map as JSON ({error})") from None
    make_pool(database, name, body).close()


def _bind(options: Options) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    try:
        return socket.create_server((options.host, options.port), family=family, backlog=2048)
    except OSError as error:
        raise ValueError(f"cannot listen at {options.host}, port {options.port} ({error})") from None


def serve_demo(options: Options, has_store: bool) -> None:
    """The demo, in a temporary database unless one is named."""
    with ExitStack() as stack:
        if not has_store:
            from statepool.live.demo import temporary_store

            options = replace(options, store=stack.enter_context(temporary_store()))
        serve(options, demo=True)


def _run(options: Options, listening: socket.socket, demo: bool) -> None:
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    # uvicorn sends itself the signal again after a graceful stop, which would end this process as a failure.
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: None)
    if options.workers == 1:
        service = make_service(options)
        if demo:
            from statepool.live.demo import Demo, create

            service.players.append(Demo(service.pools.adopt(create(service.pools.database))))
        _freeze()
        uvicorn.Server(uvicorn.Config(service, **UVICORN)).run([listening])
        return
    import msgspec

    os.environ[OPTIONS] = msgspec.json.encode(asdict(options)).decode()
    config = uvicorn.Config(f"{__name__}:make_worker", factory=True, workers=options.workers, **UVICORN)
    Multiprocess(config, sockets=[listening]).run()
