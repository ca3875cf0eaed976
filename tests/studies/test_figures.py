"""Every figure: drawn if its studies were run, the same bytes each time, in the palette's colours, no overlap."""

import re
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest
from made_up import MadeUp
from matplotlib.backends.backend_agg import FigureCanvasAgg

from statepool.report.palette import COLOURS
from statepool.report.sheet import Sheet, styled
from statepool.studies import STUDIES
from statepool.studies.report import write_figures
from statepool.studies.study import Figure

FIGURES = [(study.name, figure) for study in STUDIES.values() for figure in study.figures]
EACH = pytest.mark.parametrize(("study", "figure"), FIGURES, ids=[figure.name for _, figure in FIGURES])


def drawn(study: str, figure: Figure, seeds: int = 3) -> Sheet:
    sheet = Sheet()
    figure.draw(sheet, *(MadeUp(seeds) for _ in (study, *figure.others)))
    return sheet


@cache
def laid_out(study: str, figure: Figure) -> tuple[Sheet, str]:
    """Drawn once for all that is asked of it; also as SVG."""
    with styled():
        sheet = drawn(study, figure)
        return sheet, sheet.saved("svg").decode()


def test_names_are_those_of_studies() -> None:
    assert len({figure.name for _, figure in FIGURES}) == len(FIGURES)
    for _, figure in FIGURES:
        assert set(figure.others) <= set(STUDIES)
        assert figure.title
        assert figure.caption


@EACH
def test_every_value_can_be_pointed_at_also_with_few_seeds(study: str, figure: Figure) -> None:
    sheet, svg = laid_out(study, figure)
    with styled():
        few = drawn(study, figure, seeds=1)
    assert sheet.tips
    assert len(few.tips) == len(sheet.tips)
    assert len(re.findall(r'<g id="tip-\d+">', svg)) == len(sheet.tips)
    assert 'width="396pt"' in svg  # 5.5 inches, the paper's text width
    painted = svg.replace("stroke: #000000; stroke-opacity: 0", "")
    assert set(re.findall(r"#[0-9a-f]{6}\b", painted)) <= {light for light, _ in COLOURS.values()}


@EACH
def test_ticks_and_titles_do_not_overlap(study: str, figure: Figure) -> None:
    # Labels beside lines move with the numbers and are looked at by eye; these do not.
    with styled():
        sheet, _ = laid_out(study, figure)
        sheet.figure.dpi = 100  # an SVG's points are too coarse for small letters
        renderer = FigureCanvasAgg(sheet.figure).get_renderer()
        for ax in sheet.figure.axes:
            ticks = [text for text in ax.get_xticklabels() if text.get_text()]
            inside = [text for text in ticks if ax.get_xlim()[0] <= text.get_position()[0] <= ax.get_xlim()[1]]
            boxes = [text.get_window_extent(renderer) for text in [*inside, ax.title, ax.xaxis.label]]
            assert not [
                pair for pair in combinations(boxes, 2) if pair[0].width and pair[1].width and pair[0].overlaps(pair[1])
            ]
            assert all(box.x0 >= 0 and box.x1 <= sheet.figure.bbox.x1 + 1 for box in boxes if box.width)


def test_files_are_the_same_bytes_twice_and_hold_their_fonts(tmp_path: Path) -> None:
    results = {"effective-dimension": MadeUp(), "matched-difficulty": MadeUp()}
    for folder in ("first", "second"):
        sections = write_figures(results, tmp_path / folder)
    assert list(sections) == ["", "matched-difficulty"]
    files = sorted(path.name for path in (tmp_path / "first").iterdir())
    assert files == ["figure-1.pdf", "figure-1.svg", "matched-control.pdf", "matched-control.svg"]
    for name in files:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    assert b"/FontFile2" in (tmp_path / "first" / "figure-1.pdf").read_bytes()
    assert "<text" not in (tmp_path / "first" / "figure-1.svg").read_text()


def test_nothing_is_drawn_from_studies_that_were_not_run(tmp_path: Path) -> None:
    assert write_figures({"unknown-map": MadeUp()}, tmp_path) == {}
