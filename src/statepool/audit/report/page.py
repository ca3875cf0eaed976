"""The page: the advice up front, then section by section what it rests on."""

from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING

from statepool.audit import sentences
from statepool.audit.advice import Expected, live_learner
from statepool.audit.context_sentences import about_contexts, about_worth
from statepool.audit.offpolicy import Evidence, estimate_play
from statepool.audit.policies import read_policy
from statepool.audit.report.contexts import context_rows
from statepool.audit.sentences import amount, counted
from statepool.audit.verdict import ALONE, UNCLEAR
from statepool.audit.whatif import cautions_of
from statepool.report.drawings import Drawing
from statepool.report.inline import figure_of
from statepool.report.page import render

if TYPE_CHECKING:
    from statepool.audit.audit import Audit

CLASSES = {"pool": "digit", "pool with corrections": "near", "do not pool": "off", "cannot tell": "near"}
Say = Callable[["Audit"], list[str]]
SECTIONS: tuple[tuple[str, str, tuple[Say, ...]], ...] = (
    ("advice", "The advice", ()),
    ("sufficiency", "Is the state all that matters?", (sentences.about_pooling,)),
    ("map", "The map", (sentences.about_map, sentences.about_propensities)),
    ("contexts", "Who is asking", (about_contexts,)),
    ("delays", "Delays", (sentences.about_window, sentences.about_delays)),
    ("drift", "Drift", (sentences.about_drift,)),
    ("states", "The states", (sentences.about_states,)),
    ("whatif", "What if?", ()),
    ("log", "The log", (sentences.about_rows,)),
)


def page_of(audit: "Audit", drawings: Sequence[Drawing]) -> str:
    parts = {
        "name": escape(audit.name),
        "headline": _headline(audit),
        "contents": _contents(audit),
        "sections": "".join(_section(audit, *section, drawings) for section in _sections(audit)),
    }
    return render(__package__, "audit.html", **parts)


def _sections(audit: "Audit") -> list[tuple[str, str, tuple[Say, ...]]]:
    """That about contexts only where they were asked about."""
    return [section for section in SECTIONS if section[0] != "contexts" or audit.personal is not None]


def _contents(audit: "Audit") -> str:
    lines = (
        f'<li><a href="#{name}"><span class="number">{i}</span><span>{title}</span></a></li>'
        for i, (name, title, _) in enumerate(_sections(audit), 1)
    )
    return f"<ol>{''.join(lines)}</ol>"


def _headline(audit: "Audit") -> str:
    counts, effects, width, unit = audit.counts, audit.effects, audit.width, audit.unit
    kind = CLASSES[audit.advice.verdict]
    tiles = (
        (f"{width.lower:.2f}", f"behaviours among {counts.n_actions} actions, over {counts.n_states} states"),
        (_lost(audit), "of what can be gained is lost by choosing through the states alone"),
        (f"{unit.amount(effects.blind):.2g}", f"{unit.name} a decision can be gained over choosing blindly"),
    )
    boxes = "".join(
        f'<div class="tile {kind}"><b>{number}</b><span>{escape(text)}</span></div>' for number, text in tiles
    )
    parts = (
        ("What it rests on", sentences.reasons(audit)),
        ("Who is asking", about_worth(audit)),
        ("What would change it", sentences.what_would_change_it(audit)),
        ("What to do on Monday", sentences.what_to_do(audit)),
    )
    lists = "".join(f"<h3>{title}</h3>{_lines(lines)}" for title, lines in parts if lines)
    read = "".join(
        f'<p class="seen">{escape(line)}</p>'
        for line in (*sentences.about_reading(audit), *sentences.about_window(audit))
    )
    learner = "" if audit.advice.verdict == UNCLEAR else f", with <code>{audit.advice.learner}</code>"
    return (
        f'{read}<p class="lead">The advice: <b class="{kind}">{audit.advice.verdict}</b>{learner}.</p>'
        f'<div class="tiles">{boxes}</div>{lists}<p class="legend">{escape(sentences.about_regret_itself(audit))}</p>'
    )


def _lost(audit: "Audit") -> str:
    """The share lost; where the verdict is open, what the log leaves possible of it."""
    if audit.advice.verdict != UNCLEAR:
        return f"{audit.effects.lost:.0%}"
    low, high = min(audit.effects.possible.at_least), min(max(audit.effects.possible.at_most), 1.0)
    return f"{100 * low:.0f}–{high:.0%}"


def _lines(lines: Sequence[str]) -> str:
    if len(lines) == 1:
        return f'<p class="seen">{escape(lines[0])}</p>'
    return f'<ol class="why">{"".join(f"<li>{escape(line)}</li>" for line in lines)}</ol>'


def _section(audit: "Audit", name: str, title: str, say: tuple[Say, ...], drawings: Sequence[Drawing]) -> str:
    # The report is one file: no links to files of figures.
    figures = "".join(figure_of(drawing, linked=False) for drawing in drawings if drawing.home == name)
    said = "".join(f'<p class="seen">{escape(sentence)}</p>' for speak in say for sentence in speak(audit))
    tables = {
        "advice": _learners, "sufficiency": _tests, "contexts": _by_context, "states": _states, "whatif": _what_if,
        "log": _columns,
    }  # fmt: skip
    table = tables[name](audit) if name in tables else ""
    return f'<section id="{name}" class="study"><h2>{title}</h2>{said}{figures}{table}</section>'


def _table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> str:
    head = "".join(f'<th scope="col">{heading}</th>' for heading in headings[1:])
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    noted = f'<p class="note">{escape(note)}</p>' if note else ""
    return (
        f'<div class="table"><h3>{title}</h3><div class="scroll" tabindex="0" role="region" aria-label="{title}">'
        f"<table><thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table></div>{noted}</div>"
    )


def _learners(audit: "Audit") -> str:
    unit = audit.unit
    rows = [
        (e.learner, e.kind, f"{amount(unit.amount(e.regret))} ± {amount(unit.amount(e.error))}",
         _behind(audit, e), f"{unit.amount(e.per_decision):.2g}")
        for e in audit.advice.expected
    ]  # fmt: skip
    title = f"Regret over {counted(audit.advice.horizon)} decisions like the log's latest, in {unit.name}"
    return _table(escape(title), ("", "kind", "regret", "behind", "a decision"), rows, _how_to_start(audit))


def _behind(audit: "Audit", e: Expected) -> str:
    if e.learner == audit.advice.learner:
        return "advised"
    if e.tied:
        return "a tie"
    return f"{amount(audit.unit.amount(e.behind))} ± {amount(audit.unit.amount(e.behind_error))}"


def _how_to_start(audit: "Audit") -> str:
    if audit.advice.verdict == ALONE:
        return "AUDIT.json holds the map for the record; a pool does not run a learner that does not pool."
    advised, runs = audit.advice.learner, live_learner(audit.advice)
    told = f"{runs}, the nearest to {advised} that runs live" if runs != advised else runs
    return f"To start with this map: statepool serve --map AUDIT.json (actions, states, P, and the learner {told})."


def _tests(audit: "Audit") -> str:
    found, means, unit = audit.sufficiency, audit.counts.state_means, audit.unit
    rows = [
        (name, counted(test.rows), f"{unit.outcome(means[s]):.3g}",
         f"{unit.amount(test.size):.3g} ± {unit.amount(test.size_error):.2g}", f"{test.p:.2g}",
         f"{found.corrected[s]:.2g}")
        for s, (name, test) in enumerate(zip(audit.counts.states, found.states, strict=True))
    ]  # fmt: skip
    note = (
        "Outcomes of a state are compared between actions within short stretches of time and shuffled within them; "
        "p is the share of shuffles that differ as much. Corrected: Holm, for the number of states."
    )
    headings = ("", "outcomes", escape(f"mean {unit.name}"), "direct effects", "p", "p, corrected")
    return _table("State by state", headings, rows, note)


def _by_context(audit: "Audit") -> str:
    personal = audit.personal
    assert personal is not None
    one = f"{audit.counts.actions[personal.one]} is the best for all. " if personal.one >= 0 else ""
    title = f"Context by context, in {audit.unit.name} a decision"
    note = (
        f"{one}Best: the action that looks best by the map of the context and the state means of all rows. Gain: what "
        "the choice of three quarters of the rows gains over the best for all, judged by the last, ± a standard error; "
        "blank where the best for all was always chosen."
    )
    return _table(escape(title), ("", "rows", "best action", "gain"), context_rows(audit), note)


def _states(audit: "Audit") -> str:
    groups = audit.states.groups
    rows = [
        (name, f"{audit.counts.n[:, s].sum() / audit.counts.rows:.1%}", f"{audit.states.telling[s]:.0%}",
         f"{audit.unit.amount(audit.drift.spread[s]):.3g}", "" if groups is None else f"{groups[s]}")
        for s, name in enumerate(audit.counts.states)
    ]  # fmt: skip
    note = "Tells: the state's part in what the states predict of the differences between actions."
    return _table("What each state is worth", ("", "share of rows", "tells", "drift", "group"), rows, note)


def _what_if(audit: "Audit") -> str:
    """What other plays would have been worth on the log, where it has outcomes to tell."""
    if audit.counts.k.sum() < 2:
        return ""
    seen = Evidence(audit.counts, audit.unit, audit.sufficiency, audit.effects)
    found = [estimate_play(seen, read_policy(name, seen), name) for name in ("best", "uniform")]
    rows = [
        (one.policy, *(f"{e.value:.3g} ({e.lower:.3g} to {e.upper:.3g})" for e in (one.pooled, one.robust, one.plain)))
        for one in found
    ]
    title = f"Worth of a decision, in {audit.unit.name}; the log's own: {found[0].logged:.3g}"
    headings = ("", "through the states", "doubly robust", "inverse propensity")
    named = "best: the action that looks best through the states; uniform: every action alike."
    return _table(escape(title), headings, rows, " ".join([named, *cautions_of(found)]))


def _columns(audit: "Audit") -> str:
    rows = [
        (part, column if isinstance(column, str) else ", ".join(column))
        for part, column in vars(audit.columns).items()
        if column and part not in ("is_reward", "direction")
    ]
    rows.append(("larger outcomes are", "better" if audit.columns.is_reward else "worse"))
    return _table("Columns", ("", "in the log"), rows)
