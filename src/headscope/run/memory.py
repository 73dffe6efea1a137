"""Memory limits: settings for our processes, free memory of a device, and what fits.

The attention maps of one batch take tens of megabytes. glibc returns blocks of that size to the
system as soon as they are freed and fetches them again for the next layer, page by page, which
costs a tenth of the time of a run. A process that keeps them holds what its largest batch needed.

oneDNN compiles a product for every shape that it meets and keeps 1,024 of them, a quarter of a
megabyte each. Batches of text have hundreds of shapes, so memory would grow with the corpus.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from importlib.util import find_spec
from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

# Options of malloc.h and their bytes; 32 MiB is the most that mallopt takes on 64-bit systems.
_MMAP_THRESHOLD, _TRIM_THRESHOLD, _TOP_PAD = (-3, 32 << 20), (-1, 1 << 30), (-2, 64 << 20)
_COMPILED_KEPT = 128  # one batch of a model with 16 heads needs about 20
# Ours: how often the maps of a layer are in memory at once. Seen were 1.4 times with the entropy
# alone, 5 with norms and mixing, 10 with every analysis.
MAPS_AT_ONCE = 10
_STEP = 16  # tokens; lengths that are advised are multiples of it


def keep_freed_memory() -> bool:
    """Tell glibc's allocator to keep freed blocks; for processes of our own, not for libraries.

    returns  whether the allocator accepted it; False without glibc, where nothing changes
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    taken = [bool(mallopt(*one)) for one in (_MMAP_THRESHOLD, _TRIM_THRESHOLD, _TOP_PAD)]
    return all(taken)


def keep_few_products() -> None:
    """Tell oneDNN to keep few compiled products; call it before the first product.

    A value of ONEDNN_PRIMITIVE_CACHE_CAPACITY that the user has set stays.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(_COMPILED_KEPT))


def free_bytes(device: torch.device) -> int | None:
    """Free bytes of a device, or of this process on the host; None if unknown."""
    if device.type != "cpu":
        from torch import get_device_module

        known = get_device_module(device)
        if not hasattr(known, "mem_get_info"):
            return None
        own = known.memory_reserved(device) - known.memory_allocated(device)
        return int(known.mem_get_info(device)[0] + own)
    left = [_kilobytes("/proc/meminfo", "MemAvailable")]
    if find_spec("resource") is not None:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        used = _kilobytes("/proc/self/status", "VmSize")
        if limit != resource.RLIM_INFINITY and used is not None:
            left.append(max(0, limit - used))
    return min((one for one in left if one is not None), default=None)


def _kilobytes(file: str, name: str) -> int | None:
    try:
        match = re.search(rf"^{name}:\s+(\d+) kB$", Path(file).read_text(), re.MULTILINE)
    except OSError:
        return None
    return None if match is None else 1024 * int(match[1])


def what_fits(inputs: int, tokens: int, *, maps: int, free: int | None) -> str:
    """Settings to try instead of a batch that ran out of memory.

    inputs, tokens  of the batch, padding included
    maps    bytes of one number of all maps of a layer and an input; 0: no whole maps are made
    free    bytes, see `free_bytes`

    By a simple rule. Half of what failed, and, of whole maps, no more than what MAPS_AT_ONCE maps
    of a layer leave room for; without whole maps memory grows with the length alone.
    """
    room = None if free is None or not maps else free // (maps * MAPS_AT_ONCE)  # pairs of tokens
    few = inputs // 2 if room is None else min(inputs // 2, room // tokens**2)
    if few:
        return f"--batch-tokens {few * tokens} or less"
    length = tokens // 2 if room is None else min(tokens // 2, isqrt(room))
    if length < _STEP:
        return "a machine or device with more memory that is free"
    return f"--max-length {length // _STEP * _STEP} or less, by a rule of thumb"
