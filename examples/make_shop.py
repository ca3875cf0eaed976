"""Generate `shop.csv`, the log that the README audits: a small shop whose truth is known.

    python examples/make_shop.py [examples/shop.csv]

Six products are shown to 6 000 visitors over six weeks. How far a visitor goes (bounce, view, cart, checkout) depends
on the product; whether something is bought depends on that stage alone, and a purchase comes one to seven days later.
All products cost the same, so pooling is right; sku-4 is the best.
"""

import csv
import random
import sys
from datetime import datetime, timedelta
from pathlib import Path

STAGES = ("bounce", "view", "cart", "checkout")
BUYS = (0.0, 0.02, 0.25, 0.6)
"""The probability that a visitor who gets so far buys within a week."""
GOES_ON = {"sku-1": 0.25, "sku-2": 0.35, "sku-3": 0.45, "sku-4": 0.7, "sku-5": 0.55, "sku-6": 0.3}
"""The probability of going on to the next stage, by product."""
START, DAYS, VISITORS = datetime(2026, 3, 2, 8), 42, 6_000


def rows(seed: int = 1) -> list[list[str]]:
    draw = random.Random(seed)
    made = []
    for minutes in sorted(draw.uniform(0, DAYS * 1_440) for _ in range(VISITORS)):
        sku = draw.choice(list(GOES_ON))
        stage = 0
        while stage < 3 and draw.random() < GOES_ON[sku]:
            stage += 1
        shown = START + timedelta(minutes=minutes)
        bought = shown + timedelta(days=min(draw.expovariate(0.7), 6.9))
        seen = draw.random() < BUYS[stage] and bought <= START + timedelta(days=DAYS)
        revenue, at = ("20.00", bought.isoformat(timespec="seconds")) if seen else ("0", "")
        made.append([sku, STAGES[stage], revenue, shown.isoformat(timespec="seconds"), at])
    return made


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "shop.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sku", "stage", "revenue", "shown_at", "purchased_at"])
        writer.writerows(rows())


if __name__ == "__main__":
    main()
