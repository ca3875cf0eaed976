"""The few vectorised primitives that everything hot is made of.

Reassociating arithmetic is allowed in `dot`, `lowest`, `softmin`, block sums and the dimension alone; each is tested
against NumPy to 1e-13.
"""

from typing import Any

import numpy as np

from statepool.compiling import compiled, compiled_elementwise, compiled_part, compiled_reassociated, entry_point

BLOCK = 16
"""A draw sums this many probabilities at a time, and looks into one block only."""

LINE = 8
"""The numbers of a cache line."""

LOWEST_EXPONENT = -700.0
"""exp(-700) is still a normal number: no action ever loses its support."""

TIE = 1e-12
"""Sums of products that should be equal differ by rounding: closer than this is a tie."""

LARGEST_ESTIMATE = 1e200
"""An estimate is loss / probability; past this it could overflow a running total."""


@compiled
def as_float(bits: Any) -> Any:
    """The number that has these bits."""
    return np.int64(bits).view(np.float64)


@compiled
def as_int(number: Any) -> Any:
    """The bits of a number."""
    return np.float64(number).view(np.int64)


@compiled_elementwise
def exp(x: float) -> float:
    """exp for |x| <= 700, branch-free so that loops over it vectorise."""
    # 2^n · exp(r), |r| <= log(2)/2, with a degree-10 near-minimax polynomial (relative error 1.3e-15), its even and
    # odd powers apart to halve the chain. Adding 1.5 · 2^52 rounds to the nearest integer and leaves it in the low
    # bits, from where it is added to the exponent; reassociating would undo that, hence the flags.
    shifted = x * 1.4426950408889634 + 6755399441055744.0
    n = shifted - 6755399441055744.0
    r = x - n * 0.693147180369123816490
    r = r - n * 1.90821492927058770002e-10
    r2 = r * r
    even = 2.761380686153829e-07 * r2 + 2.4801536388690766e-05
    even = ((even * r2 + 0.0013888888905881542) * r2 + 0.04166666666665136) * r2 + 0.5
    odd = 2.762511557828763e-06 * r2 + 0.00019841208732536384
    odd = (odd * r2 + 0.008333333353729397) * r2 + 0.1666666666664829
    power = 1.0 + (r + (even + odd * r) * r2)
    return as_float(as_int(power) + (as_int(shifted) << 52))


@compiled_elementwise
def log(x: float) -> float:
    """log for positive normal x, branch-free."""
    # x = 2^k · m with m in [sqrt(1/2), sqrt(2)), log m = 2 artanh((m-1)/(m+1)),
    # whose series to the 19th power leaves 1e-16.
    bits = as_int(x) + 0x95F619980C433
    exponent = as_float((bits >> 52) | 0x4330000000000000) - 4503599627371519.0
    m = as_float((bits & 0xFFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    z2 = z * z
    z4 = z2 * z2
    low = (1.0 + z * (1 / 3)) + (1 / 5 + z * (1 / 7)) * z2
    high = (1 / 9 + z * (1 / 11)) + (1 / 13 + z * (1 / 15)) * z2
    series = (low + high * z4) + (1 / 17 + z * (1 / 19)) * (z4 * z4)
    return exponent * 0.6931471805599453 + 2.0 * (s * series)


@compiled_reassociated
def dot(left: Any, right: Any) -> float:
    """<left, right>."""
    result = 0.0
    for i in range(left.size):
        result += left[i] * right[i]
    return result


@compiled_reassociated
def dots(left: Any, columns: Any, out: Any) -> None:
    """out[s] = <left, columns[s]>, three at a time: two thirds of the time of one after the other."""
    last = columns.shape[0] - 1
    for s in range(0, last + 1, 3):
        t, u = min(s + 1, last), min(s + 2, last)
        one, two, three = columns[s], columns[t], columns[u]
        first = second = third = 0.0
        for i in range(left.size):
            first += left[i] * one[i]
            second += left[i] * two[i]
            third += left[i] * three[i]
        out[s], out[t], out[u] = first, second, third


@compiled_reassociated
def lowest(values: Any) -> float:
    """The smallest value."""
    # Four at a time, which is what a loop over one running minimum does not vectorise to.
    a = b = c = d = values[0]
    whole = values.size // 4 * 4
    for i in range(0, whole, 4):
        a, b = min(a, values[i]), min(b, values[i + 1])
        c, d = min(c, values[i + 2]), min(d, values[i + 3])
    for i in range(whole, values.size):
        a = min(a, values[i])
    return float(min(min(a, b), min(c, d)))


@entry_point
def lowest_index(values: Any, slack: float = 0.0) -> int:
    """The index of the smallest value, the first of equals: values within `slack` of the smallest count as equal."""
    bound = lowest(values) + slack
    i = 0
    while values[i] > bound:
        i += 1
    return i


@compiled_elementwise
def add_scaled(target: Any, column: Any, amount: float) -> None:
    """target += amount · column."""
    for i in range(target.size):
        target[i] += amount * column[i]


@compiled_elementwise
def _add_four(out: Any, columns: Any, s: int, weights: Any) -> None:
    one, two, three, four = columns[s], columns[s + 1], columns[s + 2], columns[s + 3]
    w, v, x, y = weights[s], weights[s + 1], weights[s + 2], weights[s + 3]
    for a in range(out.size):
        out[a] = (((out[a] + w * one[a]) + v * two[a]) + x * three[a]) + y * four[a]


@compiled_elementwise
def combine(columns: Any, weights: Any, out: Any) -> None:
    """out = sum_s weights[s] · columns[s], a few columns at a time: P @ weights."""
    one, two, w = columns[0], columns[min(1, weights.size - 1)], weights[0]
    v = weights[1] if weights.size > 1 else 0.0
    for a in range(out.size):
        out[a] = w * one[a] + v * two[a]
    s = 2
    while s + 4 <= weights.size:
        _add_four(out, columns, s, weights)
        s += 4
    while s < weights.size:
        add_scaled(out, columns[s], weights[s])
        s += 1


@compiled_part
def combine_apart(columns: Any, weights: Any, out: Any) -> None:
    """The same for rules that combine often: not copied into them, which would compile slowly."""
    combine(columns, weights, out)


@compiled_reassociated
def softmin(totals: Any, rate: float, out: Any) -> float:
    """out ∝ exp(-rate · totals), normalised; the sum of the weights relative to the smallest total is returned."""
    low = lowest(totals)
    for a in range(out.size):
        out[a] = exp(max(rate * (low - totals[a]), LOWEST_EXPONENT))
    # A loop that writes is not vectorised where its arrays are near each other: a sum in it would depend on addresses.
    mass = 0.0
    for a in range(out.size):
        mass += out[a]
    share = 1.0 / mass
    for a in range(out.size):
        out[a] *= share
    return mass


@compiled_elementwise
def mix_evenly(mixing: float, out: Any) -> None:
    """out = (1 - mixing) out + mixing/K."""
    if mixing > 0.0:
        share = mixing / out.size
        for a in range(out.size):
            out[a] = (1.0 - mixing) * out[a] + share


@compiled_reassociated
def _block_sum(values: Any, first: int) -> float:
    result = 0.0
    for i in range(BLOCK):
        result += values[first + i]
    return result


@compiled
def draw(policy: Any, u: float) -> int:
    """The first index whose cumulative probability reaches u, never one of probability 0."""
    reached = 0.0
    i = 0
    while i + BLOCK < policy.size:
        inside = _block_sum(policy, i)
        if reached + inside >= u:
            break
        reached += inside
        i += BLOCK
    while i + 4 < policy.size:
        inside = (policy[i] + policy[i + 1]) + (policy[i + 2] + policy[i + 3])
        if reached + inside >= u:
            break
        reached += inside
        i += 4
    while i < policy.size:
        reached += policy[i]
        if reached >= u and policy[i] > 0.0:
            return i
        i += 1
    # Rounding left the sum below u: the last one that can be drawn.
    i -= 1
    while policy[i] <= 0.0:
        i -= 1
    return i


@compiled
def draw_row(row: Any, u: float) -> int:
    """The first index whose cumulative sum reaches u, never one of probability 0."""
    reached = 0.0
    last = 0
    for i in range(row.size):
        if row[i] > 0.0:
            reached += row[i]
            last = i
            if reached >= u:
                return i
    return last


@compiled
def draw_outcome(mean: float, u: float) -> float:
    """A loss of 0 or 1 with the given mean (in (0, 1]) from one uniform."""
    if mean <= 0.5:
        return 1.0 if u > 1.0 - mean else 0.0
    return 1.0 if u <= mean else 0.0


@compiled
def draw_revenue(mean: float, gain: float, u: float) -> float:
    """A loss with the given mean: 1, or 1 less a revenue between gain/2 and 3 gain/2, from one uniform."""
    chance = (1.0 - mean) / gain
    return 1.0 - gain * (0.5 + u / chance) if u < chance else 1.0


@compiled_elementwise
def _lifted(weight: float) -> float:
    # The smallest weights times small probabilities are subnormal numbers, which cost processors more than others
    # do: a whole power of two, which cancels exactly, keeps clear of them.
    return weight * 2.0**200


@compiled_reassociated
def effective_dimension(columns: Any, x: Any) -> float:
    """v(x) = sum_s (sum_a x_a P(s|a)²) / (sum_a x_a P(s|a)), states of probability 0 left out.

    Weights serve as well as probabilities, up to 1e200: a common factor cancels.
    """
    v = 0.0
    n_states = columns.shape[0]
    # Two states in one sweep over the actions take two thirds of the time of two sweeps.
    for s in range(0, n_states, 2):
        one, two = columns[s], columns[min(s + 1, n_states - 1)]
        q_one = squares_one = q_two = squares_two = 0.0
        for a in range(x.size):
            weight = _lifted(x[a])
            mass_one, mass_two = weight * one[a], weight * two[a]
            q_one += mass_one
            q_two += mass_two
            squares_one += mass_one * one[a]
            squares_two += mass_two * two[a]
        if q_one > 0.0:
            v += squares_one / q_one
        if s + 1 < n_states and q_two > 0.0:
            v += squares_two / q_two
    return v


def aligned(size: int) -> Any:
    """Zeros that begin at the start of a cache line: vectorised loops over them are a tenth faster."""
    room = np.zeros(size + LINE - 1)
    first = -(room.ctypes.data // room.itemsize) % LINE
    return room[first : first + size]


def columns_of(P: Any) -> Any:
    """P (or the map of each context) transposed and contiguous: a state's column of P is read in one sweep."""
    return np.array(np.swapaxes(P, -1, -2), order="C")  # a copy also of one row: a read-only array is another kernel
