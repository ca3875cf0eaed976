"""A learner in a live pool: what a learner knows of a live pool, as exact sums, and how it makes a version of the play.

For a version the sums are written into the learner's own memory, and the learner's own compiled rule plays from there:
live and simulated play are one implementation, and nothing here knows which learner it is. What the outcome of a ticket
adds is computed from what its version recorded, never from what is known by then.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from statepool.checks import Floats, Ints
from statepool.exact_sums import ExactSums
from statepool.kernels import columns_of, dot
from statepool.learners.additive import (
    lesson_function,
    step_carry,
    step_carry_of_action,
    step_carry_of_actions,
    step_prepare,
)
from statepool.learners.learner import Learner, Problem
from statepool.learners.sums import Kind, Newcomers, Sum
from statepool.live.events import Lesson
from statepool.live.legacy import carry_of
from statepool.live.offers import Offer
from statepool.live.versions import Known, Part, spread
from statepool.stream import Stream

Record = dict[str, Any]

Q, POSSIBLE, OF_REQUEST = range(3)
"""In a row that travels with a request: q of the state, P(s|a), and where what the learner needs begins."""

ROOMS = 8
"""Memories for requests that are kept, one for each number of candidates."""

UNREACHED = 1e-6
"""A state less likely than this counts as one the play could not reach: its estimate, a charge of a million about once
in a million decisions, is worth less than a guess."""


class SumRow(NamedTuple):
    """One row of a sum: exact numbers, or, over cells, exact numbers of each action that was ever played."""

    of: Sum
    log: float
    exact: ExactSums
    cells: dict[int, ExactSums]
    is_by_state: bool
    is_by_action: bool

    @classmethod
    def empty(cls, of: Sum, log: float, n_states: int) -> "SumRow":
        by_action = of.over in ("actions", "cells")
        return cls(of, log, ExactSums(_width(of, n_states), log), {}, of.over in ("states", "cells"), by_action)

    def of_action(self, action: int) -> ExactSums:
        found = self.cells.get(action)
        if found is None:
            found = self.cells[action] = ExactSums(self.exact.size, self.log)
        return found


def _fading_alike(rows: list[SumRow]) -> list[list[tuple[int, SumRow]]]:
    """The rows with their places, those together that fade alike: what a round is weighed by is computed once."""
    alike: dict[float, list[tuple[int, SumRow]]] = {}
    for place, row in enumerate(rows):
        alike.setdefault(row.log, []).append((place, row))
    return list(alike.values())


class LiveLearner:
    """One row of `P` an active action, `ids` their numbers in the catalogue, which grow."""

    def __init__(self, learner: Learner, n_states: int, seed: bytes = b"") -> None:
        declared = check_live(learner)
        self.learner, self.n_states = learner, n_states
        self._stream = Stream.from_seed(int.from_bytes(seed, "big"))
        smallest = self._problem(np.full((1, n_states), 1 / n_states), None)
        # A learner that does not fit so many states refuses to start.
        memory = learner.start(smallest)
        self._lesson, self._clock_type = lesson_function(memory), memory.clock.dtype
        self.ids = np.zeros(0, np.int64)
        self._carry = np.zeros((n_states, learner.ticket_width(smallest)))
        self._places = np.array(learner.carried_by_action, np.int64)
        self._of_request = np.array(sorted({*learner.carried_by_request, *learner.carried_by_action}), np.int64)
        self.rooms = threading.Lock()
        """Of what requests are answered in: whoever answers one has it, until it is known what travels."""
        self._rooms: OrderedDict[int, Any] = OrderedDict()
        """Memories for requests of so many candidates, the latest last."""
        self._carry_of_request = self._carry.copy()
        self.learns_map = learner.learns_map
        self.heeds_states = any(each.told_by == "state" for each in declared)
        """Whether a state whose outcome has not come changes the play."""
        self.heeds_requests = any(each.told_by == "request" for each in declared)
        """Whether such a state of a request with rows of its own does."""
        self._rows = [SumRow.empty(each, log, n_states) for each in declared for log in each.logs]
        told = {
            kind: [row for row in self._rows if row.of.told_by == kind]
            for kind in ("state", "outcome", "request", "age")
        }
        self._told = {kind: _fading_alike(rows) for kind, rows in told.items()}
        self._taught, self._ones = len(told["outcome"]), [1.0] * len(told["state"])
        self._unreached = ExactSums(n_states)
        self._clock = self._registers = b""
        self.since = 0
        """Rounds before this one charge nothing any more."""

    def set_actions(self, P: Floats, ids: Ints, handicaps: Floats, came: Ints) -> None:
        """The active actions; `handicaps`: what each was charged, in round `came`, for states not reached."""
        self.P, self.ids = P, ids
        self.memory = self.learner.start(self._problem(P, Newcomers(handicaps, came, ids)))

    def _problem(self, P: Floats, newcomers: Newcomers | None) -> Problem:
        return Problem(P, None, 0, self._stream, newcomers=newcomers, live=True)

    def place_of(self, number: int) -> int | None:
        """Where an action stands among the active ones."""
        place = int(np.searchsorted(self.ids, number))
        return place if place < len(self.ids) and self.ids[place] == number else None

    def columns(self) -> Floats:
        """The map that is played by, transposed."""
        return np.asarray(self.memory.maps.columns[0]) if self.learns_map else columns_of(self.P)

    def distribution(self, decisions: int) -> tuple[Floats, tuple[Part, ...]]:
        """The distribution of the round after so many decisions, and how an action is drawn from it."""
        self._write_sums(decisions)
        self._write_registers()
        return _prepared(self.memory, decisions)

    def known(self, decisions: int) -> Known:
        """All that the version which was just made is made from, after it was made."""
        memory = self.memory
        table = memory.sums.flat.copy(), memory.sums.registers.copy()
        return Known(decisions, memory.clock.tobytes(), self.ids, *map(_read_only, table))

    def answer(self, known: Known, offer: Offer) -> tuple[Floats, tuple[Part, ...]]:
        """The distribution over the candidates of a request, from what a version knows and the rows of the request."""
        memory = self._room(len(offer.numbers))
        memory.maps.columns[0][:] = offer.P.T
        newcomers = getattr(memory, "newcomers", None)
        if newcomers is not None:
            newcomers.handicap[:], newcomers.came[:], newcomers.number[:] = offer.handicaps, offer.came, offer.numbers
        memory.sums.flat[:] = self._narrowed(known, offer.numbers)
        memory.sums.registers[:] = known.registers
        _set_clock(memory.clock, known.clock)
        return _prepared(memory, known.decisions)

    def _room(self, size: int) -> Any:
        """A memory for so many candidates; its rows, sums and registers are written before each use."""
        if size not in self._rooms:
            even = np.full((size, self.n_states), 1 / self.n_states)
            newcomers = Newcomers(np.zeros(size), np.zeros(size, np.int64), np.zeros(size, np.int64))
            memory = self.learner.start(self._problem(even, newcomers))
            # Rows that change from request to request are what a simulation with contexts has.
            maps = memory.maps._replace(map_of=np.zeros(1, np.int64))
            self._rooms[size] = memory._replace(maps=maps)
            if len(self._rooms) > ROOMS:
                self._rooms.popitem(last=False)
        self._rooms.move_to_end(size)
        return self._rooms[size]

    def _narrowed(self, known: Known, numbers: Ints) -> Floats:
        """The sums, those of actions for these actions only."""
        if not any(row.is_by_action for row in self._rows):
            return known.flat
        places = np.searchsorted(known.ids, numbers)
        places[places == len(known.ids)] = 0
        there = known.ids[places] == numbers
        parts, place = [], 0
        for row in self._rows:
            width = _width(row.of, self.n_states)
            size = width * (len(known.ids) if row.is_by_action else 1)
            part = known.flat[place : place + size]
            if row.is_by_action:
                part = np.where(there, part.reshape(width, -1)[:, places], 0.0).ravel()
            parts.append(part)
            place += size
        return np.concatenate(parts)

    def travelling(self, offer: Offer, distribution: Floats, place: int) -> bytes:
        """What travels with the action at a place of a request just answered, a row a state.

        A row has q of the state, P(s|a) of the action, and what of the ticket depends on the request or the action.
        """
        memory, carry = self._room(len(offer.numbers)), self._carry_of_request
        q = np.array([dot(distribution, column) for column in memory.maps.columns[0]])
        step_carry(memory, distribution, carry)
        if self._places.size:
            step_carry_of_action(memory, distribution, place, carry)
        return np.column_stack([q, offer.P[place], carry[:, self._of_request]]).tobytes()

    def _write_sums(self, decisions: int) -> None:
        flat, place = self.memory.sums.flat, 0
        for row in self._rows:
            known = self._cells(row, decisions) if row.is_by_action else row.exact.read(decisions)
            flat[place : place + known.size] = known
            place += known.size

    def _cells(self, row: SumRow, decisions: int) -> Floats:
        table = np.zeros((_width(row.of, self.n_states), len(self.ids)))
        for number, exact in row.cells.items():
            place = self.place_of(number)
            if place is not None:
                table[:, place] = exact.read(decisions)
        return table.ravel()

    def _write_registers(self) -> None:
        if self._clock:
            _set_clock(self.memory.clock, self._clock)
            self.memory.sums.registers[:] = np.frombuffer(self._registers)
        else:
            self.memory.clock["start"] = 0

    def record(self, distribution: Floats, q: Floats) -> Record:
        """What tickets of this version will need, and what the next version goes on from."""
        step_carry(self.memory, distribution, self._carry)
        memory = self.memory
        record: Record = {"q": q.tobytes(), "carry": self._carry.tobytes(), "clock": memory.clock.tobytes()}
        if memory.sums.registers.size:
            record["registers"] = memory.sums.registers.tobytes()
        unreached = np.flatnonzero(q < UNREACHED)
        if unreached.size:
            record["unreached"] = unreached.tolist()
        return record

    def carries(self, distribution: Floats) -> Floats | None:
        """What travels with each action, a row a state, where lessons depend on the action; after `record`."""
        if not self._places.size:
            return None
        out = np.empty((len(self.ids), self.n_states, self._places.size))
        step_carry_of_actions(self.memory, distribution, self._carry.copy(), self._places, out)
        return out

    def resume(self, record: Record, decisions: int) -> None:
        """A version was made, here or elsewhere."""
        for row in self._rows:
            row.exact.forget(decisions)
        self._clock, self._registers = record.get("clock", b""), record.get("registers", b"")
        start = int(np.frombuffer(self._clock, np.int64, 1)[0]) if self._clock else 0  # the first field of every clock
        if start != self.since:
            self.since = start
            self._unreached.clear()
            for row in self._rows:
                if row.of.anew:
                    row.exact.clear()
                    row.cells.clear()

    def see(self, round_played: int, action: int, state: int) -> None:
        """A state was seen."""
        self._add("state", round_played, action, state, self._ones)

    def see_request(self, round_played: int, reached: bytes) -> None:
        """The state of a request with rows of its own was seen; `reached`: how likely each was."""
        for alike in self._told["request"]:
            for _, row in alike:
                for place, value in enumerate(np.frombuffer(reached).tolist() if row.is_by_state else [1.0]):
                    row.exact.add(place, round_played, value)

    def learn(self, record: Record, event: Lesson, loss: float, sign: int = 1) -> None:
        """The outcome of a round came, or (sign -1) is taken back."""
        round_played, action, state = event.round_played, event.action, event.state
        assert state is not None
        for s in record.get("unreached", ()) if round_played >= self.since else ():
            if s != state:
                self._unreached.add(s, round_played, loss, sign)
        lesson = np.zeros(self._taught)
        self._lesson(lesson, loss, round_played, self._ticket(record, state, event))
        self._add("outcome", round_played, action, state, (lesson if sign > 0 else -lesson).tolist())

    def _ticket(self, record: Record, state: int, event: Lesson) -> Floats:
        ticket, carried = carry_of(record, state, self.n_states).copy(), event.carried
        if carried and event.is_request:
            ticket[self._of_request] = np.frombuffer(carried)[OF_REQUEST:]
        elif carried:
            ticket[self._places] = np.frombuffer(carried)
        return ticket

    def arrive(self, age: int) -> None:
        """An outcome came `age` rounds after it was played."""
        self._add("age", 0, 0, 0, (float(age), 1.0))

    def _add(self, told_by: Kind, round_played: int, action: int, state: int, values: Sequence[float]) -> None:
        """What one thing adds to the rows that are told of it, in the order of the rows."""
        is_late = round_played < self.since
        for alike in self._told[told_by]:
            number, weight = alike[0][1].exact.block_of(round_played)
            for place, row in alike:
                if is_late and row.of.anew:
                    continue
                exact = row.exact
                if row.is_by_action:
                    if action < 0:  # a candidate that the catalogue does not have: nothing is known of it alone
                        continue
                    exact = row.of_action(action)
                if values[place]:
                    exact.put(state if row.is_by_state else 0, number, values[place] * weight)

    def handicap(self, row: Floats, decisions: int) -> float:
        """What the past would have charged a row on states that could not be reached: what was lost meanwhile."""
        return float(row @ self._unreached.read(decisions))

    def category_row(self, ids: list[int]) -> Floats | None:
        """The row that actions of a category have shown together, where the map is learnt."""
        seen = self.by_action("pairs", 0)
        pairs = sum((seen[number] for number in ids if number in seen), np.zeros(self.n_states))
        return (pairs + 1 / self.n_states) / (pairs.sum() + 1.0) if pairs.any() else None

    def registers(self) -> dict[str, Any]:
        """What the latest version was made with, by name."""
        if not self._clock:
            return {}
        saved = np.frombuffer(self._clock, self._clock_type)[0]
        return {name: saved[name].item() for name in self._clock_type.names}

    def beliefs(self) -> Floats | None:
        """The state means that the latest version was made with, where the learner keeps such."""
        memories = getattr(self.memory, "memories", None) if self._clock and self.ids.size else None
        return None if memories is None else np.array(memories.mean)

    def leader(self) -> int | None:
        """The number of the action that the latest version leads with, where the learner has such."""
        place = self.registers().get("leader")
        return None if place is None or place >= len(self.ids) else int(self.ids[place])

    def names(self) -> list[str]:
        """Of the sums that tell no actions apart."""
        return list(dict.fromkeys(row.of.name for row in self._rows if not row.is_by_action))

    def sums(self, name: str, decisions: int) -> Floats:
        """What is known under a name after so many decisions: a row for each memory of it."""
        return np.array([row.exact.read(decisions) for row in self._rows if row.of.name == name])

    def by_action(self, name: str, decisions: int) -> dict[int, Floats]:
        """The same of a sum that tells actions apart, of those that were played."""
        rows = [row for row in self._rows if row.of.name == name]
        return {number: exact.read(decisions) for row in rows for number, exact in row.cells.items()}

    def dump(self) -> list[Any]:
        rows = [[row.exact.dump(), [[id_, row.cells[id_].dump()] for id_ in sorted(row.cells)]] for row in self._rows]
        return [rows, self._unreached.dump(), self._clock, self._registers]

    def load(self, dumped: list[Any]) -> None:
        rows, unreached, self._clock, self._registers = dumped
        for row, (exact, cells) in zip(self._rows, rows, strict=True):
            row.exact.load(exact)
            row.cells.clear()
            for number, each in cells:
                row.of_action(number).load(each)
        self._unreached.load(unreached)
        self.since = int(np.frombuffer(self._clock, np.int64, 1)[0]) if self._clock else 0


def _prepared(memory: Any, decisions: int) -> tuple[Floats, tuple[Part, ...]]:
    """The distribution of a memory whose sums and registers are written, and how an action is drawn from it."""
    rest = np.empty(memory.maps.columns.shape[-1])
    place, share = step_prepare(memory, decisions, rest)
    if not share:
        return rest, (spread(rest),)
    distribution = rest * (1.0 - share)
    distribution[place] += share
    leader = Part(share, place=int(place))
    return distribution, (leader, spread(rest)) if share < 1 else (leader,)


def _set_clock(clock: Any, saved: bytes) -> None:
    values = np.frombuffer(saved, clock.dtype)[0]
    for name in clock.dtype.names:
        clock[name] = values[name]


def _read_only(values: Floats) -> Floats:
    values.setflags(write=False)
    return values


def _width(declared: Sum, n_states: int) -> int:
    """How many numbers a row has, or has of each action."""
    return n_states if declared.over in ("states", "cells") else 1


def check_live(learner: Learner) -> tuple[Sum, ...]:
    """The sums of a learner that can run live; any other is refused."""
    declared, name = learner.sums(requests=True), type(learner).__name__
    if declared is None:
        raise ValueError(f"learner: {name} cannot run live, expected one whose knowledge is all sums")
    if not learner.tells_play:
        raise ValueError(f"learner: {name} cannot run live, expected one that tells with which probability it plays")
    if getattr(learner, "rate", 0.0) is None:
        raise ValueError(f"learner: {name} has no rate, expected one: a live pool has no horizon to set it by")
    if getattr(learner, "copies", 1) != 1:
        raise ValueError("learner: has copies, expected copies=1: live outcomes keep no order to interleave by")
    return declared
