"""Label the variables of a result with dimensions, unit, source and interval."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from headscope.core.accumulators import Estimate

DRAWS = "_draws"
_KEEP: ContextVar[bool] = ContextVar("headscope_keeps_draws", default=False)


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


@contextmanager
def keeping_draws() -> Iterator[None]:
    """Inside the context results hold, beside an estimate `x`, `x_draws[replicate, …]`."""
    token = _KEEP.set(True)
    try:
        yield
    finally:
        _KEEP.reset(token)


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
            if _KEEP.get() and v.value.draws is not None:
                dims = (f"replicate_{name}", *v.dims)  # there may be fewer than of others
                arrays[name + DRAWS] = xr.DataArray(v.value.draws, dims=dims, attrs={"tidy": 0})
        else:
            arrays[name] = xr.DataArray(v.value, dims=v.dims, attrs=attrs)
    dataset = xr.Dataset(arrays)
    given = dict(coords or {})
    numbered = {d: np.arange(n) for d, n in dataset.sizes.items() if d not in given}
    used = {d: list(c) for d, c in given.items() if d in dataset.sizes}
    return dataset.assign_coords({**numbered, **used})


def with_token_names(
    dataset: xr.Dataset, names: Callable[[Iterable[int]], tuple[str, ...]]
) -> xr.Dataset:
    """Beside every coordinate `…_token_id`, `…_token`: the tokens as the vocabulary has them.

    An id of -1 is no token; where `…_token_count` has several tokens in one place, their number
    stands there. Analyses know no vocabulary, so the names are added afterwards.
    """
    for given in [str(name) for name in dataset.coords if str(name).endswith("_token_id")]:
        ids, stem = dataset[given], given.removesuffix("_id")
        flat = ids.values.ravel()  # [place]
        there = flat >= 0
        text = np.full(flat.shape, "", object)
        text[there] = names(flat[there].tolist())
        if f"{stem}_count" in dataset.coords:
            counts = dataset[f"{stem}_count"].values.ravel()  # [place]
            text[counts > 1] = [f"… {count} tokens …" for count in counts[counts > 1].tolist()]
        shaped = text.astype(str).reshape(ids.shape)  # as `ids`
        dataset = dataset.assign_coords({stem: (ids.dims, shaped)})
    return dataset
