"""One good call of every public function, and values that are wrong for most arguments of any of them."""

import inspect
from collections.abc import Callable, Iterator
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

import statepool as sp
from statepool import delays, grouping, guarantees
from statepool.families import REGISTRY as FAMILIES
from statepool.learners import REGISTRY as LEARNERS

P = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.3, 0.4, 0.3]])
THETA = np.tile([0.2, 0.5, 0.8], (30, 1))
INSTANCE = sp.Instance(P, THETA)

WRONG: list[Any] = [
    None, "x", "", b"x", -1, 0, 2.5, float("nan"), float("inf"), 10**30, True, 1 + 2j, [], {}, (), object(), [[1.0]],
    [[0.5, 0.6]], ["a", "b"], [None], np.zeros((2, 2, 2, 2)), np.array(["a"]), np.array([np.nan] * 3), lambda: None,
    int, np.full((3, 3), 2.0), {"a": [1.0]}, range(3), sp.SelfTuned, INSTANCE,
]  # fmt: skip


class Call(NamedTuple):
    """`function(**good)` works."""

    name: str
    function: Callable[..., Any]
    good: dict[str, Any]


def _play(kind: type) -> Callable[..., Any]:
    def make(**settings: Any) -> Any:
        return sp.simulate(INSTANCE, kind(**settings), 2, seed=1).regret

    return make


def _by_hand(P: Any, loss: Any, u: Any, context: Any, state: Any, decision: Any, **settings: Any) -> Any:
    """A round of a player."""
    player = sp.StateEXP3().player(P, **settings)
    made = player.act(u, context=context)
    player.observe(made if decision is None else decision, state)
    player.update(made if decision is None else decision, loss)


def _pool(P: Any, actions: Any, states: Any, loss: Any, candidates: Any, context: Any, state: Any, **given: Any) -> Any:
    """A decision of a pool that is made for it."""
    url = "sqlite:///{}/pool.db"
    with TemporaryDirectory() as at, sp.Pool.open(url.format(at), "home", P, actions, states, **given) as pool:
        ticket = pool.decide(candidates=candidates, context=context).ticket
        pool.observe(ticket, state)
        pool.resolve(ticket, loss=loss)


def _settings(kind: type) -> dict[str, Any]:
    return {name: each.default for name, each in inspect.signature(kind).parameters.items()}


def _family(make: Callable[..., Any]) -> dict[str, Any]:
    known = {"seed": 1, "horizon": 60, "n_contexts": 2}
    return {name: known.get(name, each.default) for name, each in inspect.signature(make).parameters.items()}


GOOD = {
    "n_actions": 5, "n_states": 3, "horizon": 100, "delay": 4, "budget": 20.0, "rate": 0.05,
    "drift": 0.5, "spread": 20.0, "waited": 50.0, "most_in_flight": 4, "given_up": 3,
    "n_drifting": 1, "dimension": None, "most_arrivals": 3, "n_signs": 8, "n_walks": 3,
    "log_actions": 2.0, "instance": INSTANCE, "seed": 1, "mean": 3.0, "share": 0.1, "P": P,
    "states": np.arange(30) % 3, "outcomes": np.arange(30) % 2, "rehearsals": 4, "n": 50,
    "rng": np.random.default_rng(1),
}  # fmt: skip


def _good(function: Callable[..., Any], **others: Any) -> dict[str, Any]:
    known, parameters = {**GOOD, **others}, inspect.signature(function).parameters
    return {name: known.get(name, each.default) for name, each in parameters.items()}


def calls() -> Iterator[Call]:
    """All of them."""
    for name, kind in LEARNERS.items():
        yield Call(name, _play(kind), _settings(kind))
    for name, make in FAMILIES.items():
        if name != "direct":  # passes its settings on to another one
            yield Call(f"families.{name}", make, _family(make))
    for name in guarantees.__all__:
        function = getattr(guarantees, name)
        if inspect.isfunction(function):
            others = {"dimension": 2.0} if name == "interleaving_pays" else {}
            yield Call(f"guarantees.{name}", function, _good(function, **others))
    for function in (delays.geometric, delays.heavy_tailed, delays.missing):
        yield Call(f"delays.{function.__name__}", function, _good(function))
    for function in (grouping.choose_groups, grouping.published_rule):
        yield Call(f"grouping.{function.__name__}", function, _good(function))
    for function in (sp.dimension.bracket, sp.dimension.estimate, sp.dimension.effective):
        yield Call(
            f"dimension.{function.__name__}", function, _good(function, x=np.full(3, 1 / 3), play=np.full(3, 1 / 3))
        )
    yield Call("find", sp.families.find, {"name": "funnel"})
    yield Call("find a learner", sp.learners.find, {"name": "uniform"})
    yield Call("player", _by_hand, {
        "P": P, "horizon": 9, "actions": ["a", "b", "c"], "states": ["x", "y", "z"], "seed": 1, "loss": 0.5,
        "u": 0.3, "context": None, "state": "y", "decision": None,
    })  # fmt: skip
    yield Call("Pool", _pool, {
        "P": P, "contexts": None, "holdout": 0.1, "default_loss": 1.0, "window": 60, "update_every": None,
        "loss": 0.5, "candidates": None, "context": None, "state": "y", "actions": ["a", "b", "c"],
        "states": ["x", "y", "z"], "learner": None, "categories": None, "loss_bounds": (0, 1), "probability_bounds": (),
    })  # fmt: skip
    yield Call("Instance", sp.Instance, {"P": P, "theta": THETA, "effects": None, "contexts": None, "available": None})
    yield Call(
        "simulate", sp.simulate, {"instance": INSTANCE, "learner": sp.Uniform(), "delay": 1, "seed": 1, "draws": 3}
    )
    yield Call(
        "compare", sp.compare,
        {"families": INSTANCE, "learners": sp.Uniform(), "delays": (1,), "seeds": range(2), "stream": 8, "jobs": 1},
    )  # fmt: skip
