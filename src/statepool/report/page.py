"""A report as one self-contained HTML file: colours, style, script, and drawings as part of the page."""

import re
from collections import defaultdict
from collections.abc import Sequence
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from statepool.report.palette import COLOURS

if TYPE_CHECKING:
    from statepool.report.sheet import Drawing

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


def figures_of(drawings: "Sequence[Drawing]", linked: bool = True) -> defaultdict[str, str]:
    """The HTML of the figures of each section; `linked` adds links to their files."""
    figures: defaultdict[str, str] = defaultdict(str)
    for drawing in drawings:
        figures[drawing.home] += _figure(drawing, linked)
    return figures


def _figure(drawing: "Drawing", linked: bool) -> str:
    """Both shapes, of which the style sheet shows one, with title, caption and links."""
    shapes = "".join(
        f'<div class="{shape}">{_inline(text, f"{drawing.name}-{shape}-", drawing)}</div>'
        for shape, text in (("wide", drawing.wide), ("narrow", drawing.narrow))
    )
    files = " · ".join(f'<a href="figures/{drawing.name}.{kind}">{kind.upper()}</a>' for kind in ("svg", "pdf"))
    links = f' <span class="files">{files}</span>' if linked else ""
    return (
        f'<figure id="figure-{drawing.name}" class="drawing">{shapes}<figcaption><b>{escape(drawing.title)}.</b> '
        f"{escape(drawing.caption)}{links}</figcaption></figure>"
    )


def _inline(svg: str, prefix: str, drawing: "Drawing") -> str:
    """An SVG as part of a page: the theme's colours, targets with their texts, ids that no other drawing has."""
    svg = _NOT_FOR_A_PAGE.sub("", svg).strip()
    svg = re.sub(r'<g id="tip-(\d+)">', lambda m: f'<g class="tip" data-tip="{escape(drawing.tips[int(m[1])])}">', svg)
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = svg.replace('xlink:href="#', f'href="#{prefix}').replace("url(#", f"url(#{prefix}")
    svg = re.sub("|".join(_VARIABLES), lambda match: _VARIABLES[match[0]], svg)
    # A marker's outline is left to the place that uses it, where pointing turns it on.
    svg = svg.replace('" style="stroke: #000000; stroke-opacity: 0"/>', '"/>')
    heading = f'<svg role="img" aria-label="{escape(drawing.title)}" '
    return re.sub(r'<svg width="[^"]*" height="[^"]*" |<svg height="[^"]*" ', heading, svg, count=1)
