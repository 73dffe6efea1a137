"""The list of the tables, figures and pages that a run wrote, with their digests.

    RUN/.written    names and sha256 as `sha256sum -c` reads them, below the sha256 of all lines

Older versions wrote the names alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headscope.core.inside import digest_inside, is_inside, read_inside
from headscope.core.whole_file import noting_written, write_whole
from headscope.errors import RunFolderError

LIST = ".written"
_ENTRY = re.compile(r"([0-9a-f]{64})  (.+)")


@contextmanager
def listing(folder: Path) -> Iterator[None]:
    """Inside the context, files written to the folder are listed as the run's own."""
    with noting_written(folder) as written:
        try:
            yield
        finally:
            before, _ = written_files(folder)
            there = {name: digest for name, digest in before.items() if is_inside(folder, name)}
            new = {n: d or digest_inside(folder, n) for n, d in there.items()} | written
            if new != before:
                lines = "".join(f"{new[name]}  {name}\n" for name in sorted(new)).encode()
                write_whole(folder / LIST, _seal_of(lines) + lines)


def written_files(folder: Path) -> tuple[dict[str, str], bool]:
    """What the run wrote, by name below the folder; and whether the list is damaged, and so empty.

    returns  the sha256 of each; "" in a list of an older version
    """
    try:
        content = read_inside(folder, LIST)
    except OSError:
        return {}, False
    except RunFolderError:  # a link
        return {}, True
    seal, _, rest = content.partition(b"\n")
    lines = content.decode("utf-8", "replace").splitlines()
    entries = [entry for line in lines if (entry := _ENTRY.fullmatch(line))]
    if seal + b"\n" == _seal_of(rest):
        return {entry[2]: entry[1] for entry in entries}, False
    if entries or b"#" in seal:
        return {}, True
    return {name: "" for name in lines if name}, False


def _seal_of(lines: bytes) -> bytes:
    return b"# sha256 " + hashlib.sha256(lines).hexdigest().encode() + b"\n"
