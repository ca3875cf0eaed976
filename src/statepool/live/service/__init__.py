"""The pools of a store over HTTP."""

from statepool.live.service.app import create_app

__all__ = ["create_app"]
