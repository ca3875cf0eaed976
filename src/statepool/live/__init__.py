"""Live pools: decide now, learn when the outcome comes, in plain tables of SQLite or PostgreSQL."""

from statepool.live.database import Database
from statepool.live.decisions import Decision
from statepool.live.errors import Conflict, NoSuchPool, ReadOnly, StoreUnavailable, UnknownTicket
from statepool.live.pool import Pool

__all__ = ["Conflict", "Database", "Decision", "NoSuchPool", "Pool", "ReadOnly", "StoreUnavailable", "UnknownTicket"]
