"""A batch of examples as padded tensors, and what each token is.

A batch is a few examples of similar length, padded to the longest. Padding is weight 0 in every
reduction: `mask` for keys and queries alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from headscope.core.accumulators import Float64, bootstrap_weights
from headscope.corpus.document import Example
from headscope.corpus.packing import padded_length
from headscope.model.words import Words

CATEGORIES = ("cls", "sep", "punctuation", "other")
PUNCTUATION = (".", ",")  # Clark et al. (2019) and Kobayashi et al. (2020) count exactly these


@dataclass(frozen=True)
class Vocabulary:
    """Which token ids count as what.

    cls, sep      id of the opening and of the separating special token; None where there is none
    punctuation   ids of the tokens that are exactly "." or ","
    pad           id to fill with (any: it is masked)
    """

    cls: int | None
    sep: int | None
    punctuation: tuple[int, ...]
    pad: int = 0

    @property
    def present(self) -> tuple[str, ...]:
        """The categories that can occur with this tokenizer."""
        absent = {"cls": self.cls is None, "sep": self.sep is None}
        absent["punctuation"] = not self.punctuation
        return tuple(name for name in CATEGORIES if not absent.get(name, False))


@dataclass(frozen=True)
class Batch:
    """Examples of similar length as padded tensors, and what each token is.

    input_ids     [example, token] int64
    segment_ids   [example, token] int64
    mask          [example, token] bool, True for real tokens
    bootstrap     [example, replicate + 1] float64, see `accumulate.bootstrap_weights`
    examples      the examples themselves: words, annotations, ids
    """

    input_ids: torch.Tensor
    segment_ids: torch.Tensor
    mask: torch.Tensor
    bootstrap: Float64
    examples: tuple[Example, ...]
    vocabulary: Vocabulary

    @classmethod
    def of(
        cls,
        examples: Sequence[Example],
        vocabulary: Vocabulary,
        *,
        replicates: int,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> Batch:
        """Pad examples to the longest of them and draw their bootstrap weights."""
        longest = padded_length(max(len(e) for e in examples))
        ids = np.full((len(examples), longest), vocabulary.pad, np.int64)
        segments, mask = np.zeros_like(ids), np.zeros(ids.shape, bool)
        for row, example in enumerate(examples):
            n = len(example)
            ids[row, :n], segments[row, :n] = example.input_ids, example.segment_ids
            mask[row, :n] = True
        ids_t, segments_t, mask_t = (torch.from_numpy(a).to(device) for a in (ids, segments, mask))
        weights = bootstrap_weights(
            [e.document for e in examples], replicates=replicates, seed=seed
        )
        return cls(ids_t, segments_t, mask_t, weights, tuple(examples), vocabulary)

    @cached_property
    def lengths(self) -> npt.NDArray[np.int64]:
        """[example] number of real tokens."""
        return np.array([len(e) for e in self.examples], np.int64)

    @cached_property
    def padded(self) -> bool:
        """Whether any example is shorter than the batch."""
        return bool((self.lengths < self.input_ids.shape[1]).any())

    @cached_property
    def is_cls(self) -> torch.Tensor:
        """[example, token] bool: the opening special token.

        Where one token both opens and closes (OPT's </s>), only the first of an example opens.
        """
        opening = self._is(() if self.vocabulary.cls is None else (self.vocabulary.cls,))
        if self.vocabulary.cls == self.vocabulary.sep:
            opening[:, 1:] = False
        return opening

    @cached_property
    def is_sep(self) -> torch.Tensor:
        """[example, token] bool: separating or closing special tokens."""
        return (
            self._is(() if self.vocabulary.sep is None else (self.vocabulary.sep,)) & ~self.is_cls
        )

    @cached_property
    def is_punctuation(self) -> torch.Tensor:
        """[example, token] bool: exactly "." or ","."""
        return self._is(self.vocabulary.punctuation)

    @cached_property
    def categories(self) -> torch.Tensor:
        """[example, token, category] float32 0/1 in the order of CATEGORIES; padding is all 0."""
        named = torch.stack([self.is_cls, self.is_sep, self.is_punctuation], -1)
        other = self.mask & ~named.any(-1)
        return torch.cat([named, other[..., None]], -1).float()  # [example, token, category]

    @cached_property
    def words(self) -> Words:
        """The annotated words of each input; none in inputs that are plain text."""
        return Words.of(self.examples, tokens=self.input_ids.shape[1])

    @cached_property
    def query_classes(self) -> torch.Tensor:
        """[example, class, token] float32 0/1: queries that are not / that are a separator."""
        return torch.stack([self.mask & ~self.is_sep, self.is_sep], 1).float()

    def mean_over_queries(self, values: torch.Tensor) -> Float64:
        """Mean over an example's real queries: [example, …, query] -> [example, …] float64."""
        weights = self.mask.to(values.dtype) / self.mask.sum(-1, keepdim=True)
        shape = (len(weights), *[1] * (values.ndim - 2), weights.shape[-1])
        return to_float64((values * weights.view(shape)).sum(-1))  # [example, …]

    def _is(self, ids: tuple[int, ...]) -> torch.Tensor:
        wanted = torch.tensor(ids, dtype=torch.int64, device=self.input_ids.device)
        return torch.isin(self.input_ids, wanted) & self.mask


def to_float64(tensor: torch.Tensor) -> Float64:
    """A tensor as a float64 array on the host."""
    return tensor.detach().cpu().double().numpy()
