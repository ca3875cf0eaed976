"""What a user's own file looks like. It is never run: `make check` has mypy read it, strictly.

The line that ignores an error is one that mypy must object to: an ignore without an error is told, too.
"""

from statepool.client import AsyncClient, Client, ClientError, Decision


def serve(url: str, key: str) -> float:
    with Client(url, key) as client:
        home = client.pool("home")
        decision: Decision = home.decide(context="known")
        home.observe(decision.ticket, "cart")
        home.resolve(decision.ticket, reward=19.9)
        home.decide("visit-1", context=("de", 3))
        home.decide(candidates={"poster": [0.7, 0.3], 3: (0.2, 0.8)})
        row = home.find(decision.ticket)
        print(row["reward"], row["context"], row["version"])
        return decision.probability


async def serve_later(url: str) -> str:
    async with AsyncClient(url) as client:
        decision = await client.pool("home").decide()
        await client.pool("home").observe(decision.ticket, "cart")
        return decision.ticket


def refused(url: str) -> str:
    try:
        Client(url).pool("home").status()
    except ClientError as error:
        return str(error)
    return ""


number: int = Client("http://x").pool("home").decide().ticket  # type: ignore[assignment]
