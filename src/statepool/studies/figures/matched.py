"""The matched control: the same sweep with and without holding the task's difficulty fixed."""

from collections.abc import Mapping

from statepool.report.palette import MUTED, STATE, Look
from statepool.report.sheet import Sheet, label
from statepool.studies.paper import effective_dimension, matched_difficulty
from statepool.studies.statistics import mean_of, percent_saved
from statepool.studies.study import Results

FREE = Look(MUTED, "s")


def draw_matched_control(sheet: Sheet, results: Mapping[str, Results]) -> None:
    left, right = sheet.panels(2, 2.15)
    sweeps = (
        ("matched", STATE, results["matched-difficulty"], "first", matched_difficulty.OVERLAPS),
        ("unmatched", FREE, results["effective-dimension"], "overlap", effective_dimension.OVERLAPS),
    )
    for name, look, found, sweep, overlaps in sweeps:
        places = [f"overlap {o:g}" for o in overlaps]
        shares = [percent_saved(found, sweep, place, "state", "action") for place in places]
        hardest = found.mean(sweep, places[0], "action")
        levels = [mean_of(found.of(sweep, place, "action"), over=hardest / 100) for place in places]
        sheet.series(left, overlaps, shares, look, f"{name}, regret saved %", places)
        sheet.series(right, overlaps, levels, look, f"{name}, action-level regret in % of that at overlap 0", places)
        label(left, overlaps[1], shares[1].number, name, look.colour, (4, 8))
        label(right, overlaps[2], levels[2].number, name, look.colour, (6, 8))
    for ax, title, y in (
        (left, "Matching difficulty turns the trend", "regret saved, %"),
        (right, "Unmatched, the task itself goes away", "action-level regret, % of first"),
    ):
        ax.set(title=title, xlabel="overlap of the actions' rows", ylabel=y, ylim=(0, None))
