"""What docs/audit.md quotes: a thousand logs without effects in five settings, and hundreds with a known answer."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parent.parent / "audit"))
import truths
from crowded import context_alarms, judged_crowds
from figures_of_merit import CLEAR, NULLS, advice_right, coverage, false_alarms, power

pytestmark = pytest.mark.soak


@pytest.mark.parametrize("setting", NULLS)
def test_false_alarms_on_a_thousand_logs(setting):
    rate = false_alarms(range(1_000), **NULLS[setting])
    print(f"false alarms, {setting}: {rate:.3f}")
    assert 0.03 <= rate <= 0.07


def test_power():
    found = power(range(200))
    print(f"power: {found:.3f}")
    assert found >= 0.9


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_coverage(level):
    covered = coverage(range(500), level)
    print(f"coverage at {level}: {covered:.4f}")
    assert abs(covered - level) <= 0.02


@pytest.mark.parametrize("verdict", CLEAR)
def test_advice(verdict, tmp_path):
    right = advice_right(verdict, range(300), tmp_path)
    print(f"{verdict}: right on {sum(right)} of {len(right)} clear logs")
    assert len(right) >= 20
    assert sum(right) >= 0.95 * len(right)


def test_windows():
    found = truths.windowed_logs(range(500))
    mean = {name: float(np.mean(values)) for name, values in found.items()}
    print({name: round(value, 4) for name, value in mean.items()})
    assert mean["drift windowed"] <= 1.5 * mean["drift full"] + 1e-3
    assert mean["floor windowed"] <= 1.5 * mean["floor full"] + 0.5
    assert 0.03 <= mean["false alarm"] <= 0.07
    assert abs(mean["covered"] - 0.95) <= 0.03
    assert mean["found"] >= 0.95
    assert np.mean(truths.unwindowed_logs(range(500))["assumed"]) <= 0.02


@pytest.mark.parametrize("kind", ["200 rows", "one action at 98 %", "immature only"])
def test_logs_that_cannot_tell(kind):
    verdicts, told, _ = truths.unclear_logs(kind, range(100))
    assert np.mean([verdict == "cannot tell" for verdict in verdicts]) >= 0.95
    assert not told or np.mean(told) >= 0.8


def test_what_ifs():
    covered, _, _ = truths.what_ifs(range(500))
    assert (np.abs(covered - 0.95) <= 0.03).all()


def test_false_alarms_of_contexts_on_a_thousand_logs():
    rate = context_alarms(range(720_000, 721_000))
    print(f"false alarms of contexts: {rate:.3f}")
    assert 0.03 <= rate <= 0.07


def test_what_personalising_is_worth():
    found = judged_crowds(range(730_000, 730_300))
    covered = [covers for _, covers, _ in found]
    clear = [(truth, said) for _, _, (truth, said) in found if truth is not None]
    right = [truth == said for truth, said in clear]
    print(f"covered {np.mean(covered):.3f} of {len(covered)}; said rightly {np.mean(right):.3f} of {len(right)} clear")
    assert np.mean(covered) >= 0.9
    assert np.mean(right) >= 0.95
    assert {truth for truth, _ in clear} == {"pays", "does not pay"}
