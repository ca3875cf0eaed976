"""The client's calls are those of a pool: the same names, arguments and defaults, awaited or not; and the same rows."""

import inspect

import pytest

from statepool.client import AsyncRemotePool, RemotePool
from statepool.live import Pool
from statepool.live.maintenance import COLUMNS
from statepool.live.service.messages import TicketAnswer

SIMULATIONS = {"decide": {"uniform"}}
"""Arguments that are for simulations only."""
CALLS = (
    "decide", "observe", "resolve", "add_action", "retire_action", "reweight_action", "change", "rows", "find",
    "status",
)  # fmt: skip
HERE_ONLY = {
    "decide_many", "observe_many", "resolve_many", "expire", "open", "close", "now",
    "learn", "work", "erase", "archive", "replay", "settings",
    "catalogue", "policy", "refresh", "make_version",
}  # fmt: skip
"""What is of this process or of the store."""


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def arguments(method):
    parameters = inspect.signature(method).parameters.items()
    return {name: (each.kind, each.default) for name, each in parameters if name != "self"}


def test_every_call_of_a_pool_is_one_of_the_clients_or_of_this_process():
    assert public(Pool) - set(CALLS) <= HERE_ONLY
    assert public(RemotePool) == public(AsyncRemotePool) == set(CALLS)


@pytest.mark.parametrize("kind", [RemotePool, AsyncRemotePool])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_takes_what_the_pools_takes(kind, name):
    given = arguments(getattr(Pool, name))
    expected = {argument: each for argument, each in given.items() if argument not in SIMULATIONS.get(name, ())}
    assert arguments(getattr(kind, name)) == expected


def test_rows_have_one_list_of_columns(tmp_path):
    assert tuple(COLUMNS) == TicketAnswer.__struct_fields__
    with Pool.open(f"sqlite:///{tmp_path}/pool.db", "home", [[0.5, 0.5]], ["a"], ["x", "y"]) as pool:
        ticket = pool.decide().ticket
        assert tuple(pool.find(ticket)) == tuple(next(pool.rows())) == tuple(COLUMNS)
