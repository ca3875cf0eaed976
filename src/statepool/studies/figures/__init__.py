"""The figures: the paper's, and those that show more than a table. Adding one is a function and an entry here."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from statepool.report.drawings import Drawing, drawing_of
from statepool.report.sheet import Sheet, styled
from statepool.studies.figures import (
    baselines,
    certificates,
    direct,
    drift,
    funnel,
    grouping,
    matched,
    mechanism,
    neighbours,
    overlap_and_drift,
    phase,
    scaling,
    self_tuned,
)
from statepool.studies.study import Results


@dataclass(frozen=True)
class Figure:
    """What is drawn, from which studies, and what there is to see. Shown with the study `home`, or up front."""

    name: str
    title: str
    caption: str
    needs: tuple[str, ...]
    home: str
    draw: Callable[[Sheet, Mapping[str, Results]], None]


FIGURES = (
    Figure(
        "figure-1", "Figure 1: the claim and its boundary",
        "First, the boundary: what a state predicts moves while the learner waits (grey: the other states of this "
        "made-up example), so a loss handed over d rounds late is off by the orange error. Second, the claim: at "
        "matched difficulty pooling saves more as the rows overlap and the effective dimension falls. K=40, "
        "|S|=8, T=10000, d=50; bars are one standard error of the paired difference.",
        ("matched-difficulty",), "", mechanism.draw_claim_and_boundary,
    ),
    Figure(
        "figure-2", "Figure 2: effective dimension, not action count",
        "First, regret saved in per cent of action-level regret as the dimension falls, difficulty held fixed, at "
        "both design points. Second, a catalogue that grows thirty-two-fold and hardly changes its dimension, "
        "whose ceiling is the number of states, six. Dimensions are Monte Carlo values, hence from below.",
        ("matched-difficulty", "funnel"), "", mechanism.draw_dimension_not_count,
    ),
    Figure(
        "bound-and-gain", "Regret by actions and by delay",
        "What pooling saves grows with the number of actions and shrinks with the delay; the interleaved learner "
        "stays far below its bound.",
        ("bound-and-gain",), "bound-and-gain", certificates.draw_bound_and_gain,
    ),
    Figure(
        "groups", "How many groups to merge states into",
        "Regret has its minimum at the four true groups. Theorem 4 shares it where the states of a group are "
        "alike; where they differ a little, its bias term sends it to sixteen.",
        ("representation",), "representation", scaling.draw_groups,
    ),
    Figure(
        "drift-scaling", "Drift scaling",
        "First, regret against the scale of Theorem 2, with a line of slope one. Second, regret over that scale by "
        "swept parameter (d, amplitude, number of drifting coordinates); the band spans what was observed.",
        ("drift-scaling",), "drift-scaling", drift.draw_drift_scaling,
    ),
    Figure(
        "dependence", "Regret over its predicted scale",
        "A flat line would mean that regret follows the scale in the horizon, lines on top of each other that it "
        "follows it in the dimension. The first nearly holds at short delays and little overlap; the second fails"
        " where rows nearly agree.",
        ("dependence",), "dependence", scaling.draw_dependence,
    ),
    Figure(
        "matched-control", "The matched control",
        "First, the same sweep with difficulty matched and left free. Second, why the free one falls: the task gets"
        " easy for everybody. Bars are one standard error, of the paired difference in the first panel.",
        ("matched-difficulty", "effective-dimension"), "matched-difficulty", matched.draw_matched_control,
    ),
    Figure(
        "certificates", "Certificates against measurements",
        "First, what can be certified (dashed) and what was measured. Second, the same as a ratio to the plug-in's "
        "regret.",
        ("certificate-gap",), "certificate-gap", certificates.draw_certificates,
    ),
    Figure(
        "grouping", "Which states to merge",
        "Regret saved over keeping all states apart, which is the line at zero; bars are one standard error of the "
        "paired difference. Hindsight picks the best of the nested groupings after the fact.",
        ("grouping",), "grouping", grouping.draw_grouping,
    ),
    Figure(
        "funnel", "The funnel",
        "First, the catalogue grows and its dimension does not. Second, the arms at three delays, labelled by "
        "whether d+1 copies would pay, on a logarithmic axis; bars are one standard error. Pooled greedy and "
        "pooled Thompson are ours.",
        ("funnel",), "funnel", funnel.draw_funnel,
    ),
    Figure(
        "baselines", "Seven rules on nine settings",
        "First, regret in multiples of the best of the paper's five rules in each setting: 1.0 leads, deeper "
        "orange is worse, blue is better than all five. Second, on the family built against the best-state rule "
        "its regret grows linearly.",
        ("baselines",), "baselines", baselines.draw_baselines,
    ),
    Figure(
        "tuning", "Both methods over their rates",
        "Regret on the funnel as either rate is multiplied, far beyond the published grids (2 to 128 for the "
        "hybrid, 1 to 32 for State-EXP3). A rate chosen this way reads the benchmark and is no procedure.",
        ("tuned-baseline",), "tuned-baseline", scaling.draw_tuning,
    ),
    Figure(
        "phase-diagram", "Where pooling pays",
        "Regret saved over action-level play. Deeper blue is more, orange is a loss.",
        ("phase-diagram",), "phase-diagram", phase.draw_phase_diagram,
    ),
    Figure(
        "self-tuned-paths", "Regret over time on six settings, d=50",
        "Lines are means over twenty seeds, bands hold eight seeds of ten. Greedy and Thompson are the best of six "
        "and of two, chosen in hindsight for each setting. Regret is against the best fixed action of the whole "
        "horizon: it falls while following the drift beats that action.",
        ("self-tuned",), "self-tuned", self_tuned.draw_paths,
    ),
    Figure(
        "self-tuned-excess", "Twelve arms on every setting",
        "Mean regret above that of the best arm of the row, in units of loss: 0 leads, deeper orange is worse. A ratio "
        "would say nothing where regret is below zero. Resonance is named by its half-period, at T=8000.",
        ("self-tuned",), "self-tuned", self_tuned.draw_excess,
    ),
    Figure(
        "self-tuned-bound", "What is proved of SelfTuned, K=200, |S|=6, d=50",
        "Bounds on expected regret as a share of the horizon, in the worst case over all losses fixed in advance: "
        "Theorem G for SelfTuned, and Theorem A for State-EXP3, which knows horizon and delay. Where a bound exceeds T "
        "it says nothing and is drawn at 100 %.",
        ("self-tuned",), "self-tuned", self_tuned.draw_bound,
    ),
    Figure(
        "direct-effects", "Direct effects of actions on outcomes",
        "Regret as actions move the outcome past what the state tells; K=40 or, for the funnel, 200, d=50, T=10000. "
        "Lines are means over 20 seeds, bands the middle half of them.",
        ("direct-effects",), "direct-effects", direct.draw_direct_effects,
    ),
    Figure(
        "neighbours", "The neighbourhood on one page",
        "Every learner (rows) on every setting (columns); the number is the mean regret. Blue: less than State-EXP3, "
        "orange: more; full strength is a factor of sixteen. Above the line learners that see the state, below it "
        "those that see the action alone. Settings: study 15's, hostile maps, resonance, the funnel over 20 000 "
        "rounds, and random delays of mean 50.",
        ("neighbours",), "neighbours", neighbours.draw_heat_map,
    ),
    Figure(
        "neighbours-bounds", "Regrets and bounds",
        "Blue: mean regret; black: what is proved of that learner, with what its own runs spent. Regrets below 1 are "
        "drawn at 1.",
        ("neighbours",), "neighbours", neighbours.draw_bounds,
    ),
    Figure(
        "overlap-and-drift", "Overlap and drift: what hints save",
        "Two actions whose losses swing against each other. (a) and (b): no overlap, both learners at rate 1/(12d), "
        "T=200000; (a) at d=100 over the period, shaded where losses turn before a hint is used. (c): regret saved, at "
        "d=100, as rows overlap and the largest effective dimension falls from 2 to 1.05; orange is a loss. (d): each "
        "learner at the best rate of its own theorem, d=50 and a period of 100 d, with both bounds, over the square "
        "root of the horizon. Means over twelve paired seeds, bars are one standard error.",
        ("overlap-and-drift",), "overlap-and-drift", overlap_and_drift.draw_overlap_and_drift,
    ),
)  # fmt: skip


def write_figures(results: Mapping[str, Results], folder: Path) -> list[Drawing]:
    """Draw every figure whose studies were run; save it as SVG and PDF, and return it for the report."""
    folder.mkdir(parents=True, exist_ok=True)
    drawings = []
    for figure in FIGURES:
        if all(study in results for study in figure.needs):
            with styled():
                wide, narrow = Sheet(), Sheet(narrow=True)
                figure.draw(wide, results)
                figure.draw(narrow, results)
                pdf = wide.saved("pdf")
                drawing = drawing_of(wide, narrow, figure.name, figure.title, figure.caption, figure.home)
            (folder / f"{figure.name}.pdf").write_bytes(pdf)
            (folder / f"{figure.name}.svg").write_text(_titled(drawing))
            drawings.append(drawing)
    return drawings


def _titled(drawing: Drawing) -> str:
    """The SVG with each target's text as its title, which browsers show on pointing at it."""

    def title(match: re.Match[str]) -> str:
        return f"{match[0]}<title>{escape(drawing.tips[int(match[1])])}</title>"

    # The targets are not painted; this lets them be pointed at all the same.
    pointing = '<style>[id^="tip-"] {pointer-events: all}</style>'
    return re.sub(r'<g id="tip-(\d+)">', title, drawing.wide).replace("<defs>", pointing + "<defs>", 1)


__all__ = ["FIGURES", "Figure", "write_figures"]
