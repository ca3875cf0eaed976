"""Rules that are all sums: what a learner's file says where what it knows is additive, and the loop's four functions.

A learner's file gives, on its memory (a NamedTuple with `sums`, `maps` and `clock`, a record with at least `start`):

    prepare(memory, t)                      the play of round t, from the sums; sets what starts anew (`clock`)
    lead(memory)                            optional: (place, share), an action that is played with that share
    rest(memory, out)                       the distribution of the rest of the play
    pick(memory, u)                         an action drawn by one uniform: below the share, the leader
    own_reach(memory, state)                optional: q, the probability of a state under this play, and
    reach_under(memory, play, state)        under another one (within bounds, or with a holdout)
    carry(memory, state, q, ticket)         what the outcome of a decision will need, if it leads to this state
    own_probability(memory, action)         optional: x(a) under this play, and
    carry_of_action(memory, action, state, p, ticket)   what the outcome will need that depends on the action drawn
    lesson(out, loss, t, ticket)            what that outcome adds to the sums: of carried numbers alone
    notice(memory, t, action, state)        optional: a cache brought up to date with a state just seen
    absorb(memory, t, action, state, ticket) optional: the same, with the lesson of an outcome just added
    read_rows(memory)                       optional: what is kept of the rows of P, anew: a request brought others
    rebuild(memory)                         optional: all caches, from sums that were written from outside

The sums told of a state seen get 1 each, those of an age its rounds and 1.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from statepool.compiling import chosen_by_type, compiled, compiled_apart
from statepool.learners.maps import turn_to_context, varies
from statepool.learners.rules import add_rule
from statepool.learners.sums import add, fade


class AdditiveRule(NamedTuple):
    prepare: Callable[..., None]
    lead: Callable[..., tuple[int, float]]
    rest: Callable[..., None]
    pick: Callable[..., int]
    own_reach: Callable[..., float]
    reach_under: Callable[..., float]
    carry: Callable[..., None]
    own_probability: Callable[..., float]
    carry_of_action: Callable[..., None]
    lesson: Callable[..., None]
    notice: Callable[..., None]
    absorb: Callable[..., None]
    read_rows: Callable[..., None]
    rebuild: Callable[..., None]


_RULES: dict[type, AdditiveRule] = {}


def lead_nobody(memory: Any) -> tuple[int, float]:
    """All of the play is the rest."""
    return 0, 0.0


def _certain(memory: Any, state: int) -> float:
    return 1.0


def _certain_under(memory: Any, play: Any, state: int) -> float:
    return 1.0


def _carry_nothing_of_action(memory: Any, action: int, state: int, p: float, ticket: Any) -> None:
    pass


def _change_nothing(memory: Any, t: int, action: int, state: int) -> None:
    pass


def _absorb_nothing(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    pass


def _keep(memory: Any) -> None:
    pass


def add_additive_rule(
    memory: type, *, prepare: Any, rest: Any, pick: Any, carry: Any, lesson: Any, lead: Any = lead_nobody,
    own_reach: Any = _certain, reach_under: Any = _certain_under, own_probability: Any = _certain,
    carry_of_action: Any = _carry_nothing_of_action,
    notice: Any = _change_nothing, absorb: Any = _absorb_nothing, read_rows: Any = _keep, rebuild: Any = _keep,
) -> None:  # fmt: skip
    """Tie a rule to a memory type, for simulations and for live pools alike."""
    given = (
        prepare, lead, rest, pick, own_reach, reach_under, carry, own_probability, carry_of_action, lesson, notice,
        absorb, read_rows, rebuild,
    )  # fmt: skip
    # Numba chooses among plain functions and compiles the chosen one; a lesson is called from Python, too.
    _RULES[memory] = AdditiveRule(*(each if each is lesson else getattr(each, "py_func", each) for each in given))
    add_rule(memory, _act, _observe, _update, _play, _play_for)


def _part(name: str) -> Callable[..., Any]:
    """What compiled code calls by this name: the function that the rule of its memory has there."""
    return chosen_by_type(lambda memory: (rule := _RULES.get(memory)) and getattr(rule, name))


prepare = _part("prepare")
lead = _part("lead")
rest = _part("rest")
pick = _part("pick")
own_reach = _part("own_reach")
reach_under = _part("reach_under")
carry = _part("carry")
own_probability = _part("own_probability")
carry_of_action = _part("carry_of_action")
notice = _part("notice")
absorb = _part("absorb")
read_rows = _part("read_rows")
rebuild = _part("rebuild")


def _writing(memory: type) -> Any:
    rule = _RULES.get(memory)
    if rule is None:
        return None
    lesson = rule.lesson

    def write(memory, out, loss, t, ticket):  # type: ignore[no-untyped-def]
        lesson(out, loss, t, ticket)

    return write


lesson_of = chosen_by_type(_writing)


def _act(memory: Any, t: int, u: float) -> int:
    fade(memory.sums, t)
    if varies(memory.maps):
        turn_to_context(memory.maps, memory.maps.contexts[t])
        read_rows(memory)
    prepare(memory, t)
    return pick(memory, u)


def _observe(memory: Any, t: int, action: int, state: int, ticket: Any) -> None:
    carry(memory, state, own_reach(memory, state), ticket)
    carry_of_action(memory, action, state, own_probability(memory, action), ticket)
    add(memory.sums, memory.sums.seen, t, memory.clock.start, action, state)
    notice(memory, t, action, state)
    reached = memory.sums.reached
    if reached.size > 0:
        for s in range(reached.size - 1):
            reached[s] += own_reach(memory, s)
        reached[reached.size - 1] += 1.0


def _update(memory: Any, t: int, action: int, state: int, loss: float, ticket: Any) -> None:
    sums = memory.sums
    lesson_of(memory, sums.outcome.lesson, loss, t, ticket)
    add(sums, sums.outcome, t, memory.clock.start, action, state)
    if sums.age.lesson.size > 0:
        sums.age.lesson[0] = sums.now[0] - t
        add(sums, sums.age, t, memory.clock.start, action, state)
    absorb(memory, t, action, state, ticket)


def _play(memory: Any, t: int, out: Any) -> None:
    _play_now(memory, out)


@compiled_apart
def _play_now(memory: Any, out: Any) -> None:
    place, share = lead(memory)
    rest(memory, out)
    if share > 0.0:
        for a in range(out.size):
            out[a] *= 1.0 - share
        out[place] += share


def _play_for(memory: Any, t: int, context: int, out: Any) -> None:
    if varies(memory.maps):
        turn_to_context(memory.maps, context)
        read_rows(memory)
        prepare(memory, t)
    _play_now(memory, out)
    if varies(memory.maps):
        turn_to_context(memory.maps, memory.maps.contexts[t])
        read_rows(memory)
        prepare(memory, t)


def lesson_function(memory: Any) -> Callable[..., None]:
    """What turns an outcome and what travelled with its decision into a lesson."""
    return _RULES[type(memory)].lesson


@compiled
def step_prepare(memory: Any, t: int, out: Any) -> tuple[int, float]:
    """The play of round t, from sums that were written from outside: the leader, its share, and the rest into `out`."""
    rebuild(memory)
    prepare(memory, t)
    rest(memory, out)
    return lead(memory)


@compiled
def step_carry(memory: Any, play: Any, tickets: Any) -> None:
    """What the outcome of a decision will need, whichever state it leads to: one row a state."""
    for state in range(tickets.shape[0]):
        carry(memory, state, reach_under(memory, play, state), tickets[state])


@compiled
def step_carry_of_action(memory: Any, play: Any, action: int, tickets: Any) -> None:
    """What of the tickets, one row a state, depends on the action."""
    for state in range(tickets.shape[0]):
        carry_of_action(memory, action, state, play[action], tickets[state])


@compiled
def step_carry_of_actions(memory: Any, play: Any, tickets: Any, places: Any, out: Any) -> None:
    """The numbers of a ticket, at `places`, that depend on the action: [action, state, place]."""
    for action in range(out.shape[0]):
        for state in range(out.shape[1]):
            carry_of_action(memory, action, state, play[action], tickets[state])
            for i in range(places.size):
                out[action, state, i] = tickets[state, places[i]]
