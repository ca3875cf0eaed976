"""The C yardstick: compile `limit.c` with the system's compiler and run it on an instance."""

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from statepool import Instance
from statepool.kernels import BLOCK, columns_of
from statepool.rates import default_rate

SOURCE = Path(__file__).with_name("limit.c")
FLAGS = ["-O3", "-march=native", "-mprefer-vector-width=512", "-ffast-math", "-fno-math-errno", "-shared", "-fPIC"]


def build(folder: Path) -> Any:
    """The compiled function, or None where there is no compiler that can build it."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    library = folder / "limit.so"
    for flags in (FLAGS, [flag for flag in FLAGS if "prefer" not in flag]):  # not every target knows that one
        command = [compiler, *flags, "-o", str(library), str(SOURCE), "-lm"]
        if subprocess.run(command, capture_output=True).returncode == 0:
            return _typed(ctypes.CDLL(str(library)).state_exp3)
    return None


def _typed(function: Any) -> Any:
    numbers = np.ctypeslib.ndpointer(np.float64, flags="C")
    whole = np.ctypeslib.ndpointer(np.int32, flags="C")
    sizes = [ctypes.c_ssize_t] * 4
    function.argtypes = [*sizes, ctypes.c_double, *[numbers] * 4, whole, whole, numbers]
    return function


def play(function: Any, instance: Instance, delay: int, seed: int) -> np.ndarray:
    """The actions of a State-EXP3 run in C, on the stream that the engine would draw."""
    K, S, T = instance.n_actions, instance.n_states, instance.horizon
    columns = np.zeros((S, -(-K // BLOCK) * BLOCK))
    columns[:, :K] = columns_of(instance.P)
    uniforms = np.random.default_rng(seed).random(3 * T)
    actions, states, outcomes = np.empty(T, np.int32), np.empty(T, np.int32), np.empty(T)
    rate = default_rate(K, S, T, delay)
    if function(K, S, T, delay, rate, instance.P, columns, instance.theta, uniforms, actions, states, outcomes):
        raise MemoryError("limit.c could not allocate its memory")
    return actions
