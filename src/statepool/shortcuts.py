"""What Numba may leave out when it compiles the package's own functions, which give the same code without it.

Our functions have no closures, no literals to unroll and no expressions of whole arrays: passes that look for these
find nothing. A memory is handed from one to the next as one value. The same operators are applied to the same types
thousands of times: which of Numba's implementations that is needs to be found out once, and whether there are new ones
need not be looked for before each function. Together it is about two fifths of what a learner takes to compile.
Functions and memories of other packages are compiled as Numba does.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from llvmlite.binding import parse_bitcode
from numba import types
from numba.core import ir
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.datamodel import default_manager
from numba.core.datamodel.models import TupleModel
from numba.core.lowering import Lower
from numba.core.registry import cpu_target
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import (
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.types.functions import BaseFunction
from numba.core.untyped_passes import FixupArgs, GenericRewrites, IRProcessing, ReconstructSSA, TranslateByteCode


class _Lower(Lower):  # type: ignore[misc]
    """Into LLVM's language, where what is set once, at the beginning, needs no place to be read back from."""

    def _find_singly_assigned_variable(self) -> None:
        super()._find_singly_assigned_variable()
        if not self.context.enable_nrt:  # counts of references are kept in such places
            times = Counter(each.target.name for block in self.blocks.values() for each in block.find_insts(ir.Assign))
            first = self.blocks[self.firstblk].find_insts(ir.Assign)
            self._singly_assigned_vars.update(each.target.name for each in first if times[each.target.name] == 1)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):  # type: ignore[misc]
    _name = "statepool_lowering"

    @property
    def lowering_class(self) -> Any:
        return _Lower


_PASSES = (
    (TranslateByteCode, "analyzing bytecode"),
    (FixupArgs, "fix up args"),
    (IRProcessing, "processing IR"),
    (GenericRewrites, "nopython rewrites"),
    (ReconstructSSA, "ssa"),
    (NopythonTypeInference, "nopython frontend"),
    (PreLowerStripPhis, "remove phis nodes"),
    (IRLegalization, "ensure IR is legal prior to lowering"),
    (_Lowering, "native lowering"),
    (NoPythonBackend, "nopython mode backend"),
)


class ShortCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's compiler with the passes that find something."""

    def define_pipelines(self) -> list[Any]:
        passes = PassManager("statepool")
        for each, description in _PASSES:
            passes.add_pass(each, description)
        passes.finalize()
        return [passes]


class PartCompiler(ShortCompiler):
    """The same, for code that is only copied into other code."""

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *rest: Any) -> None:
        super().__init__(typingctx, targetctx, _Part(targetctx.codegen(), "part"), *rest)


class OptimisedPartCompiler(ShortCompiler):
    """The same, for code that is optimised before it is copied."""

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *rest: Any) -> None:
        super().__init__(typingctx, targetctx, OptimisedPart(targetctx.codegen(), "part"), *rest)


class _Part(JITCodeLibrary):  # type: ignore[misc]
    """Code as Numba hands it to LLVM, with the parts it calls."""

    @property
    def codegen(self) -> Any:
        return _WithoutEnvironment(self._codegen)

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0  # there is no machine code

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class OptimisedPart(_Part):
    """Code that is optimised once, wherever it is copied to; kept on disk as such, for there is no machine code."""

    _optimize_final_module = JITCodeLibrary._optimize_final_module

    def serialize_using_object_code(self) -> bytes:
        return bytes(self._get_module_for_linking().as_bitcode())

    @classmethod
    def read(cls, codegen: Any, bitcode: bytes) -> "OptimisedPart":
        """What was kept."""
        part = cls(codegen, "part")
        part._final_module = part._shared_module = parse_bitcode(bitcode)
        part._finalize_final_module()
        return part


class _WithoutEnvironment:
    """What makes code, less the setting of a variable that code which calls Python would read: a part has none."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        pass


def is_own(kinds: Any) -> bool:
    """Whether all memories among these types are the package's, down to what they hold."""
    return all(
        not isinstance(kind, types.BaseNamedTuple)
        or (kind.instance_class.__module__.partition(".")[0] == __package__ and is_own(kind.types))
        for kind in kinds
    )


class _Whole(TupleModel):  # type: ignore[misc]
    """A memory as one value: Numba would take it apart into hundreds at every call, and make it up again inside."""

    def get_argument_type(self) -> Any:
        return self.get_value_type()

    def as_argument(self, builder: Any, value: Any) -> Any:
        return value

    def from_argument(self, builder: Any, value: Any) -> Any:
        return value


def _model_of(manager: Any, kind: Any) -> Any:
    return (_Whole if is_own([kind]) else TupleModel)(manager, kind)


default_manager.register(types.NamedTuple, _model_of)


@contextmanager
def remembering_calls() -> Iterator[None]:
    """Until the end of this, ask Numba once what a function makes of arguments of some types, and what it knows."""
    look_up = BaseFunction.get_call_type
    if look_up is not _LOOK_UP:  # within another such
        yield
        return
    cpu_target.target_context.refresh()
    known: dict[Any, Any] = {}
    options: dict[int, Any] = {}

    def remember(function: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws:
            return look_up(function, context, args, kws)
        top = ConfigStack.top_or_none()
        if id(top) not in options:
            options[id(top)] = repr(top), top  # held, so that no other gets its number
        key = id(function), args, options[id(top)][0]
        if key not in known:
            known[key] = look_up(function, context, args, kws), function
        return known[key][0]

    BaseFunction.get_call_type = remember  # type: ignore[method-assign,assignment]
    contexts = cpu_target.target_context, cpu_target.typing_context
    for context in contexts:
        context.load_additional_registries = partial(_load_known, context)
    try:
        yield
    finally:
        BaseFunction.get_call_type = look_up  # type: ignore[method-assign]
        for context in contexts:
            del context.load_additional_registries


def _load_known(context: Any) -> None:
    """What has been declared since, by modules that were there when compiling began: Numba would import them anew."""
    for registry in list(context._registries):
        context.install_registry(registry)


_LOOK_UP = BaseFunction.get_call_type
