"""What a benchmark gives back: one row of the table and of bench.json."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A measured number, its target where there is one, and what else is worth knowing."""

    name: str
    value: float | None
    unit: str = "×"
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""

    @property
    def target(self) -> str:
        if self.at_least is not None:
            return f"≥ {self.at_least:g}"
        return "" if self.at_most is None else f"≤ {self.at_most:g}"

    @property
    def met(self) -> bool | None:
        """None where there is nothing to meet, or nothing was measured."""
        if self.value is None or not self.target:
            return None
        return self.value >= self.at_least if self.at_least is not None else self.value <= (self.at_most or 0.0)

    @property
    def shown(self) -> str:
        return "skipped" if self.value is None else f"{self.value:,.{0 if self.value >= 100 else 2}f}{self.unit}"


def skipped(name: str, why: str) -> Row:
    return Row(name, None, note=why)
