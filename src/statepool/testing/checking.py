"""What a check is."""

from collections.abc import Callable
from dataclasses import dataclass


class ContractError(AssertionError):
    """What was promised, and where it was broken."""


@dataclass(frozen=True)
class Check:
    """A named promise; calling it raises `ContractError` if it is not kept."""

    name: str
    run: Callable[[], None]

    def __call__(self) -> None:
        self.run()

    def __str__(self) -> str:
        return self.name


def hold(kept: bool, sentence: str) -> None:
    """Raise the sentence unless the promise is kept."""
    if not kept:
        raise ContractError(sentence)
