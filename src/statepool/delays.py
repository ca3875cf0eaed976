"""When outcomes come back: random delays, one for each round, and conversions, which come before non-conversions.

A delay past the horizon never arrives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from statepool.arguments import Argument, checked, count, number
from statepool.checks import Ints, check_count, check_delay, check_whole, shown

never = 1 << 62
"""A delay past every horizon: the outcome does not come. `np.where(lost, delays.never, 50)`."""


ARGUMENTS = {
    "seed": Argument("int", "Names the delays: they follow from it.", check_whole),
    "horizon": count("Number of rounds."),
    "mean": number("Mean delay of those that arrive, in rounds.", 0, 1e12),
    "share": number("The share that never arrives.", 0, 1),
}


@checked(ARGUMENTS)
def geometric(seed: int, horizon: int, mean: float) -> Ints:
    """Memoryless delays, one for each round.

    >>> import statepool as sp
    >>> sp.delays.geometric(seed=1, horizon=8, mean=3.0).tolist()
    [3, 3, 0, 2, 3, 0, 2, 17]
    """
    return np.random.default_rng((seed, 77)).geometric(1 / (mean + 1), horizon).astype(np.int64) - 1


@checked(ARGUMENTS)
def heavy_tailed(seed: int, horizon: int, mean: float) -> Ints:
    """Delays with a Pareto distribution of shape 1.5: a finite mean, no variance.

    They are rounded down, which takes about half a round from the mean.

    >>> import statepool as sp
    >>> sp.delays.heavy_tailed(seed=1, horizon=8, mean=3.0).tolist()
    [1, 1, 1, 4, 1, 1, 3, 1]
    """
    return ((1 + np.random.default_rng((seed, 78)).pareto(1.5, horizon)) * mean / 3).astype(np.int64)


@checked(ARGUMENTS)
def missing(seed: int, horizon: int, mean: float, share: float = 0.1) -> Ints:
    """Memoryless delays of which a share never arrives.

    >>> import statepool as sp
    >>> sp.delays.missing(seed=1, horizon=12, mean=3.0, share=0.25).tolist()  # 12 and more: never
    [1, 0, 12, 2, 12, 2, 12, 0, 3, 12, 1, 5]
    """
    rng = np.random.default_rng((seed, 79))
    delays = rng.geometric(1 / (mean + 1), horizon).astype(np.int64) - 1
    delays[rng.random(horizon) < share] = horizon
    return delays


@dataclass(frozen=True, eq=False)
class Conversions:
    """Purchases come first: a loss below 1 is reported after its wait, a loss of 1 only when the window closes.

    Learners that are not made for this are handed every outcome when its window closes.

    Parameters
    ----------
    window : int
        Rounds after which a decision without a report counts as a loss of 1.
    waits : array_like of int
        The wait of each round's outcome, if its loss is below 1; all below the window.
    hold : bool
        False hands outcomes to such learners as they come, to show what that does.

    Examples
    --------
    >>> import statepool as sp
    >>> sp.Conversions(window=100, waits=[3, 99, 0, 20]).window
    100
    """

    window: int
    waits: Ints
    hold: bool = True

    def __post_init__(self) -> None:
        check_count(self.window, "window")
        waits = np.asarray(self.waits)
        if waits.ndim != 1 or waits.dtype.kind not in "iu":
            raise ValueError(f"waits: is {shown(self.waits)}, expected one whole number for each round")
        wrong = np.flatnonzero((waits < 0) | (waits >= self.window))
        if wrong.size:
            raise ValueError(
                f"waits: entry {wrong[0]} is {waits[wrong[0]]}, expected 0 to {self.window - 1}, inside the window"
            )
        object.__setattr__(self, "waits", waits.astype(np.int64))

    def checked(self, horizon: int) -> Conversions:
        """The same for so many rounds."""
        if self.waits.size != horizon:
            raise ValueError(f"waits: has {self.waits.size} numbers, expected {horizon}, one for each round")
        return Conversions(self.window, np.asarray(check_delay(self.waits, horizon)), self.hold)


KINDS = {"geometric": geometric, "heavy-tailed": heavy_tailed, "missing": missing}
