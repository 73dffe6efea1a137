"""The base class of analyses, and what an analysis may read.

An analysis sees every layer of every batch once (`observe`), may end each batch (`finish`), and
turns its sums into labelled results at the end (`result`). Its state is the accumulators that it
holds as attributes; saving, loading and merging are inherited. A whole one stands in
docs/your-own-analysis.md; `run.check_analysis` says whether one keeps the contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from headscope.claims import question
from headscope.core.accumulators import REPLICATES, Accumulator, Float64, Sums, ratio
from headscope.core.intervals import (
    ANY,
    POSITIVE,
    SHARE,
    Bounds,
    Estimate,
    estimate,
    estimate_share,
)
from headscope.corpus.document import Example
from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    import xarray as xr

    from headscope.model.batch import Batch
    from headscope.model.instrument import LayerView
    from headscope.model.lags import Diagonals
    from headscope.model.model import Model

# Measures of a linguistic analysis, and what each needs beside attention (Kobayashi et al. 2020).
MEASURES = {"attention": frozenset[str](), "weighted_norm": frozenset({"values", "projection"})}
LEADING = 512  # ours: tokens of a long input that are shown to what needs whole maps
_Observe = Callable[["Analysis", "LayerView", "Batch"], None]


@dataclass(frozen=True)
class Scope:
    """What an analysis knows before it sees the first batch.

    layers, heads   size of the model, or of the stack that is measured
    documents       documents in the corpus; fewer than two give no intervals
    special_tokens  special tokens of the tokenizer by category: {"cls": "[CLS]"}
    frequency_rank  [vocabulary] rank of each token id, 1 = most frequent
    relations       labels of the corpus's trees, the most frequent first
    stored_inputs        a few inputs whose maps are shown
    stored_tokens [input] their tokens, as written in the vocabulary
    replicates      groups of documents, each of which is left out in turn
    listed          the places of the documents by their ids, where they are no more than groups
    seed            of every random choice
    neurons         size of a head's query vector; 0 where queries cannot be read
    sinks           rows of attention leave a weight for no token
    first_token     no special token opens the inputs of a decoder: its first token may be a sink
    control         a network without training is read: only what claims compare is wanted
    """

    layers: int
    heads: int
    documents: int = 0
    special_tokens: Mapping[str, str] = field(default_factory=dict)
    frequency_rank: np.ndarray[Any, np.dtype[np.int64]] | None = None
    relations: tuple[str, ...] = ()
    stored_inputs: tuple[Example, ...] = ()
    stored_tokens: tuple[tuple[str, ...], ...] = ()
    replicates: int = REPLICATES
    listed: Mapping[str, int] = field(default_factory=dict)
    seed: int = 0
    neurons: int = 0
    sinks: bool = False
    first_token: bool = False
    control: bool = False

    @property
    def leading(self) -> Scope:
        """The scope of an analysis that reads only the first LEADING tokens of every input."""
        inputs = tuple(example.leading(LEADING) for example in self.stored_inputs)
        tokens = tuple(names[:LEADING] for names in self.stored_tokens)
        return replace(self, stored_inputs=inputs, stored_tokens=tokens)

    def sums(self, *cell: int, replicates: int | None = None) -> Sums:
        """A new accumulator of this shape, with the run's groups of documents (or fewer)."""
        kept = self.replicates if replicates is None else min(replicates, self.replicates)
        return Sums.zeros(*cell, replicates=kept)


class AnalysisPart:
    """A part of an analysis with its own accumulators, which are saved with the analysis."""


def _where_the_layer_is(observe: _Observe) -> _Observe:
    """Move the batch to the layer's device before `observe`: a model may span several."""

    @wraps(observe)
    def shown(self: Analysis, layer: LayerView, batch: Batch) -> None:
        seen = layer.attention if layer.whole else layer.long  # type: ignore[attr-defined]
        observe(self, layer, batch.on(seen.device))

    return shown


class Analysis:
    """A measurement of every head.

    What a question says of its measure is not said again: `class Entropy(Analysis, question=…)`.

    name     the group's name in the results, and the word on the command line
    needs    what the instrument and the corpus must provide: a subset of `known_analyses.NEEDS`
    summary  one line for `headscope analyses`
    source   the paper and section
    costly   whether untrained networks compute it on some of their inputs alone
    every_reading  whether it is shown inputs of every kind, as it makes no mean of them
    whole_maps  whether it looks at whole maps; of inputs that are read without, it is then shown
                the first LEADING tokens alone. False: it asks a layer for sums, rows and pairs
    diagonals   the cuts, and how many first keys, that it asks `LayerView.lags` for: so that one
                reading of a long input gives them with all else
    sampled     whether it is a `SampledAnalysis`
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset({"attention"})
    summary: ClassVar[str] = ""
    source: ClassVar[str] = ""
    costly: ClassVar[bool] = False
    every_reading: ClassVar[bool] = False
    whole_maps: ClassVar[bool] = True
    diagonals: Diagonals | None = None
    sampled: ClassVar[bool] = False

    _question: ClassVar[question.Question | None] = None

    def __init_subclass__(cls, *, question: question.Question | None = None) -> None:
        if "observe" in vars(cls):
            cls.observe = _where_the_layer_is(cls.observe)  # type: ignore[method-assign, assignment]
        if question is not None:
            cls._question, cls.name = question, question.name
            cls.needs, cls.summary = question.needs or cls.needs, question.summary
            cls.source = question.source

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def checked(self, **options: Any) -> dict[str, Any]:
        """The options; raises ValueError unless the question allows each value."""
        assert self._question is not None
        for name, value in options.items():
            self._question.options[name].check(name, value)
        return options

    @classmethod
    def needs_with(cls, options: Mapping[str, Any]) -> frozenset[str]:
        """The needs under these options: a measure may need more than attention."""
        return cls.needs | MEASURES.get(options.get("measure", "attention"), frozenset())

    def observe(self, layer: LayerView, batch: Batch) -> None:
        """Read one layer of one batch and add to the sums; called in the order of the layers."""
        raise NotImplementedError

    def finish(self, batch: Batch) -> None:
        """End a batch, after its last layer."""

    def result(self) -> xr.Dataset:
        """The labelled results of all batches."""
        raise NotImplementedError

    def sums(self, *cell: int, replicates: int | None = None) -> Sums:
        """A new accumulator of this shape, with the run's groups of documents or fewer."""
        return self.scope.sums(*cell, replicates=replicates)

    def mean(self, total: Sums, count: Sums, *, bounds: Bounds = ANY) -> Estimate:
        """total / count with its interval; NaN where nothing was counted.

        The cells of `count` are the trailing cells of `total`; bounds: see `intervals.estimate`.
        """
        return estimate(ratio_of(total, count), bounds=bounds, sizes=sizes_of(total, count))

    def share(self, total: Sums, count: Sums) -> Estimate:
        """As `mean`, for a share: `count` questions, each answered right or wrong."""
        return estimate_share(ratio_of(total, count), sizes_of(total, count))

    @property
    def accumulators(self) -> dict[str, Accumulator]:
        """The accumulators among the attributes, and in parts, by name: the whole state."""
        return _accumulators(self)

    def state(self) -> dict[str, np.ndarray[Any, Any]]:
        """The whole state as named arrays."""
        return {name: accumulator.array for name, accumulator in self.accumulators.items()}

    def load(self, state: Mapping[str, np.ndarray[Any, Any]]) -> None:
        """Replace the state by a saved one; raises HeadscopeError for a state of another run."""
        if unknown := sorted(set(state) - set(self.accumulators)):
            raise HeadscopeError(
                f"{self.name} has no sums {', '.join(unknown)}; the saved state belongs to "
                "another run"
            )
        for name, accumulator in self.accumulators.items():
            array = accumulator.array
            if name not in state or state[name].shape != array.shape:
                shape = state[name].shape if name in state else "nothing"
                raise HeadscopeError(
                    f"{self.name}.{name}: found {shape}, wanted {array.shape}; the saved state "
                    "belongs to another run"
                )
            array[...] = state[name]

    def reset(self) -> None:
        """Set all sums to 0, in the same memory."""
        for accumulator in self.accumulators.values():
            accumulator.array[...] = accumulator.nothing

    def merge(self, other: Analysis) -> None:
        """Add the sums of another instance with the same scope and options."""
        theirs = other.accumulators
        for name, accumulator in self.accumulators.items():
            accumulator.merge(theirs[name])


class SampledAnalysis(Analysis):
    """An analysis that reads a sample of the inputs in several passes, after all inputs were read.

    What it finds in one pass decides what it looks for in the next. So it has no sums to merge: the
    process that finishes a run computes it, as it does the control.

    made  by input, what is made of inputs alone: networks of a control that read the same share it
    """

    sampled: ClassVar[bool] = True

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.made: dict[str, Any] = {}

    def passes(self, model: Model, examples: Sequence[Example]) -> Iterator[Sequence[Example]]:
        """Yield the inputs of each pass; it is resumed when `observe` has seen them."""
        raise NotImplementedError


def _accumulators(holder: Analysis | AnalysisPart, prefix: str = "") -> dict[str, Accumulator]:
    by_name: dict[str, Accumulator] = {}
    for name, value in vars(holder).items():
        if isinstance(value, Accumulator):
            by_name[prefix + name] = value
        elif isinstance(value, AnalysisPart):
            by_name |= _accumulators(value, f"{prefix}{name}.")
    return by_name


def bounds_of(measure: str) -> Bounds:
    """The range of a measure: 0 to 1 for attention, from 0 for norms."""
    return SHARE if measure == "attention" else POSITIVE


def ratio_of(total: Sums, count: Sums) -> Float64:
    """[replicate + 1, *cell of total] total / count; NaN where nothing was counted."""
    return ratio(total.sums, sizes_of(total, count))


def sizes_of(total: Sums, count: Sums) -> Float64:
    """[replicate + 1, 1, …, *cell of count] the counts, with as many axes as `total`."""
    draws = count.folded(len(total.by_group)).sums
    more = [1] * (total.by_group.ndim - draws.ndim)
    return draws.reshape(len(draws), *more, *draws.shape[1:])
