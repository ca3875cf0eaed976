"""How functions are compiled: the one place that holds Numba's options and its on-disk cache.

The cache is keyed by a hash of the package's sources, because Numba itself notices a change only in the file of
the function it loads. Functions on memories that are not the package's own are not cached: whoever cannot
import such a memory could not read the cache any more.

Most functions are only ever called by other compiled ones, which copy them. Such a *part* is not made ready to be
called from Python, and it is neither optimised nor turned into machine code by itself: whatever it ends up in is. That
spares two thirds of the time that a learner takes to compile. A function that Python does call is compiled as a whole.

Processes that need the same function at the same time take turns: one compiles it, the others load what it has saved.
"""

import gc
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from llvmlite.binding import parse_assembly
from numba import config, njit, types
from numba.core import event
from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserProvidedCacheLocator
from numba.core.compiler import compile_result
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import overload
from numba.np import linalg

from statepool.shortcuts import (
    OptimisedPart,
    OptimisedPartCompiler,
    PartCompiler,
    ShortCompiler,
    is_own,
    remembering_calls,
)
from statepool.turns import Turns

Function = TypeVar("Function", bound=Callable[..., Any])

_PACKAGE = Path(__file__).parent
_EXACT = {"contract", "nsz", "nnan", "ninf"}
_REASSOCIATED = _EXACT | {"reassoc", "arcp"}
_STALE_CACHE_SECONDS = 7 * 24 * 3600
_WITHOUT_KERNELS = {"cli.py", "client", "commands", "live", "report", "testing"}
"""What compiles nothing and that nothing compiled imports from: a change in them leaves the cache as it is."""


def compiled(function: Function) -> Function:
    """Compile with the options every kernel shares: cached on disk, without the GIL, IEEE arithmetic."""
    return _compile(function)


def compiled_apart(function: Function) -> Function:
    """The same for a long function that is called from several places: kept once, not copied into each."""
    return _compile(function, inlined=False)


def compiled_allocating(function: Function) -> Function:
    """The same for a function that makes arrays of its own."""
    return _compile(function, allocates=True, inlined=False)


def compiled_reassociated(function: Function) -> Function:
    """The same for loops that sum: allowed to reorder additions, so that they vectorise."""
    return _compile(function, fastmath=_REASSOCIATED)


def compiled_elementwise(function: Function) -> Function:
    """The same for arithmetic on finite numbers, one at a time: fused multiply-adds, no reordering."""
    return _compile(function, fastmath=_EXACT)


@contextmanager
def told_of_compiling(tell: Callable[[bool], None]) -> Iterator[None]:
    """Call `tell` with True when a kernel begins to be compiled, with False when it is done; loading one is neither."""

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, _: Any) -> None:
            tell(True)

        def on_end(self, _: Any) -> None:
            tell(False)

    listener = Listener()
    event.register("numba:compile", listener)
    try:
        yield
    finally:
        event.unregister("numba:compile", listener)


@cache
def compiled_guarded(kernel: Any) -> Any:
    """A kernel once more, for rules that are not the package's own: they may make arrays, and indices are checked."""
    return njit(nogil=True, error_model="numpy", boundscheck=True)(kernel.py_func)


def _compile(
    function: Function, fastmath: bool | set[str] = False, allocates: bool = False, inlined: bool = True
) -> Function:
    # Without Numba's reference counts, passing a memory of ten arrays from one kernel to the next is free:
    # three times the speed of a whole round at 200 actions. Inlining spares pushing all of it on the stack: a tenth.
    options = {"nogil": True, "error_model": "numpy", "fastmath": fastmath, "_nrt": allocates,
               "forceinline": inlined}  # fmt: skip
    whole = njit(**options, no_cfunc_wrapper=True, pipeline_class=ShortCompiler)(function)
    if (inlined or allocates) and not fastmath:
        part = njit(**options, **_AS_PART)(function)
    else:
        # Sums that may be reordered are optimised here once and for all, so that they have the same bits everywhere.
        part = njit(**options, **_UNWRAPPED, pipeline_class=OptimisedPartCompiler)(function)
        _keep(part, function, "parts", _FunctionCacheOfParts)
    _keep(whole, function, "wholes", _FunctionCacheOfWholes)
    whole.get_call_template, whole.get_overload = part.get_call_template, part.get_overload
    return whole


def _keep(dispatcher: Any, function: Any, folder: str, kind: Any) -> None:
    dispatcher._cache = _OwnCache(function, folder, kind)
    dispatcher.compile = partial(_compile_in_turn, dispatcher)


def _compile_in_turn(dispatcher: Any, signature: Any) -> Any:
    """Numba's compiling, with nobody else at it and without looking for garbage: a twentieth of the time."""
    with global_compiler_lock, _without_collecting(), remembering_calls():
        held = dispatcher._cache.turns.copy()
        try:
            return type(dispatcher).compile(dispatcher, signature)
        finally:
            dispatcher._cache.end_turns_but(held)


@contextmanager
def _without_collecting() -> Iterator[None]:
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def chosen_by_type(find: Callable[[Any], Any], find_others: Callable[[Any], Any] | None = None) -> Callable[..., Any]:
    """What is called as a function: the one that is found for the type of its first argument, a NamedTuple.

    Functions of other packages are found apart: they may make arrays, and their indices are checked. Compiled code has
    them compiled; plain Python runs them as they are, slowly, but it knows every line.
    """

    def chosen(first: Any, *rest: Any) -> Any:
        found = find(type(first)) or (find_others and find_others(type(first)))
        return found(first, *rest)  # type: ignore[misc]

    for finding, options in ((find, _AS_PART), (find_others, {"boundscheck": True})):
        if finding:
            overload(chosen, strict=False, jit_options=options)(_of_numbas_type(finding))
    return chosen


def _of_numbas_type(find: Callable[[Any], Any]) -> Callable[..., Any]:
    def found(first: Any, *rest: Any) -> Any:
        return find(first.instance_class) if isinstance(first, types.BaseNamedTuple) else None

    return found


_UNWRAPPED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_AS_PART = {**_UNWRAPPED, "pipeline_class": PartCompiler}


class _Locator(UserProvidedCacheLocator):  # type: ignore[misc]
    """Where a function's file lies in the package, wherever the package lies: the sources' hash tells copies apart."""

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        place = Path(py_file)
        if not place.is_relative_to(_PACKAGE):
            return str(super().get_suitable_cache_subpath(py_file))
        return "_".join(place.relative_to(_PACKAGE).parent.parts)


class _Implementation(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class _ImplementationOfParts(_Implementation):
    def rebuild(self, context: Any, kept: Any) -> Any:
        """What compiling the part gave, from what Numba's result of it says of itself."""
        code, description, environment, signature, *_ = kept
        library = OptimisedPart.read(context.codegen(), code)
        return compile_result(
            target_context=context, typing_context=context.typing_context, signature=signature, library=library,
            fndesc=description, environment=environment, objectmode=False, lifted=(), reload_init=[],
            referenced_envs=[], entry_point=context.get_executable(library, description, environment),
        )  # fmt: skip


class _FunctionCacheOfParts(FunctionCache):  # type: ignore[misc]
    _impl_class = _ImplementationOfParts


class _ImplementationOfWholes(_Implementation):
    """Of the code that Numba stores beside the machine code, for copying it into other code, the names alone.

    Copied are parts, never wholes, and to read all of it would take as long as everything else that loading takes.
    """

    def reduce(self, result: Any) -> Any:
        (name, kind, (machine_code, _)), *rest = super().reduce(result)
        return (name, kind, (machine_code, _names_alone(result.library))), *rest


def _names_alone(library: Any) -> bytes:
    """A module that has the functions of a library, without what they do."""
    functions = library._get_module_for_linking().functions
    empty = (f'define void @"{each.name}"() {{ unreachable }}' for each in functions if not each.is_declaration)
    return bytes(parse_assembly("\n".join(empty)).as_bitcode())


class _FunctionCacheOfWholes(FunctionCache):  # type: ignore[misc]
    _impl_class = _ImplementationOfWholes


class _OwnCache:
    """Numba's cache, made when something is first asked of it, for signatures that every process here can read."""

    def __init__(self, function: Any, folder: str, kind: Any) -> None:
        self._function, self._folder, self._kind = function, folder, kind
        self._name = f"{folder} {function.__module__} {function.__qualname__}"
        self.turns: set[str] = set()
        """Those that this process has: a function may be compiled for more arguments while it is being compiled."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)

    @cached_property
    def _made(self) -> Any:
        # The folder is read when the cache is made: restoring it leaves other packages' caches alone.
        theirs, config.CACHE_DIR = config.CACHE_DIR, str(_cache_folder() / self._folder)
        try:
            return self._kind(self._function)
        finally:
            config.CACHE_DIR = theirs

    def load_overload(self, signature: Any, context: Any) -> Any:
        if not is_own(getattr(signature, "args", signature)):
            return None
        found = self._made.load_overload(signature, context)
        name = f"{self._name} {signature}"
        if found is None and _turns().take(name):
            self.turns.add(name)
            found = self._made.load_overload(signature, context)  # by who had the turn before
        return found

    def save_overload(self, signature: Any, data: Any) -> None:
        if is_own(getattr(signature, "args", signature)):
            # Numba reads the list of what is there, adds a line and writes it: two at once would take one number.
            alone = _turns().take(self._name)
            try:
                self._made.save_overload(signature, data)
            finally:
                if alone:
                    _turns().end(self._name)

    def end_turns_but(self, held: set[str]) -> None:
        """To be called when compiling is over, well or not, with the turns from before."""
        for name in self.turns - held:
            _turns().end(name)
        self.turns = held


@cache
def _turns() -> Turns:
    return Turns(_cache_folder() / "turns")


@cache
def _cache_folder() -> Path:
    name = f"kernels-{_source_hash()}"
    roots = [os.environ.get("NUMBA_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME"), os.path.expanduser("~/.cache")]
    for root in (Path(r) / "statepool" for r in roots if r):
        try:
            (root / name).mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=root / name):
                pass
        except OSError:
            continue
        _forget_stale_caches(root, keep=name)
        return root / name
    return Path(tempfile.mkdtemp(prefix="statepool-"))


def _source_hash() -> str:
    digest = hashlib.sha256()
    for source in sorted(_PACKAGE.rglob("*.py")):
        place = source.relative_to(_PACKAGE)
        if place.parts[0] not in _WITHOUT_KERNELS:
            digest.update(str(place).encode())
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _forget_stale_caches(root: Path, keep: str) -> None:
    os.utime(root / keep)
    for old in root.glob("kernels-*"):
        try:
            if old.name != keep and time.time() - old.stat().st_mtime > _STALE_CACHE_SECONDS:
                shutil.rmtree(old, ignore_errors=True)
        except OSError:  # another process removed it first
            continue


def _take_blas_for_granted() -> None:
    # Before it compiles or loads anything, Numba imports scipy.linalg to see whether it is there. It is, since this
    # package needs scipy, and code that calls it still imports it: the look alone is a sixth of a start.
    look, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        from numba.np import arraymath

        arraymath.ensure_blas = look
    finally:
        linalg.ensure_blas = look


_take_blas_for_granted()
