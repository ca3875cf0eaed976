"""A live pool: decide now, observe the state, resolve when the outcome comes. No HTTP; a file is enough.

    pool = Pool.open("sqlite:///pool.db", name="home", P=P, actions=[...], states=[...])
    d = pool.decide()                       # d.ticket, d.action, d.probability
    pool.observe(d.ticket, "click")
    pool.resolve(d.ticket, loss=0.0)        # seconds or weeks later, in any order, twice, or never

When a call returns, what it did is on disk. Repeating a call is harmless.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from itertools import chain, takewhile
from math import inf
from types import MappingProxyType, TracebackType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from statepool.checks import check_count, check_number, shown
from statepool.learners import SelfTuned, find, name_of
from statepool.learners.learner import Learner, short_name
from statepool.live.catalogue import Catalogue, catalogue_rows, check_label
from statepool.live.contexts import Tables, base_rows, changed, context_tables, placings
from statepool.live.errors import Conflict, UnknownTicket
from statepool.live.events import UNPLACED, Corrected, Decided, Expired, Kind, Opened, Resolved, Seen, decode
from statepool.live.format import FORMAT, RULE
from statepool.live.hash_chain import read_entry, read_linked
from statepool.live.journal import EARLIEST, LATEST, Journal, Timed
from statepool.live.live_learner import LiveLearner, check_live
from statepool.live.luck import new_key, seed_bytes
from statepool.live.pool_state import PoolState
from statepool.live.requests import (
    AddAction,
    Change,
    Decide,
    DecideAll,
    Decision,
    Expire,
    Observe,
    PlaceContexts,
    Resolve,
    RetireAction,
    ReweightAction,
    check_against,
    check_ticket,
    label_of,
)  # fmt: skip
from statepool.live.settings import LONGEST, check_settings
from statepool.live.status import Listing, Moment, Status, Vitals, read_listing, read_status
from statepool.live.stores import open_store
from statepool.live.stores.store import Overdue, Store, View

EVENTS_AT_ONCE = 999  # a piece of the store's, and the event that ends it
OLD = 10.0
"""Seconds after which a process that makes no decisions reads what it would play by now."""
Outcome = tuple[str, float]


@dataclasses.dataclass
class _Kept:
    """The latest readings of one catalogue, which those that follow may use again."""

    key: tuple[bytes, int] | None = None
    status: Status | None = None
    listing: Listing | None = None


class Pool:
    """Decisions in a durable store; open one with `Pool.open`.

    Safe to share between threads, and its store between processes.

    >>> import statepool as sp
    >>> pool = sp.Pool.open("sqlite:///pool.db", "home", [[0.7, 0.3], [0.2, 0.8]], ["tea", "cake"], ["left", "cart"])
    >>> decision = pool.decide()
    >>> pool.observe(decision.ticket, "cart")
    >>> pool.resolve(decision.ticket, loss=0.0)
    >>> pool
    Pool('home': 2 actions, 2 states, SelfTuned, 1 decision, 0 waiting)
    >>> pool.close()
    """

    def __init__(
        self, store: Store, name: str, clock: Callable[[], float] | None = None, owns_store: bool = False
    ) -> None:
        self.name = check_name(name)
        self._journal = Journal(store, name, clock)
        self._owns_store = owns_store
        self._kept = _Kept()

    @classmethod
    def open(
        cls,
        url: str | Store,
        name: str,
        P: ArrayLike | Mapping[Any, Any] | None = None,
        actions: Sequence[Any] | None = None,
        states: Sequence[Any] | None = None,
        learner: Learner | str | None = None,
        seed: int | None = None,
        *,
        contexts: Sequence[Any] | None = None,
        categories: Sequence[Any] | None = None,
        update: bool = False,
        clock: Callable[[], float] | None = None,
        **settings: Any,
    ) -> Pool:
        """Continue the pool of that name, or make it, at a URL or in a store that is open (and stays so).

        The catalogue, the learner and the settings may be left out for a pool that is there; given, they must be
        the ones it has (the catalogue it began with will do), unless `update` asks for the difference to be journaled.
        With contexts, P is {context: rows}: one row an action, or {action: row} of those that it may be answered with.
        `learner` may be a name, such as "self-tuned". `clock` is for simulations; without one, time is the store's, the
        same for all its users.

        Settings: refresh, refresh_seconds, expire_after, default_loss, loss_bounds, reward_bounds, holdout,
        holdout_action, shares, request_bytes; docs/live.md says what each does.
        """
        learner = find(learner)() if isinstance(learner, str) else learner
        store = url if isinstance(url, Store) else open_store(url)
        pool = cls(store, name, clock, owns_store=store is not url)
        try:
            tables = None if contexts is None and not isinstance(P, Mapping) else context_tables(P, contexts, actions)
            base = P if tables is None else base_rows(tables, actions, states)
            pool._make_or_continue(base, tables, actions, states, learner, seed, categories, settings, update)
        except BaseException:
            if pool._owns_store:
                store.close()
            raise
        return pool

    def _make_or_continue(
        self, P: Any, tables: Tables | None, actions: Any, states: Any, learner: Learner | None, seed: Any,
        categories: Any, settings: dict[str, Any], update: bool,
    ) -> None:  # fmt: skip
        if not self._journal.exists():
            if actions is None or states is None:
                raise ValueError(f"pool: {self.name!r} is not there, expected actions, states and P to make it")
            opened = opening(P, actions, states, learner, seed, categories, settings, self._journal.now())
            placed = [] if tables is None else placings(tables, actions, Catalogue(opened), opened.at)
            if self._journal.create(opened, placed):
                return  # else another process was faster
        self._continue(P, tables, actions, states, learner, seed, categories, settings, update)

    def decide(
        self,
        ticket: str | None = None,
        *,
        context: Any = None,
        candidates: Mapping[Any, ArrayLike] | None = None,
        uniform: float | None = None,
    ) -> Decision:
        """An action to play. A ticket of your own makes the call repeatable; `uniform` is for simulations only.

        `context` says who is asking, in a pool that was opened with contexts; `candidates`, as {action: row}, what may
        be shown, with rows of your own model for this request alone. Such actions need not be in the catalogue.
        """
        return self._one(Decide(ticket, uniform, context, candidates))

    def decide_many(
        self,
        tickets: int | Iterable[str | None],
        *,
        contexts: Sequence[Any] | None = None,
        candidates: Sequence[Mapping[Any, ArrayLike]] | None = None,
    ) -> list[Decision]:
        """Several decisions in one durable batch: a number of them, or one for each ticket.

        With contexts or candidates, one for each decision. All or none: if one of them is refused, none is decided, and
        the refusal says which it is.
        """
        if isinstance(tickets, str) or not isinstance(tickets, Iterable):
            tickets = [None] * check_count(tickets, "tickets", 0)
        tickets = list(tickets)
        asked = {"contexts": contexts, "candidates": candidates}
        for name, given in asked.items():
            if given is not None and len(given) != len(tickets):
                raise ValueError(f"{name}: has {len(given)}, expected {len(tickets)}, one for each decision")
        decisions = [
            Decide(ticket, None, *(None if given is None else given[n] for given in asked.values()))
            for n, ticket in enumerate(tickets)
        ]
        return self._one(DecideAll(decisions))

    def observe(self, ticket: str, state: Any) -> None:
        """The state that was seen."""
        self._one(Observe(ticket, state))

    def observe_many(self, pairs: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """{ticket: state} or (ticket, state) pairs in one durable batch.

        If some are refused, the others are kept and the first raises.
        """
        self._all([Observe(ticket, state) for ticket, state in check_pairs(pairs, "state")])

    def resolve(self, ticket: str, loss: float | None = None, reward: float | None = None) -> None:
        """The outcome, as a loss or as a reward; a bare number, `resolve(ticket, 0.3)`, is a loss."""
        self._one(Resolve(ticket, loss, reward))

    def resolve_many(
        self,
        losses: Mapping[str, float] | Iterable[Outcome] = (),
        rewards: Mapping[str, float] | Iterable[Outcome] = (),
    ) -> None:
        """Outcomes in one durable batch, as {ticket: loss} or (ticket, loss) pairs, as rewards, or both.

        If some are refused, the others are kept and the first raises.
        """
        lost = [Resolve(ticket, loss) for ticket, loss in check_pairs(losses, "loss")]
        won = [Resolve(ticket, reward=reward) for ticket, reward in check_pairs(rewards, "reward")]
        self._all(lost + won)

    def expire(self, now: float | None = None) -> int:
        """Give the default loss to every decision older than `expire_after`; how many there were."""
        at = None if now is None else round(check_number(now, "now", -LONGEST, LONGEST) * 1e6)
        total = count = self._one(Expire(at))
        while count:
            count = self._one(Expire(at))
            total += count
        return total

    def add_action(self, action: Any, row: ArrayLike | None = None, category: Any = None) -> None:
        """A new action, which starts with everything that was learnt about the states of its row."""
        self._one(AddAction(action, row, category))

    def retire_action(self, action: Any) -> None:
        """Play an action no more; its outcomes in flight still teach."""
        self._one(RetireAction(action))

    def reweight_action(self, action: Any, row: ArrayLike) -> None:
        """Another row of P for an action."""
        self._one(ReweightAction(action, row))

    def change(self, **settings: Any) -> None:
        """Other settings from now on; those that are not named stay, and None is the default.

        They are: refresh, refresh_seconds, expire_after, default_loss, loss_bounds, reward_bounds, holdout,
        holdout_action, shares, request_bytes.
        """
        self._one(Change(settings))

    def run(self, requests: Sequence[Any]) -> list[Any]:
        """Many requests (see `live.requests`) in one batch: an answer or an exception for each."""
        return self._journal.run(requests)

    @property
    def decides_apart(self) -> bool:
        """Whether plain decisions are made without the pool's lock, beside everything else (`live.lanes`)."""
        return self._journal.store.has_lanes

    def settle(self) -> None:
        """Have the journal take over what was decided apart from it; every state and outcome does so by itself."""
        self._journal.settle()

    @property
    def store(self) -> Store:
        """Where it is kept, with other pools."""
        return self._journal.store

    def view(self) -> AbstractContextManager[View]:
        """The store's own records of this pool, of one moment: events, tickets, what waits."""
        return self._journal.store.view(self.name)

    def now(self) -> int:
        """Microseconds, by this pool's clock."""
        return self._journal.now()

    def pending(self) -> list[Overdue]:
        """Decisions without an outcome, oldest first."""
        with self.view() as view:
            in_lanes = [Overdue(UNPLACED, row.ticket, row.at) for row in view.lane_rows() if row.ticket is not None]
            return view.pending() + sorted(in_lanes, key=lambda each: each.at)

    @property
    def n_pending(self) -> int:
        with self.view() as view:
            return view.n_pending() + view.n_in_lanes()

    def rows(self) -> Iterator[dict[str, Any]]:
        """One flat record a decision made until now, in order, with the columns of `live.export`.

        `loss` is scaled to 0–1; `reward` is what was reported, where it was reported as a reward.

        Read in pieces, each of one moment: whoever stops in between holds nothing in the store.
        """
        with self.view() as view:
            last, waiting = view.head().seq, view.lane_rows()
            changes = (read_entry(before, entry) for before, entry in view.linked_catalogue(1, last))
            catalogue = Catalogue.of(chain([read_linked(view, 1)], changes))
        for after in range(0, last, EVENTS_AT_ONCE):
            with self.view() as view:
                events = takewhile(lambda entry: entry.seq <= after + EVENTS_AT_ONCE, view.entries(after))  # noqa: B023
                decisions = (entry for entry in events if entry.kind == "decision" and entry.seq <= last)
                decided = [entry.number for entry in decisions if entry.number is not None]
                found = _rows_of(view.bodies_of(decided), catalogue, decided)
            yield from found
        # Decisions of lanes, which the journal may have taken over meanwhile, and somebody may have had forgotten.
        latest = sorted((row for row in waiting if row.ticket is not None), key=lambda row: row.at)
        for start in range(0, len(latest), EVENTS_AT_ONCE):
            with self.view() as view:
                piece = [str(row.ticket) for row in latest[start : start + EVENTS_AT_ONCE]]
                bodies = view.bodies(piece)
                found = _rows_of(bodies, catalogue, [ticket for ticket in piece if ticket in bodies])
            yield from found

    def find(self, ticket: str) -> dict[str, Any]:
        """What is known of one ticket, as a row of `rows`."""
        with self.view() as view:
            bodies = view.bodies([check_ticket(ticket)])
        if ticket not in bodies:
            raise UnknownTicket(f"ticket: {ticket!r} is not known to this pool")
        known = {kind: decode(body) for kind, body in bodies[ticket].items()}
        return _row(self._journal.read().catalogue, known)

    def status(self) -> Status:
        """A reading of this moment: counts, the distribution played, what the learner knows, the settings."""
        return self._journal.look(self._read_status)

    def _read_status(self, pool_state: PoolState) -> Status:
        journal, now = self._journal, self.now()
        playing = journal.playing
        old = playing is not None and now - playing.at > OLD * 1e6 and playing.is_stale(pool_state, now, inf)
        played = None if playing is None or old else (playing.seq, playing.version)
        kept = self._kept_for(pool_state)
        with self.view() as view:
            in_lanes = view.n_in_lanes()
            moment = Moment(self.name, now, view.head().decisions + in_lanes, view.n_pending() + in_lanes, played)
        kept.status = read_status(moment, pool_state, kept.status)
        return kept.status

    def _kept_for(self, pool_state: PoolState) -> _Kept:
        """What was read of this catalogue before; another epoch is another state, and maybe another journal."""
        key = self._journal.played.epoch, pool_state.changes
        if self._kept.key != key:
            self._kept = _Kept(key)
        return self._kept

    def vitals(self) -> Vitals:
        """What this process knows of the pool, at the price of no play."""
        journal = self._journal
        known = journal.pool_state
        folded = 0 if known is None else known.seq

        def take(pool_state: PoolState) -> Vitals:
            means = {arm: tally.mean for arm, tally in pool_state.tallies.items()}
            made_at = None if journal.playing is None else journal.playing.at
            return Vitals(
                pool_state.catalogue.n_active, pool_state.settings, MappingProxyType(dict(pool_state.counts)),
                MappingProxyType(means), folded, made_at, journal.played.versions_made, journal.refused_snapshots,
            )  # fmt: skip

        return journal.look(take)

    def listing(self) -> Listing:
        """All actions that there are or were, and their rows of P."""
        return self._journal.look(self._read_listing)

    def _read_listing(self, pool_state: PoolState) -> Listing:
        kept = self._kept_for(pool_state)
        kept.listing = kept.listing or read_listing(pool_state.catalogue)
        return kept.listing

    def on_batch(self, told: Callable[[Timed], None] | None) -> None:
        """Have somebody told of every batch that this process writes, by the thread that wrote it."""
        self._journal.on_batch = told

    def _fold(self) -> PoolState:
        """What the journal adds up to; it moves."""
        return self._journal.read()

    def warm_up(self) -> None:
        """Make a play that nobody is told of, so that the first one who asks waits for no compiler."""
        self._journal.look(lambda pool_state: pool_state.make_version())

    def snapshot(self) -> None:
        """Save the learner's state, so that opening need not read the journal; done by itself every 10 000 events."""
        self._journal.save()

    def rest(self) -> None:
        """Save a snapshot and let go of what is held in memory; the next call reads it again."""
        self._kept = _Kept()
        self._journal.rest()

    def close(self) -> None:
        """Save a snapshot and give the store back; nothing is lost without it."""
        self._kept = _Kept()
        try:
            self._journal.close()
        finally:
            if self._owns_store:
                self._journal.store.close()

    def __repr__(self) -> str:
        with self._journal.store.view(self.name) as view:
            in_lanes = view.n_in_lanes()
            count, waiting = view.head().decisions + in_lanes, view.n_pending() + in_lanes
        pool_state = self._journal.read()
        decisions = f"{count} decision{'' if count == 1 else 's'}"
        sizes = f"{pool_state.catalogue.n_active} actions, {len(pool_state.catalogue.states)} states"
        return f"Pool({self.name!r}: {sizes}, {short_name(pool_state.learner)}, {decisions}, {waiting} waiting)"

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _one(self, request: Any) -> Any:
        return self._all([request])[0]

    def _all(self, requests: list[Any]) -> list[Any]:
        answers = self._journal.run(requests)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return answers

    def _continue(
        self,
        P: Any,
        tables: Tables | None,
        actions: Any,
        states: Any,
        learner: Learner | None,
        seed: Any,
        categories: Any,
        settings: dict[str, Any],
        update: bool,
    ) -> None:
        pool_state = self._journal.read()
        if learner is not None and specification(learner) != specification(pool_state.learner):
            raise Conflict(f"learner: pool {self.name!r} has {pool_state.learner!r}, and was opened with {learner!r}")
        if seed is not None and seed_bytes(seed) != pool_state.seed:
            raise Conflict(f"seed: pool {self.name!r} has another one")
        changes: list[Any] = []
        if not (P is None and actions is None and states is None):
            changes = self._differences(pool_state, P, actions, states, categories)
        if tables is not None:
            placed = placings(tables, actions, pool_state.catalogue, 0)
            changes += [PlaceContexts(each.contexts, each.actions, each.rows) for each in changed(placed, pool_state)]
        given = {**msgspec.structs.asdict(pool_state.settings), **settings}
        if check_settings(given) != pool_state.settings:
            changes.append(Change(settings))
        if changes and not update:
            raise Conflict(f"pool: {self.name!r} is there with another catalogue or settings, expected update=True")
        self._all(changes)

    def _differences(self, pool_state: PoolState, P: Any, actions: Any, states: Any, categories: Any) -> list[Any]:
        """What turns today's catalogue into the one given; nothing if it is the one the pool began with."""
        today = pool_state.catalogue
        actions = [label for label in today.actions if today.is_active(label)] if actions is None else actions
        states = today.states if states is None else states
        rows = P
        if P is None and all(today.is_active(check_label(label, "actions")) for label in actions):
            rows = [today.row(today.action(label)) for label in actions]
        names, seen, table = catalogue_rows(rows, actions, states, pool_state.live_learner.learns_map)
        if seen != today.states:
            raise Conflict(
                f"states: are {seen[:8]}, and pool {self.name!r} has {today.states[:8]}, which cannot be changed: "
                "expected the same, or another name or file"
            )
        if self._began_with(names, table):
            return []
        kinds = check_categories(categories, names)
        given = [
            (label, None if P is None else row, kind) for label, row, kind in zip(names, table, kinds, strict=True)
        ]
        added = [AddAction(*each) for each in given if not today.is_active(each[0])]
        moved = [
            ReweightAction(label, row) for label, row, _ in given
            if row is not None and today.is_active(label) and not np.array_equal(today.row(today.action(label)), row)
        ]  # fmt: skip
        gone = [RetireAction(label) for label in today.actions if today.is_active(label) and label not in set(names)]
        return added + moved + gone

    def _began_with(self, actions: list[Any], P: Any) -> bool:
        with self.view() as view:
            opened = read_linked(view, 1)
        assert isinstance(opened, Opened)
        return actions == Catalogue(opened).actions and P.tobytes() == opened.rows


def check_pairs(pairs: Any, what: str) -> list[tuple[Any, Any]]:
    """A ticket and something of it, each: from a dict, pairs, or a frame of two columns."""
    if isinstance(pairs, Mapping):
        return list(pairs.items())
    if hasattr(pairs, "to_numpy"):
        pairs = pairs.to_numpy().tolist()
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise ValueError(f"pairs: is {shown(pairs)}, expected a list of (ticket, {what})")
    listed = list(pairs)
    for pair in listed:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise ValueError(f"pairs: has {shown(pair)}, expected (ticket, {what})")
    return listed


def check_categories(categories: Any, actions: list[Any]) -> list[Any]:
    """One an action, or none at all."""
    if categories is None:
        return [None] * len(actions)
    if isinstance(categories, str) or not isinstance(categories, Iterable):
        raise ValueError(f"categories: is {shown(categories)}, expected a list, one an action")
    kinds = [None if each is None else check_label(each, "categories") for each in categories]
    if len(kinds) != len(actions):
        raise ValueError(f"categories: has {len(kinds)} entries, expected {len(actions)}, one an action")
    return kinds


def check_name(name: Any) -> str:
    """The name of a pool: it becomes a part of addresses and file names."""
    legal = isinstance(name, str) and 0 < len(name) <= 64 and all(c.isalnum() or c in "-_." for c in name)
    if not legal or not name.strip("."):
        raise ValueError(f"name: is {str(name)[:40]!r}, expected 1 to 64 letters, digits, '-', '_' or '.'")
    return name


def specification(learner: Learner) -> tuple[str, dict[str, Any]]:
    """A learner as journaled: the name that it is found by and its settings."""
    if not isinstance(learner, Learner):
        raise ValueError(f"learner: is {shown(learner)}, expected a learner such as SelfTuned()")
    name = name_of(type(learner))
    if name is None:
        check_live(learner)  # says why, where having a name would not help either
        raise ValueError(
            f"learner: {type(learner).__name__} has no name, expected it in learners.REGISTRY or among the entry "
            "points of an installed package: a pool finds its learner by the name in its journal"
        )
    options = dataclasses.asdict(learner)  # type: ignore[call-overload]
    return name, msgspec.to_builtins(options)


def opening(
    P: Any,
    actions: Any,
    states: Any,
    learner: Learner | None,
    seed: Any,
    categories: Any,
    settings: dict[str, Any],
    at: int,
) -> Opened:
    """The first event of a new pool, everything checked."""
    learner = SelfTuned() if learner is None else learner
    name, options = specification(learner)
    names, seen, table = catalogue_rows(P, actions, states, learner.learns_map)
    LiveLearner(learner, len(seen))  # refuses a learner that cannot run live, or does not fit the map
    kinds = check_categories(categories, names)
    checked = check_settings(settings)
    opened = Opened(
        at, names, seen, kinds, table.tobytes(), name, options, seed_bytes(seed), msgspec.to_builtins(checked),
        new_key(), seed is not None, FORMAT, RULE,
    )  # fmt: skip
    check_against(checked, Catalogue(opened))
    return opened


def _rows_of(bodies: dict[Any, dict[Kind, bytes]], catalogue: Catalogue, asked: list[Any]) -> list[dict[str, Any]]:
    known = ({kind: decode(body) for kind, body in bodies[each].items()} for each in asked)
    return [_row(catalogue, events) for events in known]


def _time(event: Any) -> datetime | None:
    """When it happened; a clock that was beyond what a date can say is read as the first or the last date there is."""
    if event is None:
        return None
    return datetime.fromtimestamp(min(max(event.at / 1e6, EARLIEST), LATEST), UTC)


def _row(catalogue: Catalogue, known: dict[Any, Any]) -> dict[str, Any]:
    made = known["decision"]
    assert isinstance(made, Decided)
    seen, last = known.get("state"), known.get("correction") or known.get("outcome") or known.get("expiry")
    return {
        "ticket": made.ticket,
        "action": label_of(made, catalogue.actions),
        "probability": made.probability,
        "state": catalogue.states[seen.state] if isinstance(seen, Seen) and seen.state is not None else None,
        "loss": last.loss if isinstance(last, Corrected | Resolved | Expired) else None,
        "reward": last.reported if isinstance(last, Corrected | Resolved) and last.as_reward else None,
        "decided_at": _time(made),
        "observed_at": _time(seen),
        "resolved_at": _time(last),
        "is_holdout": made.is_holdout,
        "expired": isinstance(last, Expired),
        "version": made.version,
        "context": made.context,
    }
