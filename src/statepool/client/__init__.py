"""A client of `statepool serve`: the calls of a `Pool`, over HTTP, with retries that cannot decide twice.

    from statepool.client import Client

    with Client("http://127.0.0.1:8000", key="…") as client:
        home = client.pool("home")
        decision = home.decide()
        home.observe(decision.ticket, "cart")
        home.resolve(decision.ticket, reward=19.90)

Every decision carries a ticket that is made here, so a call whose answer got lost is simply made again: the service
knows the ticket and gives the same answer. `AsyncClient` has the same calls for `await`. Needs the extra `client`
(httpx) and nothing else of this package: neither Numba nor NumPy is imported.
"""

from statepool.extras import explained

try:
    from statepool.client.clients import AsyncClient, AsyncRemotePool, Client, RemotePool
    from statepool.client.core import (
        ClientError,
        Conflict,
        Decision,
        Invalid,
        NotAllowed,
        NotFound,
        Row,
        Unavailable,
    )
except ImportError as error:
    raise explained("client", error) from None

__all__ = [
    "AsyncClient",
    "AsyncRemotePool",
    "Client",
    "ClientError",
    "Conflict",
    "Decision",
    "Invalid",
    "NotAllowed",
    "NotFound",
    "RemotePool",
    "Row",
    "Unavailable",
]
