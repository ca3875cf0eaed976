"""The pools of a store over HTTP."""

from statepool.live.service.app import Service

create_app = Service

__all__ = ["Service", "create_app"]
