"""A bank of memories: many of one kind side by side, each array of them with one axis more.

`stack` makes a bank out of memories that differ in their numbers only; `pick(bank, i)` is the i-th of them again, as
views into the bank, so that its rule is found by its type as if it stood alone.
"""

import operator
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray


def stack(memories: list[Any]) -> Any:
    """The bank, of memories that are of one shape. What shares storage in a memory shares it in the bank."""
    return _stack(memories, {})


def _stack(parts: list[Any], storage: dict[int, NDArray[np.uint8]]) -> Any:
    first = parts[0]
    if isinstance(first, tuple):
        fields = [_stack(list(each), storage) for each in zip(*parts, strict=True)]
        return type(first)(*fields) if hasattr(first, "_fields") else tuple(fields)
    if isinstance(first, np.random.Generator):
        return first
    if isinstance(first, np.ndarray) and first.size > 0:
        return _stack_views(parts, storage)
    if isinstance(first, np.void):
        return _stack_views([_array_of(record) for record in parts], storage)[:, 0]
    return np.stack([np.asarray(each) for each in parts])


def _array_of(record: Any) -> NDArray[Any]:
    """A record as an array of one, in its own storage."""
    return np.frombuffer(record.data, dtype=record.dtype) if record.base is None else np.asarray(record)[None]


def _stack_views(parts: list[NDArray[Any]], storage: dict[int, NDArray[np.uint8]]) -> NDArray[Any]:
    first, owners = parts[0], [_owner(each) for each in parts]
    if id(owners[0]) not in storage:
        storage[id(owners[0])] = np.stack([owner.ravel(order="K").view(np.uint8) for owner in owners])
    whole = storage[id(owners[0])]
    offset = first.ctypes.data - owners[0].ctypes.data
    shape, strides = (len(parts), *first.shape), (whole.strides[0], *first.strides)
    return np.ndarray(shape, first.dtype, whole, offset, strides)


def _owner(array: NDArray[Any]) -> NDArray[Any]:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _picked(typing: Any, kind: Any) -> Any:
    """The type of one memory, of a bank's."""
    if isinstance(kind, types.Array):
        return _getitem(typing, kind).return_type
    if isinstance(kind, types.BaseTuple):
        parts = [_picked(typing, part) for part in kind.types]
        return types.BaseTuple.from_types(parts, getattr(kind, "instance_class", None))
    return kind


def _getitem(typing: Any, kind: Any) -> Any:
    return typing.resolve_function_type(operator.getitem, (kind, types.intp), {})


@intrinsic
def pick(typing, bank, index):  # type: ignore[no-untyped-def]
    """The memory of this number (compiled code only)."""

    def build(context: Any, builder: Any, kind: Any, value: Any, number: Any) -> Any:
        if isinstance(kind, types.Array):
            return context.get_function(operator.getitem, _getitem(typing, kind))(builder, (value, number))
        if isinstance(kind, types.BaseTuple):
            values = [builder.extract_value(value, i) for i in range(len(kind.types))]
            parts = [build(context, builder, *part, number) for part in zip(kind.types, values, strict=True)]
            return context.make_tuple(builder, _picked(typing, kind), parts)
        return value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return build(context, builder, signature.args[0], *arguments)

    return _picked(typing, bank)(bank, types.intp), generate
