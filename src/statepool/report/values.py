"""A number as reports show it."""

from dataclasses import dataclass
from math import floor


@dataclass(frozen=True)
class Value:
    """A number of ours, with the standard error of its mean over seeds where it has one."""

    number: float
    se: float | None = None
    digits: int = 1
    rounded_again: bool = False
    """Printed as the paper prints some whole numbers: to one decimal first, then half up."""

    def shown(self) -> str:
        if self.rounded_again:
            return f"{floor(round(self.number, 1) + 0.5)}"
        return f"{self.number:.{self.digits}f}"
