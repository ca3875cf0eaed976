"""The bits of a number: what Python cannot say to LLVM."""

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
