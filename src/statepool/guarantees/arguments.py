"""Arguments of the guarantees: one table of what each means and may be.

`checked` refuses wrong arguments and writes the Parameters section of the docstring from the same table.
"""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, cleandoc, signature
from typing import NamedTuple, ParamSpec, TypeVar

from statepool.checks import check_count, check_number, shown
from statepool.model import Instance

Given = ParamSpec("Given")
Answer = TypeVar("Answer")

LARGEST, LARGEST_RATE = 1e300, 700.0
"""exp(700) is still a number."""


class Argument(NamedTuple):
    type: str
    meaning: str
    least: int = 0


ARGUMENTS = {
    "n_actions": Argument("int", "Number of actions K.", 1),
    "n_states": Argument("int", "Number of states S.", 1),
    "horizon": Argument("int", "Number of rounds T.", 1),
    "delay": Argument("int", "Delay in rounds; an array gives one for each round, where that is allowed."),
    "budget": Argument("float", "Bound on the sum over rounds of v_t - 1; in Theorems 3 and 4 of v_t."),
    "rate": Argument("float", "Learning rate. None: the best rate that the bound covers."),
    "drift": Argument("float", "How far the losses move; its definition is that of the theorem."),
    "n_drifting": Argument("int", "Number of directions in which the losses drift.", 1),
    "n_signs": Argument("int", "Steps of each walk.", 1),
    "n_walks": Argument("int", "Number of walks.", 1),
    "spread": Argument("float", "Sum over rounds of v_t - 1; in Theorem 4, of the spread of means within groups."),
    "waited": Argument("float", "Total wait D, see `total_wait`."),
    "most_in_flight": Argument("int", "Most outcomes outstanding at once."),
    "given_up": Argument("int", "Number of rounds given up."),
    "log_actions": Argument("float", "Mean over contexts of the logarithm of the number of actions."),
    "dimension": Argument("float", "Largest effective dimension of a policy."),
    "caution": Argument("float", "What is added to the probability of a state."),
    "confidence": Argument("float", "Probability with which the bound may be exceeded."),
    "base": Argument("float", "Bound of the base learner."),
    "undelayed": Argument("float", "Bound of EXP3 without delay."),
    "history": Argument("int", "Rounds of history.", 1),
    "instance": Argument("Instance", "The problem."),
    "seed": Argument("int", "Random seed of the run."),
}


def checked(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """The same function, which refuses wrong arguments in one sentence and documents its parameters."""
    known = signature(function).parameters

    @wraps(function)
    def call(*given: Given.args, **named: Given.kwargs) -> Answer:
        for name, value in signature(function).bind(*given, **named).arguments.items():
            kind = str(known[name].annotation)
            if (value is not None or "None" not in kind) and "ArrayLike" not in kind:
                _check(name, value)
        return function(*given, **named)

    summary, mark, examples = cleandoc(function.__doc__ or "").partition("Examples\n")
    lines = [line for name, parameter in known.items() for line in _described(name, parameter)]
    call.__doc__ = summary + "\n".join(["Parameters", "----------", *lines, "", ""]) + mark + examples
    return call


def _described(name: str, parameter: Parameter) -> tuple[str, str]:
    kind = ARGUMENTS[name].type + (" or array" if "ArrayLike" in str(parameter.annotation) else "")
    optional = "" if parameter.default is Parameter.empty else ", optional"
    return f"{name} : {kind}{optional}", f"    {ARGUMENTS[name].meaning}"


def _check(name: str, value: object) -> None:
    argument = ARGUMENTS[name]
    if name == "rate":
        check_number(value, name, 0, LARGEST_RATE)
    elif name == "instance" and not isinstance(value, Instance):
        raise ValueError(f"instance: is {shown(value)}, expected an Instance")
    elif argument.type == "int" and name != "seed":
        check_count(value, name, argument.least)
    elif argument.type == "float":
        check_number(value, name, 0, LARGEST)
