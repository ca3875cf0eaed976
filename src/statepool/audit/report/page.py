"""The page: the advice up front, then section by section what it rests on; `audit.html` says it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

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
from statepool.report.inline import figures_of
from statepool.report.page import render

if TYPE_CHECKING:
    from statepool.audit.audit import Audit

CLASSES = {"pool": "digit", "pool with corrections": "near", "do not pool": "off", "cannot tell": "near"}


class Table(NamedTuple):
    """Rows of text, the first of each its name, under a heading for each of the others."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


class Section(NamedTuple):
    """A part of the page: what it says, and its table."""

    name: str
    title: str
    says: Sequence[Callable[["Audit"], list[str]]] = ()
    table: Callable[["Audit"], Table | None] = lambda audit: None


def page_of(audit: "Audit", drawings: Sequence[Drawing]) -> str:
    counts, unit = audit.counts, audit.unit
    tiles = (
        (f"{audit.width.lower:.2f}", f"behaviours among {counts.n_actions} actions, over {counts.n_states} states"),
        (_lost(audit), "of what can be gained is lost by choosing through the states alone"),
        (f"{unit.amount(audit.effects.blind):.2g}", f"{unit.name} a decision can be gained over choosing blindly"),
    )
    parts = (
        ("What it rests on", sentences.reasons(audit)),
        ("Who is asking", about_worth(audit)),
        ("What would change it", sentences.what_would_change_it(audit)),
        ("What to do on Monday", sentences.what_to_do(audit)),
    )
    return render(
        __package__, "audit.html", audit=audit, kind=CLASSES[audit.advice.verdict],
        is_open=audit.advice.verdict == UNCLEAR, read=[*sentences.about_reading(audit), *sentences.about_window(audit)],
        tiles=tiles if counts.has_outcomes else tiles[:1], parts=parts,
        regret=sentences.about_regret_itself(audit) if counts.has_outcomes else "",
        figures=figures_of(drawings, linked=False),  # the report is one file
        sections=_sections(audit),
    )  # fmt: skip


def _sections(audit: "Audit") -> list[Section]:
    """That about contexts only where they were asked about; where no outcome is old enough, what needs none."""
    found = [section for section in SECTIONS if section.name != "contexts" or audit.personal is not None]
    return [section for section in found if audit.counts.has_outcomes or section.name in ("map", "contexts", "log")]


def _lost(audit: "Audit") -> str:
    """The share lost; where the verdict is open, what the log leaves possible of it."""
    if audit.advice.verdict != UNCLEAR:
        return f"{audit.effects.lost:.0%}"
    low, high = min(audit.effects.possible.at_least), min(max(audit.effects.possible.at_most), 1.0)
    return f"{100 * low:.0f}–{high:.0%}"


def _learners(audit: "Audit") -> Table:
    unit = audit.unit
    rows = [
        (e.learner, e.kind, f"{amount(unit.amount(e.regret))} ± {amount(unit.amount(e.error))}",
         _behind(audit, e), f"{unit.amount(e.per_decision):.2g}")
        for e in audit.advice.expected
    ]  # fmt: skip
    title = f"Regret over {counted(audit.advice.horizon)} decisions like the log's latest, in {unit.name}"
    return Table(title, ("kind", "regret", "behind", "a decision"), rows, _how_to_start(audit))


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
    serve = "statepool serve --map AUDIT.json, the file beside this"
    return f"To start with this map: {serve} (actions, states, P, and the learner {told})."


def _tests(audit: "Audit") -> Table:
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
    headings = ("outcomes", f"mean {unit.name}", "direct effects", "p", "p, corrected")
    return Table("State by state", headings, rows, note)


def _by_context(audit: "Audit") -> Table | None:
    personal = audit.personal
    assert personal is not None
    if not audit.counts.has_outcomes:
        return None
    one = f"{audit.counts.actions[personal.one]} is the best for all. " if personal.one >= 0 else ""
    title = f"Context by context, in {audit.unit.name} a decision"
    note = (
        f"{one}Best: the action that looks best by the map of the context and the state means of all rows. Gain: what "
        "the choice of three quarters of the rows gains over the best for all, judged by the last, ± a standard error; "
        "blank where the best for all was always chosen."
    )
    return Table(title, ("rows", "best action", "gain"), context_rows(audit), note)


def _states(audit: "Audit") -> Table:
    groups = audit.states.groups
    rows = [
        (name, f"{audit.counts.n[:, s].sum() / audit.counts.rows:.1%}", f"{audit.states.telling[s]:.0%}",
         f"{audit.unit.amount(audit.drift.spread[s]):.3g}", "" if groups is None else f"{groups[s]}")
        for s, name in enumerate(audit.counts.states)
    ]  # fmt: skip
    note = (
        "share of rows: immature ones included. drift: how far the mean moves over time (standard deviation). "
        f"{sentences.TELLS}"
    )
    return Table("What each state is worth", ("share of rows", "tells", "drift", "group"), rows, note)


def _what_if(audit: "Audit") -> Table:
    """What other plays would have been worth on the log."""
    seen = Evidence(audit.counts, audit.unit, audit.sufficiency, audit.effects)
    found = [estimate_play(seen, read_policy(name, seen), name) for name in ("best", "uniform")]
    rows = [
        (one.policy, *(f"{e.value:.3g} ({e.lower:.3g} to {e.upper:.3g})" for e in (one.pooled, one.robust, one.plain)))
        for one in found
    ]
    title = f"Worth of a decision, in {audit.unit.name}; the log's own: {found[0].logged:.3g}"
    headings = ("through the states", "doubly robust", "inverse propensity")
    named = "best: the action that looks best through the states; uniform: every action alike."
    return Table(title, headings, rows, " ".join([named, *cautions_of(found)]))


def _columns(audit: "Audit") -> Table:
    rows = [
        (part, column if isinstance(column, str) else ", ".join(column))
        for part, column in vars(audit.columns).items()
        if column and part not in ("is_reward", "direction")
    ]
    rows.append(("larger outcomes are", "better" if audit.columns.is_reward else "worse"))
    return Table("Columns", ("in the log",), rows)


SECTIONS = (
    Section("advice", "The advice", table=_learners),
    Section("sufficiency", "Is the state all that matters?", (sentences.about_pooling,), _tests),
    Section("map", "The map", (sentences.about_map, sentences.about_propensities)),
    Section("contexts", "Who is asking", (about_contexts,), _by_context),
    Section("delays", "Delays", (sentences.about_window, sentences.about_delays)),
    Section("drift", "Drift", (sentences.about_drift,)),
    Section("states", "The states", (sentences.about_states,), _states),
    Section("whatif", "What if?", table=_what_if),
    Section("log", "The log", (sentences.about_rows,), _columns),
)
