"""Write results as netCDF and read them back, in about half the time that xarray takes.

A file to be read may come from a stranger. HDF5 would follow it into other files, through plug-ins
and in circles: before anything of it is read, each object in it is held against what is written
here.
"""

import io
import math
from collections.abc import Iterator
from typing import Any, BinaryIO

import h5netcdf
import h5py
import numpy as np
import xarray as xr
from h5py import h5a, h5d, h5g, h5l, h5o, h5t, h5z
from xarray.backends import H5NetCDFStore

FORMER = {"method": "variant"}  # dimensions of runs before 2026-11-23: `.sel` has a `method`
# Attributes that are counts. Then of a file that is read: pictures of maps are packed, mostly
# zeros; an array takes up to so many bytes, and so many for each of the file, unpacked.
COUNTED = ("layers", "heads", "documents", "examples", "tokens", "skipped", "windowed")
OBJECTS, DEPTH, TEXTS, ROOM, PACKED = 100_000, 12, 64, 1 << 28, 64
_FILTERS = {h5z.FILTER_DEFLATE, h5z.FILTER_SHUFFLE, h5z.FILTER_FLETCHER32}  # HDF5's own
_NUMBERS = {h5t.INTEGER, h5t.FLOAT, h5t.STRING, h5t.ENUM}
_OF_DIMENSIONS = {b"DIMENSION_LIST", b"REFERENCE_LIST"}  # attributes that tell what lies along what


class _OpenedOnce(h5py.File):  # type: ignore[misc]  # h5py has no types
    """An HDF5 file that caches its objects: h5netcdf opens each of them forty times."""

    def __init__(self, file: BinaryIO, mode: str) -> None:
        self._known = dict[str, Any]()
        super().__init__(file, mode, track_order=True)

    def __getitem__(self, name: str | h5py.Reference) -> Any:
        if isinstance(name, h5py.Reference):
            return self._referred(name)
        known = self._known.get(name)
        if known is None or known.name is None:  # one without a name was deleted
            known = self._known[name] = super().__getitem__(name)
        return known

    def _referred(self, reference: h5py.Reference) -> Any:
        """An object, opened by name: by reference HDF5 searches the name every time."""
        opened = super().__getitem__(reference)
        if self.mode != "r":
            return opened
        address = str(h5py.h5o.get_info(opened.id).addr)
        if address not in self._known:
            self._known[address] = self[opened.name]
        return self._known[address]


def tree_as_netcdf(tree: xr.DataTree) -> bytes:
    """The bytes of `tree.to_netcdf`, in half the time."""
    buffer = io.BytesIO()
    with _OpenedOnce(buffer, "w") as opened, h5netcdf.File(opened, "w") as file:
        for node in tree.subtree:
            store = H5NetCDFStore(file, group=None if node is tree else node.path, mode="a")
            dataset = node.to_dataset(inherit=node is tree)
            names = [*dataset.coords, *dataset.data_vars]  # an axis is written before its users
            dataset[names].dump_to_store(store)
    return buffer.getvalue()


def tree_of_netcdf(content: BinaryIO) -> xr.DataTree:
    """The tree of `xarray.load_datatree`, in six tenths of the time.

    content  an open file
    raises   ValueError for what is not written here; whatever the libraries raise for damage
    """
    with _OpenedOnce(content, "r") as opened:
        _check_all(opened, content)
        with h5netcdf.File(opened, "r", decode_vlen_strings=True) as file:
            tree = xr.DataTree.from_dict({group.name: _dataset(group) for group in _groups(file)})
    _check_fit(tree)
    return tree


def _check_fit(tree: xr.DataTree) -> None:
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
                    f"of {layers} layers × {heads} heads, {node.path} has {size} along {dim}"
                )


def _check_all(opened: h5py.File, content: BinaryIO) -> None:
    """Raise ValueError for an object that is not written here, before any is read."""
    size = content.seek(0, io.SEEK_END)
    room, root = ROOM + PACKED * size, h5g.open(opened.id, b"/")
    seen, todo = {h5o.get_info(root).addr}, [(root, "", 0)]
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
                todo.append((one, where, depth + 1))
                continue
            if not isinstance(one, h5d.DatasetID):
                raise ValueError(f"{where} is neither a group nor an array")
            _check_attributes(one, where, size)
            room -= _checked_size(one, where, content, size)
            if room < 0:
                raise ValueError(f"{where} is larger than a file of {size} bytes tells")


def _checked_size(array: h5d.DatasetID, where: str, content: BinaryIO, size: int) -> int:
    """The bytes of an array in memory; ValueError for one whose values lie elsewhere."""
    made, kind = array.get_create_plist(), array.get_type()
    filters = {made.get_filter(at)[0] for at in range(made.get_nfilters())}
    layout = made.get_layout()
    if made.get_external_count() or layout not in (h5d.CONTIGUOUS, h5d.CHUNKED):
        raise ValueError(f"the values of {where} lie in another file, or nowhere")
    if filters - _FILTERS:
        raise ValueError(f"{where} needs a filter of a plug-in")
    texts = kind.get_class() == h5t.STRING and kind.is_variable_str()
    if kind.get_class() not in _NUMBERS or (texts and filters):
        raise ValueError(f"{where} holds neither numbers nor texts")
    count = math.prod(array.shape)
    if not count:
        return 0
    stored: int = count * (
        16 if texts else kind.get_size()
    )  # of a text, its length and where it lies
    if layout == h5d.CHUNKED:
        if math.prod(made.get_chunk()) > count or texts:
            raise ValueError(f"{where} is cut into pieces larger than itself")
        return stored
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


def _dataset(group: h5netcdf.Group) -> xr.Dataset:
    dataset = xr.open_dataset(H5NetCDFStore(group)).load()
    return dataset.rename({old: new for old, new in FORMER.items() if old in dataset.dims})


def _groups(group: h5netcdf.Group) -> Iterator[h5netcdf.Group]:
    yield group
    for child in group.groups.values():
        yield from _groups(child)
