"""One example a call, as the OpenAPI document and the site show it: a pool `shop`, from its making on.

The tests play them in this order against the service. `showPool` alone is told after some thousand decisions more.
"""

import json
from typing import Any, NamedTuple


class Example(NamedTuple):
    """What is sent to an address and what is answered; None: no body."""

    title: str
    method: str
    address: str
    body: Any
    answer: Any


SHOP = "/v1/pools/shop"
ROW = {
    "ticket": "visit-1", "action": "plain", "probability": 0.9359, "state": "cart", "loss": 0.0, "reward": None,
    "decided_at": "2026-03-02T09:30:00Z", "observed_at": "2026-03-02T09:30:07Z",
    "resolved_at": "2026-03-05T17:12:40Z", "is_holdout": False, "expired": False, "version": 2, "context": None,
}  # fmt: skip
NOTHING = {"count": 0, "mean": None, "error": None}
NEW_POOL = {
    "name": "shop",
    "actions": 2,
    "states": ["left", "cart", "bought"],
    "learner": {"name": "self-tuned", "options": {"learn_map": False}},
    "settings": {
        "refresh": None, "refresh_seconds": None, "expire_after": 2592000.0, "default_loss": 1.0,
        "loss_bounds": [0.0, 1.0], "reward_bounds": None, "holdout": 0.1, "holdout_action": None, "shares": [],
        "request_bytes": 268435456,
    },
    "decisions": 0,
    "pending": 0,
    "counts": {"state": 0, "outcome": 0, "expiry": 0, "correction": 0, "impossible": 0},
    "version": 0,
    "losses": {"learner": NOTHING, "holdout": NOTHING},
    "lift": None,
}  # fmt: skip
CHANGED_POOL = NEW_POOL | {
    "settings": NEW_POOL["settings"] | {"holdout": 0.2},  # type: ignore[operator]
    "decisions": 3,
    "pending": 1,
    "counts": {"state": 2, "outcome": 2, "expiry": 0, "correction": 0, "impossible": 0},
    "version": 2,
}
OLD_POOL = CHANGED_POOL | {
    "decisions": 12003,
    "pending": 1201,
    "counts": {"state": 12002, "outcome": 10802, "expiry": 0, "correction": 0, "impossible": 0},
    "version": 31925,
    "losses": {
        "learner": {"count": 8655, "mean": 0.7827, "error": 0.0034},
        "holdout": {"count": 2145, "mean": 0.8341, "error": 0.0063},
    },
    "lift": {"value": 0.0514, "low": 0.018, "high": 0.0827},
}

EXAMPLES: dict[str, tuple[Example, ...]] = {
    "putPool": (
        Example(
            "a shop", "PUT", SHOP,
            {
                "actions": ["plain", "discount"],
                "states": ["left", "cart", "bought"],
                "P": [[0.8, 0.15, 0.05], [0.6, 0.3, 0.1]],
                "settings": {"expire_after": 2592000, "default_loss": 1.0, "holdout": 0.1},
            },
            NEW_POOL,
        ),
    ),
    "listPools": (Example("one pool", "GET", "/v1/pools", None, {"pools": ["shop"]}),),
    "decide": (
        Example(
            "one decision", "POST", f"{SHOP}/decisions", {"ticket": "visit-1"},
            {"ticket": "visit-1", "action": "plain", "probability": 0.9359},
        ),
        Example(
            "several, one with candidates", "POST", f"{SHOP}/decisions",
            {
                "requests": [
                    {"ticket": "visit-2"},
                    {"ticket": "visit-3", "candidates": {"discount": [0.5, 0.3, 0.2], "gift": [0.7, 0.1, 0.2]}},
                ]
            },
            {
                "decisions": [
                    {"ticket": "visit-2", "action": "plain", "probability": 0.9359},
                    {"ticket": "visit-3", "action": "gift", "probability": 0.0641},
                ]
            },
        ),
    ),
    "putState": (
        Example(
            "seconds later", "PUT", f"{SHOP}/decisions/visit-1/state", {"state": "cart"},
            {"ticket": "visit-1", "state": "cart"},
        ),
    ),
    "putOutcome": (
        Example(
            "days later", "PUT", f"{SHOP}/decisions/visit-1/outcome", {"loss": 0.0}, {"ticket": "visit-1", "loss": 0.0}
        ),
    ),
    "showTicket": (Example("all is known", "GET", f"{SHOP}/decisions/visit-1", None, ROW),),
    "putStates": (
        Example(
            "two, one of them not known", "PUT", f"{SHOP}/states",
            {"states": [{"ticket": "visit-2", "state": "left"}, {"ticket": "visit-9", "state": "cart"}]},
            {
                "done": 1,
                "refused": [
                    {"ticket": "visit-9", "status": 404, "error": "ticket: 'visit-9' is not known to this pool"}
                ],
            },
        ),
    ),
    "putOutcomes": (
        Example(
            "two, one of them a contradiction", "PUT", f"{SHOP}/outcomes",
            {"outcomes": [{"ticket": "visit-2", "loss": 1.0}, {"ticket": "visit-1", "loss": 0.5}]},
            {
                "done": 1,
                "refused": [
                    {
                        "ticket": "visit-1", "status": 409,
                        "error": "outcome: ticket 'visit-1' had loss 0.0 before, and now 0.5",
                    }
                ],
            },
        ),
    ),
    "putAction": (
        Example(
            "a newcomer", "PUT", f"{SHOP}/actions/free-shipping", {"row": [0.7, 0.2, 0.1]}, {"action": "free-shipping"}
        ),
    ),
    "retireAction": (
        Example("no more of it", "DELETE", f"{SHOP}/actions/free-shipping", None, {"action": "free-shipping"}),
    ),
    "expire": (Example("nothing is overdue", "POST", f"{SHOP}/expire", None, {"expired": 0}),),
    "rows": (Example("the first line", "GET", f"{SHOP}/rows", None, json.dumps(ROW, separators=(",", ":")) + "\n"),),
    "changePool": (
        Example("a larger holdout", "PATCH", SHOP, {"settings": {"holdout": 0.2}}, CHANGED_POOL),
    ),
    "showPool": (Example("after some thousand decisions", "GET", SHOP, None, OLD_POOL),),
    "health": (Example("up", "GET", "/healthz", None, {"status": "up"}),),
    "readiness": (Example("ready", "GET", "/readyz", None, {"status": "ready"}),),
    "metrics": (
        Example(
            "the first lines", "GET", "/metrics", None,
            "# HELP statepool_request_seconds Time to answer, by route\n"
            "# TYPE statepool_request_seconds histogram\n",
        ),
    ),
}  # fmt: skip
"""By the name of the operation."""
