"""The dashboard: what a pool plays and why, how it goes, what to look at."""

from statepool.live.dashboard.routes import Pools, routes

__all__ = ["Pools", "routes"]
