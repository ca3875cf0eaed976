"""The audit as plain data: what `--json` prints and `AUDIT.json` holds.

The first five keys are a pool ready to start: `actions`, `states`, `P`, `learner`, and the pool's `settings` in the
user's own unit: bounds of rewards or losses, expiry and default loss from the window, a holdout. Where contexts were
asked about `P` is {context: rows}. The learner advised stands under `advice`; `learner` is the nearest to it that a
pool runs. Whatever has an entry for each action lists them in the order of `actions`, the one that looks best first.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from statepool.audit import sentences
from statepool.audit.advice import live_learner
from statepool.audit.context_sentences import about_contexts, tables_of
from statepool.audit.delays import QUANTILES
from statepool.audit.verdict import HOLDOUT

if TYPE_CHECKING:
    from statepool.audit.audit import Audit


def document_of(audit: "Audit") -> dict[str, Any]:
    order = list(audit.ranking.order)
    document = {
        "actions": [audit.counts.actions[a] for a in order],
        "states": list(audit.counts.states),
        "P": audit.map.P[order] if audit.personal is None else tables_of(audit.personal, audit.counts.actions, order),
        "learner": _learner(audit),
        "settings": pool_settings(audit),
        "starts_on": _first(audit),
        "advice": _advice(audit),
        "reading": _reading(audit),
        "window": _window(audit),
        "log": _log(audit),
        "map": _map(audit),
        "sufficiency": _sufficiency(audit),
        "pooling": _pooling(audit),
        "delays": _delays(audit),
        "drift": _drift(audit),
        "merging": _merging(audit),
        "personalising": _personalising(audit),
        "propensities": None if audit.propensities is None else dict(vars(audit.propensities)),
    }
    return plain(document)


def _learner(audit: "Audit") -> str | dict[str, Any]:
    """The same as `PUT /v1/pools/{name}` takes it: its name, and with settings of its own both."""
    runs, options = live_learner(audit.advice), audit.advice.settings
    return {"name": runs, "options": options} if options and runs == audit.advice.learner else runs


def pool_settings(audit: "Audit") -> dict[str, Any]:
    """The pool's settings, so that it takes outcomes in the log's own unit."""
    unit, maturity = audit.unit, audit.maturity
    found: dict[str, Any] = {"holdout": HOLDOUT}
    if unit.is_reward:
        found["reward_bounds"] = [unit.low, unit.high]
    elif (unit.low, unit.high) != (0.0, 1.0):
        found["loss_bounds"] = [unit.low, unit.high]
    if maturity.window is not None and maturity.how != "settling":
        # What has not come by then did not happen: the outcome that is known at the end of the window only.
        closing = 1.0 if maturity.closing is None else maturity.closing
        found["expire_after"] = maturity.window
        found["default_loss"] = closing if unit.is_reward else unit.outcome(closing)
    return found


def _first(audit: "Audit") -> dict[str, Any]:
    """Why the first action is the first."""
    ranking, names = audit.ranking, audit.counts.actions
    return {
        "action": names[ranking.order[0]],
        "by": "the states" if ranking.through_states else "how often it was played",
        "mean_loss": ranking.loss,
        "interval": [ranking.lower, ranking.upper],
        "cannot_be_told_from": [names[a] for a in ranking.alike],
    }


def _reading(audit: "Audit") -> dict[str, Any]:
    unit = audit.unit
    return {
        "sentence": sentences.about_reading(audit)[0],
        "outcomes_are": unit.kind,
        "known": audit.columns.direction,
        "unit": unit.name,
        "low": unit.low,
        "high": unit.high,
    }


def _window(audit: "Audit") -> dict[str, Any]:
    maturity = audit.maturity
    return {
        "length": maturity.window,
        "known": maturity.how,
        "why": maturity.why,
        "immature_rows": int((audit.counts.n.sum()) * float((audit.rows.decided > maturity.cut).mean())),
        "sentence": " ".join(sentences.about_window(audit)),
    }


def plain(value: Any) -> Any:
    """Nothing but what JSON knows: numbers that are none become null."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


def _advice(audit: "Audit") -> dict[str, Any]:
    advice = audit.advice
    return {
        "verdict": advice.verdict,
        "reasons": sentences.reasons(audit),
        "missing": advice.missing,
        "needed": None if advice.needed is None else dict(vars(advice.needed)),
        "would_change_it": sentences.what_would_change_it(audit),
        "learner": advice.learner,
        "settings": advice.settings,
        "ties": advice.ties,
        "holdout": HOLDOUT,
        "horizon": advice.horizon,
        "expected": [dict(vars(expected)) for expected in advice.expected],
    }


def _log(audit: "Audit") -> dict[str, Any]:
    counts, rows = audit.counts, audit.rows
    untold = rows.untold if audit.columns.resolved else 0
    untimed = {"outcome before its decision": rows.backwards, "outcome without its time": untold}
    return {
        "name": audit.name,
        "columns": dict(vars(audit.columns)),
        "rows": counts.total,
        "used": counts.rows,
        "with_outcome": int(counts.k.sum()),
        "dropped": counts.dropped,
        "notes": counts.notes | {why: n for why, n in untimed.items() if n},
        "sampled": int(rows.action.size),
        "times_in_seconds": audit.seconds,
        "timed": rows.timed,
        "median_time_to_state": rows.observed,
    }


def _map(audit: "Audit") -> dict[str, Any]:
    map_, width, order = audit.map, audit.width, list(audit.ranking.order)
    return {
        "visits": audit.counts.n.sum(axis=1).astype(np.int64)[order],
        "lower": map_.lower[order],
        "upper": map_.upper[order],
        "level": map_.level,
        "prior_rows": map_.strength,
        "dimension": {"lower": width.lower, "upper": width.upper, "closed": width.reached, "error": width.error},
        "n_actions": width.n_actions,
        "n_states": width.n_states,
        "times_fewer_behaviours": width.smaller,
    }


def _sufficiency(audit: "Audit") -> dict[str, Any]:
    found = audit.sufficiency
    intervals = zip(*audit.counts.state_intervals(audit.map.level), strict=True)
    per_state = [
        {
            "state": name, "rows": test.rows, "mean_loss": mean, "mean_loss_interval": interval,
            "mean": audit.unit.outcome(mean), "p": test.p, "p_corrected": corrected,
            "direct_effect": test.size, "direct_effect_error": test.size_error,
        }
        for name, mean, interval, test, corrected in zip(
            audit.counts.states, audit.counts.state_means, intervals, found.states, found.corrected, strict=True
        )
    ]  # fmt: skip
    return {"p": found.p, "states": per_state, "adjusted_for_time": audit.rows.timed}


def _pooling(audit: "Audit") -> dict[str, Any]:
    effects, order = audit.effects, list(audit.ranking.order)
    return {
        "regret_of_choosing_by_pooling": effects.price,
        "regret_interval": effects.price_interval,
        "regret_of_choosing_blindly": effects.blind,
        "share_lost": effects.lost,
        "share_lost_by_new_actions": effects.typical_loss,
        "saved_by_correcting": effects.saving,
        "saved_by_correcting_error": effects.saving_error,
        "rank_correlation": effects.rank_correlation,
        "correlation": effects.correlation,
        "spread_through_states": effects.spread_pooled,
        "spread_of_direct_effects": effects.spread_direct,
        "predicted": effects.pooled[order],
        "estimated": effects.own[order],
    }


def _personalising(audit: "Audit") -> dict[str, Any] | None:
    personal, unit = audit.personal, audit.unit
    if personal is None:
        return None
    worth, names, actions = personal.worth, personal.contexts.names, audit.counts.actions
    return {
        "columns": personal.contexts.columns,
        "sentences": about_contexts(audit),
        "p": personal.sufficiency.p,
        "p_corrected": dict(zip(audit.counts.states, personal.sufficiency.corrected, strict=True)),
        "worth": None if worth is None else {
            "verdict": worth.verdict, "value": unit.amount(worth.value), "error": unit.amount(worth.error),
            "lower": unit.amount(worth.lower), "upper": unit.amount(worth.upper), "least": unit.amount(worth.least),
            "through_states": worth.through_states, "more_rows_a_context": personal.more,
        },
        "for_all": actions[personal.one] if personal.one >= 0 else None,
        "contexts": [
            {
                "context": name, "rows": int(personal.contexts.rows[c]), "best": actions[personal.best[c]],
                "gain": None if worth is None else unit.amount(worth.by_context[c]),
                "gain_error": None if worth is None else unit.amount(worth.errors[c]),
            }
            for c, name in enumerate(names)
        ],
        "no_context": personal.contexts.blank,
        "dimension": {"lower": personal.dimension[0], "upper": personal.dimension[1]},
        "prior_rows": {"pairs": personal.strength, "contexts": personal.lean},
    }  # fmt: skip


def _delays(audit: "Audit") -> dict[str, Any]:
    late = audit.lateness
    names = [f"q{round(100 * q)}" for q in QUANTILES]
    return {
        "known": late.known,
        "time": dict(zip(names, late.time, strict=False)),
        "decisions": dict(zip(names, late.decisions, strict=False)),
        "missing": late.missing,
        "share_come": late.come,
        "share_waiting": late.waiting,
        "share_never": late.gone,
        "never_in_the_long_run": late.never,
        "time_of_better": dict(zip(names, late.better, strict=False)),
        "time_of_worse": dict(zip(names, late.worse, strict=False)),
        "early_minus_late_loss": late.early - late.late,
        "p": late.p,
        "early_outcomes_mislead": late.misleads,
    }


def _drift(audit: "Audit") -> dict[str, Any]:
    drift = audit.drift
    return {
        "known": drift.known,
        "drifts": drift.drifts,
        "spread": drift.spread,
        "E2": drift.e2,
        "floor": drift.floor,
        "floor_per_decision": drift.floor / max(audit.counts.rows, 1),
        "times": drift.times,
        "means": drift.means,
    }


def _merging(audit: "Audit") -> dict[str, Any]:
    names, states = audit.counts.states, audit.states
    return {
        "groups": states.groups,
        "telling": dict(zip(names, states.telling, strict=True)),
        "silent": [names[s] for s in states.silent],
        "never_seen_with_an_outcome": [names[s] for s in states.unseen],
    }
