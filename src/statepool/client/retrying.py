"""When to retry, and what a response means; shared by both clients."""

from dataclasses import dataclass

import httpx

from statepool.client.answers import ClientError, Unavailable, refusal, sentence_of
from statepool.client.calls import Answer, HttpCall

JSON = {"content-type": "application/json"}
LATER = frozenset((429, 502, 503, 504))
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0
Attempt = httpx.Response | httpx.TransportError
"""A response, or the error of a request without one."""


@dataclass(frozen=True)
class RetryPolicy:
    """The address of the service, and how often to retry."""

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

    def wait(self, count: int, result: Attempt) -> float | None:
        """Seconds before the next try: twice as long each time, and no shorter than the service asks for.

        None after the last, and after an answer that is final.
        """
        if count == self.tries or (isinstance(result, httpx.Response) and result.status_code not in LATER):
            return None
        asked = result.headers.get("retry-after", "") if isinstance(result, httpx.Response) else ""
        backoff: float = min(FIRST_WAIT * 2 ** (count - 1), LONGEST_WAIT)
        return max(backoff, min(float(asked), LONGEST_WAIT)) if asked.isdigit() else backoff

    def read(self, call: HttpCall[Answer], result: Attempt) -> Answer:
        """The answer, or the refusal raised."""
        if isinstance(result, httpx.TransportError):
            raise Unavailable(f"{self.url} did not answer in {self.tries} tries ({type(result).__name__}: {result})")
        check(result)
        try:
            return call.read(result.json())
        except (KeyError, TypeError, AttributeError) as error:
            raise ClientError(f"the answer of {call.path} is not as expected ({error!r})", result.status_code) from None
        except ValueError as error:
            if isinstance(error, ClientError):
                raise
            raise ClientError(f"the answer of {call.path} is not JSON", result.status_code) from None


def check(response: httpx.Response) -> None:
    """Raise what the service refused."""
    if response.status_code >= 300:
        raise refusal(response.status_code, sentence_of(response.status_code, response.text))
