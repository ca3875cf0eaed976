"""Bad input is refused with one ValueError that names the argument, the entry and what was expected."""

from fractions import Fraction

import numpy as np
import pytest

import statepool as sp
import textbook
from statepool import families
from statepool.learners.player import PlayedRound

NAN, INF = float("nan"), float("inf")
P2 = [[0.5, 0.5], [0.25, 0.75]]
THETA = np.full((6, 2), 0.5)


def refuses(*words):
    """A ValueError whose message holds all of these words, in order."""
    return pytest.raises(ValueError, match="(?s)" + ".*".join(words))


@pytest.mark.parametrize(
    ("P", "words"),
    [
        ([[0.5, 0.5], [0.5, 0.6]], ["P: row 1 sums to 1.1", "expected 1"]),
        ([[0.5, 0.5 + 3e-9]], ["P: row 0", "expected 1 within 1e-09"]),
        ([[0.5, 0.5], [1.5, -0.5]], [r"P: entry \(1, 1\) is -0.5", "not negative"]),
        ([[0.5, 0.5], [NAN, 1.0]], [r"P: entry \(1, 0\) is nan", "finite"]),
        ([[0.5, 0.5], [INF, 0.0]], [r"P: entry \(1, 0\) is inf", "finite"]),
        ([0.5, 0.5], ["P: has shape", "one row per action"]),
        (0.5, ["P: has shape"]),
        (np.empty((0, 2)), [r"P: has shape \(0, 2\)", "non-empty"]),
        (np.empty((2, 0)), [r"P: has shape \(2, 0\)", "non-empty"]),
        ([], ["P: has shape"]),
        ([[0.5, 0.5], [1.0]], ["P: is not a table of numbers"]),
        ([["0.5", "0.5"]], ["P: is not a table of numbers"]),
        ("half", ["P: is not a table of numbers"]),
        (None, ["P"]),
        ({"a": 1}, ["P: is not a table of numbers"]),
        ([[0.5 + 1j, 0.5]], ["P: is not a table of numbers", "complex"]),
        (np.array([[object(), 1.0]], dtype=object), ["P: is not a table of numbers"]),
        (np.array([[1, 0]], dtype="datetime64[s]"), ["P: is not a table of numbers"]),
    ],
)
def test_maps(P, words):
    with refuses(*words):
        sp.Instance(P, THETA)
    with refuses(*words):
        sp.StateEXP3(rate=0.1).player(P)


@pytest.mark.parametrize(
    ("theta", "words"),
    [
        (np.full((6, 3), 0.5), ["theta: has 3 columns", "expected 2"]),
        ([[0.5, 0.5], [0.5, 1.1]], [r"theta: entry \(1, 1\) is 1.1", r"\[0, 1\]"]),
        ([[0.5, -1e-9]], [r"theta: entry \(0, 1\)", r"\[0, 1\]"]),
        ([[0.5, 0.5], [NAN, 0.5]], [r"theta: entry \(1, 0\) is nan", r"\[0, 1\]"]),
        ([[INF, 0.5]], [r"theta: entry \(0, 0\) is inf", r"\[0, 1\]"]),
        (np.empty((0, 2)), ["theta: has shape"]),
        ([0.5, 0.5], ["theta: has shape"]),
        ([["a", "b"]], ["theta: is not a table of numbers"]),
    ],
)
def test_means(theta, words):
    with refuses(*words):
        sp.Instance(P2, theta)


@pytest.mark.parametrize(
    ("effects", "words"),
    [
        (np.zeros((2, 3)), [r"effects: has shape \(2, 3\)", r"\(2, 2\)"]),
        (np.zeros((6, 2)), [r"effects: has shape \(6, 2\)", r"\(2, 2\)"]),
        ([[0.0, 0.0], [0.6, 0.0]], [r"effects: entry \(1, 0\) is 0.6", r"out of \[0, 1\]", "0.5 to 0.5"]),
        ([[0.0, -0.51], [0.0, 0.0]], [r"effects: entry \(0, 1\)", r"out of \[0, 1\]"]),
        ([[0.0, NAN], [0.0, 0.0]], [r"effects: entry \(0, 1\) is nan", "finite"]),
        ("none", ["effects: is not a table of numbers"]),
    ],
)
def test_effects(effects, words):
    with refuses(*words):
        sp.Instance(P2, THETA, effects)
    sp.Instance(P2, THETA, np.full((2, 2), 0.5))  # up to the edge is fine


@pytest.mark.parametrize(
    ("delay", "words"),
    [
        (-1, ["delay: is -1", "at least 0"]),
        (1.5, ["delay: is 1.5", "whole number"]),
        (2.0, ["delay: is 2.0", "whole number"]),
        (True, ["delay: is True", "whole number"]),
        (np.bool_(True), ["delay: is ", "whole number"]),
        (np.float64(2), ["delay: is ", "whole number"]),
        ("3", ["delay: is '3'", "whole number"]),
        (None, ["delay: is None", "whole number"]),
        (NAN, ["delay: is nan", "whole number"]),
        (np.array(2.5), ["delay: is 2.5", "whole number"]),
        ({1, 2}, ["delay: is ", "whole number"]),
        ([1, 2, 3], [r"delay: has shape \(3,\)", r"\(6,\)"]),
        ([], [r"delay: has shape \(0,\)", r"\(6,\)"]),
        (np.zeros((6, 1), int), [r"delay: has shape \(6, 1\)", r"\(6,\)"]),
        ([1, 2, -3, 4, 5, 6], ["delay: entry 2 is -3", "whole number of at least 0"]),
        ([1, 2, 3, 4.5, 5, 6], ["delay: entry 3 is 4.5", "whole number of at least 0"]),
        ([1.0] * 6, ["delay: entry 0 is 1.0", "whole number"]),
        ([1, 2, NAN, 4, 5, 6], ["delay: entry 2 is nan", "whole number"]),
        ([1, 2, INF, 4, 5, 6], ["delay: entry 0 is 1.0", "whole number"]),
        ([True] * 6, ["delay: entry 0 is True", "whole number"]),
        (["1"] * 6, ["delay: entry 0 is '1'", "whole number"]),
        (np.array([1, 2, None, 3, 4, 5], dtype=object), ["delay: entry 2 is None", "whole number"]),
        ([[1, 2], [3]], ["delay"]),
    ],
)
def test_delays(delay, words):
    with refuses(*words):
        sp.simulate(sp.Instance(P2, THETA), sp.StateEXP3(), delay)


@pytest.mark.parametrize(
    "delay",
    [2, np.int8(2), np.uint64(2), np.array(2), [2] * 6, (2,) * 6, np.full(6, 2, np.uint8), np.full(12, 2)[::2],
     np.array([2] * 6, dtype=object)],
    ids=repr,
)  # fmt: skip
def test_delays_of_every_integer_kind_mean_the_same(delay):
    instance = sp.Instance(P2, THETA)
    expected = sp.simulate(instance, sp.StateEXP3(rate=0.9), 2, seed=4)
    np.testing.assert_array_equal(
        sp.simulate(instance, sp.StateEXP3(rate=0.9), delay, seed=4).actions, expected.actions
    )


@pytest.mark.parametrize(
    "delay", [10**30, 2**64 - 1, np.full(6, 2**64 - 1, np.uint64), [10**30] * 6, [0, 10**30, 1, 2, 3, 2**70]], ids=str
)
def test_huge_delays_never_arrive(delay):
    instance = sp.Instance(P2, THETA)
    for learner in (
        sp.StateEXP3(),
        sp.StateEXP3(copies="d+1"),
        sp.learners.PlugIn(),
        sp.learners.ZimmertSeldin(shift=True),
        sp.learners.GreedyStale(),
    ):
        assert np.isfinite(sp.simulate(instance, learner, delay).regret)


@pytest.mark.parametrize("seed", [-1, 1.5, NAN, "1", None, True, [1], np.random.RandomState(0)])
def test_seeds(seed):
    with refuses("seed: is", "whole number of at least 0"):
        sp.simulate(sp.Instance(P2, THETA), sp.StateEXP3(), 1, seed)
    for make in families.REGISTRY.values():
        with refuses("seed: is", "whole number of at least 0"):
            make(seed, horizon=10)


@pytest.mark.parametrize("draws", [0, 1, 4, 2.0, 3.0, "3", None, True])
def test_draws(draws):
    with refuses("draws: is"):
        sp.simulate(sp.Instance(np.eye(2), THETA), sp.StateEXP3(), 1, draws=draws)


def test_two_draws_need_a_deterministic_map():
    with refuses("draws: is 2, expected 3", "several states"):
        sp.simulate(sp.Instance(P2, THETA), sp.StateEXP3(), draws=2)


def test_a_map_for_each_context_needs_contexts():
    with refuses("P: has shape"):
        sp.Instance([[[1.0]]], THETA)
    with refuses("knows no contexts"):
        sp.ActionEXP3(rate=0.1).player([[[1.0]]])


def test_instances_and_learners_of_the_wrong_kind():
    instance = sp.Instance(P2, THETA)
    for wrong in (None, P2, "band"):
        with refuses("instance: is", "expected an Instance"):
            sp.simulate(wrong, sp.StateEXP3())
    for wrong in (None, 3, sp.StateEXP3):
        with refuses("learner: is", "expected a learner"):
            sp.simulate(instance, wrong)


RATED = [cls for cls in sp.learners.REGISTRY.values() if "rate" in cls.__dataclass_fields__]
MIXED = [cls for cls in sp.learners.REGISTRY.values() if "mixing" in cls.__dataclass_fields__]


@pytest.mark.parametrize(
    "rate", [0, 0.0, -1.0, NAN, INF, -INF, "0.1", True, [0.1], np.array([0.1]), 1j, 10**400, Fraction(-1, 2)], ids=repr
)
@pytest.mark.parametrize("cls", RATED, ids=lambda cls: cls.__name__)
def test_rates(cls, rate):
    with refuses("rate: is", r"a finite number in \(0, inf"):
        cls(rate=rate)


@pytest.mark.parametrize("rate", [1, np.float32(0.5), np.int64(1), Fraction(1, 2)], ids=repr)
@pytest.mark.parametrize("cls", RATED, ids=lambda cls: cls.__name__)
def test_rates_of_every_real_kind_mean_the_same(cls, rate):
    instance = sp.Instance(P2, THETA)
    expected = sp.simulate(instance, cls(rate=float(rate)), 1, seed=3)
    np.testing.assert_array_equal(sp.simulate(instance, cls(rate=rate), 1, seed=3).policies(), expected.policies())


@pytest.mark.parametrize("mixing", [-0.1, 1.1, NAN, "0.1", None, True])
@pytest.mark.parametrize("cls", MIXED, ids=lambda cls: cls.__name__)
def test_mixing(cls, mixing):
    with refuses("mixing: is", r"\[0, 1\]"):
        cls(mixing=mixing)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sp.StateEXP3(copies=0), ["copies: is 0", "at least 1"]),
        (lambda: sp.StateEXP3(copies=1.5), ["copies: is 1.5", "at least 1"]),
        (lambda: sp.ActionEXP3(copies="d"), ["copies: is 'd'", "d\\+1"]),
        (lambda: sp.ActionEXP3(copies=True), ["copies: is True"]),
        (lambda: sp.learners.PlugIn(smoothing=0), ["smoothing: is 0", r"\(0"]),
        (lambda: sp.learners.PlugIn(smoothing=NAN), ["smoothing: is nan"]),
        (lambda: sp.learners.CountedDenominator(block=1), ["block: is 1", "at least 2"]),
        (
            lambda: sp.learners.CountedDenominator(denominator="guessed"),
            ["denominator: 'guessed'", "counted, predicted"],
        ),
        (lambda: sp.learners.ZimmertSeldin(scale=0), ["scale: is 0"]),
        (lambda: sp.learners.ZimmertSeldin(scale=INF), ["scale: is inf"]),
        (lambda: sp.PooledGreedy(forgetting=0), ["forgetting: is 0", r"\(0, 1\]"]),
        (lambda: sp.PooledGreedy(exploration=1.5), ["exploration: is 1.5", r"\[0, 1\]"]),
        (lambda: sp.PooledThompson(forgetting=1.01), ["forgetting: is 1.01"]),
        (lambda: sp.learners.BestState(exploration=-1), ["exploration: is -1"]),
    ],
)
def test_settings(make, words):
    with refuses(*words):
        make()


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([0, 2], ["groups: index 1 is skipped", "0 to 2"]),
        ([1, 1], ["groups: index 0 is skipped"]),
        ([0, 10**15], ["groups: index 1 is skipped"]),
        ([0, -1], ["groups: entry 1 is -1", "at least 0"]),
        ([0.0, 1.0], ["groups: entry 0 is 0.0", "whole number"]),
        ([0.0, 0.5], ["groups: entry 1 is 0.5", "whole number"]),
        ([True, False], ["groups: entry 0 is True", "whole number"]),
        (["a", "b"], ["groups: entry 0 is 'a'", "whole number"]),
        ([0], [r"groups: has shape \(1,\)", r"\(2,\)"]),
        ([0, 1, 2], [r"groups: has shape \(3,\)", r"\(2,\)"]),
        ([[0, 1]], [r"groups: has shape \(1, 2\)"]),
        (0, [r"groups: has shape \(\)"]),
        ([], ["groups: has shape"]),
        ([[0], [0, 1]], ["groups"]),
    ],
)
def test_groups(groups, words):
    with refuses(*words):
        sp.simulate(sp.Instance(P2, THETA), sp.StateEXP3(groups=groups))


@pytest.mark.parametrize("name", families.REGISTRY)
@pytest.mark.parametrize("size", [0, -3, 2.5, "4", None, True])
def test_family_sizes(name, size):
    import inspect

    make = families.find(name)
    sizes = {
        "n_actions", "n_states", "horizon", "n_drifting", "block", "n_contexts", "n_candidates",
        "n_epochs",
    }  # fmt: skip
    for argument in sizes & set(inspect.signature(make).parameters):
        if size is None and inspect.signature(make).parameters[argument].default is None:
            continue
        with refuses(f"{argument}: is {size!r}", "whole number"):
            make(0, **{argument: size})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: families.hostile(0, kind="mild"), ["kind: 'mild'", "deterministic, misleading, near-unreachable"]),
        (lambda: families.hostile(0, kind="deterministic", n_actions=3), ["n_actions: is 3", "at least 8"]),
        (lambda: families.hostile(0, n_states=1), ["n_states: is 1", "at least 2"]),
        (lambda: families.matched(0, n_states=1), ["n_states: is 1", "at least 2"]),
        (lambda: families.matched(0, overlap=1.2), ["overlap: is 1.2", r"\[0, 1\]"]),
        (lambda: families.overlap(0, overlap=-0.1), ["overlap: is -0.1", r"\[0, 1\]"]),
        (lambda: families.overlap(0, overlap=NAN), ["overlap: is nan"]),
        (lambda: families.band(0, drift=INF), ["drift: is inf"]),
        (lambda: families.clustered(0, heterogeneity=NAN), ["heterogeneity: is nan"]),
        (lambda: families.scarce(0, share=0), ["share: is 0"]),
        (lambda: families.scarce(0, share=1), ["share: is 1"]),
        (lambda: families.hard(0, amplitude=0.6), ["amplitude: is 0.6"]),
        (lambda: families.hard(0, n_actions=4), ["n_drifting: is 4", "fewer than the 4 actions"]),
        (lambda: families.hard(0, n_states=4), ["n_drifting: is 4", "the 4 states"]),
        (lambda: families.crowds(0, means="still"), ["means: 'still'", "steady, switching"]),
        (lambda: families.routes(0, n_candidates=121), ["n_candidates: is 121", "the 120 actions"]),
        (lambda: families.segments(0, of_context=-1), ["of_context: is -1"]),
        (lambda: families.moving_map(0, moves="leaps"), ["moves: 'leaps'", "drift, jumps"]),
    ],
)
def test_family_settings(make, words):
    with refuses(*words):
        make()


@pytest.mark.parametrize("name", families.REGISTRY)
def test_smallest_members_of_a_family(name):
    """One action and one round where the family allows them."""
    smallest = {
        "hard": {"n_actions": 2, "n_drifting": 1, "block": 1},
        "clustered": {"n_actions": 1},
        "direct": {"n_actions": 1},
        "locked": {},
        "shifting": {"n_actions": 1, "n_states": 2},
        "spread": {"n_actions": 1},
        "crowds": {"n_contexts": 1, "n_actions": 1, "n_states": 1},
        "routes": {"n_contexts": 1, "n_actions": 1, "n_candidates": 1},
        "segments": {"n_contexts": 1, "n_actions": 1, "n_states": 1},
    }
    sizes = {"hostile": {"n_actions": 1, "n_states": 2}, "matched": {"n_actions": 1, "n_states": 2}} | smallest
    instance = families.find(name)(0, horizon=1, **sizes.get(name, {"n_actions": 1, "n_states": 1}))
    assert np.isfinite(sp.simulate(instance, sp.StateEXP3()).regret)


def test_comparisons():
    family = {"band": lambda seed: sp.families.band(seed, n_actions=3, n_states=2, horizon=20)}
    arms = {"state": sp.StateEXP3()}
    for name, call in {
        "families": lambda: sp.compare({}, arms),
        "learners": lambda: sp.compare(family, {}),
        "delays": lambda: sp.compare(family, arms, delays=()),
        "seeds": lambda: sp.compare(family, arms, seeds=()),
    }.items():
        with refuses(f"{name}: is empty"):
            call()
    with refuses("delays: is -1"):
        sp.compare(family, arms, delays=(-1,))
    with refuses("seeds: is 0.5"):
        sp.compare(family, arms, seeds=(0.5,))
    with refuses("learner: 'state' is not known; did you mean state-exp3"):
        sp.compare(family, {"state": "state"}, seeds=(0,))
    got = sp.compare(family, arms, seeds=(0,), delays=(3,))
    for words, call in {
        "family: 'bend'.*did you mean band": lambda: got.of("bend", "state", 3),
        "learner: 'stat'.*known: state": lambda: got.of("band", "stat", 3),
        "delay: 4 is not known.*known: 3": lambda: got.mean("band", "state", 4),
        "learner: 'action'": lambda: got.gain("band", "state", over="action", delay=3),
    }.items():
        with refuses(words):
            call()


def test_model_questions():
    instance = sp.Instance(P2, THETA)
    for call, words in [
        (lambda: instance.e2(-1), "delay: is -1"),
        (lambda: instance.e2(1.5), "delay: is 1.5"),
        (lambda: instance.regret([0] * 5), r"actions: has shape \(5,\)"),
        (lambda: instance.regret([0.0] * 6), "actions: .*whole numbers"),
        (lambda: instance.regret([0, 1, 2, 0, 0, 0]), "actions: entry 2 is 2, expected 0 to 1"),
        (lambda: instance.regret_path([0, -1, 0, 0, 0, 0]), "actions: entry 1 is -1"),
        (lambda: sp.simulate(instance, sp.StateEXP3()).policies(0), "every: is 0"),
    ]:
        with refuses(words):
            call()


def test_players():
    player = sp.ActionEXP3(rate=0.5).player(P2, delay=1)
    with refuses("policy: no action"):
        player.policy()
    for u in (-0.1, 1.1, NAN, "0.5"):
        with refuses("u: is"):
            player.act(u)
    first = player.act(0.2)
    with refuses("decision: of round 0 has no state"):
        player.update(first, 1.0)
    for state in (2, -1, 0.5, "click", True):
        with refuses("state: is"):
            player.observe(first, state)
    player.observe(first, 1)
    with refuses("only the latest can"):
        player.observe(first, 1)
    second = player.act(0.2)
    with refuses("only the latest can"):
        player.observe(first, 0)
    with refuses("update: round 1 has acted, expected its state"):
        player.update(first, 1.0)  # would make the second ticket record another play than its own
    player.observe(second, 0)
    for loss in (-0.1, 1.1, NAN, "1"):
        with refuses("loss: is"):
            player.update(first, loss)
    player.update(first, 1.0)
    with refuses("its outcome came already"):
        player.update(first, 1.0)
    impossible = sp.StateEXP3(rate=0.5).player(np.eye(2))
    decision = impossible.act(0.9)
    with refuses("state: 0 cannot follow action 1"):
        impossible.observe(decision, 0)
    with refuses("only the latest can"):
        impossible.observe(PlayedRound(0, 1, 0.5, 1, 1, 0, np.empty(1)), 1)


def test_players_before_they_start():
    with refuses("horizon: is None"):
        sp.StateEXP3().player(P2)
    with refuses("horizon: is 0"):
        sp.StateEXP3().player(P2, horizon=0)
    with refuses("delay: is -1"):
        sp.StateEXP3(rate=1.0).player(P2, delay=-1)
    with refuses("instance: is None"):
        sp.learners.GreedyStale().player(P2, horizon=5)
    with refuses("instance: has another map"):
        sp.learners.GreedyStale().player(P2, horizon=5, instance=sp.Instance(np.eye(3), np.zeros((5, 3))))
    player = sp.learners.GreedyStale().player(P2, horizon=6, instance=sp.Instance(P2, THETA))
    for _ in range(6):
        player.act(0.5)
    with refuses("act: round 6 is past the instance's 6 rounds"):
        player.act(0.5)


def test_play_stays_that_of_the_last_act():
    """Interleaved copies and trees move on: what was played does not."""
    for learner in (sp.StateEXP3(rate=0.9, copies=2), sp.ActionEXP3(rate=0.9), sp.PooledGreedy(exploration=0.1)):
        player = learner.player(P2)
        for _ in range(4):
            decision = player.act(0.3)
            played = player.policy()
            player.observe(decision, 0)
            player.update(decision, 1.0)
            np.testing.assert_array_equal(player.policy(), played)
            assert played[decision.action] == decision.probability


def layouts(table):
    padded = np.zeros((2 * table.shape[0], 3 * table.shape[1]))
    padded[::2, ::3] = table
    frozen = table.copy()
    frozen.flags.writeable = False
    yield from (
        table.tolist(),
        np.asfortranarray(table),
        padded[::2, ::3],
        frozen,
        table.astype(object),
        table[::-1][::-1],
    )
    yield table.astype(">f8")
    yield np.ma.masked_array(table)


def test_layouts_and_types_of_tables_do_not_matter():
    P, theta = textbook.random_instance(1, K=5, S=3, T=80)
    expected = sp.simulate(sp.Instance(P, theta), sp.StateEXP3(), 4, seed=2)
    for given_P, given_theta in zip(layouts(P), layouts(theta), strict=True):
        run = sp.simulate(sp.Instance(given_P, given_theta), sp.StateEXP3(), 4, seed=2)
        assert run.actions.tobytes() == expected.actions.tobytes()
        assert run.regret == expected.regret
    eye = np.eye(3, dtype=int)
    for P in (eye, eye.astype(bool), eye.astype(np.float32), eye.tolist()):
        assert (np.eye(3) == sp.Instance(P, np.zeros((4, 3), dtype=int)).P).all()
