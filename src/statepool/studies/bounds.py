"""Studies 1 and 12: what pooling saves, and how far the bounds are above what is measured."""

from dataclasses import replace

from statepool.guarantees import theorem_3
from statepool.report.palette import ACTION, AMBER, INK, INTERLEAVED, PLUG_IN, PURPLE, STATE, Look
from statepool.report.sheet import Sheet, Value
from statepool.studies.study import Arms, Cell, Figure, Results, Sweep, Table, add_study, paired_with_coverage

ACTIONS, DELAYS, HORIZON = (8, 20, 40, 80), (10, 50, 200), 10_000
BAND = {"n_states": 4, "horizon": HORIZON, "drift": 0.05}
PAIR: Arms = {"state": ("state-exp3", {}), "action": ("action-exp3", {})}
ALL: Arms = {"interleaved": ("state-exp3", {"copies": "d+1"}), **PAIR}
BY_ACTIONS = Sweep("actions", [Cell(f"K={k}", "band", BAND | {"n_actions": k}, 50, ALL) for k in ACTIONS], 100, 10_000)
BY_DELAY = Sweep("delay", [Cell(f"d={d}", "band", BAND | {"n_actions": 40}, d, PAIR) for d in DELAYS], 40, 10_000)


def _bound(n_actions: int) -> float:
    return theorem_3(n_actions, delay=50, budget=4 * HORIZON).value


def _gain_row(results: Results, n_actions: int) -> dict[str, Value]:
    cell = f"K={n_actions}"
    saved = results.of("actions", cell, "action") - results.of("actions", cell, "state")
    above = results.of("actions", cell, "interleaved") > _bound(n_actions)
    return (
        results.means("actions", cell, ALL)
        | results.gain("actions", cell, "state", "action")
        | {"seeds better": Value(float((saved > 0).sum()), None, 0), "bound": Value(_bound(n_actions), None, 0)}
        | {"seeds above bound": Value(float(above.sum()), None, 0)}
    )


def _gain_tables(results: Results) -> list[Table]:
    by_delay = {
        cell: {name: replace(value, rounded_again=True) for name, value in row.items()}
        for cell, row in results.rows("delay", BY_DELAY.labels, PAIR, digits=0).items()
    }
    note = "whole numbers are rounded as in the paper: to one decimal, then again (698.49, 698.5, 699)"
    return [
        Table("Regret by number of actions", {f"K={k}": _gain_row(results, k) for k in ACTIONS}),
        Table("Regret by delay, K=40", by_delay, note),
    ]


def _draw_gain(sheet: Sheet, results: Results) -> None:
    left, right = sheet.panels(2, 2.2)
    by_actions, by_delay = (table.rows for table in _gain_tables(results))
    looks = {"interleaved": INTERLEAVED, "action": ACTION, "state": STATE}
    sheet.lines(left, ACTIONS, by_actions, {"bound": Look(AMBER, "_")}, proved=True)
    sheet.lines(left, ACTIONS, by_actions, looks, "xy", xlabel="actions $K$", title="Regret at $d=50$")
    looks.pop("interleaved")
    sheet.lines(right, DELAYS, by_delay, looks, "x", xlabel="delay $d$", title="Regret at $K=40$", ylim=(0, None))


add_study(
    "bound-and-gain",
    [BY_ACTIONS, BY_DELAY],
    _gain_tables,
    [Figure("bound-and-gain", _draw_gain)],
)

GAP_ACTIONS, S, T, DELAY = (8, 20, 40, 80, 160), 8, 5_000, 50
GAP_ARMS: Arms = {"known": ("state-exp3", {}), "plug-in": ("plug-in", {}), "action": ("action-exp3", {})}
GAP_SETTINGS = {"n_states": S, "horizon": T, "drift": 0.05}
BY_SIZE = Sweep(
    "actions", [Cell(f"K={k}", "band", GAP_SETTINGS | {"n_actions": k}, DELAY, GAP_ARMS) for k in GAP_ACTIONS], 12,
    60_000, paired_with_coverage, instance=5,
)  # fmt: skip
RATIOS = ("plug-in off known %", "action above plug-in %", "Theorem 3 / plug-in", "warm start / plug-in")


def _gap_row(results: Results, n_actions: int) -> dict[str, Value]:
    cell = f"K={n_actions}"
    row = results.means("actions", cell, GAP_ARMS)
    known, plug_in, action = (row[name].number for name in GAP_ARMS)
    kappa = results.value("actions", cell, "kappa", digits=2)
    theorem = theorem_3(n_actions, DELAY, budget=S * T).value
    warm_start = (kappa.number * S) ** 0.4 * n_actions**0.2 * T**0.8
    return row | {
        "plug-in off known %": Value(100 * abs(plug_in / known - 1)),
        "action above plug-in %": Value(100 * (action / plug_in - 1)),
        "kappa": kappa,
        "Theorem 3 / plug-in": Value(theorem / plug_in),
        "warm start / plug-in": Value(warm_start / plug_in),
    }


def _gap_tables(results: Results) -> list[Table]:
    rows = {f"K={k}": _gap_row(results, k) for k in GAP_ACTIONS}
    summary = {}
    for name in RATIOS:
        numbers = [row[name].number for row in rows.values()]
        summary[name] = {"smallest": Value(min(numbers)), "largest": Value(max(numbers))}
    return [Table("Summary over K", summary), Table("Certificates and measurements", rows)]


def _draw_certificates(sheet: Sheet, results: Results) -> None:
    left, right = sheet.panels(2, 2.3)
    rows = _gap_tables(results)[1].rows
    looks = {"action": ACTION, "known": STATE, "plug-in": PLUG_IN}
    sheet.lines(left, GAP_ACTIONS, rows, looks, "xy", ylabel="regret over $T=5\\,000$", title="Measured")
    looks = {"warm start / plug-in": Look(PURPLE, "x"), "Theorem 3 / plug-in": Look(INK, "_")}
    sheet.lines(right, GAP_ACTIONS, rows, looks, "x", proved=True, ylim=(0, 23), title="Certified, over measured")
    for ax in (left, right):
        ax.set_xlabel("actions $K$")


add_study(
    "certificate-gap",
    [BY_SIZE],
    _gap_tables,
    [Figure("certificates", _draw_certificates)],
)
