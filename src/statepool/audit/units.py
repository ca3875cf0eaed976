"""The user's own unit: what an outcome is called, which way is good, and what a loss in [0, 1] is worth in it."""

import re
from dataclasses import dataclass
from typing import TypeVar

from statepool.checks import Floats

Loss = TypeVar("Loss", float, Floats)

PLURALS = {
    "converted": "conversions", "conversion": "conversions", "purchase": "purchases", "purchased": "purchases",
    "bought": "purchases", "order": "orders", "ordered": "orders", "clicked": "clicks", "click": "clicks",
    "returned": "returns", "return": "returns", "churned": "churns", "churn": "churns", "refunded": "refunds",
    "refund": "refunds", "bounced": "bounces", "cancelled": "cancellations", "canceled": "cancellations",
    "subscribed": "subscriptions", "signup": "signups", "sold": "sales", "sale": "sales", "failed": "failures",
    "won": "wins", "success": "successes", "late": "late arrivals",
}  # fmt: skip


NO_UNITS = frozenset(("outcome", "reward", "loss", "y", "value"))
"""Names of a column that name no unit: 0.3, not 0.3 outcome."""


@dataclass(frozen=True)
class Unit:
    """Losses are (outcome - low) / (high - low), or (high - outcome) / (high - low) where larger is better."""

    column: str
    is_reward: bool
    low: float = 0.0
    high: float = 1.0

    @property
    def name(self) -> str:
        """What amounts are called: conversions, revenue, or the column's own name."""
        words = re.split(r"[^a-z]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", self.column).lower())
        return next((PLURALS[word] for word in words if word in PLURALS), self.column)

    @property
    def per_decision(self) -> str:
        """What amounts a decision are called; an outcome that is called just that is a number of no unit."""
        return "a decision" if self.name in NO_UNITS else f"{self.name} a decision"

    @property
    def of_unit(self) -> str:
        """What follows an amount: its unit, where it has one."""
        return "" if self.name in NO_UNITS else f" {self.name}"

    @property
    def is_counted(self) -> bool:
        """Whether amounts are things that are counted: fewer conversions, but less revenue."""
        return self.name in PLURALS.values()

    @property
    def kind(self) -> str:
        return "rewards" if self.is_reward else "losses"

    @property
    def scale(self) -> float:
        return self.high - self.low

    def outcome(self, loss: Loss) -> Loss:
        """A mean loss, or an array of them, as the mean outcome that the user knows."""
        return self.high - loss * self.scale if self.is_reward else self.low + loss * self.scale

    def amount(self, difference: float) -> float:
        """A difference of losses in the user's unit, its sign kept: positive is worse."""
        return difference * self.scale

    def loss_expression(self, outcome: str) -> str:
        """The same in SQL."""
        if (self.low, self.high) == (0.0, 1.0):
            return f"1 - {outcome}" if self.is_reward else outcome
        above = f"{self.high!r} - {outcome}" if self.is_reward else f"{outcome} - {self.low!r}"
        return f"({above}) / {self.scale!r}"
