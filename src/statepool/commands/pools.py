"""Commands on a pool's database: `export`, `replay`, `backup`, `archive`, `erase` and `keys`."""

import dataclasses
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from statepool.commands import DEFAULT_STORE, JsonOption, opened

StoreArgument = Annotated[str, Argument(help="The database: sqlite:///pool.db or postgresql://…")]
PoolArgument = Annotated[str, Argument(help="The name of the pool.")]
StoreOption = Annotated[str, Option("--store", help="sqlite:///file.db or postgresql://…")]
KeyName = Annotated[str, Argument(help="The name of the key.")]


def say(as_json: bool, record: dict[str, Any], *lines: str) -> None:
    """Print a result: as JSON, or the lines."""
    print(json.dumps(record) if as_json else "\n".join(lines))


@contextmanager
def opened_pool(url: str, name: str, read_only: bool = True) -> Iterator[Any]:
    """A pool of a database, closed at the end."""
    from statepool.checks import check_name
    from statepool.live.pool import Pool

    with opened(url, read_only) as database:
        check_name("pool", name, database.pool_names())
        with Pool.open(database, name) as pool:
            yield pool


def export(
    store: StoreArgument,
    name: PoolArgument,
    file: Annotated[Path, Argument(help="A new file: .csv, .parquet or .jsonl.")],
    after: Annotated[int | None, Option(help="Only decisions with reports learnt since this cursor.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Write a pool's decisions to a file, one row each."""
    from statepool.live import maintenance

    maintenance.check_export(file)
    with opened_pool(store, name) as pool:
        cursor = pool.status().version  # what is learnt from here on belongs to the next export
        count = maintenance.export(pool.rows(after), file)
    record = {"pool": name, "file": str(file), "rows": count, "cursor": cursor}
    say(as_json, record, f"{name}: {count} decisions exported; continue with --after {cursor}")


def replay(
    store: StoreArgument,
    name: PoolArgument,
    redraw: Annotated[bool, Option("--redraw", help="Also draw every decision again, and compare.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Check a pool: compute every policy version again from the stored rows."""
    with opened_pool(store, name) as pool:
        found = pool.replay(redraw)
    lines = [f"{name}: {found.versions} versions, {found.decisions} decisions"]
    if redraw:
        lines.append(f"{found.redrawn} decisions drawn again")
    if not found.same_build:
        lines.append("another build made some versions: numbers were compared to 1e-9, not to the bit")
    lines.append("everything agrees" if found.ok else f"FAULT: {found.fault}")
    say(as_json, dataclasses.asdict(found) | {"agrees": found.ok}, *lines)
    if not found.ok:
        raise typer.Exit(1)


def backup(
    store: Annotated[str, Argument(help="The database to copy: sqlite:///…")],
    file: Annotated[Path, Argument(help="The copy, a new file. Open it as sqlite:///FILE.")],
    verify: Annotated[bool, Option("--verify", help="Check the copy: replay every pool in it.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Copy a SQLite database, also while it is in use. For PostgreSQL use pg_dump."""
    from statepool.live import maintenance
    from statepool.live.pool import Pool

    pools, lines = [], []
    with opened(store, read_only=False) as database:
        maintenance.backup(database, file)
    with opened(f"sqlite:///{file}") as database:
        for name in database.pool_names():
            with Pool.open(database, name) as pool:
                fault, decisions = pool.replay().fault if verify else None, pool.status().decisions
            pools.append({"pool": name, "decisions": decisions, "fault": fault})
            checked = f", FAULT: {fault}" if fault else ", replayed without a fault" if verify else ""
            lines.append(f"{name}: {decisions} decisions{checked}")
    sound = not any(each["fault"] for each in pools)
    record = {"file": str(file), "pools": pools, "verified": verify, "agrees": sound if verify else None}
    say(as_json, record, f"{file}: pools copied: {len(pools)}", *lines)
    if not sound:
        raise typer.Exit(1)


def archive(
    store: StoreArgument,
    name: PoolArgument,
    file: Annotated[Path, Argument(help="A new Parquet file.")],
    older_than: Annotated[str, Option(help="Move decisions older than this: 90d, 12h.")] = "90d",
    as_json: JsonOption = False,
) -> None:
    """Move old decisions whose outcome was learnt from the database to a Parquet file."""
    from statepool.checks import check_span

    age = check_span(older_than, "older-than")
    with opened_pool(store, name, read_only=False) as pool:
        count = pool.archive(pool.now() - age, file)
    none = f"{name}: no settled decision is older than {older_than}, nothing was written"
    text = f"{name}: {count} decisions moved to {file}" if count else none
    say(as_json, {"pool": name, "file": str(file), "archived": count}, text)


def erase(
    store: StoreArgument,
    name: PoolArgument,
    tickets: Annotated[list[str], Argument(help="The tickets to erase; if one is unknown, none is erased.")],
) -> None:
    """Remove ticket, context and candidates from decisions; what was learnt stays."""
    with opened_pool(store, name, read_only=False) as pool:
        for ticket in tickets:
            pool.find(ticket)
        for ticket in tickets:
            pool.erase(ticket)
    print(f"{name}: tickets erased: {len(tickets)}")


def add_key(
    name: KeyName,
    role: Annotated[str, Option(help="read, decide, report, write (decide and report) or admin.")],
    expires: Annotated[str, Option(help="How long it is valid: 90d, 12h.")] = "never",
    pool: Annotated[list[str] | None, Option(help="A pool it is valid for; may be repeated. All by default.")] = None,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Create a key. It is shown only once."""
    from statepool.live.service import keys

    lifetime = _lifetime(expires)
    keys.check_key(name, role)
    with opened(store, read_only=False, create=True) as database:
        made = keys.add_key(database, name, role, lifetime, pool or [])
        known = database.pool_names()
    for missing in set(pool or []).difference(known):
        print(f"statepool: no pool {missing!r} in this store yet, the key is for later", file=sys.stderr)
    print(made)


def renew_key(
    name: KeyName,
    expires: Annotated[str, Option(help="How long the new key is valid: 90d, never.")],
    overlap: Annotated[str, Option(help="How long the old key still works.")] = "1d",
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Replace a key; the old one works a while longer.

    The new key has the same name and rights. It is shown only once.
    """
    from statepool.checks import check_span
    from statepool.live.service import keys

    lifetime, longer = _lifetime(expires), check_span(overlap, "overlap")
    with opened(store, read_only=False) as database:
        print(keys.renew_key(database, name, lifetime, longer))


def _lifetime(expires: str) -> float | None:
    from statepool.checks import check_span

    seconds = None if expires == "never" else check_span(expires, "expires")
    if seconds == 0:
        raise ValueError(f"expires: is {expires!r}, expected a length of time such as 90d, or never")
    return seconds


def list_keys(store: StoreOption = DEFAULT_STORE) -> None:
    """List names, roles, expiry and pools."""
    from statepool.live.service import keys

    with opened(store) as database:
        kept = keys.list_keys(database)
    for key in kept:
        end = key.expires_at
        expiry = "never expires" if end is None else datetime.fromtimestamp(int(end), UTC).isoformat()
        print(key.name, key.role, expiry, " ".join(key.pools) or "all pools", sep="\t")


def drop_key(name: KeyName, store: StoreOption = DEFAULT_STORE) -> None:
    """Delete a key, and the one it replaced.

    A running service notices within seconds.
    """
    from statepool.live.service import keys

    with opened(store, read_only=False) as database:
        keys.drop_key(database, name)
