"""The few vectorised primitives that everything hot is made of.

Reassociating arithmetic is allowed in `dot`, `lowest`, `weigh`, the block sums and the dimension alone; each is tested
against NumPy to 1e-13.
"""

from typing import Any

import numpy as np

from statepool.compiling import compiled, compiled_apart, compiled_elementwise, compiled_reassociated
from statepool.intrinsics import as_float, as_int, expect_numbers, use_widest_vectors

BLOCK = 16
"""Weights are summed in blocks of this many, so that a draw skips whole blocks."""

LOWEST_EXPONENT = -700.0
"""exp(-700) is still a normal number: no action ever loses its support."""

TIE = 1e-12
"""Sums of products that should be equal differ by rounding: closer than this is a tie."""

LARGEST_CHARGE = 1e200
"""A charge is loss / probability; past this it could overflow a running total."""


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


@compiled_elementwise
def exponentials(totals: Any, reference: float, rate: float, weights: Any) -> None:
    """weights = exp(rate (reference - totals)), clamped to exp(±700)."""
    for i in range(totals.size):
        weights[i] = exp(min(max(rate * (reference - totals[i]), LOWEST_EXPONENT), -LOWEST_EXPONENT))


@compiled_reassociated
def block_sums(weights: Any, blocks: Any) -> float:
    """The sum of each block into `blocks`, and of all."""
    n_full = weights.size // BLOCK
    total = 0.0
    for b in range(n_full):
        inside = 0.0
        for i in range(BLOCK * b, BLOCK * b + BLOCK):
            inside += weights[i]
        blocks[b] = inside
        total += inside
    if n_full < blocks.size:
        inside = 0.0
        for i in range(BLOCK * n_full, weights.size):
            inside += weights[i]
        blocks[n_full] = inside
        total += inside
    return total


@compiled_reassociated
def weigh(totals: Any, reference: float, rate: float, weights: Any, blocks: Any) -> float:
    """weights = exp(rate (reference - totals)), clamped to exp(-700), for a reference not above any total.

    The same sweep leaves the sum of each block in `blocks`; the sum of all is returned.
    """
    use_widest_vectors()
    n_full = weights.size // BLOCK
    total = 0.0
    for b in range(n_full):
        inside = 0.0
        for i in range(BLOCK * b, BLOCK * b + BLOCK):
            weight = exp(max(rate * (reference - totals[i]), LOWEST_EXPONENT))
            weights[i] = weight
            inside += weight
        blocks[b] = inside
        total += inside
    if n_full < blocks.size:
        # The last whole block's worth again: vectors do 16 at once faster than a loop does the few that are left.
        n_last = min(BLOCK, weights.size)
        last_totals, last_weights = totals[-n_last:], weights[-n_last:]
        for i in range(n_last):
            last_weights[i] = exp(max(rate * (reference - last_totals[i]), LOWEST_EXPONENT))
        inside = 0.0
        rest = weights[BLOCK * n_full :]
        for i in range(rest.size):
            inside += rest[i]
        blocks[n_full] = inside
        total += inside
    return total


AT_ONCE = 6
"""States that one sweep over the actions serves: as many columns as registers hold."""


@compiled
def weigh_rows(
    columns: Any, charges: Any, base: Any, reference: float, rate: float, weights: Any, blocks: Any, reaches: Any
) -> float:
    """The same for totals that are not kept: base + sum_s charges[s] · columns[s], for AT_ONCE states at the most.

    What the weights make of each state goes into `reaches`, <weights, columns[s]>, which has AT_ONCE places at least.
    """
    _weigh_six(columns, charges, base, reference, rate, weights, reaches)
    return block_sums(weights, blocks)


@compiled_reassociated
def _weigh_six(
    columns: Any, charges: Any, base: Any, reference: float, rate: float, weights: Any, reaches: Any
) -> None:
    # The columns come from afar: one sweep that adds, weighs and sums meets them once. Of fewer states, the last again.
    use_widest_vectors()
    last = charges.size - 1
    c0, c1, c2 = columns[0], columns[min(1, last)], columns[min(2, last)]
    c3, c4, c5 = columns[min(3, last)], columns[min(4, last)], columns[min(5, last)]
    g0, g1, g2 = _entry(charges, 0), _entry(charges, 1), _entry(charges, 2)
    g3, g4, g5 = _entry(charges, 3), _entry(charges, 4), _entry(charges, 5)
    q0 = q1 = q2 = q3 = q4 = q5 = 0.0
    for i in range(weights.size):
        total = base[i] + (((g0 * c0[i] + g1 * c1[i]) + (g2 * c2[i] + g3 * c3[i])) + (g4 * c4[i] + g5 * c5[i]))
        weight = exp(max(rate * (reference - total), LOWEST_EXPONENT))
        weights[i] = weight
        q0 += weight * c0[i]
        q1 += weight * c1[i]
        q2 += weight * c2[i]
        q3 += weight * c3[i]
        q4 += weight * c4[i]
        q5 += weight * c5[i]
    reaches[0], reaches[1], reaches[2], reaches[3], reaches[4], reaches[5] = q0, q1, q2, q3, q4, q5


@compiled
def _entry(values: Any, i: int) -> float:
    return float(values[i]) if i < values.size else 0.0


@compiled_reassociated
def dot(left: Any, right: Any) -> float:
    """<left, right>."""
    use_widest_vectors()
    total = 0.0
    for i in range(left.size):
        total += left[i] * right[i]
    return total


@compiled_reassociated
def _two_dots(left: Any, one: Any, two: Any) -> tuple[float, float]:
    use_widest_vectors()
    first = second = 0.0
    for i in range(left.size):
        first += left[i] * one[i]
        second += left[i] * two[i]
    return first, second


@compiled
def dots(left: Any, columns: Any, out: Any) -> None:
    """out[s] = <left, columns[s]>, two at a time: three quarters of the time of one after the other."""
    s = 0
    while s + 2 <= out.size:
        out[s], out[s + 1] = _two_dots(left, columns[s], columns[s + 1])
        s += 2
    if s < out.size:
        out[s] = dot(left, columns[s])


@compiled_reassociated
def lowest(values: Any) -> float:
    """The smallest value."""
    use_widest_vectors()
    expect_numbers()
    least = values[0]
    for i in range(values.size):
        if values[i] < least:  # `min` would not vectorise
            least = values[i]
    return float(least)


@compiled_elementwise
def add_scaled(target: Any, column: Any, amount: float) -> None:
    """target += amount · column."""
    use_widest_vectors()
    for i in range(target.size):
        target[i] += amount * column[i]


@compiled_elementwise
def _add_two(out: Any, columns: Any, s: int, weights: Any) -> None:
    use_widest_vectors()
    first, second, w, v = columns[s], columns[s + 1], weights[s], weights[s + 1]
    for a in range(out.size):
        out[a] = (out[a] + w * first[a]) + v * second[a]


@compiled_elementwise
def _add_four(out: Any, columns: Any, s: int, weights: Any) -> None:
    use_widest_vectors()
    one, two, three, four = columns[s], columns[s + 1], columns[s + 2], columns[s + 3]
    w, v, x, y = weights[s], weights[s + 1], weights[s + 2], weights[s + 3]
    for a in range(out.size):
        out[a] = (((out[a] + w * one[a]) + v * two[a]) + x * three[a]) + y * four[a]


@compiled
def combine(columns: Any, weights: Any, out: Any) -> None:
    """out = sum_s weights[s] · columns[s]"""
    out[:] = 0.0
    add_combined(columns, weights, out)


@compiled_apart
def add_combined(columns: Any, weights: Any, out: Any) -> None:
    """out += sum_s weights[s] · columns[s], a few columns at a time so that it vectorises over actions."""
    s = 0
    while s + 4 <= weights.size:
        _add_four(out, columns, s, weights)
        s += 4
    if s + 2 <= weights.size:
        _add_two(out, columns, s, weights)
        s += 2
    if s < weights.size:
        add_scaled(out, columns[s], weights[s])


@compiled
def lowest_index(values: Any, slack: float = 0.0) -> int:
    """The index of the smallest value, the first of equals: values within `slack` of the smallest count as equal."""
    bound = lowest(values) + slack
    i = 0
    while values[i] > bound:
        i += 1
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
def draw_blocked(weights: Any, blocks: Any, target: float) -> int:
    """The first index whose cumulative weight reaches `target`, skipping whole blocks."""
    reached = 0.0
    b = 0
    while b < blocks.size - 1 and reached + blocks[b] < target:
        reached += blocks[b]
        b += 1
    last = min(BLOCK * b + BLOCK, weights.size) - 1
    for i in range(BLOCK * b, last):
        reached += weights[i]
        if reached >= target:
            return i
    return last


@compiled
def draw_outcome(mean: float, u: float) -> float:
    """A loss of 0 or 1 with the given mean (in (0, 1]) from one uniform."""
    if mean <= 0.5:
        return 1.0 if u > 1.0 - mean else 0.0
    return 1.0 if u <= mean else 0.0


@compiled
def row_of(requests: Any, n_actions: int, t: int, action: int) -> int:
    """Where the row of an action stands in round t, among the rows of all contexts; `requests` is empty without any."""
    return action if requests.size == 0 else requests[t] * n_actions + action


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
    use_widest_vectors()
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


def columns_of(P: Any) -> Any:
    """P (or the map of each context) transposed and contiguous: a state's column of P is read in one sweep."""
    return np.ascontiguousarray(np.swapaxes(P, -1, -2))
