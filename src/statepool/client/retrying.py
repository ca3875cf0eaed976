"""When to ask again, and what an answer means; shared by both clients."""

from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from statepool.client.answers import ClientError, Unavailable, refusal, sentence_of
from statepool.client.calls import Answer, HttpCall

JSON = {"content-type": "application/json"}
LATER = frozenset((429, 502, 503, 504))
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0


@dataclass(frozen=True)
class Manner:
    """Where the service is, and how patient to be with it."""

    url: str
    key: str | None = None
    tries: int = 5
    timeout: float = 60.0

    def __post_init__(self) -> None:
        if not isinstance(self.url, str) or not self.url.startswith(("http://", "https://")):
            raise ValueError(f"url: is {self.url!r}, expected http://… or https://…")
        if not isinstance(self.tries, int) or self.tries < 1:
            raise ValueError(f"tries: is {self.tries!r}, expected a whole number of at least 1")

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.key is None else {"authorization": f"Bearer {self.key}"}

    def wait(self, tried: int, headers: Mapping[str, str]) -> float:
        """Seconds before the next try: twice as long each time, and no shorter than the service asks for."""
        asked = headers.get("retry-after", "")
        backoff: float = min(FIRST_WAIT * 2 ** (tried - 1), LONGEST_WAIT)
        return max(backoff, min(float(asked), LONGEST_WAIT)) if asked.isdigit() else backoff

    def no_answer(self, error: Exception) -> Unavailable:
        return Unavailable(f"{self.url} did not answer in {self.tries} tries ({type(error).__name__}: {error})")


def read(call: HttpCall[Answer], response: httpx.Response) -> Answer:
    """The answer, or the refusal raised."""
    check(response)
    try:
        return call.read(response.json())
    except (KeyError, TypeError, AttributeError) as error:
        raise ClientError(f"the answer of {call.path} is not as expected ({error!r})", response.status_code) from None
    except ValueError as error:
        if isinstance(error, ClientError):
            raise
        raise ClientError(f"the answer of {call.path} is not JSON", response.status_code) from None


def check(response: httpx.Response) -> None:
    """Raise what the service refused."""
    if response.status_code >= 300:
        raise refusal(response.status_code, sentence_of(response.status_code, response.text))
