"""A live pool: decide now, observe the state, resolve when the outcome comes.

    pool = Pool.open("sqlite:///pool.db", name="home", P=P, actions=[...], states=[...])
    d = pool.decide()                       # d.ticket, d.action, d.probability
    pool.observe(d.ticket, "click")
    pool.resolve(d.ticket, loss=0.0)        # seconds or weeks later, in any order, twice, or never

The contract: when a call returns, what it did is durable. Every call may be repeated: the same ticket with the same
value changes nothing, with another value it raises `Conflict`. A pool may be used by many threads, and on PostgreSQL by
many processes, where decisions and reports wait for no version to be made; on SQLite all writing takes turns. One
process at a time makes a new version of the policy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from math import ceil
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from numpy.typing import ArrayLike

from statepool.checks import check_count, check_number, shown
from statepool.learners import DEFAULT, make_learner, name_of
from statepool.learners.contract import Learner, short_name
from statepool.live import maintenance, status
from statepool.live.catalogue import Catalogue, changed, check_label, check_rows, make_catalogue, updated
from statepool.live.database import LOCK_TIMEOUT, OUTCOME, STATE, Database
from statepool.live.decisions import Decision, Decisions, NewReport, Reports, Stale, check_pairs, check_ticket
from statepool.live.errors import Conflict, NoSuchPool, StoreUnavailable, UnknownTicket
from statepool.live.learning import PolicyVersion, learn_reports
from statepool.live.replay import Replay, replay
from statepool.live.settings import (
    LARGEST,
    Definition,
    Revision,
    Settings,
    check_feasible,
    check_name,
    check_settings,
    choose_learner,
    insert_definition,
    learner_text,
    read_definition,
    read_revision,
)

BYTES_PER_REPORT, FEWEST_REPORTS = 40, 16
"""Without `update_every`, versions cost about so many bytes per report, and take in at least so many reports,"""
LONGEST_WAIT = 10.0
"""or are made so many seconds after the last attempt, a hundredth of the window if that is less."""
IDLE = 10
"""The background thread learns at most one part in so many of its time."""
ATTEMPTS = 20


class Pool(AbstractContextManager["Pool"]):
    """Decisions in a durable database; open one with `Pool.open`.

    Examples
    --------
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
        self, database: Database, version: PolicyVersion, clock: Callable[[], float] | None = None,
        owns_database: bool = False,
    ) -> None:  # fmt: skip
        self.definition: Definition = version.revision.definition
        self.name, self.database = self.definition.name, database
        self._clock, self._owns_database = clock, owns_database
        self._decisions = Decisions(database, self.definition.id)
        self._reports = Reports(database, self.definition)
        self._version, self._latest = version, version.number
        self._n_unlearned = 0
        """Reports that this process stored since it last tried to make a version."""
        self._learned_at = self._expired_at = time.monotonic()
        self._seconds_per_version = 0.0

    @classmethod
    def open(
        cls,
        url: str | Database,
        name: str,
        P: ArrayLike | Mapping[Any, Any] | None = None,
        actions: Sequence[Any] | None = None,
        states: Sequence[Any] | None = None,
        learner: Learner | str | None = None,
        *,
        contexts: Sequence[Any] | None = None,
        categories: Sequence[Any] | None = None,
        update: bool = False,
        learn_map: bool = False,
        clock: Callable[[], float] | None = None,
        **settings: Any,
    ) -> Pool:
        """Open the pool of that name, or make it.

        Parameters
        ----------
        url : str or Database
            `sqlite:///file.db`, `postgresql://…`, or a database that is open already and stays open.
        name : str
            The name of the pool. One database holds many.
        P : array_like or mapping, optional
            One row for each action, one column for each state. With contexts {context: rows}, where rows are one for
            each action, or {action: row} of those that the context may be answered with. None: the map is learnt.
        actions, states : sequence, optional
            Labels. They may be left out for a pool that is there.
        learner : Learner or str, optional
            A learner or its name; "self-tuned" for a new pool.
        contexts, categories : sequence, optional
            The order of the contexts; a category for each action.
        update : bool
            Change an existing pool to what is given here. Otherwise a difference raises `Conflict`.
        learn_map : bool
            Learn the map, and take P as a first guess.
        clock : callable, optional
            Returns seconds; for simulations. By default time is the database's. With a clock nothing runs in the
            background.
        **settings
            window, default_reward, default_loss, loss_bounds, reward_bounds, probability_bounds, holdout,
            holdout_action, fixed_action, update_every, keep_candidates, prior. `Settings` says what each does.
        """
        check_name(name)
        database = url if isinstance(url, Database) else Database(url)
        described = P, contexts, actions, states, categories
        try:
            version = read_version(database, name)
            if version is None:
                if actions is None or states is None:
                    raise NoSuchPool(f"pool: {name!r} is not there, expected actions, states and P to make it")
                chosen = choose_learner(DEFAULT if learner is None else learner, learn_map or P is None)
                version = create(database, name, chosen, described, settings, clock)
            assert version is not None
            pool = cls(database, version, clock, database is not url)
            pool._adapt(learner, described, settings, update)
            if clock is None and not database.read_only:
                database.background.add(pool)
            return pool
        except BaseException:
            if database is not url:
                database.close()
            raise

    def decide(
        self, ticket: str | None = None, *, context: Any = None, candidates: Mapping[Any, ArrayLike] | None = None,
        uniform: float | None = None,
    ) -> Decision:  # fmt: skip
        """Draw an action and store the decision.

        Parameters
        ----------
        ticket : str, optional
            A key of your own, which makes the call repeatable. By default a random one.
        context : optional
            Who is asking, in a pool that was opened with contexts.
        candidates : mapping, optional
            {action: row} of what may be shown to this request alone. The actions need not be in the catalogue.
        uniform : float, optional
            The random number to draw with; for simulations.
        """
        number = None if uniform is None else float(check_number(uniform, "uniform", 0, 1))
        return self._decide([(ticket, context, candidates)], number)[0]

    def decide_many(
        self, tickets: int | Iterable[str | None], *, contexts: Sequence[Any] | None = None,
        candidates: Sequence[Mapping[Any, ArrayLike]] | None = None,
    ) -> list[Decision]:  # fmt: skip
        """Several decisions in one transaction: a number of them, or one for each ticket; all or none.

        Parameters
        ----------
        tickets : int or iterable of str
            How many, or their tickets (None: a random one).
        contexts, candidates : sequence, optional
            One for each decision.
        """
        if isinstance(tickets, str) or not isinstance(tickets, Iterable):
            tickets = [None] * check_count(tickets, "tickets", 0)
        listed = list(tickets)
        asked: list[Sequence[Any]] = []
        for name, given in (("contexts", contexts), ("candidates", candidates)):
            if given is not None and len(given) != len(listed):
                raise ValueError(f"{name}: has {len(given)}, expected {len(listed)}, one for each decision")
            asked.append([None] * len(listed) if given is None else given)
        return self._decide(list(zip(listed, *asked, strict=True)))

    def _decide(self, requests: Sequence[Any], uniform: float | None = None) -> list[Decision]:
        for _ in range(ATTEMPTS):
            try:
                latest, made = self._decisions.decide(self._known_version(), requests, self._given_time(), uniform)
            except Stale:
                self.refresh()
                continue
            self._latest = max(latest, self._version.number)
            return made
        raise StoreUnavailable(f"pool: {self.name!r} was changed again and again during the call: try again")

    def observe(self, ticket: str, state: Any) -> None:
        """The state that was seen."""
        self._report([NewReport(check_ticket(ticket), STATE, self._version.revision.catalogue.state(state))])

    def observe_many(self, pairs: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """{ticket: state} or (ticket, state) pairs in one transaction.

        If some are refused, the others are kept and the first refusal is raised.
        """
        listed, state = check_pairs(pairs, "state"), self._version.revision.catalogue.state
        self._report([NewReport(check_ticket(ticket), STATE, state(each)) for ticket, each in listed])

    def resolve(self, ticket: str, loss: float | None = None, reward: float | None = None) -> None:
        """The outcome, as a loss or as a reward; a bare number, `resolve(ticket, 0.3)`, is a loss.

        A number outside the pool's bounds is stored as reported and learnt as the nearest bound.
        """
        self._report([self._outcome(ticket, loss, reward)])

    def resolve_many(
        self, losses: Mapping[str, float] | Iterable[tuple[str, float]] = (),
        rewards: Mapping[str, float] | Iterable[tuple[str, float]] = (),
    ) -> None:  # fmt: skip
        """Outcomes in one transaction, as {ticket: loss} or (ticket, loss) pairs, as rewards, or both.

        If some are refused, the others are kept and the first refusal is raised.
        """
        lost = [self._outcome(ticket, loss, None) for ticket, loss in check_pairs(losses, "loss")]
        won = [self._outcome(ticket, None, reward) for ticket, reward in check_pairs(rewards, "reward")]
        self._report(lost + won)

    def _outcome(self, ticket: Any, loss: Any, reward: Any) -> NewReport:
        outcome = self.definition.scale.outcome(self.settings, loss, reward)
        return NewReport(check_ticket(ticket), OUTCOME, None, *outcome)

    def _report(self, reports: list[NewReport]) -> None:
        try:
            self._n_unlearned += self._reports.store(reports, self._version.revision, self._given_time())
        finally:
            self._learn_if_due()

    def expire(self) -> int:
        """Give the default to every decision whose window is over; how many there were.

        Done in the background, too, except in a pool with a `clock`.
        """
        self.refresh()  # another process may have changed the window
        count = self._reports.expire(self._version.revision, self.now())
        self._n_unlearned += count
        self._learn_if_due()
        return count

    def learn(self) -> bool:
        """Take in all reports that are due (an outcome waits for its state); whether a version was made."""
        return self._learn(wait=True)

    def _learn_if_due(self) -> None:
        is_regular = self.settings.update_every is not None
        if is_regular or self._clock is not None:
            if self._has_many_reports() or (self._n_unlearned and not is_regular and self._is_old()):
                # Only a version after each report is worth waiting for a process that learns, and may have stopped.
                self._learn(wait=self.settings.update_every == 1 or self._clock is not None)
        elif self._has_many_reports():
            self.database.background.awake.set()

    def _is_old(self) -> bool:
        """Whether the version is older than a hundredth of the window."""
        window = self.settings.window
        return window is not None and self.now() - self._version.made_at >= window / 100

    def _has_many_reports(self) -> bool:
        nbytes = len(self._version.state) + len(self._version.saved)
        many = self.settings.update_every or max(FEWEST_REPORTS, ceil(nbytes / BYTES_PER_REPORT))
        return self._n_unlearned >= many

    def work(self) -> None:
        """What the background thread does from time to time: expire, and learn if that is due."""
        now, window = time.monotonic(), self.settings.window
        wait = LONGEST_WAIT if window is None else min(LONGEST_WAIT, window / 100)
        if window is not None and now - self._expired_at >= wait:
            self._expired_at = now
            self.expire()
        if now - self._learned_at < IDLE * self._seconds_per_version:
            return
        if self._has_many_reports():
            self._learn(wait=False)
        elif now - self._learned_at >= wait:
            # With exposure the policy changes as decisions grow older, reports or not.
            self._learn(wait=False, force=self.definition.learner.exposure and self._is_old())

    def _learn(self, wait: bool, force: bool = False) -> bool:
        taken, self._n_unlearned, begun = self._n_unlearned, 0, time.monotonic()

        def learn(connection: sa.Connection, before: PolicyVersion, now: float) -> PolicyVersion | None:
            return learn_reports(connection, self.database.tables, before.revision, before, now, force)

        try:
            made = self.make_version(learn, wait)
        except BaseException:
            self._n_unlearned += taken
            raise
        self._learned_at = time.monotonic()
        self._seconds_per_version = self._learned_at - begun
        return made is not None

    def make_version(
        self, job: Callable[[sa.Connection, PolicyVersion, float], PolicyVersion | None], wait: bool = True
    ) -> PolicyVersion | None:
        """Run a job that makes a version under the pool's lock, and draw from that version from then on.

        Without `wait` nothing is done if another process has the lock.
        """
        p = self.database.tables.pools.c
        lock = sa.select(p.id).where(p.id == self.definition.id).with_for_update(key_share=True, skip_locked=not wait)

        def locked(connection: sa.Connection) -> PolicyVersion | None:
            if self.database.is_postgres and wait:
                connection.exec_driver_sql(LOCK_TIMEOUT)
            if connection.execute(lock).first() is None:
                return None
            before = self._version = latest_version(connection, self.database, self.definition, self._version)
            return job(connection, before, self.now() if self._clock else self.database.time(connection))

        made = self.database.write(locked)
        if made is not None:
            self._version, self._latest = made, max(made.number, self._latest)
        return made

    def _known_version(self) -> PolicyVersion:
        """The version to draw from: the latest that this process has heard of, which need not be the latest."""
        if self._latest > self._version.number:
            self.refresh()
        return self._version

    def refresh(self) -> None:
        """Read the latest version, which another process may have made."""
        with self.database.read() as connection:
            version = latest_version(connection, self.database, self.definition, self._version)
        self._version, self._latest = version, version.number

    def add_action(self, action: Any, row: ArrayLike | None = None, category: Any = None) -> None:
        """A new action, which starts with everything that was learnt about the states of its row.

        Parameters
        ----------
        action : label
            A new one, or one that was retired.
        row : array_like, optional
            Its row of P; may be left out where the map is learnt.
        category : label, optional
            Kept with the action.
        """
        label = check_label(action, "action")
        kind = None if category is None else check_label(category, "category")
        states = self.definition.states
        if row is None and not self.definition.learner.learns_map:
            raise ValueError(f"row: of {label!r} is missing, expected one number for each state")
        checked = check_rows([[1 / len(states)] * len(states) if row is None else row], len(states), [label])[0]

        def change(catalogue: Catalogue) -> Catalogue:
            number = catalogue.number_of.get(label, -1)
            is_same = (catalogue.map[..., number, :] == checked).all() and catalogue.categories[number] == kind
            if catalogue.place(catalogue.base, label) is not None and not is_same:
                raise Conflict(f"action: {label!r} is there with another row or category, expected reweight_action")
            return changed(catalogue, {label: (checked, kind)})

        self._change_actions(change)

    def retire_action(self, action: Any) -> None:
        """Do not draw an action any more; outcomes of its decisions are still learnt."""
        self._change_actions(lambda known: changed(known, {known.labels[known.action(action)]: (None, None)}))

    def reweight_action(self, action: Any, row: ArrayLike) -> None:
        """Another row of P for an action, in decisions from now on."""
        checked = check_rows([row], len(self.definition.states), [action])[0]

        def change(catalogue: Catalogue) -> Catalogue:
            number = catalogue.action(action)
            if not catalogue.active[number]:
                raise ValueError(f"action: {action!r} is retired, expected add_action")
            return changed(catalogue, {catalogue.labels[number]: (checked, catalogue.categories[number])})

        self._change_actions(change)

    def change(self, /, **settings: Any) -> None:
        """Other settings from now on; those that are not named stay, and None is the default."""
        self._revise(lambda revision: (check_settings(settings, revision.settings), revision.catalogue))

    def _change_actions(self, change: Callable[[Catalogue], Catalogue]) -> None:
        self._revise(lambda revision: (revision.settings, change(revision.catalogue)))

    def _revise(self, change: Callable[[Revision], tuple[Settings, Catalogue]]) -> None:
        """Make the revision of these settings and catalogue, and the version that goes with it, in one transaction."""

        def revise(connection: sa.Connection, before: PolicyVersion, now: float) -> PolicyVersion | None:
            settings, catalogue = change(before.revision)
            if before.revision.is_as(settings, catalogue):
                return None
            check_feasible(settings, catalogue)
            revision = Revision(self.definition, before.revision.number + 1, settings, catalogue)
            return learn_reports(connection, self.database.tables, revision, before, now)

        self.make_version(revise)

    def _adapt(
        self, learner: Learner | str | None, described: tuple[Any, ...], given: dict[str, Any], update: bool
    ) -> None:
        """Compare an existing pool with what it was opened with; change it if that is asked for."""
        if learner is not None:
            given_learner, known_learner = make_learner(learner), self.definition.learner
            if name_of(type(given_learner)) is None or learner_text(given_learner) != learner_text(known_learner):
                known, other = short_name(known_learner), shown(short_name(given_learner))
                raise Conflict(f"learner: pool {self.name!r} has {known}, and was opened with {other}")
        P, contexts, actions, states, categories = described

        def change(revision: Revision) -> tuple[Settings, Catalogue]:
            settings, known = check_settings(given, revision.settings), revision.catalogue
            if P is None and actions is None and states is None:
                return settings, known
            labels = known.labels_of(known.active_numbers) if actions is None else actions
            seen = known.states if states is None else states
            made = make_catalogue(P, None if P is None else contexts, labels, seen, categories)
            return settings, updated(known, made, P is not None, self.name)

        settings, catalogue = change(self._version.revision)
        if self._version.revision.is_as(settings, catalogue):
            return
        if update:
            self._revise(change)
            return
        with self.database.read() as connection:  # it may be opened with what it was made with, too
            first = read_revision(connection, self.database.tables, self.definition, 1)
        if settings != self.settings or not first.is_as(first.settings, change(first)[1]):
            raise Conflict(f"pool: {self.name!r} is there with another catalogue or settings, expected update=True")

    @property
    def settings(self) -> Settings:
        """The settings of the latest revision that this process knows."""
        return self._version.revision.settings

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue of the latest revision that this process knows."""
        return self._version.revision.catalogue

    def policy(self, context: Any = None) -> dict[Any, float]:
        """The probability of each action in the next decision."""
        version = self._known_version()
        known = version.revision.catalogue
        offer, distribution = version.of(None if context is None else known.context(context))
        return dict(zip(known.labels_of(offer.rows.actions), distribution.probabilities.tolist(), strict=True))

    def now(self) -> float:
        """Seconds by this pool's clock."""
        return self.database.time() if self._clock is None else float(self._clock())

    def _given_time(self) -> float | None:
        """The time that goes with a statement; None: the database fills it in."""
        if self._clock is not None:
            return float(self._clock())
        return None if self.database.is_postgres else time.time()

    def rows(self, after: int | None = None) -> Iterator[dict[str, Any]]:
        """One flat record for each decision, with the columns of `maintenance.COLUMNS`.

        Parameters
        ----------
        after : int, optional
            The largest `cursor` of the rows that you have: only decisions of which a report was learnt since. A
            decision may come again; update it by its ticket. One without a report that was learnt does not come.
        """
        if after is None:
            return maintenance.rows(self)
        d, r = self.database.tables.decisions.c, self.database.tables.reports.c
        seen = sa.literal(check_count(after, "after", 0), sa.BigInteger())
        recent = r.pool == self.definition.id, r.learned_in > seen
        return maintenance.rows(self, d.id.in_(sa.select(r.decision).where(*recent)))

    def find(self, ticket: str) -> dict[str, Any]:
        """What is known of one ticket, as a row of `rows`."""
        for row in maintenance.rows(self, self.database.tables.decisions.c.ticket == check_ticket(ticket)):
            return row
        raise UnknownTicket(f"ticket: {ticket!r} is not known to this pool")

    def status(self) -> status.Status:
        """A reading of this moment: counts, the policy, losses of learner and holdout, the settings."""
        self.refresh()
        return status.read_status(self, self._version)

    def replay(self, redraw: bool = True) -> Replay:
        """Make every version again from the rows, and draw every decision again: `fault` is the first that differs."""
        return replay(self.database, self.definition, redraw)

    def erase(self, ticket: str) -> None:
        """Remove a ticket, its context and its candidates; the numbers that were learnt stay."""
        maintenance.erase(self, check_ticket(ticket))

    def archive(self, before: float, path: str | Path) -> int:
        """Write settled decisions made before a time to a Parquet file and delete them; how many."""
        return maintenance.archive(self, check_number(before, "before", -LARGEST, LARGEST), Path(path))

    def close(self) -> None:
        """Stop learning in this process and give the database back; nothing is lost without it."""
        self.database.background.remove(self)
        if self._owns_database:
            self.database.close()

    def __repr__(self) -> str:
        found = self.status()
        decisions, waiting = f"{found.decisions} decision{'' if found.decisions == 1 else 's'}", found.pending
        sizes = f"{int(self.catalogue.active.sum())} actions, {len(self.definition.states)} states"
        return f"Pool({self.name!r}: {sizes}, {short_name(self.definition.learner)}, {decisions}, {waiting} waiting)"

    def __exit__(self, *error: object) -> None:
        self.close()


def create(
    database: Database, name: str, learner: Learner, described: tuple[Any, ...], given: dict[str, Any],
    clock: Callable[[], float] | None,
) -> PolicyVersion | None:  # fmt: skip
    """Make a pool with the settings given; its first version."""
    catalogue, settings = make_catalogue(*described), check_settings(given)
    if catalogue.contexts:
        learner.check_contexts(len(catalogue.contexts))
    check_feasible(settings, catalogue)
    at = database.time() if clock is None else float(clock())

    def insert(connection: sa.Connection) -> PolicyVersion | None:
        definition = insert_definition(connection, database, name, learner, settings, catalogue, at)
        if definition is None:
            return None
        return learn_reports(connection, database.tables, Revision(definition, 1, settings, catalogue), None, at)

    return database.write(insert) or read_version(database, name)


def read_version(database: Database, name: str) -> PolicyVersion | None:
    """The latest version of the pool of that name; None: there is no such pool."""
    with database.read() as connection:
        definition = read_definition(connection, database.tables, name)
        return None if definition is None else latest_version(connection, database, definition)


def latest_version(
    connection: sa.Connection, database: Database, definition: Definition, held: PolicyVersion | None = None
) -> PolicyVersion:
    """The latest version, as this transaction sees it; `held`: the version that this process has."""
    v, tables = database.tables.versions.c, database.tables
    latest = sa.select(v.number, v.uid).where(v.pool == definition.id).order_by(v.number.desc()).limit(1)
    number, uid = connection.execute(latest).one()
    if held is not None and (held.number, held.uid) == (number, bytes(uid)):
        return held
    row = connection.execute(sa.select(tables.versions).where(v.pool == definition.id, v.number == number)).one()
    if held is not None and held.revision.number == row.revision:
        # After a restored backup another version has its number, and the revision may be another, too.
        known = connection.execute(sa.select(v.uid).where(v.pool == definition.id, v.number == held.number)).scalar()
        if known is not None and bytes(known) == held.uid:
            return PolicyVersion.from_row(held.revision, row)
    return PolicyVersion.from_row(read_revision(connection, tables, definition, row.revision), row)
