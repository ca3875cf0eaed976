"""Arguments of guarantees, refused by their names before anything is computed: the one place for what each may be."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

from statepool.checks import check_count, check_number, shown
from statepool.model import Instance

Given = ParamSpec("Given")
Answer = TypeVar("Answer")

LARGEST, LARGEST_RATE = 1e300, 700.0
"""exp(700) is still a number."""

LEAST = {
    "n_actions": 1, "n_states": 1, "horizon": 1, "delay": 0, "most_in_flight": 0, "most_arrivals": 0, "given_up": 0,
    "n_drifting": 1, "n_signs": 1, "n_walks": 1, "history": 1, "patience": 0,
}  # fmt: skip
"""Whole numbers, and the least that each may be."""

NUMBERS = {
    "base", "budget", "caution", "confidence", "dimension", "drift", "log_actions", "spread", "undelayed",
    "waited", "width",
}  # fmt: skip


def checked(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """The same function, which refuses wrong arguments in one sentence."""
    known = signature(function)
    missing = set(known.parameters) - {*LEAST, *NUMBERS, "rate", "instance", "seed"}
    assert not missing, f"{function.__name__}: nothing says what {missing} may be"

    @wraps(function)
    def call(*given: Given.args, **named: Given.kwargs) -> Answer:
        for name, value in known.bind(*given, **named).arguments.items():
            kind = str(known.parameters[name].annotation)
            if (value is not None or "None" not in kind) and "ArrayLike" not in kind:
                _check(name, value)
        return function(*given, **named)

    return call


def _check(name: str, value: object) -> None:
    if name in LEAST:
        check_count(value, name, LEAST[name])
    elif name == "rate":
        check_number(value, name, 0, LARGEST_RATE)
    elif name in NUMBERS:
        check_number(value, name, 0, LARGEST)
    elif name == "instance" and not isinstance(value, Instance):
        raise ValueError(f"instance: is {shown(value)}, expected an Instance")
