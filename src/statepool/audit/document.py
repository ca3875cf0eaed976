"""What was found, said once: sentences and tables that terminal, report and `AUDIT.json` share; verdicts: `advice`.

`summary_of` is the answer in a few lines, `sections_of` everything behind it, `write_report` one HTML file of both, and
`document_of` plain data: first a pool ready to start, in the user's own unit, then what was found.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import stdtrit
from scipy.stats import chisquare

from statepool.audit.advice import ALWAYS, BLIND, HOLDOUT, is_alike
from statepool.audit.contexts import OPEN, PAYS, Contexts
from statepool.audit.delays import GIVEN, QUANTILES
from statepool.audit.estimates import ABSENT, HINT, LEVEL, PRESENT
from statepool.frames import amount, counted, listed, span
from statepool.report.page import render

if TYPE_CHECKING:
    from statepool.audit.audit import Audit

UNITS = {"years": 31_557_600.0, "days": 86_400.0, "hours": 3_600.0, "minutes": 60.0, "seconds": 1.0}
NAMES = {"action-thompson": "Thompson sampling per action"}


class Table(NamedTuple):
    """Rows of text, the first of each its name, under a heading for each of the others."""

    title: str
    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str = ""


class Section(NamedTuple):
    name: str
    title: str
    lines: list[str]
    tables: Sequence[Table] = ()


class Summary(NamedTuple):
    """How the log was read, at most three reasons for the verdict, and what to do."""

    reading: list[str]
    reasons: list[str]
    todo: list[str]


def summary_of(audit: Audit, first: str = "", file: Path = Path("AUDIT.json")) -> Summary:
    """`first`: what to do before a pool is started from the file."""
    todo = _todo(audit, f"{first}statepool serve --map {shlex.quote(str(file))}")
    return Summary([_reading(audit), *_window(audit), *_rows(audit), *audit.log.notes], _reasons(audit), todo)


def _reading(audit: Audit) -> str:
    unit, counts, how = audit.unit, audit.counts, audit.log.columns.direction
    seen = np.flatnonzero(counts.k.sum(axis=0) > 0)
    differ = seen.size > 1 and np.ptp(counts.state_means[seen]) > 0
    ends = f": best state {counts.states[seen[0]]}, worst {counts.states[seen[-1]]}" if differ else ""
    measured = "" if unit.name == unit.column else f", in {unit.name}"
    return f"{unit.column} is read as {unit.kind} ({how}){measured}{ends}."


def _window(audit: Audit) -> list[str]:
    maturity, counts = audit.maturity, audit.counts
    if maturity.window is None:
        if maturity.how == GIVEN or audit.rows.dated.any() or not counts.has_outcomes:
            return []
        options = "--window 14d" if audit.rows.timed else "--decided COLUMN and --window 14d"
        return [
            "Outcomes have no times, so the window is not known and the pool has none. "
            f"Give it with {options}, or say --window 0 if all outcomes are final."
        ]
    young = round(float((audit.rows.decided > maturity.cut).mean()) * counts.rows)
    used = "each is weighted by its age" if maturity.curve is not None else "only their states count"
    how = "as given" if maturity.how == GIVEN else f"found: {maturity.why}; --window changes it"
    rest = f" {counted(young)} rows are younger: {used}." if young else ""
    return [f"Outcomes are final after {duration(audit, maturity.window)} ({how}).{rest}"]


def _rows(audit: Audit, most: int = 3) -> list[str]:
    """Rows that were dropped, merged or odd, if there are some."""
    counts = audit.counts
    said = []
    for what, found in (("dropped", counts.dropped), ("merged", counts.merged), ("kept", counts.notes)):
        why = [f"{why}: {counted(n)}" for why, n in found.items()] if len(found) > 1 else list(found)
        said += [f"{counted(sum(found.values()))} {what} ({listed(why, most)})"] if found else []
    lines = [f"Rows: {', '.join(said)}."] if said else []
    for label, state in [each for each in counts.spellings.items() if each[0] != each[1]][:1]:
        lines[0] += f" A pool knows each state by one spelling and rejects others: send {state!r}, not {label!r}."
    return lines


def _reasons(audit: Audit) -> list[str]:
    """At most three: what is missing, what the states explain, and what is gained over what people would do."""
    advice = audit.advice
    missing = [f"{advice.missing[0].upper()}{advice.missing[1:]}."] if advice.missing else []
    if missing and advice.needed is None:
        return missing
    said = _about_effects(audit)
    if is_alike(audit.counts, audit.effects):
        return [*missing, f"{said} No choice among the actions gains anything that the log can see."]
    if audit.effects.blind > 0:
        blind = f"{amount(audit.effects.blind * audit.unit.scale)}{audit.unit.suffix} per decision"
        well = f"Choosing well gains {blind} over choosing blindly."
        low, high = (f"{100 * share:.0f}" for share in audit.effects.lost)
        share = high if low == high else f"{low} to {high}"
        lost = f"Choosing through the states alone loses {share} % of the {blind} that can be gained."
        said = f"{said} {lost if audit.sufficiency.effects == PRESENT else well}"
    return [*missing, said, *([_why_not(audit)] if advice.expected else [])]


def _about_effects(audit: Audit) -> str:
    found, n_states = audit.sufficiency, audit.counts.n_states
    if found.effects == ABSENT:
        return f"In the same state, actions do not differ beyond chance (p = {found.p:.2g})."
    states, amounts = ([p for p in ps if p < LEVEL] for ps in (found.corrected[:n_states], found.corrected[n_states:]))
    few, no_more = ("a little ", ": a hint of direct effects, no more") if found.effects == HINT else ("", "")
    if not states:
        return f"Amounts of actions differ {few}beyond chance (p = {amounts[0]:.1g}){no_more}."
    also = f", as do amounts (p = {amounts[0]:.1g})" if amounts else ""
    where = f"In {len(states)} of {n_states} states actions differ {few}beyond chance"
    return f"{where} (smallest p = {min(states):.1g}){also}{no_more}."


def _why_not(audit: Audit) -> str:
    advice, scale, contexts = audit.advice, audit.unit.scale, audit.contexts
    expected = {one.name: one for one in advice.expected}
    best, own = audit.counts.actions[advice.ranking.order[0]], expected[advice.learner or ""]
    half = float(stdtrit(own.by_world.size - 1, 0.5 + audit.level / 2)) * own.error
    ends = span(scale * (own.regret - half), scale * (own.regret + half))
    shown = {name: amount(one.regret * scale) for name, one in expected.items()}
    lost = f"{shown[ALWAYS]}{audit.unit.suffix}" if expected[ALWAYS].regret > 0 else "nothing"
    others = [name for name in ("action-thompson", BLIND) if name != advice.learner]
    rest = "".join(f"; {NAMES.get(name, name)} {shown[name]}" for name in others)
    alone = f" All without the choice by {' and '.join(contexts.columns)}." if contexts and contexts.pays else ""
    return (
        f"Always showing {best} would lose {lost} in {counted(advice.horizon)} simulated decisions, if the log is "
        f"right and nothing changes. The pool would lose {shown[own.name]}{audit.unit.suffix} in all ({ends}), as it "
        f"keeps checking the others{rest}.{alone}"
    )


def _todo(audit: Audit, command: str) -> list[str]:
    counts, log, learner = audit.counts, audit.log, audit.advice.learner
    if learner is None:
        draw = f"Give {100 * HOLDOUT:.0f} % of the visitors an action drawn at random"
        if audit.held or counts.weighted:
            draw = "Go on choosing actions as in this log"
        elif chisquare(counts.n.sum(axis=1)).pvalue >= LEVEL:
            draw = "Go on drawing actions at random as in this log"
        wait = "Let the pool go on" if log.runs else f"Start no pool yet. {draw}"
        lines = [_how_much_more(audit), f"{wait}, then audit again."]
        open_for = (log.window or 0.0) - (audit.rows.latest - audit.rows.first)
        if not counts.has_outcomes and open_for > 0:
            lines = [f"The first window closes in {duration(audit, open_for)}; ask again then."]
    elif log.runs == learner:
        lines = [f"Let the pool go on: it runs {learner}, which is right for this log.", _start(audit)]
    else:
        other = f"The pool runs {log.runs}, and {learner} is right: start another" if log.runs else "Start the"
        lines = [f"{other} pool: {command} (holdout {100 * HOLDOUT:.0f} %).", _start(audit)]
    return lines if audit.contexts is None else [*lines, _about_gain(audit, audit.contexts)]


def _start(audit: Audit) -> str:
    ranking, names = audit.advice.ranking, audit.counts.actions
    low, high = ranking.interval
    others = listed([names[a] for a in ranking.alike])
    worth = f"{ranking.mean:.3g}{audit.unit.suffix} per decision ({low:.3g} to {high:.3g})"
    alike = f"; {others} may be as good" if others else ""
    best, by_context = f"{names[ranking.first]}: {worth}{alike}.", _by_context(audit)
    lead = "A new pool would start" if audit.log.runs else "It starts"
    if not by_context:
        return f"{lead} on {best}"
    first = listed([f"{action} for {name}" for name, action in by_context.items()])
    return f"{lead} on {first}. For all together the best is {best}"


def _by_context(audit: Audit) -> dict[str, str]:
    return {name: audit.counts.actions[a] for name, a in audit.advice.ranking.starts.items() if name}


def _how_much_more(audit: Audit) -> str:
    """What is missing for a verdict, and how much of it."""
    needed, pace = audit.advice.needed, audit.rows.pace
    if needed is None:
        return "The log needs final outcomes that differ, of two or more actions, in two or more states."
    about = counted(float(f"{needed:.2g}"))
    spent = f" (about {duration(audit, needed / pace)} at this rate)" if pace and audit.seconds else ""
    return f"About {about} more rows with an outcome{spent} would tell, with actions chosen as in this log."


def _about_gain(audit: Audit, contexts: Contexts) -> str:
    unit, title, gain = audit.unit, " and ".join(contexts.columns), contexts.gain
    value, low, high = (end * unit.scale for end in (gain.value, gain.lower, gain.upper))
    then = ": the pool has a map for each context" if gain.verdict == PAYS and audit.advice.learner else ""
    worth = f"{amount(value)}{unit.suffix} per decision, {span(low, high)}"
    said = f"The log cannot tell whether a choice by {title} pays"
    return f"{said if gain.verdict == OPEN else f'A choice by {title} {gain.verdict}'} ({worth}){then}."


def _about_log(audit: Audit) -> list[str]:
    counts, sampled, columns = audit.counts, audit.rows.action.size, audit.log.columns
    read = f"{counted(counts.rows)} of {counted(counts.total)} rows used, {counted(counts.k.sum())} final outcomes"
    read += "" if audit.maturity.default is None else " (events or not)"
    named = [f"{part} {column}" for part, column in vars(columns).items() if isinstance(column, str)][:-1]
    lines = [
        f"{read}." if counts.rows == sampled else f"{read}; time is looked at in {counted(sampled)} of them.",
        f"Columns: {', '.join(named + [f'context {name}' for name in columns.context])}.",
    ]
    if counts.weighted:
        worth = counted(float(counts.effective_rows.sum()))
        lines.append(f"Rows are weighted by 1/propensity and are worth {worth} even ones.")
    if audit.held:
        lines.append("Means and effects rest on the holdout alone, where actions were drawn at random.")
    if counts.blank and audit.maturity.window is None:
        lines.append(f"{counted(counts.blank)} rows have a blank outcome; --missing 0 if nothing happened there.")
    lines += _rows(audit, counts.rows)
    new = [name for name, is_new in zip(counts.actions, counts.is_new, strict=True) if is_new]
    if new and counts.has_outcomes:
        lines.append(f"New, without a final outcome: {listed(new)}; ranked last, and kept in the pool.")
    if not audit.rows.timed:
        lines.append("No decision times (--decided): drift and direct effects look alike; delays are unknown.")
    return lines


def _about_time(audit: Audit) -> list[str]:
    late, drift, unit = audit.lateness, audit.drift, audit.unit
    lines = [f"Outcomes have no times (--resolved): a delay of {late.draws[0]:.0f} decisions was assumed (--delay)."]
    if late.window:
        lines = ["Too few events have times to say how late they come: half of the window was assumed."]
    if late.time:
        what = "events" if late.window else "outcomes"
        half, most = (duration(audit, late.time[i]) for i in (1, 2))
        lines = [f"Half of all {what} come within {half}, nine in ten within {most}."]
    drifting = np.count_nonzero(drift.spread)
    if drifting:
        spread = amount(float(drift.spread.max()) * unit.scale)
        ends = f"by up to {spread}{unit.suffix} (standard deviation over time)"
        lines.append(f"{drifting} of {audit.counts.n_states} state means drift, {ends}.")
    elif audit.rows.timed:
        lines.append("No state's mean drifts beyond noise.")
    return lines


def sections_of(audit: Audit) -> list[Section]:
    """At most five sections: those for which the log has something to show."""
    found = [
        Section("advice", "What to expect", [], [_regrets(audit)] if audit.advice.expected else []),
        Section("evidence", "Is the state all that matters?", [_about_effects(audit)], [_states(audit)]),
        Section("actions", "Actions and states", [], [_actions(audit)]),
        Section("time", "Delays and drift", _about_time(audit)),
        Section("log", "The log", _about_log(audit)),
    ]
    shown = found if audit.counts.has_outcomes else found[2::2]
    return [section for section in shown if section.lines or section.tables]


def _regrets(audit: Audit) -> Table:
    unit, first = audit.unit, audit.counts.actions[audit.advice.ranking.order[0]]
    rows = []
    for one in audit.advice.expected:
        name = f"always {first}" if one.name == ALWAYS else NAMES.get(one.name, one.name)
        regret, error = one.regret * unit.scale, one.error * unit.scale
        rows.append((name, f"{amount(regret)} ± {amount(error)}", amount(regret / audit.advice.horizon)))
    note = "Regret: what is lost against the best action from the start. ±: one standard error over simulated worlds."
    title = f"Regret in {counted(audit.advice.horizon)} decisions like the log's{unit.suffix and f', in{unit.suffix}'}"
    return Table(title, ("regret", "per decision"), rows, note)


def _states(audit: Audit) -> Table:
    found, counts, unit = audit.sufficiency, audit.counts, audit.unit
    means = unit.outcome(counts.state_means)
    rows = [
        (name, counted(counts.n[:, s].sum()), f"{means[s]:.3g}", f"{found.corrected[s]:.2g}")
        for s, name in enumerate(counts.states)
    ]
    rows += [("amounts, in all states", "", "", f"{p:.2g}") for p in found.corrected[counts.n_states :]]
    note = "p: that actions do not differ, corrected for the number of tests."
    return Table("State by state", ("rows", f"mean {unit.name}", "p"), rows, note)


def _actions(audit: Audit) -> Table:
    counts, effects, unit = audit.counts, audit.effects, audit.unit
    rows = []
    for a in audit.advice.ranking.order[:10]:
        own, error = unit.outcome(float(effects.own[a])), float(effects.own_error[a]) * unit.scale
        estimate = "new" if counts.is_new[a] else f"{own:.3g} ± {error:.2g}"
        rows.append((counts.actions[a], counted(counts.n[a].sum()), estimate, f"{unit.outcome(effects.pooled[a]):.3g}"))
    best = "Actions, the best first" if counts.n_actions <= 10 else f"The ten best of {counts.n_actions} actions"
    return Table(best, ("rows", f"{unit.name} per decision", "through the states"), rows)


def write_report(audit: Audit, out: Path) -> Path:
    """Write the report into the folder `out`, or as that .html file, and AUDIT.json beside it; return its path."""
    path = out if out.suffix.lower() == ".html" else out / "report.html"
    page = render(
        "statepool.audit", "audit.html", name=audit.log.name, advice=audit.advice,
        summary=summary_of(audit, file=path.parent / "AUDIT.json"), sections=sections_of(audit),
    )  # fmt: skip
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
        (path.parent / "AUDIT.json").write_text(json.dumps(audit.document, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise ValueError(f"out: cannot write {path} ({error.strerror or error})") from None
    return path


def document_of(audit: Audit) -> dict[str, Any]:
    """What `AUDIT.json` holds."""
    counts, advice, unit, late = audit.counts, audit.advice, audit.unit, audit.lateness
    order = list(advice.ranking.order)
    summary, ranking, effects = summary_of(audit), advice.ranking, audit.effects
    test, maturity, drift = audit.sufficiency, audit.maturity, audit.drift
    found = {
        "actions": [counts.actions[a] for a in order],
        "states": counts.states,
        "P": _rows_of_pool(audit, order),
        "learner": advice.learner,
        "settings": advice.settings,
        "prior": advice.prior,
        "starts_on": {
            "action": counts.actions[ranking.first], "mean": ranking.mean, "interval": ranking.interval,
            "cannot_be_told_from": [counts.actions[a] for a in ranking.alike], "by_context": _by_context(audit),
        },
        "new_actions": [counts.actions[a] for a in order if counts.is_new[a]],
        "advice": {
            "verdict": advice.verdict, "learner": advice.learner, "reasons": summary.reasons, "to_do": summary.todo,
            "missing": advice.missing, "needed": advice.needed, "holdout": HOLDOUT, "horizon": advice.horizon,
            "expected": [{"name": e.name, "regret": e.regret * unit.scale, "error": e.error * unit.scale}
                         for e in advice.expected],
        },
        "reading": {"sentence": summary.reading[0], "outcomes_are": unit.kind, "known": audit.log.columns.direction,
                    "unit": unit.name, "low": unit.low, "high": unit.high},
        "window": {"length": maturity.window, "known": maturity.how, "why": maturity.why,
                   "by_exposure": maturity.curve is not None, "sentence": " ".join(_window(audit))},
        "log": {"name": audit.log.name, "columns": vars(audit.log.columns), "rows": counts.total, "used": counts.rows,
                "with_outcome": float(counts.k.sum()), "dropped": counts.dropped, "merged": counts.merged,
                "notes": [*audit.log.notes, *(f"{n} {why}" for why, n in counts.notes.items())],
                "sampled": audit.rows.action.size, "times_in_seconds": audit.seconds, "timed": audit.rows.timed},
        "sufficiency": {"p": test.p, "direct_effects": test.effects, "amounts_p": test.amounts.p, "states": [
            {"state": name, "rows": int(counts.n[:, s].sum()), "mean": unit.outcome(counts.state_means[s]),
             "error": counts.state_errors[s] * unit.scale, "p_corrected": test.corrected[s]}
            for s, name in enumerate(counts.states)]},
        "pooling": {"regret_through_states": effects.price * unit.scale, "regret_blind": effects.blind * unit.scale,
                    "share_lost": effects.lost, "share_possible": effects.at_most,
                    "through_states": unit.outcome(effects.pooled)[order],
                    "estimated": unit.outcome(effects.own)[order], "error": effects.own_error[order] * unit.scale},
        "delays": {f"q{round(100 * q)}": time for q, time in zip(QUANTILES, late.time, strict=False)},
        "drift": {"spread": drift.spread * unit.scale},
        "personalising": audit.contexts and _context_data(audit, audit.contexts),
    }  # fmt: skip
    # Nothing but what JSON knows: arrays become lists, numbers that are none null.
    return dict(json.loads(json.dumps(found, default=lambda array: array.tolist()), parse_constant=lambda _: None))


def _rows_of_pool(audit: Audit, order: list[int]) -> Any:
    """The map; where personalising pays one for each context, without the actions that it is not offered."""
    contexts, actions = audit.contexts, audit.counts.actions
    if contexts is None or not contexts.pays:
        return audit.map.P[order]
    rows = zip(contexts.names, contexts.P, contexts.offered, strict=True)
    return {name: {actions[a]: P[a] for a in order if offered[a]} for name, P, offered in rows}


def _context_data(audit: Audit, contexts: Contexts) -> dict[str, Any]:
    unit, actions, gain = audit.unit, audit.counts.actions, contexts.gain
    return {
        "columns": contexts.columns, "sentence": _about_gain(audit, contexts), "in_pool": contexts.pays,
        "verdict": gain.verdict, "gain": {name: end * unit.scale for name, end in gain._asdict().items()},
        "best": {name: actions[contexts.best[c]] for c, name in enumerate(contexts.names)},
        "rows": {name: int(contexts.rows[c]) for c, name in enumerate(contexts.names)}, "no_context": contexts.blank,
    }  # fmt: skip


def duration(audit: Audit, value: float) -> str:
    """A length of time in a suitable unit."""
    if not audit.seconds:
        return f"{value:.4g}"
    unit = next((unit for unit, size in UNITS.items() if value >= 2 * size), "seconds")
    return f"{amount(value / UNITS[unit])} {unit}"
