"""A drawn SVG made part of the page: its colours become the theme's, its targets can be pointed at."""

import re
from collections import defaultdict
from collections.abc import Sequence
from html import escape

from statepool.report.drawings import Drawing
from statepool.report.palette import COLOURS

_VARIABLES = {light: f"var(--{name})" for name, (light, _) in COLOURS.items()}
_COLOUR = re.compile("|".join(_VARIABLES))
_TARGET = re.compile(r'<g id="tip-(\d+)">')
_NOT_FOR_A_PAGE = re.compile(
    r'<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>|<style type="text/css">.*?</style>| xmlns(:xlink)?="[^"]*"',
    re.DOTALL,
)


def figures_of(drawings: Sequence[Drawing], linked: bool = True) -> defaultdict[str, str]:
    """The figures of each section."""
    figures: defaultdict[str, str] = defaultdict(str)
    for drawing in drawings:
        figures[drawing.home] += figure_of(drawing, linked)
    return figures


def figure_of(drawing: Drawing, linked: bool) -> str:
    """The figure in both its shapes, of which the style sheet shows one, with title, caption and links to its files."""
    shapes = "".join(
        f'<div class="{shape}">{_svg(text, f"{drawing.name}-{shape}-", drawing.title, drawing.tips)}</div>'
        for shape, text in (("wide", drawing.wide), ("narrow", drawing.narrow))
    )
    files = " · ".join(f'<a href="figures/{drawing.name}.{kind}">{kind.upper()}</a>' for kind in ("svg", "pdf"))
    links = f' <span class="files">{files}</span>' if linked else ""
    return (
        f'<figure id="figure-{drawing.name}" class="drawing">{shapes}<figcaption><b>{escape(drawing.title)}.</b> '
        f"{escape(drawing.caption)}{links}</figcaption></figure>"
    )


def _svg(text: str, prefix: str, title: str, tips: tuple[str, ...]) -> str:
    text = _NOT_FOR_A_PAGE.sub("", text).strip()
    text = _TARGET.sub(lambda match: f'<g class="tip" data-tip="{escape(tips[int(match[1])])}">', text)
    # Names inside a drawing must differ from those of all others on the page.
    text = re.sub(r'\bid="', f'id="{prefix}', text)
    text = text.replace('xlink:href="#', f'href="#{prefix}').replace("url(#", f"url(#{prefix}")
    text = _COLOUR.sub(lambda match: _VARIABLES[match[0]], text)
    # A marker's shape leaves its outline to the place that uses it, where pointing turns it on.
    text = text.replace('" style="stroke: #000000; stroke-opacity: 0"/>', '"/>')
    heading = f'<svg tabindex="0" role="img" aria-label="{escape(title)}. Arrow keys step through its values." '
    return re.sub(r'<svg width="[^"]*" height="[^"]*" |<svg height="[^"]*" ', heading, text, count=1)
