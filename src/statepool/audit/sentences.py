"""What was found, in sentences: the same ones on the terminal and in the report."""

import math
from typing import TYPE_CHECKING

from statepool.audit.advice import BLIND, live_learner
from statepool.audit.effects import LEVEL
from statepool.audit.sufficiency import Sufficiency
from statepool.audit.units import Unit
from statepool.audit.verdict import ALONE, CORRECT, HOLDOUT, LARGE, LITTLE, POOL, SMALL, UNCLEAR, is_alike

if TYPE_CHECKING:
    from statepool.audit.audit import Audit

_UNITS = ((86_400 * 2, 86_400.0, "days"), (7_200, 3_600.0, "hours"), (120, 60.0, "minutes"), (0, 1.0, "seconds"))


def about_rows(audit: "Audit") -> list[str]:
    counts, sampled = audit.counts, audit.rows.action.size
    found = [
        f"{counted(counts.rows)} of {counted(counts.total)} rows used, {counted(counts.k.sum())} with an outcome"
        + ("." if counts.rows == sampled else f"; what concerns time is read off {counted(sampled)} of them.")
    ]
    blank = int((counts.n - counts.k).sum())
    if blank and audit.maturity.window is None:
        found.append(
            f"{counted(blank)} rows without an outcome entered the map alone; if a blank means that nothing happened, "
            "say so: --missing 0."
        )
    found += [f"Dropped: {counted(n)} ({why})." for why, n in counts.dropped.items()]
    found += [f"Kept, but odd: {counted(n)} ({why})." for why, n in counts.notes.items()]
    if audit.rows.backwards:
        found.append(f"Kept, without their delay: {counted(audit.rows.backwards)} (outcome before its decision).")
    if audit.columns.resolved and audit.rows.untold and audit.maturity.closing is None:
        found.append(f"Kept, without their delay: {counted(audit.rows.untold)} (outcome without its time).")
    if not audit.rows.timed:
        found.append(
            "The log has no decision times (--decided): drift cannot be told from direct effects, and delays are "
            "unknown."
        )
    return found


def about_reading(audit: "Audit") -> list[str]:
    """How outcomes were read: the first line of every answer."""
    unit, how = audit.unit, audit.columns.direction
    seen = [name for s, name in enumerate(audit.counts.states) if audit.counts.k[:, s].sum() > 0]
    known = {
        "told": "as told", "by its name": "by its name",
        "assumed": f"assumed; {'--loss' if unit.is_reward else '--reward'} turns it round",
    }[how]  # fmt: skip
    ends = f": best state {seen[0]}, worst {seen[-1]}" if len(seen) > 1 else ""
    return [f"Outcomes ({unit.column}) are read as {unit.kind}, {known}{ends}."]


def about_window(audit: "Audit") -> list[str]:
    """Which rows are old enough to have an outcome, what that rests on, and how to overrule it."""
    maturity, counts = audit.maturity, audit.counts
    if maturity.window is None:
        return []
    length = duration(audit, maturity.window)
    young = counted(round(float((audit.rows.decided > maturity.cut).mean()) * counts.rows))
    rest = f"{young} of {counted(counts.rows)} rows are younger: they enter the map, and no mean, drift, effect or fit."
    return {
        "given": [f"An outcome is what it is {length} after the decision. {rest}"],
        "found": [
            f"Assumed: outcomes are final {length} after the decision, since {maturity.why}. {rest} "
            "Overrule it with --window 45d, or with --window 0 if there is none."
        ],
        "settling": [
            f"Early outcomes mislead, so only rows that are {length} old count, when nearly all outcomes are in. {rest}"
            " --window 0 counts all."
        ],
    }[maturity.how]


def about_sufficiency(audit: "Audit") -> str:
    found, unit = audit.sufficiency, audit.unit
    if audit.counts.n_actions < 2:
        return "There is one action only, so there is nothing to choose."
    differ, span = differing(found, unit, "actions")
    return f"{differ}, by {span} {unit.per_decision} (standard deviation, noise taken off)." if span else f"{differ}."


def differing(found: Sufficiency, unit: Unit, between: str) -> tuple[str, str]:
    """In how many states outcomes differ between actions, or between contexts, and by how much: "" if in none."""
    rejected, n_states = [s for s, p in enumerate(found.corrected) if p < LEVEL], len(found.states)
    if not rejected:
        none = f"In none of the {n_states} states do outcomes differ between {between} beyond chance"
        return f"{none} (p = {found.p:.2g} for the whole log)", ""
    sizes = [unit.amount(found.states[s].size) for s in rejected]
    low, high = f"{min(sizes):.3g}", f"{max(sizes):.3g}"
    differ = f"In {len(rejected)} of {n_states} states outcomes differ between {between} beyond chance"
    return f"{differ} (p = {found.p:.1g})", low if low == high else f"{low} to {high}"


def about_price(audit: "Audit") -> str:
    counts, effects, unit = audit.counts, audit.effects, audit.unit
    if counts.n_actions < 2:
        mean = float(counts.loss.sum() / max(counts.k.sum(), 1))
        return f"Its mean is {unit.outcome(mean):.3g} {unit.per_decision}, whatever is learnt."
    if effects.spread_pooled < 1e-3 and effects.spread_direct < 1e-3:
        return "No difference between the actions is seen beyond noise, neither through the states nor otherwise."
    price = f"{unit.amount(effects.price):.3g} {unit.per_decision} worse than the best"
    if f"{unit.amount(effects.price):.2f}" == "0.00" and effects.price < effects.blind / 100:
        price = "as good as the best, as far as the log tells"
    return (
        f"The action that looks best through the states is {price}, where choosing blindly is "
        f"{unit.amount(effects.blind):.3g} {unit.per_decision} worse; the pooled estimate "
        f"ranks the actions with a correlation of {effects.rank_correlation:.2f}."
    )


def about_regret(audit: "Audit") -> str:
    advice, unit = audit.advice, audit.unit
    chosen = next(e for e in advice.expected if e.learner == advice.learner)
    others = [e for e in advice.expected if e.learner != advice.learner and e.kind != BLIND]
    blind = next(e for e in advice.expected if e.kind == BLIND)
    text = (
        f"On instances fitted to the log, {counted(advice.horizon)} decisions with its own delays and direct effects, "
        f"{chosen.learner} has a regret of {amount(unit.amount(chosen.regret))}{unit.of_unit} (choosing blindly: "
        f"{amount(unit.amount(blind.regret))})"
    )
    if advice.ties:
        return f"{text}; {' and '.join(advice.ties)} {'is' if len(advice.ties) == 1 else 'are'} as good within noise."
    if not others:
        return f"{text}."
    rival = min(others, key=lambda e: e.regret)
    return f"{text} against {amount(unit.amount(rival.regret))} of {rival.learner}, the next best."


ERRORS = "±: one standard error."
TELLS = "tells: the state's part in what the states predict of the differences between actions."


def about_regret_itself(audit: "Audit") -> str:
    """Regret, defined once."""
    unit = audit.unit
    many, fewer, more = ("many", "fewer", "more") if unit.is_counted else ("much", "less", "more")
    told = fewer if unit.is_reward else more
    what = unit.name if unit.of_unit else "reward" if unit.is_reward else "loss"
    return f"Regret: how {many} {told} {what} than if the best action had been played all along. {ERRORS}"


def reasons(audit: "Audit") -> tuple[str, ...]:
    """What the verdict rests on."""
    first = () if not audit.advice.missing else (f"{audit.advice.missing[0].upper()}{audit.advice.missing[1:]}.",)
    if not audit.counts.has_outcomes:
        return first
    return (*first, about_sufficiency(audit), about_price(audit), about_regret(audit))


def what_would_change_it(audit: "Audit") -> list[str]:
    advice, effects = audit.advice, audit.effects
    if advice.verdict == UNCLEAR:
        return [how_much_more(audit)]
    low, high = min(effects.possible.at_least), max(effects.possible.at_most)
    lost = f"loses {low:.0%} to {min(high, 1):.0%} of what can be gained"
    kept = f"The log leaves open that choosing through the states {lost}"
    return [
        {
            POOL: f"{kept}; direct effects that cost {SMALL:.0%} and more would call for corrections.",
            CORRECT: f"{kept}; under {SMALL:.0%} plain pooling would do, from {LARGE:.0%} on it would not be worth it.",
            ALONE: f"{kept}; a state that tells the actions apart, seen at once, would make pooling worth it.",
        }[advice.verdict]
    ]


def how_much_more(audit: "Audit") -> str:
    """What is missing for a verdict, and how much of it."""
    needed, pace = audit.advice.needed, pace_of(audit)
    if needed is None:
        return _what_else(audit)
    if needed.holdout:
        decisions = max(needed.decisions_with_holdout, 1)
        spent = f" (about {duration(audit, decisions / pace)} at the log's pace)" if pace and audit.seconds else ""
        return (
            f"Too little was tried: a holdout of {HOLDOUT:.0%}, every action alike, for about {rounded(decisions)} "
            f"decisions{spent} would tell."
        )
    wait = f", {duration(audit, needed.more / pace)} at the log's pace" if pace and audit.seconds else ""
    return f"About {rounded(max(needed.more, 1))} more rows with an outcome would tell{wait}."


def _what_else(audit: "Audit") -> str:
    counts, maturity = audit.counts, audit.maturity
    if not counts.has_outcomes and maturity.window is not None:
        span = audit.rows.latest - float(audit.rows.decided[0])
        left = max(maturity.window - span, 0) + 0.25 * maturity.window
        return (
            f"The window of {duration(audit, maturity.window)} is not over for any row (the log spans "
            f"{duration(audit, span)}): wait for about {duration(audit, left)}, then audit again."
        )
    if counts.n_actions < 2:
        return f"Try other actions: a holdout of {HOLDOUT:.0%} among two or more."
    if counts.n_states < 2:
        return "Log what is seen at once in at least two states: a click, a depth, a time on the page."
    return "Log outcomes that differ."


def pace_of(audit: "Audit") -> float:
    """Decisions in a unit of time; 0 if the log has no times."""
    if not audit.rows.timed or audit.rows.decided.size < 2:
        return 0.0
    span = float(audit.rows.decided[-1] - audit.rows.decided[0])
    return audit.counts.rows / span if span > 0 else 0.0


def _where_pooling_does_not_pay(audit: "Audit") -> str:
    if is_alike(audit.effects):
        return (
            "The actions are alike: no choice among them gains "
            f"{audit.unit.amount(LITTLE):.3g} {audit.unit.per_decision}. Look for actions that differ, or for who "
            "differs (--context); AUDIT.json keeps the map for the record."
        )
    return "Learn action by action, or look for a state that says more; AUDIT.json keeps the map for the record."


SHOWN = 4
"""How many actions are named that cannot be told from the best."""


def where_it_starts(audit: "Audit") -> str:
    """The first action of AUDIT.json, and what it rests on."""
    ranking, unit, names = audit.ranking, audit.unit, audit.counts.actions
    name = names[ranking.order[0]]
    if not ranking.through_states:
        return f"AUDIT.json lists the most played action first, {name}: a pool starts on the first."
    ends = sorted((unit.outcome(ranking.lower), unit.outcome(ranking.upper)))
    found = (
        f"It starts on {name}, which looks best through the states: {unit.outcome(ranking.loss):.3g} "
        f"{unit.per_decision} ({audit.map.level:.0%}: {ends[0]:.3g} to {ends[1]:.3g})"
    )
    others = [names[a] for a in ranking.alike[:SHOWN]]
    if not others:
        return f"{found}."
    more = f" and {counted(len(ranking.alike) - SHOWN)} more" if len(ranking.alike) > SHOWN else ""
    return f"{found}; the log cannot tell it apart from {', '.join(others)}{more}."


def what_to_do(audit: "Audit", serve: str = "statepool serve --map AUDIT.json") -> list[str]:
    """On Monday; `serve` is how to start the pool."""
    start = f"Start the pool that AUDIT.json describes ({serve}) with a holdout of"
    kept = f"{start} {HOLDOUT:.0%}, and look after a window of outcomes at what it gains over the holdout."
    live = live_learner(audit.advice)
    nearest = "" if live == audit.advice.learner else f" It runs {live}, the nearest to {audit.advice.learner} live."
    return {
        POOL: [kept + nearest, where_it_starts(audit)],
        CORRECT: [
            kept + nearest,
            where_it_starts(audit),
            "Audit its journal after a month: direct effects that were small may have grown.",
        ],
        ALONE: [_where_pooling_does_not_pay(audit)],
        UNCLEAR: [
            "Gather what is missing, then audit again; nothing here speaks for one verdict yet.",
            where_it_starts(audit),
        ],
    }[audit.advice.verdict]


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
    e, unit = audit.effects, audit.unit
    if audit.counts.n_actions < 2:
        return []
    price, low, high = (unit.amount(value) for value in (e.price, *e.price_interval))
    return [
        f"Means of actions differ by {unit.amount(e.spread_pooled):.3g}{unit.of_unit} (standard deviation) through the "
        f"states and by {unit.amount(e.spread_direct):.3g} directly; predicted and true means correlate "
        f"{e.correlation:.2f}.",
        f"Choosing by the pooled estimate costs {price:.3g} {unit.per_decision} (95 % of draws: {low:.3g} to "
        f"{high:.3g}), {e.lost:.0%} of what blind choice costs. Judged on outcomes not used to choose, "
        f"correcting saves {unit.amount(e.saving):.3g} ± {unit.amount(e.saving_error):.2g}.".replace(" -", " −"),
    ]


def about_delays(audit: "Audit") -> list[str]:
    late = audit.lateness
    shares = f"{late.come:.1%} of outcomes are in, {late.waiting:.1%} may still come, {late.gone:.1%} never will."
    if not late.known:
        given = f"{late.decisions[1]:.0f} decisions were assumed" if late.decisions[1] else "none was assumed"
        times = "outcome times after decision times" if audit.columns.resolved else "outcome times (--resolved)"
        return [f"The log has no {times}, so delays are unknown: {given} (--delay). {shares}"]
    found = [
        f"Half of the outcomes are known within {duration(audit, late.time[1])} and {late.decisions[1]:.0f} further "
        f"decisions, nine in ten within {duration(audit, late.time[2])} and {late.decisions[2]:.0f}. {shares}"
    ]
    if late.better and late.worse and not 0.8 <= late.better[1] / max(late.worse[1], 1e-9) <= 1.25:
        found.append(
            f"Outcomes better than the mean take {duration(audit, late.better[1])} (median), worse ones "
            f"{duration(audit, late.worse[1])}; each kind is reckoned by its own delays."
        )
    if late.misleads:
        better = "better" if late.early < late.late else "worse"
        found.append(
            f"Early outcomes mislead: in the same state, the earlier half is "
            f"{audit.unit.amount(abs(late.early - late.late)):.3g}{audit.unit.of_unit} {better} than the later half."
        )
    return found


def about_drift(audit: "Audit") -> list[str]:
    drift, unit = audit.drift, audit.unit
    if not drift.known:
        return []
    drifting = sum(drift.drifts)
    if not drifting:
        return ["No state's mean drifts beyond noise."]
    return [
        f"{drifting} of {audit.counts.n_states} state means drift, by up to "
        f"{unit.amount(float(drift.spread.max())):.3g}{unit.of_unit} (standard deviation over time); "
        f"E2 is {drift.e2:.3g} and the floor under every learner "
        f"{amount(unit.amount(drift.floor))}{unit.of_unit} over the log, "
        f"{unit.amount(drift.floor) / max(audit.counts.rows, 1):.2g} a decision."
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
        silent = [names[s] for s in states.silent]
        whose = "This state tells" if len(silent) == 1 else "These states tell"
        found.append(f"{whose} next to nothing about which action was played: {', '.join(silent)}.")
    if states.unseen:
        found.append("Never seen with an outcome: " + ", ".join(names[s] for s in states.unseen) + ".")
    return found


def about_propensities(audit: "Audit") -> list[str]:
    p, unit = audit.propensities, audit.unit
    if p is None or not audit.counts.has_outcomes:
        return []
    held = ["Means and effects rest on the rows of the holdout alone, where chance chose."] if p.held else []
    return [
        *held,
        f"Rows are weighted by how likely their action was: {counted(audit.counts.rows)} rows are worth "
        f"{counted(p.effective)} ({p.share_effective:.0%}). The pooled choice has a mean of "
        f"{unit.outcome(p.weighted):.3g}{unit.of_unit} ({unit.outcome(p.plain):.3g} unweighted); "
        f"the largest gap between both means of an action is "
        f"{p.largest_gap:.1f} standard errors.",
    ]


def counted(number: float) -> str:
    """A whole number with its thousands set apart."""
    return f"{round(number):,}".replace(",", "\N{NO-BREAK SPACE}")


def amount(number: float) -> str:
    """An amount in the user's unit: whole where it is large."""
    return counted(number) if abs(number) >= 10 else f"{number:.2g}"


def rounded(number: float) -> str:
    """A number that is only about right, to two digits."""
    return counted(float(f"{number:.2g}"))


def duration(audit: "Audit", value: float) -> str:
    """A length of time as people say it."""
    if math.isnan(value):
        return "more than the log shows"
    size, unit = unit_of_time(audit, value)
    return f"{value / size:.3g} {unit}" if audit.seconds else f"{value:.4g}"


def unit_of_time(audit: "Audit", value: float) -> tuple[float, str]:
    """How many seconds the unit has in which people say such a length, and its name."""
    if not audit.seconds:
        return 1.0, "as given"
    return next((size, unit) for least, size, unit in _UNITS if value >= least)
