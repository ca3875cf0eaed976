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
    answer: bool = False
    """1 and 0 are the answer to a question, and read yes and no."""

    def shown(self) -> str:
        if self.answer:
            return "yes" if self.number else "no"
        if self.rounded_again:
            return f"{floor(round(self.number, 1) + 0.5)}"
        return f"{self.number:.{self.digits}f}"
