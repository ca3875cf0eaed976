"""Is the advice one that a shop can act on? Generated shops whose truth is known (tests/audit/shops.py).

    python benchmarks/audit_shops.py [--seed 900000] [--shops 300] [--worlds 6]

Each shop's log is audited with `missing=0` and nothing else. A shop is clear if its parameters say so (`Shop.clear`;
its thresholds were loosened once, after a look at seeds 0 to 29). The advised learner then runs on the true shop, from
the prior that the audit wrote, beside Thompson sampling per action and blind choice. Seeds below 100 000 and from
500 000 to 500 300 were looked at while rules were chosen: use others for figures to quote.
"""

import argparse
import sys
from collections import Counter, defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

sys.path.append(str(Path(__file__).parent.parent / "tests" / "audit"))
from shops import STAGES, Shop, make_shop

from statepool.audit import Audit, audit_log
from statepool.audit.advice import UNCLEAR, informed
from statepool.delays import Conversions
from statepool.engine import simulate
from statepool.model import Instance


def true_regrets(shop: Shop, audit: Audit, worlds: int, seed: int) -> dict[str, np.ndarray]:
    """Regret in revenue of the advised learner and its rivals on the true shop, over the audit's horizon."""
    horizon, order = audit.advice.horizon, [int(name.rpartition("-")[2]) for name in audit.counts.actions]
    states = [STAGES.index(name) for name in audit.counts.states]
    scale = float((shop.P * shop.price[:, None] ** 2 * shop.buys).sum() / (shop.P * shop.cells).sum())
    scale = max(scale, 1.02 * float(shop.cells.max()))
    losses = 1 - shop.cells[np.ix_(order, states)] / scale
    theta = losses.mean(axis=0)
    instance = Instance(shop.P[np.ix_(order, states)], np.tile(theta, (horizon, 1)), losses - theta)
    window = max(round(shop.visits * shop.window), 1)
    pace = audit.rows.pace
    prior = (np.array([1 - audit.document["prior"]["states"][name][0] / scale for name in audit.counts.states]),
             np.array([audit.document["prior"]["states"][name][1] for name in audit.counts.states]))  # fmt: skip
    curve = audit.document["prior"].get("curve")
    known = None if curve is None else (np.array(curve["tau"]) * pace, np.array(curve["weight"]))
    found = defaultdict(list)
    for world in range(worlds):
        rng = np.random.default_rng((seed, world, 9))
        wait = -shop.wait * np.log(1 - rng.random(horizon) * (1 - np.exp(-1 / shop.wait))) * window
        delays = Conversions(window, np.clip(wait, 0, window - 1).astype(np.int64))
        for name in {audit.advice.learner, "action-thompson"}:
            run = simulate(instance, informed(name, prior, known), delays, 1_000 * seed + world)
            found[name].append(scale * run.regret)
        found["blind"].append(scale * float(instance.total_losses.mean() - instance.total_losses.min()))
    return {name: np.array(values) for name, values in found.items()}


def opens(audit: Audit) -> bool:
    """Whether `serve --map` could start the pool."""
    from statepool.commands.serve import _open_map
    from statepool.live.database import Database

    with TemporaryDirectory() as folder:
        audit.write(Path(folder))
        database = Database(f"sqlite:///{folder}/pool.db")
        try:
            _open_map(database, Path(folder) / "AUDIT.json", "home")
        finally:
            database.close()
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=900_000)
    parser.add_argument("--shops", type=int, default=300)
    parser.add_argument("--worlds", type=int, default=6)
    given = parser.parse_args()
    verdicts, good, opened, promised = Counter(), [], [], []
    beaten = defaultdict(list)
    for seed in range(given.seed, given.seed + given.shops):
        shop = make_shop(seed)
        audit = audit_log(shop.log(seed), missing=0, seconds=1e-9, seed=seed)
        verdict = audit.advice.verdict
        verdicts[shop.clear, verdict] += 1
        if verdict == UNCLEAR:
            continue
        first = int(audit.document["starts_on"]["action"].rpartition("-")[2])
        good.append(shop.worth[first] >= 0.9 * shop.worth.max())
        opened.append(opens(audit))
        if not given.worlds:
            continue
        regrets = true_regrets(shop, audit, given.worlds, seed)
        own, expected = regrets.pop(audit.advice.learner), audit.advice.regret_of(audit.advice.learner)
        ratio = audit.unit.amount(expected.regret) / max(float(own.mean()), 1e-9)
        promised.append(0.5 <= ratio <= 2)
        gaps = [own - other for other in regrets.values()]
        beaten[verdict].append(any(gap.mean() > 2 * gap.std(ddof=1) / gap.size**0.5 + 1e-9 for gap in gaps))
        print(seed, shop.kind, shop.clear, verdict, f"promised {ratio * own.mean():.0f} had {own.mean():.0f}",
              {name: round(float(values.mean())) for name, values in regrets.items()}, flush=True)  # fmt: skip
    for kind in ("pool", "pool with corrections", "do not pool"):
        counted = {verdict: n for (clear, verdict), n in verdicts.items() if clear == kind}
        total = sum(counted.values())
        print(f"clear {kind}: right {counted.get(kind, 0)} of {total} {counted}")
    print("not clear:", {verdict: n for (clear, verdict), n in verdicts.items() if clear is None})
    print(f"first action worth .9 of the best: {np.mean(good):.3f} of {len(good)}; opens: {np.mean(opened):.3f}")
    if promised:
        print(f"promised regret within a factor of two: {np.mean(promised):.3f}")
    for verdict, values in beaten.items():
        print(f"advised learner beaten, {verdict}: {np.mean(values):.3f} of {len(values)}")


if __name__ == "__main__":
    main()
