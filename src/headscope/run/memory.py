"""Memory settings for our own processes: keep freed blocks, and keep few compiled products.

The attention maps of one batch take tens of megabytes. glibc returns blocks of that size to the
system as soon as they are freed and fetches them again for the next layer, page by page, which
costs a tenth of the time of a run. A process that keeps them holds what its largest batch needed.

oneDNN compiles a product for every shape that it meets and keeps 1,024 of them, a quarter of a
megabyte each. Batches of text have hundreds of shapes, so memory would grow with the corpus.
"""

import ctypes
import os
import sys

# Options of malloc.h and their bytes; 32 MiB is the most that mallopt takes on 64-bit systems.
_MMAP_THRESHOLD, _TRIM_THRESHOLD, _TOP_PAD = (-3, 32 << 20), (-1, 1 << 30), (-2, 64 << 20)
_COMPILED_KEPT = 128  # one batch of a model with 16 heads needs about 20


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
