"""Write results as netCDF and read them back, by h5py in a quarter of the time of h5netcdf.

A dimension is an HDF5 dimension scale: the variable of its name, or an empty one where there is
none. xarray encodes and decodes the values.
"""

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import h5py
import numpy as np
import pandas as pd
import xarray as xr
from xarray.conventions import cf_encoder, encode_dataset_coordinates

from headscope.run.results_check import check_objects, check_sizes

FORMER = {"method": "variant"}  # dimensions of runs before 2026-11-23: `.sel` has a `method`
NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable."
OTHER = "_nc4_non_coord_"  # begins the name of a variable that a dimension has too, not its own
# How HDF5 and netCDF say what belongs together, in attributes that are none of a variable.
LINKS = {
    "CLASS",
    "NAME",
    "DIMENSION_LIST",
    "REFERENCE_LIST",
    "_Netcdf4Coordinates",
    "_Netcdf4Dimid",
    "_NCProperties",
}


def tree_as_netcdf(tree: xr.DataTree) -> bytes:
    """The bytes of a netCDF file with the groups of a tree."""
    with h5py.File.in_memory(track_order=True) as file:
        _put(file, tree, {})
        file.flush()
        return bytes(file.id.get_file_image())


def tree_of_netcdf(content: BinaryIO) -> xr.DataTree:
    """The tree of `xarray.load_datatree`, from an open file.

    raises  ValueError for what is not written here; whatever libraries raise for damage
    """
    with h5py.File(content, "r") as file:
        check_objects(file, content)
        tree = xr.DataTree.from_dict(dict(_datasets(file, {})))
    check_sizes(tree)
    return tree


def _put(group: h5py.Group, node: xr.DataTree, above: Mapping[str, h5py.Dataset]) -> None:
    """Write a node and all below it.

    above  scales of the dimensions that outer groups have
    """
    dataset = node.to_dataset(inherit=node.is_root)
    variables, attrs = cf_encoder(*encode_dataset_coordinates(dataset))
    _describe(group, attrs)
    scales = dict(above)
    for name, size in zip(map(str, dataset.sizes), dataset.sizes.values(), strict=True):
        if name in above:
            continue
        if name in variables and variables[name].dims == (name,):
            scales[name] = _variable(group, name, variables[name])
            scales[name].make_scale(name)
        else:
            scales[name] = group.create_dataset(name, (size,), dtype=">f4", track_order=True)
            scales[name].make_scale(f"{NO_VARIABLE}{size:10}")
    for name, variable in variables.items():
        if variable.dims == (name,) and name not in above:
            continue
        made = _variable(group, OTHER + name if name in dataset.sizes else name, variable)
        for axis, dimension in zip(made.dims, variable.dims, strict=True):
            axis.attach_scale(scales[str(dimension)])
    for name, child in node.children.items():
        _put(group.create_group(name, track_order=True), child, scales)


def _variable(group: h5py.Group, name: str, variable: xr.Variable) -> h5py.Dataset:
    values = _storable(np.asarray(variable.data))
    made = group.create_dataset(name, data=values, dtype=values.dtype, track_order=True)
    _describe(made, variable.attrs)
    return made


def _storable(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Values of a type that HDF5 has, as xarray chooses it; a missing word becomes an empty one."""
    if values.dtype == object and not any(isinstance(one, str) for one in values.flat):
        return values.astype(float)
    if values.dtype.kind in "UO":
        return np.where(pd.isnull(values), "", values).astype(h5py.string_dtype())
    return values


def _describe(described: h5py.Group | h5py.Dataset, attrs: Mapping[Any, Any]) -> None:
    for name, value in attrs.items():
        plain = isinstance(value, str) or np.ndim(value) > 0
        described.attrs[name] = value if plain else np.atleast_1d(value)


def _datasets(group: h5py.Group, above: Mapping[int, str]) -> Iterator[tuple[str, xr.Dataset]]:
    """Each group by its path, the outer before the inner.

    above  names of the dimensions that outer groups have, by the addresses of their scales
    """
    inner, stored = dict[str, h5py.Group](), dict[str, h5py.Dataset]()
    for name, member in group.items():
        (inner if isinstance(member, h5py.Group) else stored)[name] = member
    own = {name: one for name, one in stored.items() if one.is_scale}
    scales = {**above, **{_address(one.id): name for name, one in own.items()}}
    for name, one in own.items():
        if one.attrs["NAME"].startswith(NO_VARIABLE.encode()):
            del stored[name]
    variables = {name.removeprefix(OTHER): _read(name, stored[name], scales) for name in stored}
    dataset = xr.decode_cf(xr.Dataset(variables, attrs=_attributes(group))).load()
    former = {old: new for old, new in FORMER.items() if old in dataset.dims}
    yield group.name, dataset.rename(former)
    for child in inner.values():
        yield from _datasets(child, scales)


def _read(name: str, stored: h5py.Dataset, scales: Mapping[int, str]) -> xr.Variable:
    dims, links = [name] if stored.ndim else [], stored.attrs.get("DIMENSION_LIST")
    if links is not None:
        dims = [scales[_address(h5py.h5r.dereference(one[-1], stored.id))] for one in links]
    words = h5py.check_string_dtype(stored.dtype) is not None
    values = stored.asstr()[()] if words else stored[()]
    return xr.Variable(dims, values, _attributes(stored), {"dtype": str} if words else {})


def _address(where: h5py.h5g.GroupID | h5py.h5d.DatasetID) -> int:
    return int(h5py.h5o.get_info(where).addr)


def _attributes(described: h5py.Group | h5py.Dataset) -> dict[str, Any]:
    attrs = {name: described.attrs[name] for name in described.attrs if name not in LINKS}
    for name, value in attrs.items():
        if isinstance(value, np.ndarray):
            several = value.tolist() if value.dtype == object else value
            attrs[name] = several[0] if len(several) == 1 else several
    return attrs
