"""A few logs of each study in `truths`; `benchmarks/audit_truth.py` has the many."""

import numpy as np
import truths
from figures_of_merit import CLEAR

from statepool.audit.verdict import UNCLEAR


def test_windowed_logs():
    found = truths.windowed_logs(range(20))
    assert np.mean(found["found"]) >= 0.85
    assert np.mean(found["covered"]) >= 0.88
    assert np.mean(found["drift windowed"]) < 0.02 < np.mean(found["drift untold"])


def test_logs_without_a_window():
    assert np.mean(truths.unwindowed_logs(range(30))["assumed"]) <= 0.1


def test_logs_that_cannot_tell():
    for kind in ("200 rows", "one action at 98 %", "immature only"):
        verdicts, _, _ = truths.unclear_logs(kind, range(8), most_rows=0)
        assert np.mean([verdict == UNCLEAR for verdict in verdicts]) >= 0.8


def test_clear_logs_and_their_learner():
    for verdict in CLEAR:
        found, beaten = truths.clear_logs(verdict, range(4), horizon=300, worlds=4)
        assert all(each == verdict for each in found)
        assert np.mean(beaten or [0]) <= 0.5


def test_what_ifs():
    covered, warned, _ = truths.what_ifs(range(30))
    assert (covered >= 0.8).all()
    assert warned <= 0.2
    _, warned, bounded = truths.what_ifs(range(10), effect=0.15)
    assert warned >= 0.8
    assert bounded >= 0.9
