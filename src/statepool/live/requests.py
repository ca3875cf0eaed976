"""What a pool can be asked, one class a question; each answers inside a batch.

The ticket is the key. A question that was asked before gets the answer it got before; the same ticket with something
else in it is refused and changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from statepool.checks import check_number
from statepool.live.catalogue import Catalogue, check_label, check_row
from statepool.live.errors import Conflict, UnknownTicket
from statepool.live.events import (
    Added,
    Changed,
    Corrected,
    Decided,
    Expired,
    Placed,
    Resolved,
    Retired,
    Reweighted,
    Seen,
)  # fmt: skip
from statepool.live.live_learner import Q
from statepool.live.luck import is_minted
from statepool.live.offers import Offer
from statepool.live.settings import Settings, check_settings, loss_of
from statepool.live.writer import LONGEST_TICKET, Writer, is_ticket

EXPIRED_AT_ONCE = 1_000
SLACK = 1e-9
MOST_HELD = 64 << 20  # bytes of rows between the checks of several requests and their draws
FURTHEST_AHEAD = 60.0  # seconds; a clock that is wrong by more is a fault that somebody has to hear of


class Decision(msgspec.Struct, frozen=True):
    """What to do; `is_holdout`: kept from the learner, to measure it."""

    ticket: str
    action: Any
    probability: float
    is_holdout: bool = False


def check_ticket(ticket: Any) -> str:
    """Text that a store can hold."""
    if not is_ticket(ticket):
        raise ValueError(f"ticket: is {str(ticket)[:40]!r}, expected 1 to {LONGEST_TICKET} printable characters")
    return ticket


class Decide(msgspec.Struct, frozen=True):
    """`context` or `candidates`: who is asking, or what may be shown, with rows for this request alone."""

    ticket: str | None = None
    uniform: float | None = None
    context: Any = None
    candidates: Any = None

    is_apart: ClassVar[bool] = True
    """It may be answered without the pool's lock."""

    @property
    def brings_rows(self) -> bool:
        """Whether it is answered with rows of its own."""
        return self.context is not None or self.candidates is not None

    @property
    def may_wait(self) -> bool:
        """Whether it takes the lock where the rows that it brings have to be kept first."""
        return self.candidates is not None

    def answer(self, writer: Any) -> Decision:
        return self.decide(writer, self.check(writer))

    def check(self, writer: Any) -> Decided | Offer | None:
        """The decision that was made before, or the offer to draw from (None: every active action); raises what is
        wrong with the request. Whatever can be wrong is found here, and nothing is drawn."""
        made = writer.events_of(check_ticket(self.ticket)).get("decision") if self.ticket is not None else None
        given = self._uniform()
        if isinstance(made, Decided):
            if given is not None and given != made.uniform:
                raise Conflict(f"uniform: ticket {made.ticket!r} was drawn from {made.uniform!r}, and now {given!r}")
            self._compare(made.context, made.digest, writer)
            return made
        if self.ticket is not None and is_minted(writer.secret, self.ticket):
            raise Conflict(f"ticket: {self.ticket!r} was minted here and is not in the journal, expected your own")
        if not self.brings_rows and writer.has_contexts:
            raise ValueError("context: is missing, expected one of this pool's contexts, or candidates")
        return writer.offer(self.context, self.candidates) if self.brings_rows else None

    def decide(self, writer: Any, found: Decided | Offer | None) -> Decision:
        """What `check` has found, drawn if it was not."""
        made = found if isinstance(found, Decided) else writer.draw(self.ticket, self._uniform(), found)
        return Decision(made.ticket, label_of(made, writer.actions), made.probability, made.is_holdout)

    def compare(self, first: "Decide", context: Any, digest: bytes, writer: Any) -> None:
        """Refuse another request for the ticket of one that was checked in the same go."""
        given, before = self._uniform(), first._uniform()
        if given is not None and given != before:
            raise Conflict(f"uniform: ticket {self.ticket!r} is asked for with {before!r}, and now {given!r}")
        self._compare(context, digest, writer)

    def _compare(self, before: Any, digest_before: bytes, writer: Any) -> None:
        """Refuse a ticket that was decided for another request."""
        context = None if self.context is None else check_label(self.context, "context")
        before = None if before is None else check_label(before, "context")
        if context != before:
            raise Conflict(f"context: ticket {self.ticket!r} was decided for {before!r}, and now for {context!r}")
        digest = b"" if self.candidates is None else writer.answers.offers.of_candidates(self.candidates).digest
        if digest != digest_before:
            raise Conflict(f"candidates: ticket {self.ticket!r} was decided among others, expected the same again")

    def _uniform(self) -> float | None:
        if self.uniform is None:
            return None
        if check_number(self.uniform, "uniform", 0, 1) == 1:
            raise ValueError(f"uniform: is {self.uniform!r}, expected a finite number in [0, 1)")
        return float(self.uniform)


class DecideAll(msgspec.Struct, frozen=True):
    """Several decisions of one caller, all or none: every one is checked before the first is drawn, so that nobody is
    refused and has decisions all the same, whose tickets nobody knows."""

    decisions: Sequence[Decide]

    is_apart: ClassVar[bool] = True
    ticket: ClassVar[None] = None

    @property
    def all_tickets(self) -> list[str | None]:
        return [each.ticket for each in self.decisions]

    @property
    def size(self) -> int:
        """How many requests it is worth."""
        return len(self.decisions)

    @property
    def brings_rows(self) -> bool:
        return any(each.brings_rows for each in self.decisions)

    @property
    def may_wait(self) -> bool:
        return any(each.may_wait for each in self.decisions)

    def answer(self, writer: Any) -> list[Decision]:
        found = self._check(writer)
        places = enumerate(self.decisions)
        return [each.decide(writer, found[n]) if n in found else each.answer(writer) for n, each in places]

    def _check(self, writer: Any) -> dict[int, Decided | Offer | None]:
        """What the check of each has found, by its place: all are checked, and those left out are again when they are
        drawn, since their ticket is there before, or there are too many rows to hold at once."""
        kept: dict[int, Decided | Offer | None] = {}
        firsts: dict[str, tuple[Decide, Any, bytes]] = {}
        room = MOST_HELD
        for place, each in enumerate(self.decisions):
            try:
                found = each.check(writer)
                if each.ticket in firsts:
                    each.compare(*firsts[each.ticket], writer)
                    continue
            except ValueError as error:
                raise of_several(error, place + 1, len(self.decisions)) from None
            if each.ticket is not None:
                firsts[each.ticket] = each, *((None, b"") if found is None else (found.context, found.digest))
            room -= found.P.nbytes if isinstance(found, Offer) else 0
            if room > 0:
                kept[place] = found
        return kept


def of_several(error: ValueError, number: int, total: int) -> ValueError:
    """What is wrong with one request of several, which says with which."""
    kind = Conflict if isinstance(error, Conflict) else ValueError
    return error if total == 1 else kind(f"{error} (number {number} of {total}, so that none of them was decided)")


def _decision(writer: Writer, ticket: Any) -> Decided:
    """The decision of a ticket that a caller names."""
    return _known_decision(writer, check_ticket(ticket))


def _known_decision(writer: Writer, ticket: str) -> Decided:
    """The same for a ticket that the store names, which may be that of a decision that was forgotten."""
    made = writer.events_of(ticket).get("decision")
    if not isinstance(made, Decided):
        raise UnknownTicket(f"ticket: {ticket!r} is not known to this pool")
    return made


def _seen_state(writer: Writer, ticket: str) -> int | None:
    seen = writer.events_of(ticket).get("state")
    return seen.state if isinstance(seen, Seen) else None


class Observe(msgspec.Struct, frozen=True):
    ticket: str
    state: Any

    def answer(self, writer: Writer) -> None:
        made, state = _decision(writer, self.ticket), writer.pool_state.catalogue.state(self.state)
        before = _seen_state(writer, made.ticket)
        if before is not None:
            if before != state:
                known = writer.pool_state.catalogue.states[before]
                raise Conflict(f"state: ticket {made.ticket!r} was in {known!r} before, and now in {self.state!r}")
            return
        loss = _known_loss(writer, made.ticket)
        row = _carry_of(writer, made, state)
        reached = _reached(writer, made)
        seen = writer.now, *_carried(made), writer.pool_state.decisions, state, loss, row, made.is_request, reached
        writer.add(Seen(*seen, round=made.round))


def _carried(made: Decided) -> tuple[str, int, int, int, bool]:
    """What is repeated of a decision; its ticket is not."""
    return "", made.number, made.version, made.action, made.is_holdout


def _carry_of(writer: Writer, made: Decided, state: int | None) -> bytes:
    """What travelled with a decision, of one state."""
    size = len(made.carry) // len(writer.pool_state.catalogue.states)
    return b"" if state is None else made.carry[state * size : (state + 1) * size]


def _reached(writer: Writer, made: Decided) -> bytes:
    """Of a request with rows of its own: how likely each state was."""
    if not made.is_request:
        return b""
    table = np.frombuffer(made.carry).reshape(len(writer.pool_state.catalogue.states), -1)
    return table[:, Q].tobytes()


def label_of(made: Decided, actions: Sequence[Any]) -> Any:
    """The action of a decision."""
    return actions[made.action] if made.label is None else check_label(made.label, "candidates")


def _known_loss(writer: Writer, ticket: str) -> float | None:
    events = writer.events_of(ticket)
    latest = events.get("correction") or events.get("outcome") or events.get("expiry")
    return latest.loss if isinstance(latest, Corrected | Resolved | Expired) else None


class Resolve(msgspec.Struct, frozen=True):
    ticket: str
    loss: float | None = None
    reward: float | None = None

    def answer(self, writer: Writer) -> None:
        made = _decision(writer, self.ticket)
        events = writer.events_of(made.ticket)
        before = events.get("correction") or events.get("outcome")
        if isinstance(before, Corrected | Resolved):
            self._compare(before, writer.pool_state.settings)
            return
        loss = loss_of(writer.pool_state.settings, self.loss, self.reward)
        state = _seen_state(writer, made.ticket)
        carried = writer.now, *_carried(made), writer.pool_state.decisions, state, loss
        said = float(self._value()), self.reward is not None, _carry_of(writer, made, state), made.is_request
        expiry = events.get("expiry")
        if isinstance(expiry, Expired):
            writer.add(Corrected(*carried, expiry.loss, *said, round=made.round))
        else:
            writer.add(Resolved(*carried, *said, round=made.round))

    def _value(self) -> Any:
        return self.loss if self.reward is None else self.reward

    def _compare(self, before: Corrected | Resolved, settings: Settings) -> None:
        """Refuse another outcome than the one before; the same is harmless, also where its bounds have changed."""
        alike = before.reported is not None and before.as_reward == (self.reward is not None)
        if alike and before.reported == self._value() and None in (self.loss, self.reward):
            return
        loss = loss_of(settings, self.loss, self.reward)
        if alike:
            kind = "reward" if before.as_reward else "loss"
            known, given = f"{kind} {before.reported!r}", repr(float(self._value()))
        elif before.loss == loss:
            return  # a reward that was a loss before, or a journal that does not say what was reported
        else:
            known, given = f"loss {before.loss!r}", repr(loss)
        raise Conflict(f"outcome: ticket {self.ticket!r} had {known} before, and now {given}")


@dataclass(frozen=True, slots=True)
class Expire:
    """Give the default loss to what is overdue at time `at`, in microseconds; answers how many, at most a thousand.

    Without a time it is now, and a clock that is ahead of the store's is not believed.
    """

    at: int | None = None
    ticket: None = None

    def answer(self, writer: Writer) -> int:
        settings = writer.pool_state.settings
        if settings.expire_after is None or settings.default_loss is None:
            raise ValueError("expire: this pool has no expire_after, expected it and a default_loss in its settings")
        before = (self._now(writer) if self.at is None else self.at) - round(settings.expire_after * 1e6)
        overdue = [each.ticket for each in writer.batch.pending(before, EXPIRED_AT_ONCE)]
        writer.look_up(overdue)
        loss = loss_of(settings, settings.default_loss, None)
        # This batch may have brought some of them their outcome already.
        open_still = [each for each in overdue if not writer.events_of(each).keys() & {"outcome", "expiry"}]
        for event in [_expiry(writer, ticket, loss) for ticket in open_still]:  # what fails, fails before the first
            writer.add(event)
        return len(open_still)

    def _now(self, writer: Writer) -> int:
        ahead = (writer.now - writer.batch.clock()) / 1e6
        if ahead > FURTHEST_AHEAD:
            raise ValueError(
                f"clock: is {ahead:.0f} seconds ahead of the store's, so nothing was expired, expected at most "
                f"{FURTHEST_AHEAD:.0f} (or expire(now=...), in a simulation)"
            )
        return min(writer.now, writer.batch.clock())


def _expiry(writer: Writer, ticket: str, loss: float) -> Expired:
    made, state = _known_decision(writer, ticket), _seen_state(writer, ticket)
    carried = writer.now, *_carried(made), writer.pool_state.decisions, state, loss
    return Expired(*carried, _carry_of(writer, made, state), made.is_request, round=made.round)


@dataclass(frozen=True, slots=True)
class AddAction:
    action: Any
    row: ArrayLike | None
    category: Any = None
    ticket: None = None

    def answer(self, writer: Writer) -> None:
        pool_state, label = writer.pool_state, check_label(self.action, "action")
        if pool_state.catalogue.is_active(label) and self.row is None and pool_state.live_learner.learns_map:
            return  # what its category has shown since is no other row
        row = self._row(writer)
        if pool_state.catalogue.is_active(label):
            if not np.array_equal(pool_state.catalogue.row(pool_state.catalogue.action(label)), row):
                raise Conflict(f"action: {label!r} is there with another row, expected reweight_action to change it")
            return
        category = None if self.category is None else check_label(self.category, "category")
        handicap = pool_state.live_learner.handicap(row, pool_state.decisions)
        writer.add(Added(writer.now, label, category, row.tobytes(), handicap, pool_state.decisions))

    def _row(self, writer: Writer) -> Any:
        pool_state = writer.pool_state
        if self.row is not None:
            return check_row(self.row, len(pool_state.catalogue.states), self.action)
        if not pool_state.live_learner.learns_map:
            raise ValueError(f"row: of {self.action!r} is missing, expected a number a state (or a map that is learnt)")
        row = pool_state.live_learner.category_row(pool_state.catalogue.of_category(self.category))
        return np.full(len(pool_state.catalogue.states), 1 / len(pool_state.catalogue.states)) if row is None else row


@dataclass(frozen=True, slots=True)
class PlaceContexts:
    """Rows of P of contexts: a table for each, of the actions with these numbers."""

    contexts: list[Any]
    actions: list[int]
    rows: bytes
    ticket: None = None

    def answer(self, writer: Writer) -> None:
        writer.add(Placed(writer.now, self.contexts, self.actions, self.rows))


@dataclass(frozen=True, slots=True)
class RetireAction:
    action: Any
    ticket: None = None

    def answer(self, writer: Writer) -> None:
        pool_state = writer.pool_state
        number = pool_state.catalogue.action(self.action)
        if not pool_state.catalogue.is_active(pool_state.catalogue.actions[number]):
            return
        if pool_state.catalogue.n_active == 1:
            raise ValueError(f"action: {self.action!r} is the last one, expected another to stay")
        writer.add(Retired(writer.now, pool_state.catalogue.actions[number]))


@dataclass(frozen=True, slots=True)
class ReweightAction:
    action: Any
    row: ArrayLike
    ticket: None = None

    def answer(self, writer: Writer) -> None:
        pool_state = writer.pool_state
        row = check_row(self.row, len(pool_state.catalogue.states), self.action)
        number = pool_state.catalogue.action(self.action)
        if not pool_state.catalogue.is_active(pool_state.catalogue.actions[number]):
            raise ValueError(f"action: {self.action!r} is retired, expected add_action to bring it back")
        if not np.array_equal(pool_state.catalogue.row(number), row):
            handicap = pool_state.live_learner.handicap(row, pool_state.decisions)
            label = pool_state.catalogue.actions[number]
            writer.add(Reweighted(writer.now, label, row.tobytes(), handicap, pool_state.decisions))


@dataclass(frozen=True, slots=True)
class Change:
    """Some settings; the others stay."""

    settings: dict[str, Any]
    ticket: None = None

    def answer(self, writer: Writer) -> None:
        old = writer.pool_state.settings
        new = check_settings(msgspec.structs.asdict(old) | self.settings)
        check_against(new, writer.pool_state.catalogue)
        if new != old:
            writer.add(Changed(writer.now, msgspec.to_builtins(new)))


def check_against(settings: Settings, catalogue: Catalogue) -> None:
    """Settings name actions of the catalogue, and leave room for a play."""
    shares = {catalogue.action(label): (low, high) for label, low, high in settings.shares}
    fixed = None if settings.holdout_action is None else catalogue.action(settings.holdout_action)
    numbers = catalogue.active()[1]
    least = most = 0.0
    for number in numbers:
        low, high = shares.get(number, (0.0, 1.0))
        share = settings.holdout * (1 / len(numbers) if fixed is None else number == fixed)
        if share > high:
            label = catalogue.actions[number]
            raise ValueError(f"shares: the holdout alone gives {label!r} {share:.6g}, expected at most {high:.6g}")
        least, most = least + max(low, share), most + high
    if least > 1 + SLACK:
        raise ValueError(f"shares: the smallest shares and the holdout sum to {least:.6g}, expected at most 1")
    if most < 1 - SLACK:
        raise ValueError(f"shares: the largest shares sum to {most:.6g}, expected at least 1")
