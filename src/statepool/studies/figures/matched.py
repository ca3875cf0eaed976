"""The matched control: the same sweep with and without holding the task's difficulty fixed."""

from collections.abc import Mapping

from statepool.report.palette import MUTED, STATE, Look
from statepool.report.sheet import Sheet, label
from statepool.report.values import Value
from statepool.studies.paper import effective_dimension, matched_difficulty
from statepool.studies.statistics import standard_error
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
        shares = [_share(found, sweep, place) for place in places]
        hardest = found.mean(sweep, places[0], "action")
        levels = [_level(found, sweep, place, hardest) for place in places]
        sheet.series(left, overlaps, shares, look, f"{name}, regret saved %", places)
        sheet.series(right, overlaps, levels, look, f"{name}, action-level regret in % of that at overlap 0", places)
        label(left, overlaps[1], shares[1].number, name, look.colour, (4, 8))
        label(right, overlaps[2], levels[2].number, name, look.colour, (6, 8))
    for ax, title, y in (
        (left, "Matching difficulty turns the trend", "regret saved, %"),
        (right, "Unmatched, the task itself goes away", "action-level regret, % of first"),
    ):
        ax.set_title(title)
        ax.set_xlabel("overlap of the actions' rows")
        ax.set_ylabel(y)
        ax.set_ylim(0, None)


def _share(results: Results, sweep: str, cell: str) -> Value:
    """Regret saved in per cent of action-level regret, its error that of the paired difference."""
    action = results.of(sweep, cell, "action")
    saved = action - results.of(sweep, cell, "state")
    return _scaled(float(saved.mean()), standard_error(saved), 100 / float(action.mean()))


def _level(results: Results, sweep: str, cell: str, hardest: float) -> Value:
    regret = results.of(sweep, cell, "action")
    return _scaled(float(regret.mean()), standard_error(regret), 100 / hardest)


def _scaled(number: float, error: float | None, scale: float) -> Value:
    return Value(number * scale, None if error is None else error * scale)
