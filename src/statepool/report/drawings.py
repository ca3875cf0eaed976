"""A figure drawn for a page: as SVG, at the paper's width and stacked for a phone, with the texts of its targets."""

from dataclasses import dataclass

from statepool.report.sheet import Sheet


@dataclass(frozen=True)
class Drawing:
    """What is shown, under which heading and words, and in which section: `home` is its name, or "" for up front."""

    name: str
    title: str
    caption: str
    home: str
    wide: str
    narrow: str
    tips: tuple[str, ...]


def drawing_of(wide: Sheet, narrow: Sheet, name: str, title: str, caption: str, home: str) -> Drawing:
    """The drawing of two sheets that were drawn on by the same function."""
    shapes = [sheet.saved("svg").decode() for sheet in (wide, narrow)]
    return Drawing(name, title, caption, home, shapes[0], shapes[1], tuple(wide.tips))
