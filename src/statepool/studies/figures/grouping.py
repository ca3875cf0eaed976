"""Groupings chosen from a prefix: what each rule saves over keeping all states apart."""

from collections.abc import Mapping

from statepool.report.palette import AMBER, BLUE, MUTED, PURPLE, SURFACE, VERMILLION, Look
from statepool.report.sheet import Sheet, told
from statepool.studies.paper import grouping as study
from statepool.studies.statistics import percent_saved
from statepool.studies.study import Results

RULES = {
    "published rule": Look(VERMILLION, "s"),
    "our rule": Look(BLUE, "o"),
    "true clusters": Look(AMBER, "D"),
    "hindsight": Look(PURPLE, "v"),
}


def draw_grouping(sheet: Sheet, results: Mapping[str, Results]) -> None:
    (ax,) = sheet.panels(1, 2.5)
    places = [("clustered", cell) for cell in study.CLUSTERED] + [("others", cell) for cell in study.OTHERS]
    ax.axvline(0, color=MUTED, linewidth=0.9)
    for row, (sweep, cell) in enumerate(places):
        rules = [rule for rule in RULES if sweep == "clustered" or rule != "true clusters"]
        for i, rule in enumerate(rules):
            value, y = percent_saved(results["grouping"], sweep, cell, rule, "identity"), row + (i - 1.5) * 0.17
            look = RULES[rule]
            ax.errorbar(value.number, y, xerr=value.se, color=look.colour, marker=look.marker, elinewidth=0.9,
                        markeredgecolor=SURFACE, markeredgewidth=0.5)  # fmt: skip
            sheet.target(ax, value.number, y, f"{rule}, {cell}: saves {told(value)} % over no merging", 8)
    ax.set_yticks(range(len(places)), [cell.replace(", ", ",\n") for _, cell in places])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(places) - 0.4, -0.6)
    ax.grid(False)
    ax.grid(axis="x")
    ax.set_xlabel("regret saved over keeping all states apart, %")
    handles = [ax.plot([], [], look.marker, color=look.colour)[0] for look in RULES.values()]
    sheet.figure.legend(handles, list(RULES), loc="outside upper center", ncols=2 if sheet.narrow else 4, frameon=False,
                        fontsize=7.5, handlelength=1, handletextpad=0.3, columnspacing=1.4)  # fmt: skip
