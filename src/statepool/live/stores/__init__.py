"""Where pools are kept: one SQLite file, or PostgreSQL."""

import os

from statepool.live.stores.store import Store

__all__ = ["open_store"]

EXPECTED = "expected sqlite:///relative.db, sqlite:////absolute.db or postgresql://user:password@host/database"


def open_store(url: str, create: bool = True, to_read: bool = False) -> Store:
    """The store of a URL; SQLite's path is what follows the third slash, as in SQLAlchemy.

    Without `create` a place that holds no tables of ours is refused, and stays as it is; `to_read`: so is one whose
    tables are of an earlier release, which are else brought up to date.
    """
    if not isinstance(url, str):
        raise ValueError(f"url: is {url!r}, {EXPECTED}")
    scheme, separator, rest = url.partition("://")
    if separator and scheme == "sqlite":
        from statepool.live.stores.sqlite import SQLiteStore

        path = sqlite_path(rest)
        if (to_read or not create) and not os.path.exists(path):
            raise ValueError(f"there is no file {path}, expected one that holds pools")
        return SQLiteStore(path, create=create, to_read=to_read)
    if separator and scheme in ("postgres", "postgresql"):
        from statepool.live.stores.postgres import PostgresStore

        return PostgresStore(url, create, to_read)
    raise ValueError(f"{_shown(url)} is no URL of a store: {EXPECTED}{_hint(url)}")


def sqlite_path(rest: str) -> str:
    """The file of what follows `sqlite://`."""
    path = rest.removeprefix("/")
    if path == rest or path in ("", ":memory:") or "?" in path:
        raise ValueError(f"'sqlite://{rest}' names no file: {EXPECTED}")
    return path


def _shown(url: str) -> str:
    """What was given, without what may be a password."""
    scheme, separator, _ = url.partition("://")
    if separator:
        return f"'{scheme}://…'"
    return "what was given" if set("@=") & set(url) else repr(url)


def _hint(url: str) -> str:
    return f"; for a file: sqlite:///{url}" if url.endswith((".db", ".sqlite")) and "://" not in url else ""
