"""Forgetting: what names a person leaves the journal; what was learnt stays, and the chain stays provable.

Of each event of a ticket the ticket goes, and what the caller said in numbers of their own. What is left in its place
is what the learner needs: the number of the decision, of the action and of the state, the loss, and the number that
the action was drawn from. The event keeps its hash, which is that of the bytes that are gone, and a new event at the
end of the chain lists what was erased. A segment that holds such events is written anew, and the old file removed, as
is every other that was left behind (`loose_files`).

Copies are not reached: backups, exported rows, and, in PostgreSQL, rows that wait for a vacuum. To the pool the ticket
is unknown from then on: asking for it again is a new decision.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

import msgspec

from statepool.live.errors import Conflict, StoreUnavailable, UnknownTicket
from statepool.live.events import (
    AnyEvent,
    Corrected,
    Decided,
    Expired,
    Forgotten,
    Lesson,
    Resolved,
    Seen,
    columns_of,
    decode,
    erase,
    erased_of,
)  # fmt: skip
from statepool.live.loose_files import discard, remove_left_behind, remove_loose, write_segment
from statepool.live.pool import Pool
from statepool.live.pool_state import PoolState
from statepool.live.requests import check_ticket
from statepool.live.stores.folders import Folder
from statepool.live.stores.segments import Segment, seal
from statepool.live.stores.store import Entry, Sealed, Store, View, were_replaced
from statepool.live.writer import Writer

TRIES = 20
NAMELESS = "\x7f"
"""What the ticket of a forgotten decision begins with: no caller can bring such a one."""


class Done(NamedTuple):
    """How many events were erased, and how many segments were written anew for it."""

    events: int
    segments: int


def forget(pool: Pool, tickets: Sequence[str]) -> Done:
    """Erase what names these tickets, all or none."""
    wanted = list(dict.fromkeys(check_ticket(ticket) for ticket in tickets))
    store = pool.store
    try:
        done = _forget(pool, wanted)
    except ValueError:
        remove_left_behind(store, pool.name)
        raise
    try:
        remove_loose(store, pool.name)
    except StoreUnavailable as error:
        raise StoreUnavailable(f"the journal has forgotten, but {error}") from None
    return done


def _forget(pool: Pool, tickets: list[str]) -> Done:
    for _ in range(TRIES):
        with suppress(Conflict):  # something came for one of them meanwhile, or others have forgotten or compacted
            return _try_to_forget(pool, tickets)
    raise Conflict("others changed the same tickets or segments each time, so nothing was forgotten: try again")


def _try_to_forget(pool: Pool, tickets: list[str]) -> Done:
    plan = _plan(pool, tickets)
    [answer] = pool.run([plan])
    if isinstance(answer, Conflict):  # else it is not sure that they were not sealed
        discard(pool.store, pool.name, [new for _, new in plan.segments])
    if answer is not None:
        raise answer
    return Done(len(plan.changed), len(plan.segments))


@dataclass(frozen=True)
class Plan:
    """A request: what stands in the place of each event, and segments that hold it already."""

    tickets: list[str]
    changed: list[Entry]
    segments: list[tuple[Sealed, Sealed]]
    ticket: None = None

    def answer(self, writer: Writer) -> None:
        batch = writer.batch
        now = [(entry.seq, entry.hash) for ticket in self.tickets for entry in batch.entries_of(ticket)]
        if now != [(entry.seq, entry.hash) for entry in self.changed]:
            raise Conflict("a ticket that was to be forgotten has changed meanwhile: try again")
        if _holding(batch, self.changed) != [old for old, _ in self.segments]:
            raise Conflict("the segments of what was to be forgotten have changed meanwhile: try again")
        if not {new.digest for _, new in self.segments} <= {each.digest for each in batch.loose() if each.at > 0}:
            raise Conflict("a segment was cleared away by another process before it was sealed: try again")
        for old, new in self.segments:
            batch.replace_segment(old, new)
        batch.erase(self.changed)
        writer.add(Forgotten(writer.now, [(entry.seq, entry.hash, _left(entry)) for entry in self.changed]))


def _left(entry: Entry) -> bytes:
    erased = erased_of(entry.body)
    assert erased is not None
    return sha256(erased.left).digest()


def _plan(pool: Pool, tickets: list[str]) -> Plan:
    pool.settle()
    with pool.view() as view:
        try:
            return _read_plan(pool, view, tickets)
        except StoreUnavailable:
            if were_replaced(pool.store, pool.name, view):
                raise Conflict("segments were written anew meanwhile: try again") from None
            raise


def _read_plan(pool: Pool, view: View, tickets: list[str]) -> Plan:
    pool_state, changed = pool._fold(), []
    for ticket in tickets:
        found = view.entries_of(ticket)
        if not found:
            raise UnknownTicket(f"ticket: {ticket!r} is not known to this pool, so nothing was forgotten")
        changed += [_nameless(entry, pool_state) for entry in found]
    return Plan(tickets, changed, _rewritten(pool, view, changed))


def _nameless(entry: Entry, pool_state: PoolState) -> Entry:
    """An event without its ticket: drawn from the same number, and of the same decision."""
    event = decode(entry.body)
    assert isinstance(event, Decided | Lesson)
    ticket = f"{NAMELESS}{event.number}"
    if isinstance(event, Lesson) and not event.ticket:
        ticket = ""
    if isinstance(event, Decided):
        left: AnyEvent = msgspec.structs.replace(
            event, ticket=ticket, uniform=pool_state.uniform_of(event), minted=False
        )
    elif isinstance(event, Resolved | Corrected):
        left = msgspec.structs.replace(event, ticket=ticket, reported=None)
    else:
        assert isinstance(event, Seen | Expired)
        left = msgspec.structs.replace(event, ticket=ticket)
    return Entry(entry.seq, *columns_of(left), erase(left, entry.hash), entry.hash)


def _holding(view: View, changed: Sequence[Entry]) -> list[Sealed]:
    """The segments that hold some of these events."""
    return [each for each in view.sealed() if any(each.first <= entry.seq <= each.last for entry in changed)]


def _rewritten(pool: Pool, view: View, changed: Sequence[Entry]) -> list[tuple[Sealed, Sealed]]:
    """The segments that hold some of these events, and new ones in their place."""
    store, done = pool.store, []
    try:
        for old in _holding(view, changed):
            done.append((old, _write_anew(store, pool.name, old, changed)))
    except (ValueError, StoreUnavailable):
        discard(store, pool.name, [new for _, new in done])
        raise
    return done


def _write_anew(store: Store, name: str, old: Sealed, changed: Sequence[Entry]) -> Sealed:
    segment, by_seq = Segment(Folder(old.place), old.digest), {entry.seq: entry for entry in changed}
    blocks = range(len(segment.header.stretches))
    every = (by_seq.get(entry.seq, entry) for number in blocks for _, entry in segment.entries(number))
    return write_segment(store, Folder(old.place), *seal(name, segment.header.before, every))
