"""Bounds of the neighbours: learners from the literature that the package compares with.

Each docstring says whether the bound is *derived* (proved in docs/theory-proofs.md, or from a theorem that is),
*recalled* from its source, which was not read again, or only *compared with runs*.
"""

from __future__ import annotations

from math import log, sqrt

from statepool.checks import check_number
from statepool.guarantees.arguments import LARGEST, checked


@checked
def auer(n_actions: int, horizon: int) -> float:
    """`AuerEXP3()` without delay: 2.63 sqrt(K T log K). Recalled.

    Examples
    --------
    >>> import statepool as sp
    >>> round(sp.guarantees.auer(n_actions=200, horizon=20_000))
    12108
    """
    return 2.63 * sqrt(n_actions * horizon * log(n_actions))


@checked
def zimmert_seldin(n_actions: int, horizon: int, waited: float) -> float:
    """`ZimmertSeldin(tuning="anytime")` under delays fixed in advance: 4 sqrt(KT) + sqrt(8 D log K). Recalled.

    Examples
    --------
    >>> import statepool as sp
    >>> round(sp.guarantees.zimmert_seldin(n_actions=200, horizon=20_000, waited=1_000_000.0))
    14510
    """
    return 4 * sqrt(n_actions * horizon) + sqrt(8 * waited * log(n_actions))


@checked
def idle_copies(n_actions: int, most_in_flight: int, budget: float, rate: float | None = None) -> float:
    """`StateEXP3(copies="idle")`: (most in flight + 1) log K/rate + rate/2 sum_t v_t. Derived from Theorem 3.

    Here `budget` bounds the sum of v_t.

    Examples
    --------
    >>> import statepool as sp
    >>> round(sp.guarantees.idle_copies(n_actions=200, most_in_flight=50, budget=30_000.0, rate=0.01))
    27171
    """
    check_number(1.0 if rate is None else rate, "rate", 0, LARGEST, open_low=True)
    learning = (most_in_flight + 1) * log(n_actions)
    return sqrt(2 * learning * budget) if rate is None else learning / rate + rate / 2 * budget


@checked
def cautious(n_actions: int, n_states: int, horizon: int, rate: float, caution: float, confidence: float) -> float:
    """`StateEXP3(caution=…)` without delay: exceeded with probability at most `confidence`. Derived, (28).

    Examples
    --------
    >>> import statepool as sp
    >>> round(sp.guarantees.cautious(200, 6, horizon=20_000, rate=0.01, caution=0.005, confidence=0.05))
    2632
    """
    check_number(confidence, "confidence", 0, 1, open_low=True)
    check_number(caution, "caution", 0, LARGEST, open_low=True)
    check_number(rate, "rate", 0, LARGEST, open_low=True)
    seen = n_states * horizon + log(2 / confidence) / (2 * caution)
    return log(n_actions) / rate + (rate / 2 + caution) * seen + log(2 * n_actions / confidence) / (2 * caution)


@checked
def nsd_ucrl2(n_actions: int, n_states: int, horizon: int, delay: int) -> float:
    """`NSDUCRL2()` where neither map nor means change, one delay. Compared with runs.

    Examples
    --------
    >>> import statepool as sp
    >>> round(sp.guarantees.nsd_ucrl2(n_actions=200, n_states=6, horizon=20_000, delay=50))
    35154
    """
    K, S, T = n_actions, n_states, horizon
    rows = sqrt(2 * (S * log(2) + log(2 * K * T))) * (2 * sqrt(K * T) + K)
    means = 2 * sqrt(log(2 * S * T) / 2) * (2 * S * (delay + 1) + 2 * sqrt(2 * S * T))
    return rows + means + sqrt(2 * T * log(T)) + 2


@checked
def meta_bio(base: float, n_states: int, horizon: int, drift: float = 0.0) -> float:
    """`MetaBIO(base)`: the base's bound and the price of the means. Compared with runs.

    `drift` is the sum over rounds of the largest change of a state's mean from its estimate's target.

    Examples
    --------
    >>> import statepool as sp
    >>> round(sp.guarantees.meta_bio(base=500.0, n_states=6, horizon=20_000, drift=50))
    7143
    """
    return base + 4 * sqrt(n_states * horizon * log(2 * n_states * horizon**2)) + 1 + 2 * drift


@checked
def surrogate_index(history: int, delay: int, undelayed: float, drift: float) -> float:
    """`SurrogateIndex()`: history + d + EXP3's bound without delay + 2 `drift`. Derived.

    `drift` is the sum over rounds of max_s |theta_t(s) - h(s)|, h being the means of the history.

    Examples
    --------
    >>> import statepool as sp
    >>> sp.guarantees.surrogate_index(history=1_000, delay=50, undelayed=100.0, drift=10.0)
    1170.0
    """
    return history + delay + undelayed + 2 * drift
