"""The pools of a store over HTTP."""

from statepool.live.service.app import Service

__all__ = ["Service"]
