"""`statepool serve`: open the store, say where, run until told to stop."""

import gc
import os
import signal
import socket
import sys
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statepool.commands.store import answering, opened

if TYPE_CHECKING:
    from statepool.live.service.app import Service
    from statepool.live.stores.store import Store

OPTIONS = "STATEPOOL_SERVE"
"""The environment variable that tells worker processes what `statepool serve` was told."""
DEFAULT_STORE = "sqlite:///statepool.db"
GRACE = 30
"""Seconds that requests in flight have to finish."""

SPARE_FILES = 128
"""File descriptors that are kept for the store, the log and the process itself."""

UVICORN: dict[str, Any] = {
    "ws": "none", "lifespan": "on", "access_log": False, "log_level": "error",
    "server_header": False, "date_header": False, "proxy_headers": False,
    "timeout_keep_alive": 75, "timeout_graceful_shutdown": GRACE, "timeout_worker_healthcheck": 60,
}  # fmt: skip


@dataclass(frozen=True)
class Options:
    store: str = DEFAULT_STORE
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    rate_limit: float | None = None
    body_limit: int = 1 << 20
    open: bool = False
    quiet: bool = False
    max_connections: int = 1000
    max_pending: int = 100_000
    proxy: str | None = None
    anchor: str | None = None
    anchor_every: float = 60.0
    max_pools: int = 10_000
    follow: bool = False
    keyed: bool = False
    """Whether the store had keys when the service was started; it then stays closed in every worker."""


def serve(options: Options, map_file: Path | None = None, name: str = "home", demo: bool = False) -> None:
    """Serve until SIGTERM or SIGINT; what was accepted is finished, pools are saved."""
    _check(options)
    if options.anchor is not None:
        with answering():
            from statepool.live.anchors import anchors_at
            from statepool.live.errors import AnchorsUnavailable

            place = anchors_at(options.anchor, options.store)
            with suppress(AnchorsUnavailable):  # it is asked again and again
                place.check()
    if options.follow and (demo or map_file is not None):
        raise ValueError("follow: only reads, expected neither --demo nor --map")
    if demo and options.workers > 1:
        raise ValueError(f"demo: plays in one process, and workers is {options.workers}")
    with opened(options.store, create=not options.follow) as store:
        options = replace(options, keyed=bool(store.keys()))
        _refuse_exposure(options)
        if map_file is not None:
            _open_map(store, map_file, name)
        pools = store.pools()
    with _bind(options) as listening:
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        told = "the demo" if demo else f"{len(pools)} pool{'' if len(pools) == 1 else 's'}"
        print(f"statepool: http://{shown}:{port}/, {told}, stop with Ctrl-C", file=sys.stderr, flush=True)
        _run(options, listening, demo)


def make_service(options: Options, worker: str | None = None) -> "Service":
    """The application of these options."""
    from statepool.live.anchors import anchors_at
    from statepool.live.service import create_app
    from statepool.live.service.logs import RequestLog, log_as_json
    from statepool.live.stores import open_store

    log_as_json(sys.stderr)
    with answering():
        store = open_store(options.store, create=not options.follow, to_read=options.follow)
    return create_app(
        store,
        door="anyone" if options.open else "localhost" if _is_local(options.host) else "nobody",
        keyed=options.keyed,
        rate_limit=options.rate_limit,
        body_limit=options.body_limit,
        most_pending=options.max_pending,
        most_pools=options.max_pools,
        follow=options.follow,
        anchors=None if options.anchor is None else anchors_at(options.anchor, options.store),
        anchor_every=options.anchor_every,
        worker=worker,
        log=RequestLog(sys.stderr, with_requests=not options.quiet),
    )


def make_worker() -> "Service":
    """The application of a worker process, which finds its options in the environment."""
    from multiprocessing import current_process

    import msgspec

    number = current_process().name.rpartition("-")[2]  # SpawnProcess-1, -2, …: one that is started again has the next
    service = make_service(msgspec.json.decode(os.environ[OPTIONS], type=Options), worker=number)
    _freeze()
    return service


def _freeze() -> None:
    """What is loaded by now stays until the end: the garbage collector need not look at all of it again and again."""
    gc.collect()
    gc.freeze()


def _check(options: Options) -> None:
    if not 0 <= options.port < 1 << 16:
        raise ValueError(f"port: is {options.port}, expected a number from 0 to 65535")
    if options.rate_limit is not None and not 0 < options.rate_limit < float("inf"):
        raise ValueError(f"rate-limit: is {options.rate_limit}, expected a positive number of requests a second")
    if options.body_limit < 1:
        raise ValueError(f"max-body: is {options.body_limit}, expected at least 1 byte")
    for name in ("workers", "max_connections", "max_pending", "max_pools"):
        if getattr(options, name) < 1:
            raise ValueError(f"{name.replace('_', '-')}: is {getattr(options, name)}, expected at least 1")
    if not 0.1 <= options.anchor_every < float("inf"):
        raise ValueError(f"anchor-every: is {options.anchor_every}, expected at least 0.1 seconds")
    if options.proxy is not None and not _is_address(options.proxy):
        raise ValueError(f"proxy: is {options.proxy[:64]!r}, expected the address that the proxy calls from")


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _is_local(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)


def _refuse_exposure(options: Options) -> None:
    """Say at the start what every request would be told; that the keys are still there is checked with each."""
    if not (_is_local(options.host) or options.keyed or options.open):
        raise ValueError(
            f"host: {options.host} can be reached by others and the store has no keys, "
            "expected `statepool keys add` first, or --open"
        )


def _open_map(store: "Store", file: Path, name: str) -> None:
    import msgspec

    from statepool.live.service.bodies import PoolBody
    from statepool.live.service.creation import make_pool

    try:
        given = msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
        known = {key: value for key, value in given.items() if key in PoolBody.__struct_fields__}
        asked = msgspec.convert(known, PoolBody)
    except OSError as error:
        raise ValueError(f"{file}: cannot be read ({error.strerror or error})") from None
    except msgspec.DecodeError as error:
        raise ValueError(f"{file}: is not a map as JSON ({error})") from None
    make_pool(store, name, asked).close()


def _bind(options: Options) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    try:
        return socket.create_server((options.host, options.port), family=family, backlog=2048)
    except OSError as error:
        raise ValueError(f"cannot listen at {options.host}, port {options.port} ({error})") from None


def serve_demo(options: Options, has_store: bool) -> None:
    """The demo, in a store that is gone afterwards unless one is named."""
    with ExitStack() as stack:
        if not has_store:
            from statepool.live.demo import temporary_store

            options = replace(options, store=stack.enter_context(temporary_store()))
        serve(options, demo=True)


def _add_demo(service: "Service") -> None:
    from statepool.live.demo import Demo, create

    service.players.append(Demo(service.pools.adopt(create(service.pools.store))))


def _allowed_connections(wanted: int) -> int:
    """As many as there are file descriptors for; the process asks for more of those where it has too few."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else max(1, min(wanted, soft - SPARE_FILES))


def _uvicorn_options(options: Options) -> dict[str, Any]:
    from statepool.live.service.connections import ConnectionLimits, Crowd, GuardedProtocol

    most = _allowed_connections(options.max_connections)
    proxies = () if options.proxy is None else (str(ip_address(options.proxy)),)
    limits = ConnectionLimits(most, max(1, most // 4), proxies=proxies)
    return {**UVICORN, "http": partial(GuardedProtocol, Crowd(limits))}


def _run(options: Options, listening: socket.socket, demo: bool) -> None:
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    # uvicorn sends itself the signal again after a graceful stop; that stop is a success, not a death.
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: None)
    known = _uvicorn_options(options)
    if options.workers == 1:
        service = make_service(options)
        if demo:
            _add_demo(service)
        _freeze()
        uvicorn.Server(uvicorn.Config(service, **known)).run([listening])
        return
    import msgspec

    os.environ[OPTIONS] = msgspec.json.encode(asdict(options)).decode()
    config = uvicorn.Config(f"{__name__}:make_worker", factory=True, workers=options.workers, **known)
    Multiprocess(config, sockets=[listening]).run()
