"""What is public, for the site and for the tests: names, and where they live."""

from typing import Any

MODULES = ("families", "delays", "dimension", "guarantees", "grouping")
"""Those that the page of Python's names lists after the package's own."""


def public_names(module: Any) -> list[str]:
    """What a module offers: its `__all__`, or its own functions and classes without an underscore."""
    listed = getattr(module, "__all__", None) or [
        name for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]  # fmt: skip
    return [name for name in listed if callable(getattr(module, name))]


def home_of(value: Any, module: Any = None, name: str = "") -> str:
    if hasattr(value, "__module__") and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return f"{module.__name__}.{name}"
