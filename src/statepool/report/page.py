"""A report as one self-contained HTML file: colours, style, script, and drawings as part of the page."""

import re
from collections.abc import Sequence
from html import escape
from importlib import resources
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from statepool.report.palette import COLOURS

_VARIABLES = {light: f"var(--{name})" for name, (light, _) in COLOURS.items()}
_NOT_FOR_A_PAGE = re.compile(
    r'<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>|<style type="text/css">.*?</style>| xmlns(:xlink)?="[^"]*"',
    re.DOTALL,
)


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


def figure_of(name: str, title: str, caption: str, tips: Sequence[str], svg: str) -> str:
    """A figure with title, caption and links to its files."""
    files = " · ".join(f'<a href="figures/{name}.{kind}">{kind.upper()}</a>' for kind in ("svg", "pdf"))
    return (
        f'<figure id="figure-{name}" class="drawing">'
        f'<div class="picture">{_inline(svg, f"{name}-", title, tips)}</div><figcaption><b>{escape(title)}.</b> '
        f'{escape(caption)} <span class="files">{files}</span></figcaption></figure>'
    )


def _inline(svg: str, prefix: str, title: str, tips: Sequence[str]) -> str:
    """An SVG as part of a page: the theme's colours, targets with their texts, ids that no other drawing has."""
    svg = _NOT_FOR_A_PAGE.sub("", svg).strip()
    svg = re.sub(r'<g id="tip-(\d+)">', lambda m: f'<g class="tip" data-tip="{escape(tips[int(m[1])])}">', svg)
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = svg.replace('xlink:href="#', f'href="#{prefix}').replace("url(#", f"url(#{prefix}")
    svg = re.sub("|".join(_VARIABLES), lambda match: _VARIABLES[match[0]], svg)
    # A marker's outline is left to the place that uses it, where pointing turns it on.
    svg = svg.replace('" style="stroke: #000000; stroke-opacity: 0"/>', '"/>')
    heading = f'<svg role="img" aria-label="{escape(title)}" '
    return re.sub(r'<svg width="[^"]*" height="[^"]*" |<svg height="[^"]*" ', heading, svg, count=1)
