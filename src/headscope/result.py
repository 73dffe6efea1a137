"""What does a result look like? Labelled variables with unit, source and interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from headscope.accumulate import Estimate


@dataclass(frozen=True)
class Variable:
    """One variable of a result, ready to be labelled.

    value      an Estimate (gets `<name>_ci_low` and `<name>_ci_high` beside it) or an array
    dims       names of the axes
    long_name  what it is, in words
    units      "probability", "nats", "tokens", "1", …
    source     paper and section; "ours" where there is none
    """

    value: Estimate | np.ndarray[Any, Any] | float | int
    dims: Sequence[str]
    long_name: str
    units: str
    source: str


def labelled(
    variables: Mapping[str, Variable], *, coords: Mapping[str, Sequence[Any]] | None = None
) -> xr.Dataset:
    """A Dataset of variables; dims without a given coordinate are numbered from 0."""
    arrays: dict[str, xr.DataArray] = {}
    for name, v in variables.items():
        attrs = {"long_name": v.long_name, "units": v.units, "source": v.source}
        if isinstance(v.value, Estimate):
            low, high = f"{name}_ci_low", f"{name}_ci_high"
            arrays[name] = xr.DataArray(v.value.value, dims=v.dims, attrs=attrs)
            for end, array in ((low, v.value.low), (high, v.value.high)):
                text = f"{v.long_name}, {end.rpartition('_')[2]} end of the 95 % interval"
                arrays[end] = xr.DataArray(array, dims=v.dims, attrs={**attrs, "long_name": text})
        else:
            arrays[name] = xr.DataArray(v.value, dims=v.dims, attrs=attrs)
    dataset = xr.Dataset(arrays)
    given = dict(coords or {})
    numbered = {d: np.arange(n) for d, n in dataset.sizes.items() if d not in given}
    used = {d: list(c) for d, c in given.items() if d in dataset.sizes}
    return dataset.assign_coords({**numbered, **used})
