"""The funnel: dimension against catalogue size, and the arms at three delays."""

from collections.abc import Mapping
from math import log

from matplotlib.axes import Axes

from statepool.report.palette import ACTION, AMBER, BLUE, MUTED, PLUG_IN, PURPLE, STATE, Look
from statepool.report.sheet import Sheet, label, leave_room, log_axis
from statepool.studies.figures.mechanism import draw_catalogue
from statepool.studies.paper import funnel
from statepool.studies.statistics import mean_of
from statepool.studies.study import Results

N_ITEMS = 200
ARMS: dict[str, tuple[Look, float, str, float]] = {
    # learner: its look, a shift to the side so that none hides another, its name, and how far above its line
    "action": (ACTION, 0.0, "action-level", 5.0),
    "state": (STATE, -0.03, "map known", -1.0),
    "plug-in": (PLUG_IN, 0.03, "map estimated", -10.0),
    "pooled greedy": (Look(AMBER, "D"), -0.03, "pooled greedy (ours)", 3.0),
    "pooled Thompson": (Look(PURPLE, "v"), 0.03, "pooled Thompson (ours)", -4.0),
}


def draw_funnel(sheet: Sheet, results: Mapping[str, Results]) -> None:
    left, right = sheet.panels(2, 2.3, widths=(1, 1.7))
    draw_catalogue(sheet, left, results["funnel"])
    sizes = funnel.CATALOGUES
    left.plot(sizes, sizes, color=MUTED, linestyle="--", linewidth=0.9)
    log_axis(left.yaxis, [1, 10, 100, 1000])
    left.set(ylim=(0.9, 1500), ylabel="")
    label(left, sizes[3], sizes[3], "number of items", MUTED, (-5, 6))
    label(left, sizes[2], 1.7, r"dimension $\hat v$", BLUE, (0, 9), ha="center")
    left.set_title("Items and dimension")
    _draw_arms(sheet, right, results["funnel"])


def _draw_arms(sheet: Sheet, ax: Axes, results: Results) -> None:
    delays = funnel.DELAYS
    log_axis(ax.yaxis, [5, 10, 50, 100, 500, 1000, 5000], ["5", "10", "50", "100", "500", "1 000", "5 000"])
    for arm, (look, dodge, name, shift) in ARMS.items():
        values = [mean_of(results.of("funnel", f"d={d}", arm)) for d in delays]
        xs = [i + dodge for i in range(len(delays))]
        sheet.series(ax, xs, values, look, arm, [f"d={d}" for d in delays])
        label(ax, len(delays) - 1, values[-1].number, name, look.colour, (9, shift))
    vhat = results.mean("vhat", "seed 0", "vhat")
    holds = ["holds" if vhat * (d + 1) * log(N_ITEMS) <= N_ITEMS + d else "fails" for d in delays]
    ax.set_xticks(range(len(delays)), [f"$d={d}$\n{word}" for d, word in zip(delays, holds, strict=True)])
    leave_room(ax, -0.25, 2.25, 3.45)
    ax.set_xlabel(r"whether $\hat v(d+1)\log K\leq K+d$", loc="left")
    ax.set_title(r"Regret, $T=20\,000$")
