"""Read a Parquet file once in a process of its own, which may die of it.

pyarrow is C++: a damaged file may abort the process that reads it, or take all its memory. What has
ended well there does so here. This file is run as a script, without the rest of headscope.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

# What reading a file may take: seconds of the processor, and one more for this number of bytes;
# bytes of memory, and this number for each byte of the file.
SECONDS, BYTES_A_SECOND, ROOM, PACKED = 20, 1_000_000, 4 << 30, 64
OUT_OF_MEMORY = 3


def check_parquet(file: Path, column: str = "") -> None:
    """Raise ValueError for a file that ends, or fills, the process that reads it.

    column  the only one to be read; "" for all

    A file that is merely no Parquet passes: its reader says so.
    """
    status = file.stat()
    _check(str(file.absolute()), column, status.st_size, status.st_mtime_ns)


@cache
def _check(file: str, column: str, size: int, _changed: int) -> None:
    command = [sys.executable, "-P", __file__, file, column, str(size)]
    quiet = subprocess.DEVNULL
    code = subprocess.run(command, check=False, stdin=quiet, stdout=quiet, stderr=quiet).returncode
    if code == OUT_OF_MEMORY:
        raise ValueError(f"it asks for more memory than a file of {size} bytes can need")
    if code < 0:
        raise ValueError(f"it is damaged so that reading it ends the process (signal {-code})")


def _read(file: str, column: str, size: int) -> None:
    try:
        import resource
    except ImportError:  # Windows: without limits
        pass
    else:
        seconds = SECONDS + size // BYTES_A_SECOND
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (ROOM + PACKED * size,) * 2)
    from pyarrow.parquet import ParquetFile

    with ParquetFile(file) as table:
        for batch in table.iter_batches(1024, columns=[column] if column else None):
            batch.to_pylist()


if __name__ == "__main__":
    try:
        _read(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except BaseException:
        os._exit(1)
    os._exit(0)
