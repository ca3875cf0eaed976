"""A report as one self-contained HTML file: colours, style and script are part of it."""

from importlib import resources
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from statepool.report.palette import COLOURS


def render(package: str, template: str, **parts: Any) -> str:
    """A template of a package, which extends `base.html`."""
    loader = ChoiceLoader([PackageLoader(package, "."), PackageLoader(__package__, ".")])
    pages = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    )
    files = resources.files(__package__)
    style, script = (files.joinpath(name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    return pages.get_template(template).render(colours=colours(), style=style, script=script, **parts)


def colours() -> str:
    """CSS variables of both themes: light, and dark where the system or the reader asks for it."""
    light, dark = ("".join(f"--{name}:{pair[i]};" for name, pair in COLOURS.items()) for i in (0, 1))
    return (
        f':root{{color-scheme:light;{light}}}@media(prefers-color-scheme:dark){{:root:not([data-theme="light"])'
        f'{{color-scheme:dark;{dark}}}}}:root[data-theme="dark"]{{color-scheme:dark;{dark}}}'
    )
