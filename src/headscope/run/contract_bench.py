"""A test bench for analyses: a tiny random BERT, seven short examples, and comparisons of results.

`check_analysis` uses it to run an analysis in any batches and to say in a sentence where two
results differ.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any, cast

import numpy as np
import torch
import xarray as xr
from transformers import BertConfig, BertModel

from headscope.corpus.contents import Annotations
from headscope.corpus.document import Example, Frame, FrameElement, Mention, Word
from headscope.model.batch import Batch
from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView
from headscope.model.vocabulary import Vocabulary
from headscope.run.analysis import Analysis, Scope

TOLERANCE = 1e-5  # float32 rounds differently in a batch of another shape
LAYERS, HEADS, WIDTH, TOKENS = 2, 3, 24, 40
CLS, SEP, STOP, COMMA = 2, 3, 4, 5
VOCABULARY = Vocabulary(cls=CLS, sep=SEP, punctuation=(STOP, COMMA))

State = dict[str, np.ndarray[Any, Any]]


class Bench:
    """Runs one analysis with its options on the tiny model.

    kind      the class that is tested
    options   its keyword options
    examples  seven short ones of five documents; one has a single token, one has two
    """

    def __init__(self, kind: type[Analysis], options: Mapping[str, Any]) -> None:
        self.kind, self.options = kind, dict(options)
        self.name = getattr(kind, "name", kind.__qualname__)
        self.examples = tiny_examples()
        self._measured: dict[int, xr.Dataset] = {}
        listed = {name: place for place, name in enumerate("abcde")}
        self.scope = Scope(
            LAYERS,
            HEADS,
            documents=len(listed),
            listed=listed,
            replicates=len(listed),
            special_tokens={"cls": "[CLS]", "sep": "[SEP]"},
            frequency_rank=np.random.default_rng(1).permutation(TOKENS) + 1,
            relations=Annotations.of(self.examples).labels,
            stored_inputs=tuple(e for e in self.examples if e.words)[:2],
            neurons=WIDTH // HEADS,
        )

    def fresh(self, **changes: Any) -> Analysis:
        """A new instance with empty sums; `changes` are fields of its scope."""
        with self.doing("making it"):
            return self.kind(replace(self.scope, **changes), **self.options)

    def run(self, examples: Sequence[Example], *, size: int, **how: Any) -> Analysis:
        """A new instance that has read the examples in batches of `size`; `how`: see `observe`."""
        analysis = self.fresh()
        for start in range(0, len(examples), size):
            self.observe(analysis, examples[start : start + size], **how)
        return analysis

    def observe(
        self,
        analysis: Analysis,
        examples: Sequence[Example],
        *,
        dtype: torch.dtype = torch.float32,
        refill: bool = False,
        whole: int | None = None,
    ) -> None:
        """Show one batch to the analysis; `refill` writes noise into the rows of padding.

        whole  batches of more tokens are read without whole maps
        """
        batch = self.batch(examples)
        views = tiny_views(batch, dtype=dtype, whole=whole)
        self.show(analysis, [refilled(v, batch) for v in views] if refill else views, batch)

    def show(self, analysis: Analysis, views: Sequence[LayerView], batch: Batch) -> None:
        """Show the layers of a batch in order."""
        lengths = ", ".join(str(n) for n in batch.lengths)
        with torch.no_grad(), self.doing(f"observing examples of {lengths} tokens"):
            for view in views:
                analysis.observe(view, batch)
            analysis.finish(batch)

    def batch(self, examples: Sequence[Example]) -> Batch:
        """The examples as one padded batch."""
        scope = self.scope
        return Batch.of(examples, VOCABULARY, replicates=scope.replicates, listed=scope.listed)

    def result(self, analysis: Analysis) -> xr.Dataset:
        """The result of the analysis; must be a Dataset."""
        with self.doing("result()"):
            result = analysis.result()
        kind = type(result).__name__
        self.claim(isinstance(result, xr.Dataset), f"result() gives {kind}, wanted xarray.Dataset")
        return result

    def measured(self, *, size: int = 3) -> xr.Dataset:
        """The result of all examples in batches of `size`, computed once."""
        if size not in self._measured:
            self._measured[size] = self.result(self.run(self.examples, size=size))
        return self._measured[size]

    def copy(self, analysis: Analysis) -> Analysis:
        """A new instance with the same state."""
        other = self.fresh()
        with self.doing("load()"):
            other.load(copied(analysis))
        return other

    def claim(self, holds: bool, otherwise: str) -> None:
        """Raise AssertionError unless `holds`, with the analysis's name and `otherwise`."""
        if not holds:
            raise AssertionError(f"{self.name}: {otherwise}")

    def claim_text(self, what: str, text: object) -> None:
        """Claim that this is a non-empty text."""
        self.claim(isinstance(text, str) and text != "", f"{what} {text!r}, wanted a text")

    @contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Turn exceptions and warnings into an AssertionError that names the operation."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                yield
        except Exception as error:
            kind = type(error).__name__
            raise AssertionError(f"{self.name}: {what} raised {kind}: {error}") from error

    def same_result(
        self, result: xr.Dataset, wanted: xr.Dataset, what: str, *, tolerance: float = TOLERANCE
    ) -> None:
        """Claim that two results are equal within a tolerance (absolute plus relative) or NaN."""
        self.claim(set(result) == set(wanted), f"{what} changes which variables there are")
        for name in wanted:
            alike = result[name].shape == wanted[name].shape
            self.claim(alike, f"{what} changes the shape of {name!r}")
            gap = _gap(result[name].values, wanted[name].values)
            self.claim(gap <= tolerance, f"{what} changes {name!r} {_by(gap, tolerance)}")

    def same_state(self, state: State, wanted: State, what: str, *, tolerance: float = 0.0) -> None:
        """Claim that two states are equal within a tolerance; 0 asks for equal bytes."""
        self.claim(set(state) == set(wanted), f"{what} changes which sums there are")
        for name, array in wanted.items():
            same = state[name].shape == array.shape and _bits_equal(state[name], array)
            gap = 0.0 if same else _gap(state[name], array)
            self.claim(
                same or 0 < tolerance >= gap, f"{what} changes {name!r} {_by(gap, tolerance)}"
            )


def copied(analysis: Analysis) -> State:
    """A copy of the state, which later batches do not change."""
    return {name: array.copy() for name, array in analysis.state().items()}


def _bits_equal(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    return np.array_equal(one.reshape(-1).view(np.uint8), other.reshape(-1).view(np.uint8))


def _by(gap: float, tolerance: float) -> str:
    return f"by {gap:.1e} (absolute plus relative); at most {tolerance:.0e} is allowed"


def _gap(array: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> float:
    """Largest |a - b| / (1 + |b|); infinite where shapes differ or only one of them is NaN."""
    if array.shape != wanted.shape:
        return np.inf
    if not np.issubdtype(wanted.dtype, np.number):
        return 0.0 if (array == wanted).all() else np.inf
    a, b = array.astype(np.float64), wanted.astype(np.float64)
    if (np.isnan(a) != np.isnan(b)).any():
        return np.inf
    there = ~np.isnan(b)
    return float((np.abs(a - b) / (1 + np.abs(b)))[there].max(initial=0.0))


@cache
def tiny_network(dtype: torch.dtype) -> BertModel:
    """A BERT with sharp attention and with biases and layer norms that are not trivial.

    Freshly initialised attention is almost uniform, which hides mistakes.
    """
    config = BertConfig(
        vocab_size=TOKENS,
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    network: Any = BertModel(config)
    generator = torch.Generator().manual_seed(0)
    for parameter in network.parameters():
        draw = torch.randn(parameter.shape, generator=generator)
        parameter.data = draw * 0.3 if parameter.ndim > 1 else parameter.data + draw * 0.2
    return cast(BertModel, network.to(dtype).eval())


def tiny_examples() -> list[Example]:
    """Seven examples of 12, 1, 9, 2, 12, 7 and 5 tokens; the one of 7 has no special tokens."""
    rng = np.random.default_rng(0)
    examples = []
    for index, length in enumerate((12, 1, 9, 2, 12, 7, 5)):
        ids = rng.integers(6, TOKENS, length)
        if length not in (1, 7):
            ids[0], ids[-1] = CLS, SEP
        if length > 8:
            ids[3], ids[5], ids[-2] = STOP, SEP, COMMA
        closes = ids == SEP
        segments = (np.cumsum(closes) - closes > 0).astype(np.int64)
        document = "aabbcde"[index]
        special = closes | (ids == CLS)
        example = Example(f"{document}{index}", document, ids, segments, special)
        examples.append(annotated(example) if length > 2 else example)
    return examples


def annotated(example: Example) -> Example:
    """The example with words (some of two tokens), a tree, tags, mentions and a frame."""
    content = np.flatnonzero(~example.special)
    word_index = np.full(len(example), -1, np.int64)
    # Words of two tokens and of one in turn; no word continues after a special token.
    starts = (np.arange(len(content)) % 3 != 1) | (np.diff(content, prepend=-1) > 1)
    word_index[content] = np.cumsum(starts) - 1
    count = int(word_index.max()) + 1
    words = tuple(
        Word(*_WORDS[at % len(_WORDS)][:3], head=_head(at, count), relation=_WORDS[at % 5][3])
        for at in range(count)
    )
    mentions = tuple(
        Mention("e1" if at % 2 else "e2", at, at, at, kind=_KINDS[at % 3]) for at in range(count)
    )
    element = FrameElement("Theme", count - 1, count - 1)
    frames = (Frame("Motion", 0, 0, (element,)),)
    return replace(example, word_index=word_index, words=words, mentions=mentions, frames=frames)


_WORDS = (
    ("dog", "NOUN", "NN", "nsubj"), ("barks", "VERB", "VBZ", "obj"),
    ("not", "PART", "RB", "nmod:poss"), ("it", "PRON", "PRP", "det"), (".", "PUNCT", ".", "punct"),
)  # fmt: skip
_KINDS = ("pronoun", "proper", "nominal")


def _head(at: int, count: int) -> int:
    root = min(1, count - 1)
    return -1 if at == root else at + 1 if at < root else at - 1


def tiny_views(batch: Batch, *, dtype: torch.dtype, whole: int | None = None) -> list[LayerView]:
    """The layers of the tiny model, run on a batch; equal batches are run once."""
    if whole is not None:
        return _run(batch, dtype, whole)
    tensors = (batch.input_ids, batch.mask, batch.segment_ids)
    key = (dtype, batch.input_ids.shape, *(tensor.numpy().tobytes() for tensor in tensors))
    if key not in _SEEN:
        _SEEN[key] = _run(batch, dtype, whole)
    return [
        _changed(view, {name: tensor.clone() for name, tensor in _tensors(view).items()})
        for view in _SEEN[key]
    ]


_SEEN = dict[tuple[Any, ...], list[LayerView]]()


def _run(batch: Batch, dtype: torch.dtype, whole: int | None) -> list[LayerView]:
    seen: list[LayerView] = []
    network = tiny_network(dtype)
    with torch.no_grad(), Instrument(network, observers=[seen.append], whole=whole):
        network(batch.input_ids, attention_mask=batch.mask.long(), token_type_ids=batch.segment_ids)
    return seen


def refilled(view: LayerView, batch: Batch) -> LayerView:
    """The layer with noise in the rows of padding, as other implementations may leave it."""
    noise = torch.Generator().manual_seed(view.index)
    changed: dict[str, torch.Tensor] = {}
    for name, tensor in _tensors(view).items():
        real = batch.mask.view(len(batch.mask), *[1] * (tensor.ndim - 3), -1, 1)
        other = torch.rand(tensor.shape, generator=noise, dtype=tensor.dtype)
        changed[name] = torch.where(real, tensor, other)
    return _changed(view, changed)


def _tensors(view: LayerView) -> dict[str, torch.Tensor]:
    """The layer's tensors, each [example, …, token, any]."""
    names = ("attention", "values", "queries", "keys", "residual", "output")
    return {name: getattr(view, name) for name in names}


def _changed(view: LayerView, tensors: dict[str, Any]) -> LayerView:
    return replace(view, _row_sums={}, _word_maps={}, **tensors)
