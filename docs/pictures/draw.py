"""Draw the pictures of the README and the site, light and dark; `python docs/pictures/draw.py` writes them here.

Each is a short list of boxes, arrows and words; colours are the report's.
"""

from html import escape
from pathlib import Path

from statepool.report.palette import COLOURS

HERE = Path(__file__).parent
FONT = "Helvetica, Arial, sans-serif"


class Picture:
    """Shapes in drawing order; colours by name, resolved when it is written."""

    def __init__(self, name: str, width: int, height: int, says: str) -> None:
        self.name, self.width, self.height, self.says = name, width, height, says
        self._shapes: list[str] = []

    def box(self, x: float, y: float, w: float, h: float, text: str, colour: str = "ink", fill: str = "surface",
            size: int = 15, strength: float = 1.0) -> None:  # fmt: skip
        self._shapes.append(
            f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="8" fill="{{{fill}}}" fill-opacity="{strength}" '
            f'stroke="{{{colour}}}" stroke-width="1.6"/>'
        )
        self.text(x + w / 2, y + h / 2 + size * 0.35, text, "ink", size, "middle")

    def tint(self, x: float, y: float, w: float, h: float, colour: str, strength: float) -> None:
        self._shapes.append(
            f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="3" fill="{{{colour}}}" fill-opacity="{strength}"/>'
        )

    def text(self, x: float, y: float, text: str, colour: str = "muted", size: int = 13, anchor: str = "start",
             weight: str = "normal") -> None:  # fmt: skip
        for i, line in enumerate(text.split("\n")):
            self._shapes.append(
                f'<text x="{x}" y="{y + i * size * 1.3:.1f}" font-family="{FONT}" font-size="{size}" '
                f'text-anchor="{anchor}" font-weight="{weight}" fill="{{{colour}}}">{escape(line)}</text>'
            )

    def arrow(self, x1: float, y1: float, x2: float, y2: float, colour: str = "muted", width: float = 1.8,
              dashed: bool = False, strength: float = 1.0) -> None:  # fmt: skip
        bend, way = (x1 + x2) / 2, 1 if x2 > x1 else -1
        dash = ' stroke-dasharray="6 5"' if dashed else ""
        self._shapes.append(
            f'<path d="M{x1},{y1} C{bend},{y1} {bend},{y2} {x2 - 7 * way},{y2}" fill="none" stroke="{{{colour}}}" '
            f'stroke-width="{width}" stroke-opacity="{strength}"{dash}/>'
            f'<path d="M{x2},{y2} l{-9 * way},-5 v10 z" fill="{{{colour}}}" fill-opacity="{max(strength, 0.35)}"/>'
        )

    def line_down(self, x1: float, y1: float, x2: float, y2: float, colour: str) -> None:
        bend = (y1 + y2) / 2
        self._shapes.append(
            f'<path d="M{x1:.0f},{y1:.0f} C{x1:.0f},{bend:.0f} {x2:.0f},{bend:.0f} {x2:.0f},{y2 - 6:.0f}" fill="none" '
            f'stroke="{{{colour}}}" stroke-width="1.3" stroke-opacity=".75"/>'
            f'<path d="M{x2:.0f},{y2:.0f} l-4,-8 h8 z" fill="{{{colour}}}"/>'
        )

    def write(self, folder: Path = HERE) -> None:
        for place, theme in enumerate(("light", "dark")):
            colours = {name: pair[place] for name, pair in COLOURS.items()}
            body = "\n".join(shape.format(**colours) for shape in self._shapes)
            (folder / f"{self.name}-{theme}.svg").write_text(
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" role="img" '
                f'aria-label="{escape(self.says)}">\n<title>{escape(self.says)}</title>\n'
                f'<rect width="{self.width}" height="{self.height}" rx="10" fill="{colours["surface"]}"/>\n'
                f"{body}\n</svg>\n"
            )


ACTIONS = ("poster", "offer", "banner", "bundle")
STATES = ("left", "browsed", "cart")
P = ((0.7, 0.2, 0.1), (0.3, 0.3, 0.4), (0.5, 0.3, 0.2), (0.15, 0.25, 0.6))


def catalogue(picture: Picture, x: float, y: float, chosen: int | None = None) -> list[float]:
    """The actions, one below the other; their middles."""
    middles = []
    for i, name in enumerate(ACTIONS):
        top = y + i * 48
        picture.box(x, top, 104, 36, name, "blue" if i == chosen else "faint")
        middles.append(top + 18)
    picture.text(x + 52, y + 4 * 48 + 8, "… 200 of them", anchor="middle")
    return middles


def states(picture: Picture, x: float, y: float, seen: int | None = None) -> list[float]:
    middles = []
    for i, name in enumerate(STATES):
        top = y + i * 62
        picture.box(x, top, 104, 42, name, "green" if i == seen else "faint")
        middles.append(top + 21)
    return middles


def hero() -> Picture:
    picture = Picture(
        "pooling", 860, 330,
        "An action leads to a state within seconds and to an outcome days later; pooled, that outcome informs "
        "every action that could have led to the same state.",
    )  # fmt: skip
    for x, head, line in (
        (40, "action", "what you show"),
        (330, "state", "seen in seconds"),
        (640, "outcome", "known days later"),
    ):
        picture.text(x, 34, head, "ink", 17, weight="bold")
        picture.text(x, 54, line)
    rows, columns = catalogue(picture, 40, 78, chosen=0), states(picture, 330, 86, seen=2)
    picture.arrow(144, rows[0], 330, columns[2], "blue", 2.4)
    picture.arrow(434, columns[2], 640, 232, "green", 2.4, dashed=True)
    picture.box(640, 212, 150, 40, "bought", "green")
    for i in range(1, 4):
        picture.arrow(144, rows[i], 330, columns[2], "vermillion", 0.6 + 4 * P[i][2], strength=0.3 + P[i][2])
    picture.text(475, 290, "One late outcome is credited to its state,", "ink", 14)
    picture.text(475, 310, "and through it to every action that leads there.", "vermillion", 14)
    return picture


def narrow_hero() -> Picture:
    """The same for a phone: outcomes below, words as large as those around it."""
    wide = hero()
    picture = Picture("pooling-narrow", 400, 420, wide.says)
    for x, head, line in ((20, "action", "what you show"), (276, "state", "seen in seconds")):
        picture.text(x, 32, head, "ink", 18, weight="bold")
        picture.text(x, 52, line, size=14)
    rows, columns = catalogue(picture, 20, 70, chosen=0), states(picture, 276, 78, seen=2)
    picture.arrow(124, rows[0], 276, columns[2], "blue", 2.4)
    for i in range(1, 4):
        picture.arrow(124, rows[i], 276, columns[2], "vermillion", 0.6 + 4 * P[i][2], strength=0.3 + P[i][2])
    picture.line_down(328, columns[2] + 21, 328, 306, "green")
    picture.box(253, 306, 130, 40, "bought", "green")
    picture.text(20, 318, "outcome", "ink", 18, weight="bold")
    picture.text(20, 338, "known days later", size=14)
    picture.text(20, 384, "One late outcome is credited to its state, and", "ink", 15)
    picture.text(20, 404, "through it to every action that leads there.", "vermillion", 15)
    return picture


def chain() -> Picture:
    picture = Picture(
        "learn-1", 760, 150, "An item is shown, a cart is seen in seconds, the purchase comes days later."
    )
    picture.box(30, 50, 130, 48, "poster shown", "blue")
    picture.box(310, 50, 130, 48, "cart", "green")
    picture.box(590, 50, 130, 48, "bought?", "vermillion")
    picture.arrow(160, 74, 310, 74, "blue", 2.2)
    picture.arrow(440, 74, 590, 74, "vermillion", 2.2, dashed=True)
    picture.text(235, 62, "seconds", anchor="middle")
    picture.text(515, 62, "days", anchor="middle")
    for x, text in ((95, "action"), (375, "state"), (655, "outcome")):
        picture.text(x, 124, text, "ink", 14, "middle", "bold")
    return picture


def alone() -> Picture:
    picture = Picture("learn-2", 760, 270, "Without pooling an outcome informs the one action that was shown.")
    rows = catalogue(picture, 60, 40, chosen=0)
    picture.box(470, rows[0] - 20, 150, 40, "bought", "green")
    picture.arrow(470, rows[0], 166, rows[0], "blue", 2.6)
    picture.text(190, rows[0] - 10, "informs poster", "blue", 14)
    for i in (1, 2, 3):
        picture.text(190, rows[i] + 5, "learns nothing", "muted", 14)
    return picture


def pooled() -> Picture:
    picture = Picture("learn-3", 760, 270, "Pooled, the outcome is credited to the state cart, and to every action by "
                      "how often it leads to a cart.")  # fmt: skip
    rows, columns = catalogue(picture, 40, 40, chosen=0), states(picture, 340, 48, seen=2)
    picture.box(590, columns[2] - 20, 130, 40, "bought", "green")
    picture.arrow(590, columns[2], 446, columns[2], "green", 2.6)
    for i, middle in enumerate(rows):
        picture.arrow(340, columns[2], 146, middle, "vermillion", 0.8 + 6 * P[i][2], strength=0.35 + P[i][2])
        picture.text(156, middle - 6, f"{P[i][2]:.0%}", "vermillion", 12)
    picture.text(450, 60, "thickness: how often the\naction leads to a cart", "muted", 13)
    return picture


def reach() -> Picture:
    play = (0.55, 0.25, 0.15, 0.05)
    q = [sum(x * row[s] for x, row in zip(play, P, strict=True)) for s in range(3)]
    picture = Picture("learn-4", 760, 280, "An outcome is divided by how often today's play reaches its state, "
                      "so that states seen rarely count as much as they should.")  # fmt: skip
    for i, name in enumerate(ACTIONS):
        picture.text(120, 66 + i * 48, name, "ink", 14, "end")
        picture.tint(132, 50 + i * 48, 180 * play[i], 22, "blue", 0.85)
        picture.text(140 + 180 * play[i], 66 + i * 48, f"{play[i]:.0%}", "muted", 13)
    picture.text(60, 262, "how often each is shown", "muted", 13)
    for s, name in enumerate(STATES):
        picture.text(500, 66 + s * 62, name, "ink", 14, "end")
        picture.tint(512, 50 + s * 62, 180 * q[s], 22, "green", 0.85)
        picture.text(520 + 180 * q[s], 66 + s * 62, f"q = {q[s]:.2f}", "muted", 13)
    picture.text(430, 262, "how often each state is seen: divide by this", "muted", 13)
    picture.arrow(345, 138, 430, 138, "muted", 2)
    return picture


def alike() -> Picture:
    picture = Picture("learn-5", 760, 230, "Actions whose rows are alike are learnt together: what counts is how "
                      "many truly different behaviours there are.")  # fmt: skip
    for block, (x, rows, text) in enumerate(
        (
            (
                50,
                [(0.6, 0.3, 0.1), (0.57, 0.32, 0.11), (0.62, 0.28, 0.1), (0.55, 0.33, 0.12)],
                "four actions, nearly alike:\ndimension close to 1",
            ),
            (
                430,
                [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.34, 0.33, 0.33)],
                "rows that never meet:\ndimension close to the states",
            ),
        )
    ):
        for i, row in enumerate(rows):
            for s, share in enumerate(row):
                picture.tint(
                    x + s * 62, 30 + i * 32, 56, 26, "blue" if block == 0 else "vermillion", 0.1 + 0.85 * share
                )
        picture.text(x, 186, text, "ink", 14)
    return picture


if __name__ == "__main__":
    for drawn in (hero(), narrow_hero(), chain(), alone(), pooled(), reach(), alike()):
        drawn.write()
