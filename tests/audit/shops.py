"""Generated shops whose truth is known: a funnel of stages, purchases that come days later, prices by product.

A visitor is shown a product and goes down a funnel; how far is the state. Whether something is bought depends on the
state alone, its price on the product: with prices that differ, products have direct effects on revenue.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

DAY = 86_400.0
START = pd.Timestamp("2026-01-05")
STAGES = ("bounce", "view", "detail", "cart", "checkout", "payment")
PRICES = {"none": 0.0, "small": 0.05, "large": 0.6}
"""Standard deviation of log prices."""


@dataclass(frozen=True, eq=False)
class Shop:
    P: np.ndarray
    buys: np.ndarray
    """The probability that something is bought, by state."""
    price: np.ndarray
    window: float
    """In days; purchases come within it."""
    windows: float
    visits: float
    """A day."""
    wait: float
    """The mean wait for a purchase, in windows, before it is cut off at the window."""
    kind: str
    """Of prices."""

    @property
    def n_rows(self) -> int:
        return round(self.visits * self.window * self.windows)

    @property
    def cells(self) -> np.ndarray:
        """Mean revenue by product and state."""
        return self.price[:, None] * self.buys

    @property
    def worth(self) -> np.ndarray:
        """Mean revenue of each product."""
        return (self.P * self.cells).sum(axis=1)

    @property
    def pooled(self) -> np.ndarray:
        """What the states predict of it, with all products shown alike."""
        means = (self.P * self.cells).sum(axis=0) / self.P.sum(axis=0)
        return self.P @ means

    def log(self, seed: int, n_new: int = 0) -> pd.DataFrame:
        """What the shop's log shows at its end: sku, stage, revenue (blank unless bought), times."""
        rng = np.random.default_rng((seed, 1))
        n, K = self.n_rows, len(self.P)
        days = np.sort(rng.uniform(0, self.window * self.windows, n))
        sku = rng.integers(K, size=n)
        if n_new:  # products that are newer than the window
            sku = np.where((sku >= K - n_new) & (days < days[-1] - self.window / 2), sku % (K - n_new), sku)
        state = (rng.random(n)[:, None] > self.P[sku].cumsum(axis=1)).sum(axis=1).clip(0, self.P.shape[1] - 1)
        bought = rng.random(n) < self.buys[state]
        wait = -self.wait * np.log(1 - rng.random(n) * (1 - np.exp(-1 / self.wait))) * self.window
        seen = bought & (days + wait <= days[-1])
        shown = np.array([f"sku-{a:02d}" for a in range(K)])[sku]
        times = START + pd.to_timedelta(np.round(days * DAY, 3), unit="s")
        return pd.DataFrame({
            "sku": shown, "stage": np.array(STAGES)[state],
            "revenue": np.where(seen, np.round(self.price[sku], 2), np.nan),
            "ts": times,
            "purchased_at": pd.Series(times + pd.to_timedelta(np.round(wait * DAY, 3), unit="s")).where(seen),
        })  # fmt: skip


def make_shop(
    seed=0, n_products=None, stages=None, conversion=None, window=None, windows=None, prices=None, funnel=None,
    n_rows=None,
):  # fmt: skip
    """One shop; what is not given is drawn: 10 to 60 products, 3 to 6 stages, conversion 1 to 15 %, 3 to 30 days."""
    rng = np.random.default_rng((seed, 0))
    drawn = (
        int(rng.integers(10, 61)), int(rng.integers(3, 7)), float(np.exp(rng.uniform(np.log(0.01), np.log(0.15)))),
        float(rng.uniform(3, 30)), float(rng.uniform(2, 8)), str(rng.choice(list(PRICES))),
        float(rng.choice([0.0, 0.35], p=[0.25, 0.75])), float(np.exp(rng.uniform(np.log(5_000), np.log(80_000)))),
    )  # fmt: skip
    given = (n_products, stages, conversion, window, windows, prices, funnel, n_rows)
    K, S, conversion, window, windows, prices, funnel, n_rows = (
        other if value is None else value for value, other in zip(given, drawn, strict=True)
    )
    base = rng.uniform(-0.4, 0.6, S - 1)
    go = 1 / (
        1 + np.exp(-(base + funnel * rng.standard_normal((K, 1)) + 0.5 * funnel * rng.standard_normal((K, S - 1))))
    )
    reach = np.column_stack([np.ones(K), go.cumprod(axis=1)])
    P = reach - np.column_stack([reach[:, 1:], np.zeros(K)])
    buys = np.arange(S) ** 2.0
    buys = np.minimum(buys * conversion / float(P.mean(axis=0) @ buys), 0.9)
    price = np.round(40 * np.exp(PRICES[prices] * rng.standard_normal(K)), 2)
    return Shop(P, buys, price, window, windows, n_rows / (window * windows), float(rng.uniform(0.1, 0.3)), prices)
