"""Docstrings for the site: examples fenced as code, and the sections that are written at run time."""

import importlib
import inspect
import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)
"""From a prompt to the next empty line."""
WRITTEN_AT_RUN_TIME = ("statepool.delays.", "statepool.families.", "statepool.guarantees.", "statepool.learners.")
"""`statepool.arguments.checked` and `statepool.learners.parts.settled` add sections such as Parameters."""


class DocstringExamples(griffe.Extension):
    """Fence every example of every docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if not obj.docstring:
            return
        if (obj.is_function or obj.is_class) and obj.parent.is_module and obj.path.startswith(WRITTEN_AT_RUN_TIME):
            module, _, name = obj.path.rpartition(".")
            obj.docstring.value = inspect.getdoc(getattr(importlib.import_module(module), name)) or ""
        obj.docstring.value = EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", obj.docstring.value)
