"""How many threads torch, the compiled loops and BLAS use."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import torch
from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _libraries(_modules: int) -> ThreadpoolController:
    """The loaded thread libraries, searched again when the number of modules changes."""
    return ThreadpoolController()


@contextmanager
def threads_of(count: int) -> Iterator[None]:
    """Inside the context torch and the compiled loops use `count` threads.

    numpy's products get one thread: BLAS divides sums among its threads, so their last bits would
    depend on how many there are.
    """
    libraries = _libraries(len(sys.modules))
    with threads_of_torch(count), libraries.limit(limits=1, user_api="blas"):
        yield


@contextmanager
def threads_of_torch(count: int) -> Iterator[None]:
    """Inside the context torch and the compiled loops use `count` threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
