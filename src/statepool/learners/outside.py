"""Learners of other packages: compiled with bounds checks, and refused in one sentence where they do not compile.

A rule of this package is compiled without reference counts and without bounds checks, and is tested for both. A rule
of another package may allocate arrays and use NumPy's reductions, which is slower, and an index past the end of an
array raises. Numba reports such an index without its line.
"""

import linecache
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import NumbaError, NumbaWarning, njit, typeof

from statepool import checks
from statepool.learners.contract import is_own, rule_of

PLACE = re.compile(r'(?:File "|at )([^"\n(]+?\.py)"?,? (?:line )?\(?(\d+)\)?')
UNDEFINED = re.compile(r"NameError: (?:global )?name '(\w+)' is not defined")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
"""Numba writes in colour where colorama is installed."""
NOT_THEIRS = tuple(Path(file).resolve().parent for file in (checks.__file__, numba.__file__, np.__file__))
EXPECTED = (
    "expected numbers, NumPy arrays, loops and the NumPy functions that Numba knows "
    "(functions that it calls need @numba.njit)"
)


def suited(kernel: Callable[..., Any], memory: Any) -> Callable[..., Any]:
    """The kernel itself for a memory of this package, the kernel with bounds checks for any other."""
    return kernel if is_own(type(memory)) else _guarded(kernel)


@cache
def _guarded(kernel: Any) -> Any:
    """The kernel for rules of other packages: they may allocate, and indices are checked."""
    return njit(nogil=True, error_model="numpy", boundscheck=True)(kernel.py_func)


@contextmanager
def explained(learner: Any, memory: Any) -> Iterator[None]:
    """Turn what goes wrong in a rule of another package into one sentence; faults of this package stay whole."""
    if is_own(type(memory)):
        yield
        return
    name = type(learner).__name__
    check_memory(name, memory)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaWarning)
        try:
            yield
        except (NumbaError, IndexError) as error:
            raise ValueError(f"learner: {name} {_what_went_wrong(error)}") from None


def check_memory(name: str, memory: Any) -> None:
    """What `start` gives: a NamedTuple of numbers and arrays, whose type has a rule."""
    if not isinstance(memory, tuple) or not hasattr(memory, "_fields"):
        raise ValueError(f"learner: {name}.start gives {type(memory).__name__}, expected a NamedTuple of arrays")
    if rule_of(type(memory)) is None:
        raise ValueError(
            f"learner: {type(memory).__name__}, the memory of {name}, has no rule, expected add_rule for it"
        )
    for field, value in zip(memory._fields, memory, strict=True):
        try:
            typeof(value)
        except ValueError:
            held = type(value).__name__
            raise ValueError(
                f"learner: field {field!r} of {name}'s memory holds {held}, expected a number or a NumPy array"
            ) from None


def _what_went_wrong(error: Exception) -> str:
    """Which line of the rule's file it was; if none is named, what the contract expects."""
    if isinstance(error, IndexError):
        return "reads or writes past the end of an array, expected indices inside it"
    text = str(error)
    for path, number in PLACE.findall(COLOURS.sub("", text)):
        source = Path(path.strip()).resolve()
        if not any(source.is_relative_to(folder) for folder in NOT_THEIRS):
            line = linecache.getline(str(source), int(number)).strip()
            return f"does not compile at {source.name}, line {number} ({line}), {EXPECTED}"
    missing = UNDEFINED.search(text)
    if missing:
        return f"uses {missing[1]!r}, expected a name that is defined"
    return (
        "does not fit the contract, expected policy(memory, rows, t, out), "
        "remember(memory, rows, policy, choice, state, saved) and learn(memory, played, loss, saved, sign)"
    )
