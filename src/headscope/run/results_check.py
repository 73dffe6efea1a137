"""Check that results hold only what is written here, before HDF5 reads any of it.

A file may come from a stranger. HDF5 would follow it into other files, through plug-ins and in
circles, and take whatever memory it asks for.
"""

import io
import math
from collections.abc import Iterator
from typing import BinaryIO

import h5py
import numpy as np
import xarray as xr
from h5py import h5a, h5d, h5g, h5l, h5o, h5t

from headscope.core.wording import grid_size

# Attributes that are counts. Then what a file may hold: an axis without labels stores nothing, and
# texts may share a place, so that arrays may take ROOM bytes, and PACKED for each byte of the file.
COUNTED = ("layers", "heads", "documents", "examples", "tokens", "skipped", "windowed")
OBJECTS, DEPTH, TEXTS, ROOM, PACKED = 100_000, 12, 64, 1 << 28, 64
GROUPS = 2_000  # a run of all analyses has 150; each takes time to open
HEAP = (
    b"GCOL\1\0\0\0"  # begins a block of texts: then its size, and texts after headers of HEAD bytes
)
HEAD, PIECE = 16, 1 << 24
_NUMBERS = {h5t.INTEGER, h5t.FLOAT, h5t.STRING, h5t.ENUM}
_OF_DIMENSIONS = {b"DIMENSION_LIST", b"REFERENCE_LIST"}  # attributes that tell what lies along what


def check_sizes(tree: xr.DataTree) -> None:
    """Raise ValueError where the sizes that results are said to have are not those of arrays."""
    said = {name: tree.attrs[name] for name in COUNTED if name in tree.attrs}
    for name, count in said.items():
        if not isinstance(count, int | np.integer) or count < 0:
            raise ValueError(f"{name} is {str(count)[:40]!r}")
    if not said.keys() >= {"layers", "heads"}:
        return
    layers, heads = said["layers"], said["heads"]
    wanted = {"layer": {layers}, "head": {heads}, "unit": {layers * heads}}
    for node in tree.subtree:
        for dim, size in node.sizes.items():
            if size not in wanted.get(str(dim), {size}):
                raise ValueError(
                    f"of {grid_size(layers, heads)}, {node.path} has {size} along {dim}"
                )


def check_objects(opened: h5py.File, content: BinaryIO) -> None:
    """Raise ValueError for an object that is not written here, before any is read."""
    size = content.seek(0, io.SEEK_END)
    _check_heaps(content, size)
    room, root = ROOM + PACKED * size, h5g.open(opened.id, b"/")
    groups, seen, todo = 0, {h5o.get_info(root).addr}, [(root, "", 0)]
    while todo:
        group, place, depth = todo.pop()
        _check_attributes(group, place, size)
        for name in group:
            where = f"{place}/{name.decode('utf-8', 'replace')}"[-200:]
            if group.links.get_info(name).type != h5l.TYPE_HARD:
                raise ValueError(f"{where} is a link to elsewhere")
            one = h5o.open(group, name)
            before = len(seen)
            seen.add(h5o.get_info(one).addr)
            if len(seen) == before or len(seen) > OBJECTS or depth > DEPTH:
                raise ValueError(f"{where} is in the file more than once, or too deep")
            if isinstance(one, h5g.GroupID):
                groups += 1
                if groups > GROUPS:
                    raise ValueError(f"there are more than {GROUPS:,} groups")
                todo.append((one, where, depth + 1))
                continue
            if not isinstance(one, h5d.DatasetID):
                raise ValueError(f"{where} is neither a group nor an array")
            _check_attributes(one, where, size)
            room -= _checked_size(one, where, content, size)
            if room < 0:
                raise ValueError(f"{where} is larger than a file of {size} bytes tells")


def _check_heaps(content: BinaryIO, most: int) -> None:
    """Raise ValueError for a block of texts in which a text does not end: HDF5 would go round."""
    for start in list(_places(content, HEAP)):
        content.seek(start + len(HEAP))
        size = int.from_bytes(content.read(8), "little")
        content.seek(start)
        block = content.read(min(size, most))
        at = HEAD
        while at + HEAD <= len(block):
            number = int.from_bytes(
                block[at : at + 2], "little"
            )  # 0 is what is free, with its head
            length = int.from_bytes(block[at + 8 : at + HEAD], "little")
            step = HEAD + -(-length // 8) * 8 if number else length
            if not HEAD <= step <= len(block) - at:
                raise ValueError(f"a text at byte {start + at} does not end")
            at += step


def _places(content: BinaryIO, sign: bytes) -> Iterator[int]:
    """Where in a file a sign stands; a piece of it at a time."""
    content.seek(0)
    place, held = 0, b""
    while more := content.read(PIECE):
        held += more
        at = held.find(sign)
        while at >= 0:
            yield place + at
            at = held.find(sign, at + 1)
        rest = max(0, len(held) - (len(sign) - 1))
        place, held = place + rest, held[rest:]


def _checked_size(array: h5d.DatasetID, where: str, content: BinaryIO, size: int) -> int:
    """The bytes of an array in memory; ValueError for one whose values lie elsewhere."""
    made, kind = array.get_create_plist(), array.get_type()
    layout = made.get_layout()
    if made.get_external_count() or layout not in (h5d.CONTIGUOUS, h5d.CHUNKED):
        raise ValueError(f"the values of {where} lie in another file, or nowhere")
    empty = not math.prod(array.shape) and not made.get_nfilters()  # xarray writes it so
    if layout == h5d.CHUNKED and not empty:  # HDF5 unpacks a piece to any size
        raise ValueError(f"{where} is cut into pieces or packed, as no results are")
    texts = kind.get_class() == h5t.STRING and kind.is_variable_str()
    if kind.get_class() not in _NUMBERS:
        raise ValueError(f"{where} holds neither numbers nor texts")
    count = math.prod(array.shape)
    if not count:
        return 0
    of_one: int = 16 if texts else kind.get_size()  # of a text, its length and where it lies
    stored: int = count * of_one
    if array.get_storage_size() not in (stored, 0):  # of an axis without labels nothing is stored
        raise ValueError(f"{where} is not as long as its dimensions say")
    return _length_of_texts(array, content, stored) if texts else stored


def _length_of_texts(array: h5d.DatasetID, content: BinaryIO, stored: int) -> int:
    """The bytes of all texts in an array: many may share one place in the file."""
    if array.get_offset() is None:
        return stored
    content.seek(array.get_offset())
    places = np.frombuffer(content.read(stored), np.dtype("<u4")).reshape(-1, 4)  # [text, of it]
    lengths: list[int] = places[:, 0].tolist()
    return sum(lengths, stored)


def _check_attributes(one: h5g.GroupID | h5d.DatasetID, where: str, size: int) -> None:
    for at in range(h5a.get_num_attrs(one)):
        attribute = h5a.open(one, index=at)
        kind, count = attribute.get_type(), math.prod(attribute.shape)
        texts = kind.get_class() == h5t.STRING and kind.is_variable_str()
        known = kind.get_class() in _NUMBERS or attribute.name in _OF_DIMENSIONS
        if not known or count * kind.get_size() > size or (texts and count > TEXTS):
            raise ValueError(f"{where or '/'} has an attribute that is not of results")
