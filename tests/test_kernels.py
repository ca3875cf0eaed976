"""Each kernel against plain NumPy to 1e-13, and a cache that notices when any source changes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import statepool
from statepool import kernels

SIZES = [*range(1, 71), 127, 128, 129, 1000, 4099]
CLOSE = {"rtol": 1e-13, "atol": 0}


def test_exp_over_its_range():
    x = np.concatenate([np.linspace(-700, 700, 200_001), np.random.default_rng(0).uniform(-1, 1, 50_000) * 1e-3, [0.0]])
    np.testing.assert_allclose([kernels.exp(v) for v in x], np.exp(x), rtol=5e-15, atol=0)


def test_weights_are_clamped_instead_of_underflowing():
    out = np.empty(4)
    mass = kernels.softmin(np.array([0.0, 1.0, 701.0, 1e9]), 1.0, out)
    np.testing.assert_allclose(out * mass, np.exp([0, -1, -700, -700]), **CLOSE)
    assert (out > 0).all()


@pytest.mark.parametrize("n", [5, 9, 20, 40])
def test_where_arrays_lie_does_not_change_the_last_bit(n):
    """Small arrays are often neighbours in memory, where a loop that writes is not vectorised."""
    rng, room = np.random.default_rng(n), np.zeros(2_000)
    for values in rng.random((50, n)) * 20:
        found = set()
        for place in (100 - n, 100 + n, 101 + n, 108 + n, 1_500):
            room[100 : 100 + n] = values
            out = room[place : place + n]
            found.add((kernels.softmin(room[100 : 100 + n], 0.7, out), out.tobytes()))
        assert len(found) == 1


def test_log_of_positive_numbers():
    rng = np.random.default_rng(1)
    x = np.concatenate([np.exp(rng.uniform(-700, 700, 20_000)), 1 + rng.uniform(-1e-6, 1e-6, 2_000), [1.0, 2.0, 0.5]])
    got = np.array([kernels.log(v) for v in x])
    np.testing.assert_allclose(got, np.log(x), rtol=1e-13, atol=1e-17)


@pytest.mark.parametrize("n", SIZES)
def test_sums_dots_minima_and_softmin(n):
    rng = np.random.default_rng(n)
    a, b, rate = rng.random(n), rng.random(n), rng.uniform(0.01, 30)
    np.testing.assert_allclose(kernels.dot(a, b), np.dot(a, b), **CLOSE)
    for values in (a, -a, a * 1e200):
        assert kernels.lowest(values) == values.min()
        assert kernels.lowest_index(values) == values.argmin()
    policy, expected = np.empty(n), np.exp(-rate * (a - a.min()))
    np.testing.assert_allclose(kernels.softmin(a, rate, policy), expected.sum(), **CLOSE)
    np.testing.assert_allclose(policy, expected / expected.sum(), **CLOSE)
    kernels.mix_evenly(0.25, policy)
    np.testing.assert_allclose(policy, 0.75 * expected / expected.sum() + 0.25 / n, **CLOSE)
    target = a.copy()
    kernels.add_scaled(target, b, 2.5)
    np.testing.assert_allclose(target, a + 2.5 * b, **CLOSE)
    columns, mix = rng.random((9, n)), np.array([0.5, 0.0, 2.0, 1.0, 0.25, 1.5, 3.0, 0.0, 0.125])
    for n_states in range(1, 10):
        kernels.combine(columns[:n_states], mix[:n_states], target)
        np.testing.assert_allclose(target, mix[:n_states] @ columns[:n_states], **CLOSE)


def test_lowest_index_takes_the_first_of_equals():
    assert kernels.lowest_index(np.array([2.0, 1.0, 1.0])) == 1
    assert kernels.lowest_index(np.array([2.0, 1.0 + 1e-15, 1.0])) == 2
    assert kernels.lowest_index(np.array([2.0, 1.0 + 1e-15, 1.0]), kernels.TIE) == 1


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 31, 32, 33, 47, 70, 1000])
def test_draws_are_the_first_index_whose_cumulative_sum_reaches_u(n):
    rng = np.random.default_rng(n)
    policy = rng.random(n) ** 3 * (rng.random(n) < 0.8) + 1e-9
    policy /= policy.sum()
    for u in rng.random(500):
        expected = min(np.searchsorted(np.cumsum(policy), u), n - 1)
        assert kernels.draw(policy, u) == kernels.draw_row(policy, u) == expected
    assert kernels.draw(policy, 0.0) == 0
    assert kernels.draw(policy, 1.0) == n - 1


@pytest.mark.parametrize("n", [1, 5, 16, 17, 40, 200])
def test_an_action_of_probability_0_is_never_drawn(n):
    for favourite in {0, n // 2, n - 1}:
        policy = np.zeros(n)
        policy[favourite] = 1.0 - 1e-12
        assert all(kernels.draw(policy, u) == favourite for u in (0.0, 0.5, 1.0))


def test_row_draw_on_the_edges_and_never_an_impossible_state():
    row = np.array([0.0, 0.25, 0.0, 0.75, 0.0])
    at = {0.0: 1, 0.1: 1, 0.25: 1, np.nextafter(0.25, 1): 3, 0.9: 3, 1.0: 3}
    assert [kernels.draw_row(row, u) for u in at] == list(at.values())
    assert kernels.draw_row(np.array([0.5, 0.5 - 1e-10, 0.0]), 1 - 1e-16) == 1


def test_outcome_follows_the_two_sided_rule():
    for mean in (1e-12, 0.3, 0.5, np.nextafter(0.5, 1), 0.8, 1.0):
        for u in (0.0, 0.2, 0.3, 0.5, 0.7, np.nextafter(0.7, 1), 0.8, 1 - 2**-53):
            expected = u > 1 - mean if mean <= 0.5 else u <= mean
            assert kernels.draw_outcome(mean, u) == float(expected)
    u = np.random.default_rng(0).random(40_000)
    for mean in (0.2, 0.7):
        assert abs(np.mean([kernels.draw_outcome(mean, v) for v in u]) - mean) < 0.01


def test_effective_dimension():
    rng = np.random.default_rng(3)
    P, x = rng.dirichlet(np.ones(6), size=33), rng.dirichlet(np.ones(33))
    P[:, 2] = 0
    P /= P.sum(axis=1, keepdims=True)
    q = x @ P
    expected = sum(x @ P[:, s] ** 2 / q[s] for s in range(6) if q[s] > 0)
    np.testing.assert_allclose(kernels.effective_dimension(kernels.columns_of(P), x), expected, **CLOSE)


SCRIPT = """
import numpy as np, statepool as sp
instance = sp.Instance([[0.5, 0.5], [0.25, 0.75]], np.full((200, 2), 0.5))
print(sp.__file__, sp.simulate(instance, sp.Uniform(), 3, seed=1).states.sum())
"""


@pytest.mark.soak  # `test_compiling` checks the folder's name; this one compiles the package twice
def test_cache_is_rebuilt_when_a_kernel_in_another_file_changes(tmp_path):
    source = Path(statepool.__file__).parent
    package = tmp_path / "statepool"
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__", "studies"))
    cache = tmp_path / "cache"
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "NUMBA_CACHE_DIR": str(cache),
        "PYTHONDONTWRITEBYTECODE": "1",
    }

    def run():
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
        )
        where, total = done.stdout.split()
        assert where == str(package / "__init__.py")
        return int(total), {p: p.stat().st_mtime_ns for p in cache.rglob("*.nbc")}

    first, compiled = run()
    again, reused = run()
    assert again == first
    assert reused == compiled  # nothing was compiled the second time
    assert compiled
    kernel = package / "kernels.py"
    text = kernel.read_text()
    changed = text.replace(
        "            if reached >= u:\n                return i\n    return last",
        "            if reached >= 1.0 - u:\n                return i\n    return last",
    )
    assert changed != text
    kernel.write_text(changed)
    uniforms = np.random.default_rng(1).random(600).reshape(200, 3)
    edge = np.array([0.5, 0.25])[np.minimum((uniforms[:, 0] * 2).astype(int), 1)]
    assert first == (uniforms[:, 1] > edge).sum()
    assert run()[0] == (1 - uniforms[:, 1] > edge).sum() != first
    kernel.write_text(text)
    assert run()[0] == first


@pytest.mark.parametrize(("K", "S"), [(1, 1), (7, 3), (40, 8), (203, 5)])
def test_effective_dimension_against_numpy(K, S):
    """An odd and an even number of states, weights that need not sum to 1, and a state that nothing reaches."""
    rng = np.random.default_rng(K)
    P = np.pad(rng.dirichlet(np.ones(S), size=K), ((0, 0), (0, 1)))
    weights = rng.random(K) * 1e-3
    q, squares = weights @ P[:, :S], weights @ P[:, :S] ** 2
    for table in (P, P[:, :S]):
        found = kernels.effective_dimension(kernels.columns_of(table), weights)
        np.testing.assert_allclose(found, (squares / q).sum(), rtol=1e-13)


def test_effective_dimension_of_the_smallest_weights():
    """Products with weights at the clamp are below the normal numbers: digits would be lost, and a lot of time."""
    rng = np.random.default_rng(5)
    P = rng.random((40, 5)) * 1e-6  # of states that are rarely reached
    weights = rng.random(40) + 0.5
    found = kernels.effective_dimension(kernels.columns_of(P), weights * np.exp(kernels.LOWEST_EXPONENT))
    np.testing.assert_allclose(found, ((weights @ P**2) / (weights @ P)).sum(), **CLOSE)


def test_the_columns_of_one_row_can_be_written():
    """The transpose of one row is contiguous as it stands; read-only, as P is, it would be compiled for again."""
    P = statepool.Instance([[0.3, 0.7]], [[0.5, 0.5]]).P
    assert not P.flags.writeable
    assert kernels.columns_of(P).flags.writeable
