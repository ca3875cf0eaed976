"""The values of `statepool whatif` beside another package's: obp's plain and doubly robust values are ours.

    python benchmarks/offpolicy.py          (make bench installs obp, without its own dependencies)

obp imports torch for estimators that learn by gradients; none is used here, so an empty module stands in for it.
"""

import sys
import tempfile
from pathlib import Path
from types import ModuleType

import duckdb
import numpy as np

from statepool.audit import what_if

P = np.array([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6], [0.2, 0.2, 0.6]])
MEANS, SHARES, PLAY = np.array([0.2, 0.5, 0.8]), np.array([0.4, 0.3, 0.2, 0.1]), np.full(4, 0.25)


class Names(type):
    """A class that has any name in it, and may be a base of others."""

    def __getattr__(cls, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing


class Nothing(metaclass=Names):
    pass


class Absent(ModuleType):
    """A module of which only names are asked for, while others are defined."""

    def __getattr__(self, name: str) -> type:
        return getattr(Nothing, name)


def main() -> None:
    sys.modules.update({name: Absent(name) for name in ("torch", "torch.nn", "torch.optim")})
    from obp.ope.estimators import DoublyRobust, InverseProbabilityWeighting

    with tempfile.TemporaryDirectory() as folder:
        read = write_log(Path(folder) / "log.parquet")
        ours = what_if(Path(folder) / "log.parquet", ["uniform"])[0]
    n = read["action"].size
    play = np.tile(PLAY[None, :, None], (n, 1, 1))
    given = {name: read[name] for name in ("action", "reward", "pscore", "position")} | {"action_dist": play}
    plain = InverseProbabilityWeighting().estimate_policy_value(**given)
    model = np.tile(predicted(read)[None, :, None], (n, 1, 1))
    robust = DoublyRobust().estimate_policy_value(**given, estimated_rewards_by_reg_model=model)
    for name, mine, theirs in (("plain", ours.plain, plain), ("doubly robust", ours.robust, robust)):
        print(f"{name}: statepool {mine.value:.12f}, obp {theirs:.12f}, difference {abs(mine.value - theirs):.1e}")
        if abs(mine.value - theirs) > 1e-9:
            raise SystemExit(f"{name}: obp disagrees")


def write_log(path: Path, n: int = 50_000) -> dict[str, np.ndarray]:
    """Write a log; returned are its columns by obp's names."""
    rng = np.random.default_rng(0)
    action = rng.choice(4, size=n, p=SHARES)
    state = (rng.random(n)[:, None] > P[action].cumsum(axis=1)).sum(axis=1).clip(0, 2)
    converted = (rng.random(n) < MEANS[state]).astype(int)
    arrays = {"action": action, "state": state, "converted": converted, "propensity": SHARES[action]}
    with duckdb.connect() as connection:
        connection.register("arrays", arrays)
        connection.execute(f"COPY (SELECT * FROM arrays) TO '{path}' (FORMAT parquet)")
    return {
        "action": action, "state": state, "reward": converted, "pscore": SHARES[action], "position": np.zeros(n, int),
    }  # fmt: skip


def predicted(read: dict[str, np.ndarray]) -> np.ndarray:
    """The model of the doubly robust value, from the rows alone: state means through weighted rows."""
    states, place = np.unique(read["state"].astype(str), return_inverse=True)
    weights = np.zeros((4, states.size))
    np.add.at(weights, (read["action"], place), 1 / read["pscore"])
    means = np.bincount(place, read["reward"]) / np.bincount(place)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True) @ means)


if __name__ == "__main__":
    main()
