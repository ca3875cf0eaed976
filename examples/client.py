"""A client of a few lines: retries are safe, because repeating a call is harmless."""

import json
import sys
import time
import urllib.error
import urllib.request
import uuid
from typing import Any
from urllib.parse import quote


class Client:
    def __init__(self, url: str, key: str | None = None) -> None:
        self._url = url.rstrip("/")
        self._headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})

    def decide(self, pool: str) -> Any:
        # A ticket of our own: should the answer get lost, asking again gives the same one.
        return self._send("POST", f"/v1/pools/{pool}/decisions", {"ticket": uuid.uuid4().hex})

    def observe(self, pool: str, ticket: str, state: Any) -> None:
        self._send("PUT", f"/v1/pools/{pool}/decisions/{quote(ticket, safe='')}/state", {"state": state})

    def resolve(self, pool: str, ticket: str, loss: float) -> None:
        self._send("PUT", f"/v1/pools/{pool}/decisions/{quote(ticket, safe='')}/outcome", {"loss": loss})

    def _send(self, method: str, path: str, body: Any, tries: int = 5) -> Any:
        request = urllib.request.Request(self._url + path, json.dumps(body).encode(), self._headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code not in (429, 503) or tries == 1:
                raise RuntimeError(json.load(error)["error"]) from None
        except urllib.error.URLError:
            if tries == 1:
                raise
        time.sleep(3.0 / 2**tries)
        return self._send(method, path, body, tries - 1)


if __name__ == "__main__":
    url, pool, *key = sys.argv[1:]
    client = Client(url, *key)
    decision = client.decide(pool)
    client.observe(pool, decision["ticket"], "left")
    client.resolve(pool, decision["ticket"], loss=1.0)
    print(f"{decision['action']} with probability {decision['probability']:.3f}, ticket {decision['ticket']}")
