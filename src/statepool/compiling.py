"""How functions are compiled: Numba's options and the on-disk cache.

Every function is cached by itself, so loops, learners and processes share what is compiled. The folder has a hash of
the sources with compiled code as its name: Numba notices a change only in the file of the function that it loads.
"""

import hashlib
import os
import re
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from numba import config, njit

Function = TypeVar("Function", bound=Callable[..., Any])
EXACT = {"contract", "nsz", "nnan", "ninf"}
REASSOCIATED = EXACT | {"reassoc", "arcp"}
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
INLINED: dict[str, Any] = {**OPTIONS, "forceinline": True}


def compiled(function: Function) -> Function:
    """Compile a function that compiled code calls. It must not allocate arrays."""
    return _cached(INLINED, function)


def compiled_elementwise(function: Function) -> Function:
    """The same for arithmetic on finite numbers: fused multiply-adds, no reordering."""
    return _cached({**INLINED, "fastmath": EXACT}, function)


def compiled_reassociated(function: Function) -> Function:
    """The same for loops that sum: additions may be reordered, so that they vectorise."""
    return _cached({**INLINED, "fastmath": REASSOCIATED}, function)


def compiled_inside(function: Function) -> Function:
    """The same for a function that Python never calls: compiles faster where it is handed a large memory."""
    return _cached({**INLINED, "no_cpython_wrapper": True}, function)


def compiled_part(function: Function) -> Function:
    """The same, and not copied into its callers."""
    return _cached({**OPTIONS, "no_cpython_wrapper": True}, function)


def compiled_allocating(function: Function) -> Function:
    """Compile a function that allocates arrays."""
    return _cached({**OPTIONS, "_nrt": True}, function)


def entry_point(function: Function) -> Function:
    """Compile a function that Python calls."""
    return _cached(OPTIONS, function)


def _cached(options: dict[str, Any], function: Function) -> Function:
    theirs, config.CACHE_DIR = config.CACHE_DIR, cache_folder()  # read once, when the function is decorated
    try:
        return njit(**options, cache=True)(function)
    finally:
        config.CACHE_DIR = theirs


@cache
def cache_folder() -> str:
    """Where compiled functions are kept; empty before the first one is compiled."""
    sources = [source.read_bytes() for source in sorted(Path(__file__).parent.rglob("*.py"))]
    digest = hashlib.sha256(b"".join(each for each in sources if re.search(b"numba|compil|add_rule", each)))
    roots = (os.environ.get("NUMBA_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME"), os.path.expanduser("~/.cache"))
    for folder in (Path(root) / "statepool" / f"kernels-{digest.hexdigest()[:16]}" for root in roots if root):
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return str(folder)
    return tempfile.mkdtemp(prefix="statepool-")
