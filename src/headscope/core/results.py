"""Labelled results: write them with units and intervals, and read groups, estimates and names.

The result contract: one group per analysis; an estimate `x` has `x_ci_low` and `x_ci_high`.
Groups and intervals may be absent: absent is None or NaN here, never an error.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import xarray as xr

from headscope.core.display import printable, title_name
from headscope.core.intervals import Estimate

Floats = npt.NDArray[np.float64]
Derive = TypeVar("Derive", bound=Callable[..., Any])
LIMITS = ("_ci_low", "_ci_high")
COMPANIONS = (*LIMITS, "_n")
BEST_LAYER = "best_layer"
PLACES = (BEST_LAYER, "best_head", "best_direction", "best_offset")  # where, not how much
_KNOWN: ContextVar[dict[tuple[Any, ...], Any] | None] = ContextVar("derived_of_runs", default=None)


@contextmanager
def derived_once() -> Iterator[None]:
    """Inside the context, functions marked `derived` are computed once; the run must not change."""
    token = _KNOWN.set({}) if _KNOWN.get() is None else None
    try:
        yield
    finally:
        if token is not None:
            _KNOWN.reset(token)


def derived(function: Derive) -> Derive:
    """Marks a function(tree, …) whose result depends only on the run; see `derived_once`."""

    @wraps(function)
    def once(tree: xr.DataTree, *more: Any, **choice: Any) -> Any:
        known = _KNOWN.get()
        if known is None:
            with derived_once():
                return function(tree, *more, **choice)
        key = (function, id(tree), more, tuple(sorted(choice.items())))
        if key not in known:
            known[key] = (function(tree, *more, **choice), tree)  # holds the tree: its id stays
        return known[key][0]

    return cast(Derive, once)


@derived
def group(tree: xr.DataTree, name: str) -> xr.Dataset | None:
    """The dataset of an analysis; None where the run did not include it."""
    return tree.children[name].to_dataset() if name in tree.children else None


def needed(tree: xr.DataTree, name: str) -> xr.Dataset:
    """The dataset of a group that the run must have."""
    dataset = group(tree, name)
    assert dataset is not None, name
    return dataset


def estimates(dataset: xr.Dataset) -> list[str]:
    """Names of numeric variables, without companions (intervals, n), PLACES, and `tidy` 0."""
    names = [
        str(name)
        for name, variable in dataset.data_vars.items()
        if variable.dtype.kind in "biuf" and variable.attrs.get("tidy", 1)
    ]
    companions = {name + end for name in names for end in COMPANIONS}
    return [name for name in names if name not in PLACES and name not in companions]


def estimate(dataset: xr.Dataset, variable: str, **choice: Any) -> Estimate:
    """`variable` with its interval at `choice`, which names one coordinate value per dimension.

    returns  arrays of the dimensions left, NaN throughout if the choice is not in the data
    """
    value = _picked(dataset, variable, choice)
    limits = [
        _picked(dataset, variable + end, choice)
        if variable + end in dataset
        else np.full_like(value, np.nan)
        for end in LIMITS
    ]
    return Estimate(value, *limits)


def _picked(dataset: xr.Dataset, name: str, choice: Mapping[str, Any]) -> Floats:
    """As `pick`, ten times faster: every claim calls it."""
    variable = dataset.variables[name]
    values, dims = np.asarray(variable.values, np.float64), list(variable.dims)
    for dim, wanted in choice.items():
        axis = dims.index(dim)
        there = dim in dataset.variables
        labels = dataset.variables[dim].values if there else np.arange(values.shape[axis])
        matches = np.flatnonzero(labels == wanted)
        values = np.asarray(values.take(matches[0] if len(matches) else 0, axis))
        if not len(matches):
            values = np.full_like(values, np.nan)
        dims.pop(axis)
    return values


def surely(parts: Estimate) -> Floats:
    """The lower ends of the intervals; the values where there are none (which give no label)."""
    return np.asarray(np.where(np.isfinite(parts.low), parts.low, parts.value))


def at(parts: Estimate, *place: int) -> tuple[float, float, float]:
    """One value with the ends of its interval: of one head, of parts [layer, head]."""
    return float(parts.value[place]), float(parts.low[place]), float(parts.high[place])


def pick(array: xr.DataArray, **choice: Any) -> xr.DataArray:
    """`array` at one coordinate value per named dimension; NaN where that value is missing."""
    for dim, wanted in choice.items():
        if wanted in array[dim].values:
            array = array.sel({dim: wanted})
        else:
            array = array.isel({dim: 0}, drop=True) * np.nan
    return array


def documents(tree: xr.DataTree, array: xr.DataArray | None = None) -> int:
    """The number of documents behind a variable: its attribute `n`, else the run's `documents`."""
    own = {} if array is None else array.attrs
    return int(own.get("n", tree.attrs.get("documents", 0)))


def counted(tree: xr.DataTree) -> str:
    """The unit of `documents`: the examples of a task, or documents."""
    return str(tree.attrs.get("counted", "documents"))


def shape(tree: xr.DataTree) -> tuple[int, int]:
    """Layers and heads of the run."""
    return int(tree.attrs["layers"]), int(tree.attrs["heads"])


def own_layers(dataset: xr.Dataset, numbers: Sequence[int]) -> xr.Dataset:
    """The dataset with the model's own layer numbers, from 0, instead of places.

    They become the coordinate of `layer`, and the values of `best_layer`.
    """
    if "layer" in dataset.coords:
        dataset = dataset.assign_coords(layer=[numbers[at] for at in dataset["layer"].values])
    if BEST_LAYER in dataset:
        best = dataset[BEST_LAYER].values
        own = np.array(numbers, best.dtype)[np.nan_to_num(best).astype(np.int64)]
        best_layer = dataset[BEST_LAYER].copy(data=np.where(np.isnan(best), best, own))
        dataset = dataset.assign({BEST_LAYER: best_layer})
    return dataset


def best_places(dataset: xr.Dataset) -> Floats:
    """[*cell] places of the best layers among those that attend, from 0; NaN without one."""
    best, layers = dataset[BEST_LAYER].values, dataset["layer"].values
    places = np.searchsorted(layers, np.nan_to_num(best)).astype(np.float64)
    return np.asarray(np.where(np.isnan(best), np.nan, places))


def json_number(value: float) -> float | None:
    """The number for JSON: None where it is not finite."""
    return float(value) if np.isfinite(value) else None


def largest_first(values: Floats) -> list[tuple[int, int]]:
    """(layer, head) of values [layer, head], the largest first; NaN left out."""
    order = np.argsort(-np.nan_to_num(values, nan=-np.inf), axis=None, kind="stable")
    places = (divmod(int(unit), values.shape[1]) for unit in order)
    return [place for place in places if np.isfinite(values[place])]


def token_names(tree: xr.DataTree) -> dict[str, str]:
    """The tokenizer's names of the tokens of the categories cls and sep; '' without one."""
    return {kind: printable(tree.attrs.get(f"{kind}_token", "")) for kind in ("cls", "sep")}


def pieces(
    tokens: Sequence[str],
    special: Sequence[bool] | npt.NDArray[np.bool_],
    written: Sequence[str] = (),
) -> tuple[str, ...]:
    """Tokens as displayed: WordPiece's ## becomes a hyphen.

    tokens   as the vocabulary has them; where some mark a space before them, it is no WordPiece
    special  [token] the tokens that the tokenizer added: no word continues behind one
    written  [token] what the user wrote for each, where it is known
    """
    if any(token[:1] in ("Ġ", "▁") for token in tokens):
        return tuple(tokens)
    known = written or ("",) * len(tokens)
    before = zip(tokens[1:], known[1:], special, strict=False)
    rest = (
        f"-{one[2:]}" if one[:2] == "##" != one and text.strip() != one and not added else one
        for one, text, added in before
    )
    return (*tokens[:1], *rest)


def model_name(tree: xr.DataTree) -> str:
    """The model of the run as a title: a local folder by its own name, hub ids as they are."""
    return title_name(printable(tree.attrs.get("model", "the model")))


DRAWS, SIZES, REPLICATE = "_draws", "_sizes", "replicate_"
SEL = {"indexers", "method", "tolerance", "drop"}


@dataclass(frozen=True)
class Variable:
    """One variable of a result, ready to be labelled.

    value      an Estimate (gets `<name>_ci_low` and `<name>_ci_high` beside it) or an array
    dims       names of the axes
    long_name  what it is, in words
    units      "probability", "nats", "tokens", "1", …
    source     paper and section; "ours" where there is none
    over       of what the interval is, where it is not documents: "heads"
    tidy       whether it is a number for tables and menus; False: it is what claims rest on
    """

    value: Estimate | np.ndarray[Any, Any] | float | int
    dims: Sequence[str]
    long_name: str
    units: str
    source: str
    over: str = ""
    tidy: bool = True


def without_draws(dataset: xr.Dataset) -> xr.Dataset:
    """The dataset without the draws of its estimates."""
    return dataset.drop_dims(dim for dim in dataset.dims if str(dim).startswith(REPLICATE))


def tabled(
    values: Mapping[str, Any], table: Mapping[str, tuple[str, str, str, str]]
) -> dict[str, Variable]:
    """The values as variables; table: name -> its dimensions, long name, units and source."""
    return {n: Variable(one, table[n][0].split(), *table[n][1:]) for n, one in values.items()}


def labelled(
    variables: Mapping[str, Variable], *, coords: Mapping[str, Sequence[Any]] | None = None
) -> xr.Dataset:
    """A Dataset of variables; dims without a given coordinate are numbered from 0.

    Beside an estimate `x` stand its draws, where it has them: `x_draws[replicate, …]`, and
    `x_sizes[replicate, …]` where documents' sizes are known, without axes of one size. A run drops
    them (`without_draws`) unless its `Execution` keeps them.

    raises  ValueError for an axis named as an argument of xarray's `sel`, which would swallow it
    """
    if taken := {dim for v in variables.values() for dim in v.dims} & SEL:
        raise ValueError(f"found the axis {min(taken)!r}, an argument of xarray's sel; rename it")
    arrays: dict[str, xr.Variable] = {}
    for name, v in variables.items():
        attrs: dict[str, Any] = {"long_name": v.long_name, "units": v.units, "source": v.source}
        attrs |= {} if v.tidy else {"tidy": 0}
        if isinstance(v.value, Estimate):
            arrays[name] = xr.Variable(v.dims, v.value.value, attrs)
            for end, array in (("low", v.value.low), ("high", v.value.high)):
                words = attrs | {"long_name": f"{v.long_name}, {end} end of the 95 % interval"}
                words |= {"interval_over": v.over} if v.over else {}
                arrays[f"{name}_ci_{end}"] = xr.Variable(v.dims, array, words)
            if v.value.draws is not None:
                dims = (REPLICATE + name, *v.dims)  # there may be fewer than of others
                words = attrs | {"long_name": f"{v.long_name}, without each group", "tidy": 0}
                arrays[name + DRAWS] = xr.Variable(dims, v.value.draws, words)
                if (sizes := v.value.sizes) is not None:
                    there = [dim for dim, count in zip(dims, sizes.shape, strict=True) if count > 1]
                    words |= {"long_name": f"{v.long_name}: size, without each group", "units": "1"}
                    arrays[name + SIZES] = xr.Variable(there, sizes.squeeze(), words)
        else:
            arrays[name] = xr.Variable(v.dims, v.value, attrs)
    length = {dim: n for array in arrays.values() for dim, n in array.sizes.items()}
    used = {dim: list(values) for dim, values in (coords or {}).items() if dim in length}
    numbered = {dim: np.arange(n) for dim, n in length.items() if dim not in used}
    return xr.Dataset(arrays, {**numbered, **used})


def with_token_names(
    dataset: xr.Dataset, names: Callable[[Iterable[int]], tuple[str, ...]]
) -> xr.Dataset:
    """Adds coordinates `…_token` to every `…_token_id`: the tokens of the vocabulary.

    An id of -1 is no token; where `…_token_count` has several tokens in one place, their number
    stands there. Analyses know no vocabulary, so the names are added afterwards.
    """
    made: dict[str, tuple[Any, ...]] = {}
    for coordinate in [str(name) for name in dataset.coords if str(name).endswith("_token_id")]:
        ids, stem = dataset[coordinate], coordinate.removesuffix("_id")
        flat = ids.values.ravel()  # [place]
        there = flat >= 0
        text = np.full(flat.shape, "", object)
        text[there] = names(flat[there].tolist())
        if f"{stem}_count" in dataset.coords:
            counts = dataset[f"{stem}_count"].values.ravel()  # [place]
            text[counts > 1] = [f"… {count} tokens …" for count in counts[counts > 1].tolist()]
        made[stem] = ids.dims, text.astype(str).reshape(ids.shape)  # as `ids`
    return dataset.assign_coords(made)
