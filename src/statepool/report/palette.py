"""The colours of figures and reports, in a light and a dark theme, and how each learner is drawn.

Figures are drawn in the light colours. Each colour has one meaning, so that a page can replace it by a CSS variable and
one drawing serves both themes. The hues follow Okabe and Ito, which colour-blind readers can distinguish; every learner
also has a marker of its own.
"""

from typing import NamedTuple

COLOURS: dict[str, tuple[str, str]] = {
    # name: (light, dark)
    "ink": ("#1d2129", "#e7e9ed"),
    "muted": ("#626a76", "#9ba4b1"),
    "faint": ("#d8dce2", "#3a414c"),
    "surface": ("#ffffff", "#171b21"),
    "blue": ("#0072b2", "#5cb3ea"),
    "vermillion": ("#d55e00", "#ff9152"),
    "green": ("#00906a", "#35c79d"),
    "purple": ("#a9579b", "#dd94d0"),
    "amber": ("#c58a00", "#f0be4c"),
    "page": ("#f6f7f8", "#0f1216"),
    "heat": ("#3f8fc4", "#2f7fb5"),
    "chill": ("#e0853f", "#b8642a"),
}
INK, MUTED, FAINT, SURFACE, BLUE, VERMILLION, GREEN, PURPLE, AMBER, _, HEAT, CHILL = (
    light for light, _ in COLOURS.values()
)


class Look(NamedTuple):
    """The colour and marker of a learner, the same in every figure."""

    colour: str
    marker: str


STATE = Look(BLUE, "o")
ACTION = Look(VERMILLION, "s")
PLUG_IN = Look(GREEN, "^")
BEST_STATE = Look(AMBER, "D")
HYBRID = Look(PURPLE, "v")
UNIFORM = Look(MUTED, "X")
ORACLE = Look(PURPLE, "P")
INTERLEAVED = Look(GREEN, "h")
SELF_TUNED = Look(GREEN, "*")
GREEDY = Look(AMBER, "D")
THOMPSON = Look(PURPLE, "v")
