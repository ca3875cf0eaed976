"""What each route does. A handler gets the validated call and returns the response's type, or a Starlette response."""

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, Iterator, Sequence
from itertools import islice
from math import isfinite, sqrt
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import msgspec
from msgspec import UNSET, UnsetType
from starlette.responses import Response, StreamingResponse

from statepool.learners import name_of
from statepool.live.dashboard.units import Unit, unit_of
from statepool.live.decisions import Decision
from statepool.live.errors import Conflict
from statepool.live.lift import Tally
from statepool.live.pool import Pool
from statepool.live.service import messages as m
from statepool.live.service.keys import Key
from statepool.live.service.pools import Batcher, Pools, in_thread
from statepool.live.service.refusals import Refused, refusal

ROWS_AT_ONCE = 500


class Call(NamedTuple):
    """A request after validation; `body` has the type that the table of routes names."""

    path: dict[str, str]
    query: bytes
    key: Key
    body: Any


class Handlers:
    """The handlers of all routes on pools."""

    def __init__(self, pools: Pools) -> None:
        self._pools = pools

    async def _pool(self, call: Call) -> Pool:
        return (await self._pools.find(call.path["name"])).pool

    async def list_pools(self, call: Call) -> m.NamesAnswer:
        return m.NamesAnswer([name for name in await in_thread(self._pools.names) if call.key.may_use(name)])

    async def show_pool(self, call: Call) -> m.PoolAnswer:
        pool = await self._pool(call)
        return await in_thread(lambda: summarise(pool))

    async def put_pool(self, call: Call) -> tuple[int, m.PoolAnswer]:
        name, body = call.path["name"], call.body
        created = await in_thread(lambda: self._pools.put(name, body))
        return 201 if created else 200, await self.show_pool(call)

    async def change_pool(self, call: Call) -> m.PoolAnswer:
        settings, pool = call.body, await self._pool(call)
        if isinstance(settings.get("settings"), dict):
            for unknown in sorted(settings.keys() - {"settings"}):
                raise ValueError(f"body: {unknown!r} is not known beside settings")
            settings = settings["settings"]
        await in_thread(lambda: pool.change(**settings))
        return await self.show_pool(call)

    async def decide(self, call: Call) -> m.DecisionAnswer | m.DecisionsAnswer:
        found = await self._pools.find(call.path["name"])
        requests, is_batch = _requests_of(call.body)
        asked = [_arguments(each) for each in requests]
        if not is_batch:
            return _shown(await found.decide.submit(asked[0]))
        tickets, contexts, candidates = zip(*asked, strict=True)
        decisions = await in_thread(lambda: found.pool.decide_many(tickets, contexts=contexts, candidates=candidates))
        return m.DecisionsAnswer([_shown(each) for each in decisions])

    async def put_state(self, call: Call) -> m.StateAnswer:
        ticket, state = call.path["ticket"], call.body.state
        await (await self._pools.find(call.path["name"])).observe.submit((ticket, state))
        return m.StateAnswer(ticket, state)

    async def put_outcome(self, call: Call) -> m.OutcomeAnswer:
        ticket, body = call.path["ticket"], call.body
        found = await self._pools.find(call.path["name"])
        await found.resolve.submit((ticket, _given(body.loss), _given(body.reward)))
        return m.OutcomeAnswer(ticket, body.loss, body.reward)

    async def put_states(self, call: Call) -> m.ReportsAnswer:
        found = await self._pools.find(call.path["name"])
        return await _report_each(found.observe, [(each.ticket, each.state) for each in call.body.states])

    async def put_outcomes(self, call: Call) -> m.ReportsAnswer:
        found = await self._pools.find(call.path["name"])
        outcomes = [(each.ticket, _given(each.loss), _given(each.reward)) for each in call.body.outcomes]
        return await _report_each(found.resolve, outcomes)

    async def show_ticket(self, call: Call) -> m.TicketAnswer:
        pool = await self._pool(call)
        return await in_thread(lambda: msgspec.convert(pool.find(call.path["ticket"]), m.TicketAnswer))

    async def rows(self, call: Call) -> Response:
        pool, [after] = await self._pool(call), parse_qs(call.query.decode("latin-1")).get("after", [None])[-1:]
        if after is not None and not after.isdigit():
            raise ValueError(f"after: is {after[:40]!r}, expected the cursor of a row")
        rows = pool.rows(None if after is None else int(after))
        first = await in_thread(lambda: _encode_some(rows))  # errors become a status while none was sent yet
        return StreamingResponse(_stream(first, rows), media_type="application/jsonl")

    async def expire(self, call: Call) -> m.ExpiryAnswer:
        pool = await self._pool(call)
        return m.ExpiryAnswer(await in_thread(pool.expire))

    async def put_action(self, call: Call) -> m.ActionAnswer:
        body: m.ActionBody = call.body
        pool, text = await self._pool(call), call.path["action"]

        def put() -> Any:
            label = find_action(pool.status().actions, text)
            label = _agree(text, label, body.label) if body.label is not UNSET else text if label is None else label
            if not body.reweight:
                pool.add_action(label, body.row, body.category)
            elif body.row is None:
                raise ValueError("row: is missing, expected one probability per state")
            else:
                pool.reweight_action(label, body.row)
            return label

        return m.ActionAnswer(await in_thread(put))

    async def retire_action(self, call: Call) -> m.ActionAnswer:
        pool, text = await self._pool(call), call.path["action"]

        def retire() -> Any:
            label = find_action(pool.status().actions, text)
            if label is None:
                raise Refused(404, f"action: {text!r} is not in the catalogue")
            pool.retire_action(label)
            return label

        return m.ActionAnswer(await in_thread(retire))


def _requests_of(body: m.DecisionBody) -> tuple[Sequence[m.DecisionBody | m.DecisionRequest], bool]:
    """The single decisions of a body, and whether it is a batch."""
    given = [name for name in ("ticket", "count", "tickets", "requests") if getattr(body, name) is not UNSET]
    if len(given) > 1:
        raise ValueError(f"body: has {' and '.join(given)}, expected one of ticket, count, tickets and requests")
    if isinstance(body.requests, list):
        if body.context is not UNSET or body.candidates is not UNSET:
            raise ValueError("body: has requests, expected context and candidates inside each of them")
        return body.requests, True
    if isinstance(body.count, int):
        return [m.DecisionRequest(UNSET, body.context, body.candidates)] * body.count, True
    if isinstance(body.tickets, list):
        return [m.DecisionRequest(ticket, body.context, body.candidates) for ticket in body.tickets], True
    return [body], False


def _arguments(request: m.DecisionBody | m.DecisionRequest) -> tuple[str | None, Any, dict[Any, list[float]] | None]:
    """Ticket, context and candidates as `Pool.decide` takes them."""
    candidates: Any = request.candidates
    if isinstance(candidates, list):
        rows = {each.action: each.row for each in candidates}
        if len(rows) < len(candidates):
            raise ValueError("candidates: has an action twice, expected different ones")
        candidates = rows
    return _given(request.ticket), _given(request.context), _given(candidates)


def _given(value: Any | UnsetType) -> Any:
    return None if value is UNSET else value


def _shown(decision: Decision) -> m.DecisionAnswer:
    return m.DecisionAnswer(decision.ticket, decision.action, decision.probability)


async def _report_each(batcher: Batcher, reports: Sequence[tuple[Any, ...]]) -> m.ReportsAnswer:
    """Store each report; a store that is away refuses the whole request, which may be repeated."""
    results = await asyncio.gather(*(batcher.submit(report) for report in reports), return_exceptions=True)
    refused = []
    for report, result in zip(reports, results, strict=True):
        if isinstance(result, ValueError):
            why = refusal(result)
            refused.append(m.RefusedReport(report[0], why.status, why.sentence))
        elif isinstance(result, BaseException):
            raise result
    return m.ReportsAnswer(len(reports) - len(refused), refused)


def summarise(pool: Pool) -> m.PoolAnswer:
    """The status of a pool, in reported units."""
    pool.refresh()  # another process may have changed it
    status, unit = pool.status(), unit_of(pool)
    counts = status.counts
    corrected = status.pending - status.decisions + counts["outcomes"] + counts["expiries"]
    return m.PoolAnswer(
        name=status.name,
        actions=len(status.numbers),
        states=list(status.states),
        learner=m.LearnerBody(name_of(type(status.learner)) or type(status.learner).__name__, _options(status.learner)),
        settings=msgspec.structs.asdict(status.settings),
        decisions=status.decisions,
        pending=status.pending,
        counts={
            "state": counts["states"], "outcome": counts["outcomes"], "expiry": counts["expiries"],
            "correction": corrected, "impossible": counts["impossible"], "out_of_bounds": counts["out_of_bounds"],
            "unlearned": counts["unlearned"],
        },
        version=status.version,
        unit=unit.name,
        outcomes=m.ArmsAnswer(**{arm: _arm(tally, unit) for arm, tally in status.losses.items()}),
        lift=None if status.lift is None else m.LiftAnswer(*unit.lift(status.lift)),
    )  # fmt: skip


def _options(learner: Any) -> dict[str, Any]:
    return {each.name: getattr(learner, each.name) for each in dataclasses.fields(learner)}


def _arm(tally: Tally, unit: Unit) -> m.ArmAnswer:
    mean, error = unit.mean(tally), abs(unit.slope) * sqrt(tally.variance)
    return m.ArmAnswer(tally.count, mean if isfinite(mean) else None, error if isfinite(error) else None)


def find_action(labels: Sequence[Any], text: str) -> Any:
    """The label that a path means: the text itself, or else the label that is written so; None: there is none."""
    if text in labels:
        return text
    return next((label for label in labels if not isinstance(label, str) and text in _spellings(label)), None)


def _spellings(label: Any) -> tuple[str, str]:
    return str(label), msgspec.json.encode(label).decode()


def _agree(text: str, found: Any, label: Any) -> Any:
    if text not in _spellings(label) and text != label:
        raise ValueError(f"label: is {label!r}, expected what the path says, {text!r}")
    if found is not None and found != label:
        raise Conflict(f"action: {text!r} is {found!r} already")
    return label


def _encode_some(rows: Iterator[dict[str, Any]]) -> bytes:
    return b"".join(msgspec.json.encode(row) + b"\n" for row in islice(rows, ROWS_AT_ONCE))


async def _stream(first: bytes, rows: Iterator[dict[str, Any]]) -> AsyncGenerator[bytes]:
    piece = first
    while piece:
        yield piece
        piece = await in_thread(lambda: _encode_some(rows))
