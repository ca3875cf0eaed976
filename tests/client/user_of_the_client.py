"""What a user's own file looks like; `test_typed.py` has mypy read it, strictly. It is never run."""

from statepool.client import AsyncClient, Client, ClientError, Decision


def serve(url: str, key: str) -> float:
    with Client(url, key) as client:
        home = client.pool("home")
        decision: Decision = home.decide(context="known")
        home.observe(decision.ticket, "cart")
        home.resolve(decision.ticket, reward=19.9)
        home.observe_many({each.ticket: "left" for each in home.decide_many(3)})
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
