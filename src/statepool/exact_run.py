"""A run that adds exactly, as a live pool does, in place of the compiled loop's floats: the yardstick between the two.

The sums are whole numbers of any size, a new version of the play is made when something was learnt since the last one,
and what travels with a decision is what its version says. A pool that makes a version after every lesson plays the same
to the bit; the compiled loop differs from it by rounding, which a rule may feed back. Slow: plain Python.
"""

from typing import Any, NamedTuple

import numpy as np

from statepool.calendar import book, due, make_calendar
from statepool.checks import Floats, Ints
from statepool.exact_sums import ExactSums
from statepool.kernels import dot, draw_outcome, draw_row
from statepool.learners.additive import lesson_function, step_carry, step_carry_of_action, step_prepare
from statepool.learners.learner import Learner, problem_of, typical_delay
from statepool.learners.maps import turn_to_context
from statepool.learners.sums import Sum, Sums
from statepool.model import Instance
from statepool.stream import Stream


class ExactPlay(NamedTuple):
    actions: Ints
    states: Ints
    outcomes: Floats
    plays: Floats
    """One row a round."""


def play_exactly(
    instance: Instance, learner: Learner, delay: int | Ints, stream: Stream, refresh: int = 1
) -> ExactPlay:
    """Every round of a learner that is all sums, with a version of the play once in `refresh` rounds at most."""
    declared = learner.sums(requests=instance.contexts is not None)
    if declared is None:
        raise ValueError(f"learner: {type(learner).__name__} is not all sums, expected one that can run live")
    if learner.learns_map and instance.contexts is not None:
        raise ValueError(f"learner: {learner} learns a map for each context, expected one that is told the map")
    return _Exactly(instance, learner, declared, delay, stream, refresh).run()


class _Exactly:
    def __init__(
        self, instance: Instance, learner: Learner, declared: tuple[Sum, ...], delay: int | Ints, stream: Stream,
        refresh: int,
    ) -> None:  # fmt: skip
        problem = problem_of(instance, learner, typical_delay(delay), stream)
        self._instance, self._memory = instance, learner.start(problem)
        self._known = _Known(declared, self._memory.sums, instance.n_states, instance.n_actions)
        self._lesson, self._by_action = lesson_function(self._memory), bool(learner.carried_by_action)
        self._heeds_states = any(each.told_by in ("state", "request") for each in declared)
        self._calendar = make_calendar(delay, instance.horizon)
        width = learner.ticket_width(problem)
        self._table = np.empty((instance.n_states, width))
        self._tickets = np.empty((self._calendar.n_slots, width))
        self._uniforms = iter(stream.uniforms(3 * instance.horizon))
        self._play, self._made, self._learnt = np.empty(instance.n_actions), -refresh, True
        self._refresh = refresh
        self._leader, self._share = 0, 0.0

    def run(self) -> ExactPlay:
        horizon = self._instance.horizon
        done = ExactPlay(
            np.empty(horizon, np.int32), np.empty(horizon, np.int32), np.empty(horizon),
            np.empty((horizon, self._instance.n_actions)),
        )  # fmt: skip
        for t in range(horizon):
            self._deliver(t, done)
            self._make_version(t)
            done.plays[t] = self._play
            done.actions[t], done.states[t], done.outcomes[t] = self._round(t)
        return done

    def _deliver(self, t: int, done: ExactPlay) -> None:
        r, slot = due(self._calendar, t)
        while r >= 0:
            out = np.zeros(self._memory.sums.outcome.lesson.size)
            self._lesson(out, done.outcomes[r], r, self._tickets[slot])
            cell = int(done.actions[r]), int(done.states[r])
            self._known.add(self._memory.sums.outcome, out, r, *cell, since=int(self._memory.clock["start"]))
            self._known.add(self._memory.sums.age, np.array([t - 1 - r, 1.0]), 0, *cell)
            self._learnt = True
            r, slot = due(self._calendar, t)

    def _make_version(self, t: int) -> None:
        """The play of round t: of a new version if something was learnt, through the rows of the request."""
        memory, is_due = self._memory, self._learnt and t - self._made >= self._refresh
        if memory.maps.vary:
            turn_to_context(memory.maps, self._instance.requests[t])
        elif not is_due:
            return
        if is_due:
            self._made, self._learnt = t, False
            self._known.write(memory.sums.flat, t)
        start, rest = int(memory.clock["start"]), np.empty(self._instance.n_actions)
        self._leader, self._share = step_prepare(memory, self._made, rest)
        if int(memory.clock["start"]) != start:
            self._known.start_anew()
        self._play = rest * (1.0 - self._share)
        self._play[self._leader] += self._share
        self._sums = np.cumsum(rest)

    def _draw(self, u: float) -> int:
        if u < self._share:
            return self._leader
        u = (u - self._share) / (1.0 - self._share)
        return min(int(np.searchsorted(self._sums, u * self._sums[-1], side="right")), self._sums.size - 1)

    def _round(self, t: int) -> tuple[int, int, float]:
        instance, memory = self._instance, self._memory
        action = self._draw(next(self._uniforms))
        row = action if instance.contexts is None else int(instance.requests[t]) * instance.n_actions + action
        state = draw_row(instance.rows[row], next(self._uniforms))
        step_carry(memory, self._play, self._table)
        if self._by_action:
            step_carry_of_action(memory, self._play, action, self._table)
        self._tickets[book(self._calendar, t)] = self._table[state]
        self._known.add(memory.sums.seen, np.ones(memory.sums.seen.lesson.size), t, action, state)
        if memory.sums.reached.size:
            columns = memory.maps.columns[memory.maps.now[0]]
            self._known.add_request(t, [float(dot(self._play, column)) for column in columns])
        self._learnt |= self._heeds_states
        mean = instance.theta[t, state]
        if instance.effects is not None:
            mean += instance.effects.reshape(-1, instance.n_states)[row, state]
        return action, state, draw_outcome(mean, next(self._uniforms)) if mean > 0.0 else 0.0


class _Known:
    """The sums of a memory, exactly: one row of whole numbers for each stretch of `flat` that fades alike."""

    def __init__(self, declared: tuple[Sum, ...], sums: Sums, n_states: int, n_actions: int) -> None:
        widths = {"one": 1, "states": n_states, "actions": n_actions, "cells": n_states * n_actions}
        self._rows = [(each, ExactSums(widths[each.over], log)) for each in declared for log in each.logs]
        self._ends = np.cumsum([exact.size for _, exact in self._rows], dtype=np.int64)

    def add(self, slots: Any, lesson: Floats, r: int, action: int, state: int, since: int = 0) -> None:
        """A lesson of round r."""
        for i in range(slots.lesson.size):
            if slots.places[i]["anew"] and r < since:
                continue
            where = slots.places[i]
            place = int(where["first"] + where["by_state"] * state + where["by_action"] * action)
            row = int(np.searchsorted(self._ends, place, side="right"))
            exact = self._rows[row][1]
            exact.add(place - int(self._ends[row]) + exact.size, r, float(lesson[i]))

    def add_request(self, t: int, reached: list[float]) -> None:
        for each, exact in self._rows:
            if each.told_by == "request":
                for place, value in enumerate(reached if each.over == "states" else [1.0]):
                    exact.add(place, t, value)

    def start_anew(self) -> None:
        for each, exact in self._rows:
            if each.anew:
                exact.clear()

    def write(self, flat: Floats, now: int) -> None:
        flat[:] = np.concatenate([exact.read(now) for _, exact in self._rows]) if self._rows else 0.0
        for _, exact in self._rows:
            exact.forget(now)
