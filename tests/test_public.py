"""The public names, and the signatures that DESIGN.md promises to the outside."""

import inspect
import pickle

import pytest

import statepool as sp
from statepool import families, learners


@pytest.mark.parametrize("module", [sp, families, learners])
def test_all_is_sorted_and_importable(module):
    names = module.__all__
    assert len(set(names)) == len(names)
    shouting, classes, rest = (
        [n for n in names if n.isupper()],
        [n for n in names if n[0].isupper() and not n.isupper()],
        [n for n in names if n[0].islower()],
    )
    assert names == sorted(shouting) + sorted(classes) + sorted(rest)
    for name in names:
        assert getattr(module, name) is not None


SIGNATURES = {
    "Instance": {"P": ..., "theta": ..., "effects": None, "contexts": None, "available": None},
    "simulate": {"instance": ..., "learner": ..., "delay": 50, "seed": 0},
    "StateEXP3": {"rate": None, "copies": 1, "groups": None, "mixing": 0.0},
    "ActionEXP3": {"rate": None, "copies": 1, "mixing": 0.0},
    "ActionThompson": {},
    "ActionUCB": {},
    "ActionGreedy": {},
    "SelfTuned": {},
    "HintedStateEXP3": {"rate": None},
    "PooledGreedy": {"forgetting": 1.0, "exploration": 0.0},
    "PooledThompson": {"forgetting": 1.0},
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_contract_signatures(name):
    parameters = list(inspect.signature(getattr(sp, name)).parameters.values())
    expected = SIGNATURES[name]
    assert [p.name for p in parameters[: len(expected)]] == list(expected)
    for parameter, default in zip(parameters, expected.values(), strict=False):
        assert parameter.default == (inspect.Parameter.empty if default is ... else default)
    assert all(p.default is not inspect.Parameter.empty for p in parameters[len(expected) :])


def test_the_designs_own_example():
    instance = sp.families.funnel(seed=0, n_actions=20, horizon=500)
    run = sp.simulate(instance, sp.StateEXP3(), delay=50, seed=80_000)
    for name in ("regret", "loss", "actions", "states", "outcomes", "dimension"):
        assert getattr(run, name) is not None
    assert 1 <= run.dimension <= 6
    assert isinstance(run.regret, float)


@pytest.mark.parametrize("registry", [learners, families])
def test_registries_hold_what_is_exported(registry):
    for name, entry in registry.REGISTRY.items():
        assert registry.find(name) is entry
        assert entry.__name__ in registry.__all__
    with pytest.raises(ValueError, match=r"'nosuch' is not known.*" + ".*".join(sorted(registry.REGISTRY))):
        registry.find("nosuch")


def test_top_level_names_are_those_of_the_first_room():
    first = {cls for cls in learners.REGISTRY.values() if cls.__module__.count(".") == 2}
    assert first == {getattr(sp, name) for name in sp.__all__ if isinstance(getattr(sp, name), type)} & set(
        learners.REGISTRY.values()
    )


def test_a_near_miss_gets_a_hint():
    with pytest.raises(ValueError, match=r"did you mean state-exp3\?"):
        learners.find("state-exp")
    with pytest.raises(ValueError, match=r"'mine:EpsState' is not known .*; learners of your own: docs/"):
        learners.find("mine:EpsState")
    with pytest.raises(ValueError, match=r"did you mean funnel\?"):
        families.find("funel")


@pytest.mark.parametrize("cls", learners.REGISTRY.values(), ids=lambda cls: cls.__name__)
def test_learners_are_values(cls):
    """Settings only: equal, hashable, picklable, unchangeable, and shown by their repr."""
    learner = cls()
    assert learner == cls()
    assert hash(learner) == hash(cls())
    assert pickle.loads(pickle.dumps(learner)) == learner
    assert repr(learner).startswith(cls.__name__)
    for field in cls.__dataclass_fields__:
        with pytest.raises(AttributeError):
            setattr(learner, field, 1)


def test_groups_are_values_too():
    import numpy as np

    labels = np.array([0, 1, 0])
    learner = sp.StateEXP3(groups=labels)
    labels[:] = 0
    assert learner == sp.StateEXP3(groups=[0, 1, 0])
    assert hash(learner) == hash(sp.StateEXP3(groups=(0, 1, 0)))


def test_runs_pickle():
    instance = sp.families.band(0, n_actions=4, n_states=2, horizon=50)
    run = sp.simulate(instance, sp.StateEXP3(), 3, seed=1)
    again = pickle.loads(pickle.dumps(run))
    assert again.regret == run.regret
    assert again.dimension == run.dimension
    assert run != again  # runs are compared by identity, not field by field
