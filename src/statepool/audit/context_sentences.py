"""What was found about contexts, in sentences: the same ones on the terminal and in the report."""

from typing import TYPE_CHECKING

from statepool.audit.personal import Personal
from statepool.audit.sentences import counted, differing, rounded
from statepool.audit.worth import NOT, PAYS

if TYPE_CHECKING:
    from statepool.audit.audit import Audit


def about_contexts(audit: "Audit") -> list[str]:
    """Everything, the worth first; nothing where no context was asked about."""
    if audit.personal is None:
        return []
    moved = [about_movement(audit)] if audit.counts.has_outcomes else []
    return [*about_worth(audit), *moved, *about_maps(audit)]


def about_worth(audit: "Audit") -> list[str]:
    personal, unit = audit.personal, audit.unit
    if personal is None:
        return []
    worth, by = personal.worth, f"Personalising by {personal.contexts.title}"
    if worth is None:
        return [f"Whether it pays to personalise by {personal.contexts.title} cannot be told: {_barred(audit)}."]
    value, low, high, least = (unit.amount(number) for number in (worth.value, worth.lower, worth.upper, worth.least))
    span = f"{_number(low)} to {_number(high)}"
    judged = "Judged on outcomes not used to choose" + (
        ", through the states." if worth.through_states else ", direct effects included."
    )
    if worth.verdict == PAYS:
        return [f"{by} is worth {_number(value)} {unit.name} a decision ({span}). {judged}"]
    if worth.verdict == NOT and worth.upper <= 0 <= worth.lower:
        return [f"{by} does not pay: {audit.counts.actions[personal.one]} is the best action whoever asks."]
    if worth.verdict == NOT:
        return [
            f"{by} does not pay: it is worth {_number(value)} {unit.name} a decision ({span}), and less than "
            f"{_number(least)} is not worth asking for. {judged}"
        ]
    return [
        f"{by}: cannot tell. It may be worth {span} {unit.name} a decision; about {rounded(max(personal.more, 1))} "
        f"more rows a context would tell. {judged}"
    ]


def _barred(audit: "Audit") -> str:
    """What makes it impossible to compare."""
    personal = audit.personal
    assert personal is not None
    if len(personal.contexts.names) < 2:
        return f"{personal.contexts.title} is {personal.contexts.names[0]} in every row"
    if audit.counts.n_actions < 2:
        return "there is one action only"
    if not audit.counts.has_outcomes:
        return "no outcome is known that is old enough"
    return (
        "no action was tried in nearly all contexts, so there is none for all to compare with; a holdout that tries "
        "every action in every context would tell"
    )


def about_movement(audit: "Audit") -> str:
    """Whether contexts move the outcome beyond the state."""
    assert audit.personal is not None
    differ, span = differing(audit.personal.sufficiency, audit.unit, "contexts")
    if not span:
        return f"{differ}: as far as the log shows, the state tells all, whoever asks."
    return (
        f"{differ}, by {span} {audit.unit.name} a decision: who asks matters beyond the state, or contexts were "
        "answered with different actions that do."
    )


def about_maps(audit: "Audit") -> list[str]:
    personal = audit.personal
    assert personal is not None
    low, high = personal.dimension
    n_contexts = len(personal.contexts.names)
    said = [
        f"{n_contexts} contexts and {audit.counts.n_actions} actions together behave like {low:.2f} to {high:.2f} "
        f"different ones. Rows of a context lean on the action's row, tilted by the context, as if "
        f"{personal.strength:.0f} more decisions had been seen, and the tilt on none as if {personal.lean:.0f} had.",
    ]
    if personal.contexts.blank:
        said.append(
            f"{counted(personal.contexts.blank)} rows have no {personal.contexts.title}: they enter everything but "
            "what is said about contexts."
        )
    missing = int(personal.offered.size - personal.offered.sum())
    if missing:
        said.append(
            f"{counted(missing)} pairs of context and action are never seen, though they would have been if they were "
            "offered: AUDIT.json leaves them out."
        )
    return said


def tables_of(personal: Personal, actions: tuple[str, ...], order: list[int]) -> dict[str, object]:
    """The map of each context as a live pool takes it: a row an action, or {action: row} of those offered; in order."""
    found: dict[str, object] = {}
    for name, rows, offered in zip(personal.contexts.names, personal.P, personal.offered, strict=True):
        if offered.all():
            found[name] = rows[order].tolist()
        else:
            found[name] = {actions[a]: rows[a].tolist() for a in order if offered[a]}
    return found


def _number(value: float) -> str:
    shown = f"{value:.2g}" if abs(value) >= 5e-5 else "0"
    return shown.replace("-", "−")
