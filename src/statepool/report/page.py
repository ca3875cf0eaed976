"""The page: one self-contained file, with the colours, the style and the script that all reports share."""

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
    return pages.get_template(template).render(
        colours=colours(), style=_asset("report.css"), script=_asset("report.js"), **parts
    )


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def colours() -> str:
    """Both themes: the light one, and the dark one where the system asks for it or the reader does."""
    light, dark = ("".join(f"--{name}:{pair[i]};" for name, pair in COLOURS.items()) for i in (0, 1))
    return (
        f':root{{color-scheme:light;{light}}}@media(prefers-color-scheme:dark){{:root:not([data-theme="light"])'
        f'{{color-scheme:dark;{dark}}}}}:root[data-theme="dark"]{{color-scheme:dark;{dark}}}'
    )
