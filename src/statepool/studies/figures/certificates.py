"""What is certified above what is measured: study 12, and study 1's bound."""

from collections.abc import Mapping
from math import log, sqrt

from statepool.report.palette import ACTION, AMBER, INK, INTERLEAVED, PLUG_IN, PURPLE, STATE, Look
from statepool.report.sheet import Sheet, label, log_axis
from statepool.report.values import Value
from statepool.studies.paper import bound_and_gain, certificate_gap
from statepool.studies.statistics import mean_of
from statepool.studies.study import Results

THEOREM, WARM_START = Look(INK, "_"), Look(PURPLE, "x")
MEASURED = {"action": ACTION, "known": STATE, "plug-in": PLUG_IN}


def draw_certificates(sheet: Sheet, results: Mapping[str, Results]) -> None:
    found = results["certificate-gap"]
    left, right = sheet.panels(2, 2.3)
    sizes = certificate_gap.ACTIONS
    rows = certificate_gap.tables(found)[1].rows
    places = [f"K={k}" for k in sizes]
    certificates = (("Theorem 3", THEOREM), ("warm start", WARM_START))
    for ax in (left, right):
        log_axis(ax.xaxis, sizes)
        ax.set_xlabel("actions $K$")
    log_axis(left.yaxis, [200, 500, 1000, 2000, 5000, 10000], ["200", "500", "1 000", "2 000", "5 000", "10 000"])
    for name, look in certificates:
        ratios = [rows[place][f"{name} / plug-in"] for place in places]
        bounds = [
            Value(ratio.number * rows[place]["plug-in"].number, None, 0)
            for ratio, place in zip(ratios, places, strict=True)
        ]
        sheet.bound(left, sizes, bounds, look, name, places)
        sheet.bound(right, sizes, ratios, look, f"{name} over the plug-in's regret", places)
        unknown = name == "warm start"
        title = "best rate for an unknown map" if unknown else "Theorem 3, map known"
        label(left, sizes[0], bounds[0].number, title, look.colour, (0, 13) if unknown else (12, -9), ha="left")
        spot = 1 if unknown else 2
        label(right, sizes[spot], ratios[spot].number, title, look.colour, (6, 6) if unknown else (-12, -11), ha="left")
    for name, look in MEASURED.items():
        values = [rows[place][name] for place in places]
        sheet.series(left, sizes, values, look, f"{name}, measured", places)
    label(left, sizes[2], rows["K=40"]["action"].number, "measured: action-level", ACTION.colour, (0, 9), ha="center")
    label(left, sizes[3], rows["K=80"]["known"].number, "map known, map estimated", STATE.colour, (0, -11), ha="center")
    left.set(ylim=(150, None), ylabel="regret over $T=5\\,000$", title="Certified and measured")
    right.set(ylim=(0, 21), ylabel="times the plug-in's regret", title="How loose the certificates are")


def draw_bound_and_gain(sheet: Sheet, results: Mapping[str, Results]) -> None:
    found = results["bound-and-gain"]
    left, right = sheet.panels(2, 2.2)
    sizes, delays = bound_and_gain.ACTIONS, bound_and_gain.DELAYS
    looks = {"interleaved": INTERLEAVED, "action": ACTION, "state": STATE}
    log_axis(left.xaxis, sizes)
    log_axis(left.yaxis, [300, 500, 1000, 2000, 4000])
    places = [f"K={k}" for k in sizes]
    spots: dict[str, tuple[int, tuple[float, float], str]] = {
        "interleaved": (0, (0, 10), "left"), "action": (3, (0, 9), "right"), "state": (3, (0, -10), "right"),
    }  # fmt: skip
    for name, look in looks.items():
        values = [mean_of(found.of("actions", place, name)) for place in places]
        sheet.series(left, sizes, values, look, name, places)
        spot, shift, side = spots[name]
        label(left, sizes[spot], values[spot].number, name, look.colour, shift, ha=side)
    bounds = [Value(sqrt(2 * 51 * 4 * 10_000 * log(k)), None, 0) for k in sizes]
    sheet.bound(left, sizes, bounds, Look(AMBER, "_"), "bound on the interleaved learner", places)
    label(left, sizes[1], bounds[1].number, "bound on the interleaved learner", AMBER, (4, -12), ha="left")
    left.set(xlabel="actions $K$", title="Regret at $d=50$")
    log_axis(right.xaxis, delays)
    places = [f"d={d}" for d in delays]
    for name in ("action", "state"):
        values = [mean_of(found.of("delay", place, name)) for place in places]
        sheet.series(right, delays, values, looks[name], name, places)
        above = 10 if name == "action" else -10
        label(right, delays[1], values[1].number, name, looks[name].colour, (0, above), ha="center")
    right.set(xlabel="delay $d$", title="Regret at $K=40$", ylim=(0, None))
    left.set_ylim(280, 5_500)
