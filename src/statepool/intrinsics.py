"""What Python cannot say to LLVM: the bits of a number, and what it may assume of a function."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def as_float(_context, bits):  # type: ignore[no-untyped-def]
    """The number that has these bits."""

    def generate(_context, builder, _signature, args):  # type: ignore[no-untyped-def]
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), generate


@intrinsic
def as_int(_context, number):  # type: ignore[no-untyped-def]
    """The bits of a number."""

    def generate(_context, builder, _signature, args):  # type: ignore[no-untyped-def]
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def use_widest_vectors(_context):  # type: ignore[no-untyped-def]
    """Called in a function: its loops take the widest vectors there are."""

    # LLVM keeps to 256 bits even where 512 are there, for fear of a lower clock; a round gains an eighth from them.
    def generate(context, builder, _signature, _args):  # type: ignore[no-untyped-def]
        _add_attribute(builder, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def expect_numbers(_context):  # type: ignore[no-untyped-def]
    """Called in a function: its comparisons meet no NaN, and do not tell -0 from 0."""

    # Comparisons that could meet a NaN or a -0 must be made in their order: a running minimum would not vectorise.
    def generate(context, builder, _signature, _args):  # type: ignore[no-untyped-def]
        _add_attribute(builder, '"no-nans-fp-math"="true"')
        _add_attribute(builder, '"no-signed-zeros-fp-math"="true"')
        return context.get_dummy_value()

    return types.void(), generate


def _add_attribute(builder: Any, text: str) -> None:
    # llvmlite knows no attributes with values, and these are such: added as to the plain set that it is.
    if isinstance(builder.function.attributes, set):
        set.add(builder.function.attributes, text)
