"""Every public name says what it is, with an example that runs; every setting is explained; signatures are short."""

import doctest
import importlib
import inspect
import re
import sys
from pathlib import Path

import msgspec
import pytest

import statepool as sp
from statepool import client, testing
from statepool.live.settings import Settings, check_settings

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
from public_names import public_names

MODULES = (sp, sp.families, sp.delays, sp.dimension, sp.guarantees, sp.grouping, client, testing)


def public():
    for module in MODULES:
        for name in public_names(module):
            yield f"{module.__name__}.{name}", getattr(module, name)


PUBLIC = dict(public())
LEARNERS = {f"statepool.{kind.__name__}": kind for kind in sp.learners.REGISTRY.values()}


@pytest.mark.parametrize("name", PUBLIC)
def test_it_says_what_it_is(name):
    value = PUBLIC[name]
    said = value.__doc__ or ""
    assert said.strip(), f"{name} has no docstring"
    assert not said.startswith(f"{value.__name__}("), f"{name}: a dataclass's own signature says nothing"
    if isinstance(value, type) and value.__module__.startswith("statepool") and not issubclass(value, Exception):
        bare = [
            each for each, member in vars(value).items()
            if not each.startswith("_") and inspect.isfunction(member) and not member.__doc__
            and not any(getattr(getattr(base, each, None), "__doc__", None) for base in value.__mro__[1:])
        ]  # fmt: skip
        allowed = {"of", "start", "ticket_width"}
        assert not set(bare) - allowed, f"{name}: no docstring for {bare}"


@pytest.mark.parametrize("name", PUBLIC)
def test_its_signature_is_short(name):
    try:
        text = str(inspect.signature(PUBLIC[name]))
    except ValueError:  # an exception's, written in C
        return
    assert "numpy._typing" not in text
    assert len(text) < 900


CLASSES = ("Instance", "Run", "Pool", "client.Client", "client.AsyncClient")
"""Those that one makes; what functions give back is seen in their examples."""
WITH_EXAMPLES = {
    **{name: value for name, value in PUBLIC.items() if inspect.isfunction(value)},
    **LEARNERS,
    **{name: PUBLIC[f"statepool.{name}"] for name in CLASSES},
    "player": sp.learners.Learner.player,
}


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_its_example_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    value = WITH_EXAMPLES[name]
    module = importlib.import_module(value.__module__)
    found = doctest.DocTestFinder(recurse=False).find(value, value.__name__, module=False, globs=dict(vars(module)))
    assert any(each.examples for each in found), f"{name} has no example"
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    for each in found:
        result = doctest.DocTestRunner(verbose=False, optionflags=flags).run(each)
        assert result.failed == 0


def test_every_setting_of_a_pool_is_explained():
    told = msgspec.json.schema_components([Settings])[1]["Settings"]["properties"]
    assert {name for name, schema in told.items() if schema.get("description")} == set(Settings.__struct_fields__)


def test_every_setting_is_in_the_docs():
    page = (Path(__file__).parents[1] / "docs" / "live.md").read_text()
    named = re.findall(r"`(\w+)`", page.split("## Settings")[1].split("\n## ")[0])
    assert set(Settings.__struct_fields__) <= set(named)


@pytest.mark.parametrize(("end", "step"), [("minimum", -1), ("maximum", 1)])
def test_documented_ranges_are_checked(end, step):
    documented = msgspec.json.schema_components([Settings])[1]["Settings"]["properties"]
    ends = {name: schema[end] for name, schema in documented.items() if end in schema}
    assert ends
    for name, value in ends.items():
        with pytest.raises(ValueError, match=name):
            check_settings({name: value + step})
        assert getattr(check_settings({name: value}), name) == value


@pytest.mark.parametrize("window", [0, -1, float("nan"), float("inf"), "a week"])
def test_a_window_is_a_positive_number_of_seconds(window):
    with pytest.raises(ValueError, match="window"):
        check_settings({"window": window})
