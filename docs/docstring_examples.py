"""Examples in docstrings, for the site: lines that begin with `>>>` and what they print are code, not a quotation."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)
"""From a prompt to the next empty line."""


class DocstringExamples(griffe.Extension):
    """Fence every example of every docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", obj.docstring.value)
