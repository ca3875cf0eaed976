"""The dashboard: pages about the pools of a service."""

from statepool.live.dashboard.views import Dashboard

__all__ = ["Dashboard"]
