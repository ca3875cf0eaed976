"""What travels with a decision, read from the record of its version, of this release or of the one before.

The first release recorded named rows of numbers, by which its versions are known; tickets of theirs may still be open.
"""

from typing import Any

import numpy as np

from statepool.checks import Floats


def carry_of(record: dict[str, Any], state: int, n_states: int) -> Floats:
    """What the outcome of a decision needs that led to a state."""
    if "carry" in record:
        size = len(record["carry"]) // n_states
        return np.frombuffer(record["carry"], count=size // 8, offset=state * size)
    q = np.frombuffer(record["q"])[state]
    if "shares" in record:
        return np.array([np.frombuffer(record["shares"])[state]])
    if "guesses" in record:
        guesses, usual = np.frombuffer(record["guesses"])[state::n_states], record["usual"]
        lean, safe = np.frombuffer(record["mean"])[state] - usual, np.frombuffer(record["safe"])[state]
        return np.array([*guesses, lean, usual, safe / q, q])
    return np.array([q])
