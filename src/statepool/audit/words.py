"""What was found, in sentences: the same ones on the terminal and in the report."""

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from statepool.audit.auditing import Audit

_UNITS = ((86_400 * 2, 86_400, "days"), (7_200, 3_600, "hours"), (120, 60, "minutes"), (0, 1, "seconds"))


def about_rows(audit: "Audit") -> list[str]:
    counts, sampled = audit.counts, audit.rows.action.size
    found = [
        f"{counted(counts.rows)} of {counted(counts.total)} rows used, {counted(counts.k.sum())} with an outcome"
        + ("." if counts.rows == sampled else f"; what concerns time is read off {counted(sampled)} of them.")
    ]
    found += [f"Dropped: {counted(n)} ({why})." for why, n in counts.dropped.items()]
    found += [f"Kept, but odd: {counted(n)} ({why})." for why, n in counts.notes.items()]
    if audit.rows.backwards:
        found.append(f"Kept, without their delay: {counted(audit.rows.backwards)} (outcome before its decision).")
    if audit.columns.resolved and audit.rows.untold:
        found.append(f"Kept, without their delay: {counted(audit.rows.untold)} (outcome without its time).")
    if not audit.rows.timed:
        found.append(
            "The log has no decision times (--decided): drift cannot be told from direct effects, and delays are "
            "unknown."
        )
    return found


def about_map(audit: "Audit") -> list[str]:
    width, map_ = audit.width, audit.map
    closed = "" if width.reached else " (time ran out before the bracket closed)"
    return [
        f"{width.n_actions} actions over {width.n_states} states behave like {width.lower:.2f} to {width.upper:.2f} "
        f"different ones{closed}, ± {width.error:.2f} from sampling: {width.smaller:.0f} times fewer.",
        f"Rows of the map lean on {'their group' if audit.counts.groups else 'the average row'} as if "
        f"{map_.strength:.0f} more decisions had been seen.",
    ]


def about_pooling(audit: "Audit") -> list[str]:
    e = audit.effects
    if audit.counts.n_actions < 2:
        return []
    return [
        f"Mean losses of actions differ by {e.spread_pooled:.3f} (standard deviation) through the states and by "
        f"{e.spread_direct:.3f} directly; predicted and true means correlate {e.correlation:.2f}.",
        f"Choosing by the pooled estimate costs {e.price:.3f} a decision (95 % of draws: {e.price_interval[0]:.3f} to "
        f"{e.price_interval[1]:.3f}), {e.lost:.0%} of what blind choice costs. Judged on outcomes not used to choose, "
        f"correcting saves {e.saving:.3f} ± {e.saving_error:.3f}.".replace("-", "−"),
    ]


def about_delays(audit: "Audit") -> list[str]:
    late = audit.lateness
    if not late.known:
        given = f"{late.decisions[1]:.0f} decisions were assumed" if late.decisions[1] else "none was assumed"
        times = "outcome times after decision times" if audit.columns.resolved else "outcome times (--resolved)"
        return [f"The log has no {times}, so delays are unknown: {given} (--delay)."]
    found = [
        f"Half of the outcomes come within {duration(audit, late.time[1])} and {late.decisions[1]:.0f} further "
        f"decisions, nine in ten within {duration(audit, late.time[2])} and {late.decisions[2]:.0f}; "
        f"{late.waiting:.1%} may still come, {late.never:.1%} never do."
    ]
    if late.misleads:
        better = "lower" if late.early < late.late else "higher"
        found.append(
            f"Early outcomes mislead: in the same state, the earlier half has a mean loss "
            f"{abs(late.early - late.late):.3f} {better} than the later half."
        )
    return found


def about_drift(audit: "Audit") -> list[str]:
    drift = audit.drift
    if not drift.known:
        return []
    drifting = sum(drift.drifts)
    if not drifting:
        return ["No state's mean drifts beyond noise."]
    return [
        f"{drifting} of {audit.counts.n_states} state means drift, by up to {float(drift.spread.max()):.3f} (standard "
        f"deviation over time); E2 is {drift.e2:.3g} and the floor under every learner {drift.floor:.3g} over the log, "
        f"{drift.floor / max(audit.counts.rows, 1):.2g} a decision."
    ]


def about_states(audit: "Audit") -> list[str]:
    names, states = audit.counts.states, audit.states
    found = []
    if states.groups is not None and len(set(states.groups)) < len(names):
        merged = [[names[s] for s, g in enumerate(states.groups) if g == group] for group in sorted(set(states.groups))]
        found.append("Merge: " + "; ".join(" + ".join(group) for group in merged if len(group) > 1) + ".")
    elif states.groups is not None:
        found.append("No states are worth merging.")
    if states.silent:
        found.append("Tell next to nothing about actions: " + ", ".join(names[s] for s in states.silent) + ".")
    if states.unseen:
        found.append("Never seen with an outcome: " + ", ".join(names[s] for s in states.unseen) + ".")
    return found


def about_propensities(audit: "Audit") -> list[str]:
    p = audit.propensities
    if p is None:
        return []
    return [
        f"By propensities the pooled choice has a mean loss of {p.weighted:.3f} ({p.plain:.3f} unweighted); the log is "
        f"worth {p.share_effective:.0%} of its rows, and the largest gap between both means of an action is "
        f"{p.largest_gap:.1f} standard errors."
    ]


def counted(number: float) -> str:
    """A whole number with its thousands set apart."""
    return f"{round(number):,}".replace(",", "\N{NO-BREAK SPACE}")


def duration(audit: "Audit", value: float) -> str:
    """A length of time as people say it."""
    if math.isnan(value):
        return "more than the log shows"
    if not audit.seconds:
        return f"{value:.4g}"
    size, unit = next((size, unit) for least, size, unit in _UNITS if value >= least)
    return f"{value / size:.3g} {unit}"
