"""The dashboard: what a pool plays and why, how it goes, what to look at."""

from statepool.live.dashboard.routes import PoolSource, routes

__all__ = ["PoolSource", "routes"]
