"""Arguments that many functions share: one table says what each means and may be.

`checked(table)` makes a decorator. The function then refuses wrong arguments in one sentence, and its docstring gets
the sections Parameters and Returns from the table and the signature, and a heading above its examples. The settings of
learners are explained in the same way (`learners.parts.settled`).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, cleandoc, signature
from typing import Any, NamedTuple, ParamSpec, TypeVar

from statepool.checks import check_count, check_number

Given = ParamSpec("Given")
Answer = TypeVar("Answer")
Check = Callable[[Any, str], object]


class Argument(NamedTuple):
    type: str
    meaning: str
    check: Check | None = None
    """Called with the value and the name; raises ValueError. None: the function checks for itself."""


def count(meaning: str, lowest: int = 1) -> Argument:
    """A whole number of at least `lowest`."""
    return Argument("int", meaning, lambda value, name: check_count(value, name, lowest))


def number(meaning: str, low: float, high: float, open_low: bool = False) -> Argument:
    """A number from `low` to `high`."""
    return Argument("float", meaning, lambda value, name: check_number(value, name, low, high, open_low=open_low))


def checked(table: Mapping[str, Argument]) -> Callable[[Callable[Given, Answer]], Callable[Given, Answer]]:
    """A decorator for functions whose arguments are in the table."""

    def decorate(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
        own = signature(function)

        @wraps(function)
        def call(*given: Given.args, **named: Given.kwargs) -> Answer:
            for name, value in own.bind(*given, **named).arguments.items():
                kind, check = str(own.parameters[name].annotation), table[name].check
                if check and (value is not None or "None" not in kind) and "ArrayLike" not in kind:
                    check(value, name)
            return function(*given, **named)

        answer = str(getattr(own.return_annotation, "__name__", own.return_annotation))
        call.__doc__ = with_sections(function, own.parameters, table, ["Returns", "-------", answer, ""])
        return call

    return decorate


def with_sections(
    documented: object, parameters: Mapping[str, Parameter], table: Mapping[str, Argument], more: Sequence[str] = ()
) -> str:
    """The docstring with its parameters explained, and with a heading above its examples."""
    summary, prompt, examples = cleandoc(documented.__doc__ or "").partition(">>>")
    lines = [line for name, each in parameters.items() for line in _described(name, each, table[name])]
    explained = ["Parameters", "----------", *lines, ""] if lines else []
    return summary + "\n".join([*explained, *more, "Examples", "--------", prompt + examples])


def _described(name: str, parameter: Parameter, argument: Argument) -> tuple[str, str]:
    kind = argument.type + (" or array" if "ArrayLike" in str(parameter.annotation) else "")
    optional = "" if parameter.default is Parameter.empty else ", optional"
    return f"{name} : {kind}{optional}", f"    {argument.meaning}"


def pool_arguments(audit: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments of `Pool.open` for the pool that an audit advises, from what AUDIT.json holds."""
    if audit.get("learner", "") is None:
        missing = audit["advice"]["to_do"][0].rstrip(".")
        raise ValueError(f"pool: the audit cannot tell whether to pool, expected a longer log ({missing})")
    named = {name: audit[name] for name in ("actions", "states", "P", "learner", "prior") if name in audit}
    return named | audit.get("settings", {})
