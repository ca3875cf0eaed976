"""What docs/audit.md quotes: a thousand logs without effects in five settings, and hundreds with a known answer."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "audit"))
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
