"""The contract kit: passes what is right, and fails each broken promise with its sentence."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import outside
import statepool as sp
from outside import Allocating, Faulty, PlainNumPy, begin, wrong_learner
from statepool import testing as promises
from statepool.learners import Learner
from statepool.testing import ContractError, check_family, check_learner, learner_checks

BAND = sp.families.band(0, n_actions=9, horizon=60)
TEMPLATE = Path(__file__).parents[2] / "examples" / "outside"


@pytest.mark.parametrize("check", learner_checks(PlainNumPy(), [BAND]), ids=str)
def test_plain_numpy_passes(check):
    check()


@pytest.mark.soak
@pytest.mark.parametrize("check", learner_checks(Allocating(), [BAND]), ids=str)
def test_what_allocates_passes(check):
    check()


def test_plain_numpy_acts_as_ours():
    """The same rule written twice: by others with whole arrays, by us with kernels."""
    runs = [sp.simulate(BAND, learner, 3, seed=9) for learner in (PlainNumPy(rate=0.2), sp.StateEXP3(rate=0.2))]
    np.testing.assert_array_equal(runs[0].actions, runs[1].actions)
    np.testing.assert_allclose(runs[0].policies(), runs[1].policies(), atol=1e-12)


OURS = [sp.StateEXP3(), sp.learners.find("greedy-stale")()]
SLOW_TO_COMPILE = [pytest.param(each, marks=pytest.mark.soak) for each in (sp.SelfTuned(), sp.PooledThompson())]


@pytest.mark.parametrize("learner", OURS + SLOW_TO_COMPILE, ids=repr)
def test_ours_pass(learner):
    """`test_learners_on_families` has the same promises for all of ours."""
    check_learner(learner, [BAND])


@pytest.mark.parametrize("family", sp.families.REGISTRY)
def test_our_families_pass(family):
    check_family(sp.families.find(family))
    if family != "matched":  # makes two generators of a whole number
        first, again = (sp.families.find(family)(seed, horizon=20) for seed in (3, np.random.default_rng(3)))
        np.testing.assert_array_equal(first.theta, again.theta)


BROKEN = {
    "moody": (Faulty("moody"), promises.repeats_itself, "acts otherwise the second time"),
    "nearly": (Faulty("nearly"), promises.has_a_policy, "numbers from 0 that sum to 1"),
    "negative": (Faulty("negative"), promises.has_a_policy, "numbers from 0 that sum to 1"),
    "Prophet": ((outside.foresee, outside.foreseeing_policy), promises.waits_for_outcomes, "has not arrived"),
    "Sharing": ((outside.shared, outside.leader_policy), promises.steps_as_it_runs, "beside another run"),
}


def made(name, given):
    return given if isinstance(given, Learner) else wrong_learner(name, *given)


@pytest.mark.parametrize(
    "name", [*list(BROKEN)[:2], *(pytest.param(each, marks=pytest.mark.soak) for each in list(BROKEN)[2:])]
)
def test_a_broken_promise_is_reported(name):
    given, promise, sentence = BROKEN[name]
    with pytest.raises(ContractError, match=f"{name}.*{sentence}"):
        promise(made(name, given), BAND)


def test_a_learner_that_runs_live_takes_outcomes_back():
    learns = (("Undoing", outside.leader_learn), ("Signless", outside.learn_without_sign))
    right, wrong = (wrong_learner(name, begin, outside.leader_policy, learn) for name, learn in learns)
    promises.takes_outcomes_back(wrong, BAND)  # it does not run live
    type(right).runs_live = type(wrong).runs_live = True
    promises.takes_outcomes_back(right, BAND)
    with pytest.raises(ContractError, match="Signless: `learn` with sign -1 does not undo `learn`"):
        promises.takes_outcomes_back(wrong, BAND)


@pytest.mark.soak
def test_an_outcome_is_taken_back_although_versions_faded_it():
    of = (("Fading", outside.leader_learn, outside.fade), ("Timed", outside.learn_what_is_left, outside.keep_time))
    wrong, right = (wrong_learner(name, begin, outside.leader_policy, learn, advance=each) for name, learn, each in of)
    type(right).runs_live = type(wrong).runs_live = True
    promises.takes_outcomes_back(right, BAND)
    with pytest.raises(ContractError, match="Fading: `learn` with sign -1 does not undo `learn`"):
        promises.takes_outcomes_back(wrong, BAND)


def test_any_action_may_lead_to_any_state():
    with pytest.raises(ValueError, match=PAST_THE_END):
        promises.takes_every_report(wrong_learner("ByAction", begin, outside.leader_policy, outside.learn_by_action))


PAST_THE_END = "reads or writes past the end of an array, expected indices inside it"
REFUSED = {
    "one past": (Faulty("one past"), PAST_THE_END),
    "far": (Faulty("far"), PAST_THE_END),
    "far in learn": (Faulty("far in learn"), PAST_THE_END),
    "Attribute": (
        (begin, outside.typo_policy),
        r"outside\.py, line \d+ \(out\[:\] = memory\.sumz\[0\]\.min\(\)\), expected",
    ),
    "Undefined": ((begin, outside.undefined_policy), "uses 'lowest_indx', expected a name"),
    "not a number": (Faulty("not a number"), "policy of Faulty.* in round 11 sums to nan, expected"),
    "half": (Faulty("half"), r"policy of Faulty.* in round 7 sums to 0\.5, expected probabilities that sum to 1"),
    "Arguments": ((begin, outside.short_policy), r"expected policy\(memory, rows, t, out\)"),
    "Frames": ((lambda problem: ("a", object()), outside.first_policy), "field 'P' of Frames's memory holds object"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_compile_is_refused_in_one_sentence(name):
    given, sentence = REFUSED[name]
    learner = made(name, given)
    asked = [lambda: sp.simulate(BAND, learner)]
    if name in ("Attribute", "Frames"):  # by hand there is no loop that an action has to fit
        asked.append(lambda: learner.player(BAND.P).act(0.5))
    for ask in asked:
        with pytest.raises(ValueError, match=sentence) as refused:
            ask()
        assert str(refused.value).count("\n") == 0
        assert "nopython" not in str(refused.value)


def test_by_hand_an_index_past_the_end_is_reported_too():
    far = Faulty("far").player(BAND.P)
    for _ in range(BAND.n_states):
        far.act(0.5)
    with pytest.raises(ValueError, match=PAST_THE_END):
        far.act(0.5)


class Memoryless(Learner):
    def start(self, problem):
        return [1]


def test_a_learner_without_memory_or_rule():
    with pytest.raises(ValueError, match=r"Memoryless\.start gives list, expected a NamedTuple"):
        sp.simulate(BAND, Memoryless())


BAD_FAMILIES = {
    "no_instance": (lambda seed: 3, "gives int, expected an Instance"),
    "forgetful": (lambda seed: sp.Instance([[1.0]], np.random.default_rng().random((9, 1))), "the second time"),
    "credulous": (lambda seed: sp.Instance([[1.0]], [[0.5]]), "seed='one'.* is accepted"),
}


@pytest.mark.parametrize("name", BAD_FAMILIES)
def test_a_family_that_breaks_its_promise(name):
    family, sentence = BAD_FAMILIES[name]
    with pytest.raises(ContractError, match=sentence):
        check_family(family)


def install(folder, entry_points):
    """A package's metadata, as an installer would write them."""
    info = folder / "statepool_mine-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: statepool-mine\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(entry_points)


def run_with(folder, code):
    path = os.pathsep.join([str(folder), str(TEMPLATE), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )


def test_a_learner_of_an_installed_package_runs_live(tmp_path):
    install(tmp_path, "[statepool.learners]\nmine = mine:Mine\nself-tuned = mine:Mine\n")
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\nimport statepool as sp\n"
        "@dataclass(frozen=True)\nclass Mine(sp.PooledGreedy):\n    pass\n"
        "@dataclass(frozen=True)\nclass Unnamed(sp.PooledGreedy):\n    pass\n"
    )
    code = f"""
import statepool as sp
from mine import Mine, Unnamed
told = dict(P=[[0.5, 0.5], [0.2, 0.8]], actions=["a", "b"], states=["x", "y"])
with sp.Pool.open("sqlite:///{tmp_path}/pool.db", "home", learner=Mine(exploration=0.25), **told) as pool:
    pool.decide()
with sp.Pool.open("sqlite:///{tmp_path}/pool.db", "home") as pool:
    print(pool.decide().probability > 0, pool.status().learner)
try:
    sp.Pool.open("sqlite:///{tmp_path}/pool.db", "other", learner=Unnamed(), **told)
except ValueError as error:
    print(error)
"""
    said = run_with(tmp_path, code)
    lines = said.stdout.splitlines()
    assert lines[0] == "True Mine(forgetting=1.0, exploration=0.25)", said.stderr
    assert lines[1].startswith(
        "learner: Unnamed has no name, expected it in learners.REGISTRY or among the entry points"
    )


def test_an_installed_package_adds_its_learner_and_family(tmp_path):
    """The template, installed by hand (its metadata in a folder on the path), from the command and from Python."""
    install(
        tmp_path,
        "[statepool.learners]\nfollow-the-leader = statepool_mine:FollowTheLeader\nbroken = nowhere:Nothing\n"
        "odd = statepool_mine:two_shelves\nstate-exp3 = nowhere:Nothing\n"
        "[statepool.families]\ntwo-shelves = statepool_mine:two_shelves\n",
    )
    code = """
import statepool as sp
print(sp.learners.find("follow-the-leader")(), sp.families.find("two-shelves")(seed=0, horizon=10), sp.learners.find("state-exp3")())
for name in ("broken", "odd", "follow-the-lead"):
    try:
        sp.learners.find(name)
    except ValueError as error:
        print(error)
from statepool.cli import app
app(["simulate", "two-shelves", "follow-the-leader", "--seeds", "2", "--set", "horizon=200", "--json"])
"""  # noqa: E501
    done = run_with(tmp_path, code)
    said = done.stdout.splitlines()
    assert said[0] == "FollowTheLeader() Instance(12 actions, 3 states, 10 rounds) StateEXP3()".replace(
        "StateEXP3()", repr(sp.StateEXP3())
    ), done.stderr
    assert said[1] == "learner: 'broken' is nowhere:Nothing, which cannot be imported (No module named 'nowhere')"
    assert said[2].startswith("learner: 'odd' is <function two_shelves")
    assert "did you mean follow-the-leader?" in said[3]
    assert '"learner": "follow-the-leader"' in done.stdout


CELL = """
from dataclasses import dataclass
from typing import NamedTuple
import numpy as np
from statepool.learners import Learner, add_rule

@dataclass(frozen=True)
class Fixed(Learner):
    def start(self, problem):
        return FixedMemory(np.zeros(problem.n_actions))

class FixedMemory(NamedTuple):
    losses: np.ndarray

def policy(memory, rows, t, out):
    out[:] = 0.0
    out[1] = 1.0

add_rule(FixedMemory, policy)
"""


def test_a_changed_rule_is_the_one_that_plays():
    """A notebook's cell is run again, or two files name their memory alike: each learner plays its own rule."""
    defined = [{"__name__": name} for name in ("__main__", "__main__", "another_file")]
    for action, names in enumerate(defined):
        exec(CELL.replace("out[1]", f"out[{action}]"), names)
        assert set(sp.simulate(BAND, names["Fixed"]()).actions) == {action}
    assert set(sp.simulate(BAND, defined[0]["Fixed"](), seed=1).actions) == {0}
    with pytest.raises(ValueError, match="FixedMemory has a rule already, expected a new NamedTuple type"):
        exec("add_rule(FixedMemory, policy)", defined[0])
