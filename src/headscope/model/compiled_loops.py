"""Compile loops, keep the compiled code where it can be kept, and share a loop's steps."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, wraps
from itertools import pairwise
from typing import Any

import numpy.typing as npt
import torch

from headscope.errors import InputError

try:
    from numba import njit
except ValueError as error:  # of a setting, say NUMBA_NUM_THREADS=0
    raise InputError(f"numba refuses a variable NUMBA_…: {error}; unset it") from error

Kernel = Callable[..., None]
if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
    raise InputError("found NUMBA_DISABLE_JIT set; headscope's loops run compiled alone: unset it")


def compile_loop(function: Callable[..., Any], *, nogil: bool = False) -> Callable[..., Any]:
    """The function compiled, and kept for other processes where its place can be written."""
    try:
        return njit(nogil=nogil, cache=True)(function)
    except RuntimeError:  # nowhere: every process compiles again
        return njit(nogil=nogil)(function)


def threaded(steps: Callable[..., int]) -> Callable[[Kernel], Kernel]:
    """Compiles a loop from `begin` to `stop`; as many threads as torch has share its steps.

    steps  how many there are, of what the loop is given after `begin` and `stop`

    numba's own threads take three times as long to compile, and a lock of the system's, which a
    process that is killed does not give back.
    """

    def compiled_loop(kernel: Kernel) -> Kernel:
        loop = compile_loop(kernel, nogil=True)

        @wraps(kernel)
        def run(*arrays: npt.NDArray[Any] | int) -> None:
            count = steps(*arrays)
            threads = min(torch.get_num_threads(), count)
            if threads < 2:
                loop(0, count, *arrays)
                return
            cuts = pairwise(count * part // threads for part in range(threads + 1))
            for done in [_threads().submit(loop, *cut, *arrays) for cut in cuts]:
                done.result()

        return run

    return compiled_loop


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count())


os.register_at_fork(after_in_child=_threads.cache_clear)  # a fork has none of its parent's threads
