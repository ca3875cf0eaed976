"""What a store keeps beside the bytes of its events, checked against them: columns, indexes, pending tickets.

A decision and its ticket are looked up here exactly as a live pool looks them up, so that an index that lost an entry
shows; the index of a sealed segment is compared with its events as a whole (`View.checked`).
"""

from collections.abc import Iterator, Sequence

from statepool.live.events import AnyEvent, Decided, Expired, Kind, Lesson, Resolved, columns_of, decode
from statepool.live.stores.store import Entry, Overdue, View


class Beside:
    """Is told the events in order, piece by piece."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._n_sealed = view.n_sealed()
        self._catalogue: list[int] = []
        self._waiting: dict[int, Overdue] = {}

    def check(self, piece: Sequence[tuple[Entry, AnyEvent]]) -> Iterator[str]:
        """What is wrong with these, a sentence each."""
        for entry, event in piece:
            self._follow(entry, event)
        # A segment has no columns: they are made of the bytes.
        tail = [(entry, event) for entry, event in piece if entry.seq > self._n_sealed]
        known = self._view.bodies_of([event.number for _, event in tail if isinstance(event, Decided | Lesson)])
        by_ticket = self._view.bodies([str(entry.ticket) for entry, event in tail if _is_named(entry, event)])
        for entry, event in tail:
            if columns_of(event) != (entry.kind, entry.ticket, entry.number):
                yield f"event {entry.seq}: its columns are not those of its bytes"
            if isinstance(event, Decided | Lesson):
                yield from _check_decision(entry, event, known.get(event.number, {}))
                if _is_named(entry, event) and by_ticket.get(event.ticket) != known.get(event.number):
                    yield f"event {entry.seq}: looking up its ticket does not find it, or finds another"

    def _follow(self, entry: Entry, event: AnyEvent) -> None:
        if event.kind == "catalogue":
            self._catalogue.append(entry.seq)
        if isinstance(event, Decided):
            self._waiting[event.number] = Overdue(event.number, event.ticket, event.at)
        elif isinstance(event, Resolved | Expired):
            self._waiting.pop(event.number, None)

    def finish(self) -> Iterator[str]:
        """What is wrong with the store as a whole."""
        if self._view.catalogue() != self._catalogue:
            yield "the index of the catalogue is not that of the journal"
        pending = self._view.pending()
        if pending != list(self._waiting.values()):
            yield f"{len(pending)} tickets are stored as pending, and not the {len(self._waiting)} that are"
        if self._view.n_pending() != len(self._waiting):
            yield f"the store counts {self._view.n_pending()} pending tickets, not {len(self._waiting)}"
        # Whatever was decided before a time is found by that time, too.
        last = max((each.at for each in self._waiting.values()), default=0)
        if self._view.pending(last + 1) != pending:
            yield "the index of the pending tickets' times is not that of the tickets"


def _is_named(entry: Entry, event: AnyEvent) -> bool:
    """Whether a decision is found by its ticket; without a column for it, by the number that its ticket says."""
    return isinstance(event, Decided) and entry.ticket is not None


def _check_decision(entry: Entry, event: Decided | Lesson, known: dict[Kind, bytes]) -> Iterator[str]:
    if known.get(event.kind) != entry.body:
        yield f"event {entry.seq}: looking up its decision does not find it, or finds another {event.kind}"
    elif isinstance(event, Decided):
        return
    made = decode(known["decision"]) if "decision" in known else None
    if not isinstance(made, Decided) or carried(made) != carried(event) or event.ticket not in ("", made.ticket):
        yield f"event {entry.seq}: it is not of the decision that it names"


def carried(event: Decided | Lesson) -> tuple[object, ...]:
    """What every event of a decision repeats of it."""
    return event.number, event.version, event.action, event.is_holdout, event.round_played
