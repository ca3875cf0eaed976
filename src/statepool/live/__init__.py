"""Decide now, learn when the outcome comes, lose nothing."""

from statepool.live.errors import Conflict, StoreUnavailable, UnknownTicket
from statepool.live.pool import Pool
from statepool.live.requests import Decision

__all__ = ["Conflict", "Decision", "Pool", "StoreUnavailable", "UnknownTicket"]
