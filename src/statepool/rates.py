"""Learning-rate rules.

    default     sqrt(2 log K / ((V + floor(d/m)) · T/m))      V: states for pooled learners, actions otherwise
    cap         1 / (e (d + 1))                               Theorem 1 holds up to here

m is the number of interleaved copies. With one action there is nothing to learn and the rate is 0.
Source: paper, Appendix E and Theorem 1.
"""

from math import e, log, sqrt


def default_rate(n_actions: int, width: float, horizon: int, delay: float, copies: int = 1) -> float:
    """The rate used throughout the paper; `width` is the number of states, or of actions, or a dimension."""
    return sqrt(2 * log(n_actions) / ((width + delay // copies) * horizon / copies))


def largest_covered_rate(delay: int) -> float:
    """The largest rate that Theorem 1 covers."""
    return 1 / (e * (delay + 1))
