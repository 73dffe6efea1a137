"""A batch of examples as padded tensors, with token categories and attention between words.

A batch is a few examples of similar length, padded to the longest. Padding is weight 0 in every
reduction: `mask` for keys and queries alike. Attention to a word is the sum over its tokens;
attention from a word is the mean over its tokens (Clark et al. 2019, §4.1). Special tokens are
words of their own, so every row still sums to 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from headscope.core.accumulators import Float64, Ints, groups_of
from headscope.corpus.document import Example
from headscope.corpus.equal_documents import unit_names
from headscope.corpus.packing import padded_length
from headscope.errors import InputError
from headscope.model import kernels_of_words
from headscope.model.vocabulary import Vocabulary

CATEGORIES = ("cls", "sep", "punctuation", "other")
FIRST = "first"  # one more, where decoders have no special token to rest on
_TENSORS = ("input_ids", "segment_ids", "mask")


@dataclass(frozen=True)
class Batch:
    """Examples of similar length as padded tensors, and what each token is.

    input_ids     [example, token] int64
    segment_ids   [example, token] int64
    mask          [example, token] bool, True for real tokens
    groups        [example] the group of its document, see `accumulators.groups_of`
    examples      the examples themselves: words, annotations, ids
    units         [example] names of what groups are made of, see `equal_documents.unit_names`
    """

    input_ids: torch.Tensor
    segment_ids: torch.Tensor
    mask: torch.Tensor
    groups: Ints
    examples: tuple[Example, ...]
    vocabulary: Vocabulary
    units: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """input_ids, mask and segment_ids, as `forward` takes them."""
        return self.input_ids, self.mask, self.segment_ids

    @classmethod
    def of(
        cls,
        examples: Sequence[Example],
        vocabulary: Vocabulary,
        *,
        replicates: int,
        seed: int = 0,
        listed: Mapping[str, int] | None = None,
        device: torch.device | str = "cpu",
        limit: int | None = None,
    ) -> Batch:
        """Pad examples to the longest of them; for the groups of documents see `groups_of`.

        limit   tokens that the model takes at most; None: any number
        raises  InputError for an example of more
        """
        own = max(len(e) for e in examples)
        if limit is not None and own > limit:
            raise InputError(
                f"found an input of {own} tokens, and the model takes {limit}; wanted shorter ones"
            )
        longest = padded_length(own, limit)
        ids = np.full((len(examples), longest), vocabulary.pad, np.int64)
        segments, mask = np.zeros_like(ids), np.zeros(ids.shape, bool)
        for row, example in enumerate(examples):
            n = len(example)
            ids[row, :n], segments[row, :n] = example.input_ids, example.segment_ids
            mask[row, :n] = True
        ids_t, segments_t, mask_t = (torch.from_numpy(a).to(device) for a in (ids, segments, mask))
        names = unit_names(examples, listed or {})
        groups = groups_of(names, replicates=replicates, seed=seed, listed=listed)
        return cls(ids_t, segments_t, mask_t, groups, tuple(examples), vocabulary, tuple(names))

    def leading(self, tokens: int) -> Batch:
        """The first tokens of every example; as long as `LongLayerView.leading` of as many."""
        cut = [example.leading(tokens) for example in self.examples]
        ids, segments, mask = (t[:, :tokens] for t in (self.input_ids, self.segment_ids, self.mask))
        return Batch(ids, segments, mask, self.groups, tuple(cut), self.vocabulary, self.units)

    def on(self, device: torch.device) -> Batch:
        """The same batch with its tensors on a device; itself where they are there already."""
        if device == self.mask.device:
            return self
        if device not in self._elsewhere:
            tensors = {name: getattr(self, name).to(device) for name in _TENSORS}
            self._elsewhere[device] = replace(self, **tensors)
        return self._elsewhere[device]

    @cached_property
    def _elsewhere(self) -> dict[torch.device, Batch]:
        return {}

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
        opening = self._is(self.vocabulary.cls)
        if self.vocabulary.cls == self.vocabulary.sep:
            opening[:, 1:] = False
        return opening

    @cached_property
    def is_sep(self) -> torch.Tensor:
        """[example, token] bool: separating or closing special tokens."""
        return self._is(self.vocabulary.sep) & ~self.is_cls

    @cached_property
    def is_punctuation(self) -> torch.Tensor:
        """[example, token] bool: exactly "." or ","."""
        return self._is(*self.vocabulary.punctuation)

    @cached_property
    def word_runs(self) -> torch.Tensor:
        """[example, token] int32: the number of its run of words, from 1; 0 for what is no word.

        Words are tokens that the tokenizer did not add; those that it did stand between runs, such
        as the sentences of a pair.
        """
        special = np.ones(self.mask.shape, bool)
        for row, example in enumerate(self.examples):
            special[row, : len(example)] = example.special
        word = ~special
        starts = word & np.pad(special, ((0, 0), (1, 0)), constant_values=True)[:, :-1]
        number = (np.cumsum(starts, 1) * word).astype(np.int32)
        return torch.from_numpy(number).to(self.mask.device)

    @cached_property
    def word_ids(self) -> torch.Tensor:
        """[example, token] int32: the id of a word; -1 for what is no word."""
        return torch.where(self.word_runs > 0, self.input_ids, -1).int()

    def word_kinds(self, seen: torch.Tensor | None = None) -> torch.Tensor:
        """[example, query, key, kind] bool: which keys are words of the own run, of another, the
        same elsewhere; none is where the query is no word.

        seen  [example, query, key] bool, of which keys alone
        """
        run, ids = self.word_runs, self.word_ids
        pair = (run > 0)[:, None] & (run > 0)[:, :, None]
        pair = pair if seen is None else pair & seen
        mine = run[:, None] == run[:, :, None]
        elsewhere = ~torch.eye(ids.shape[1], dtype=torch.bool, device=ids.device)
        alike = (ids[:, None] == ids[:, :, None]) & elsewhere
        return torch.stack([pair & mine, pair & ~mine, pair & alike], -1)

    @cached_property
    def needed_of_rows(self) -> set[str]:
        """What was asked of the rows of its maps so far, see `LayerView.row_sums`."""
        return set()

    @cached_property
    def categories(self) -> torch.Tensor:
        """[example, token, category] float32 0/1 in the order of CATEGORIES; padding is all 0."""
        named = torch.stack([self.is_cls, self.is_sep, self.is_punctuation], -1)
        other = self.mask & ~named.any(-1)
        return torch.cat([named, other[..., None]], -1).float()  # [example, token, category]

    @cached_property
    def categories_and_first(self) -> torch.Tensor:
        """As `categories`, with FIRST as the last: the first token, which is then in no other."""
        first = torch.zeros_like(self.categories[..., :1])
        first[:, 0] = 1
        return torch.cat([self.categories * (1 - first), first], -1)

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

    def _is(self, *ids: int | None) -> torch.Tensor:
        known = [token for token in ids if token is not None]
        wanted = torch.tensor(known, dtype=torch.int64, device=self.input_ids.device)
        return torch.isin(self.input_ids, wanted) & self.mask


def to_float64(tensor: torch.Tensor) -> Float64:
    """A tensor as a float64 array on the host."""
    return tensor.detach().cpu().double().numpy()


PIECES = ("mean", "first", "max")


@dataclass(frozen=True)
class Words:
    """The words of each input of a batch, in order of their tokens, special tokens among them.

    A word stands at a place (its row and column in word-level maps) and has a number (its index in
    the example's `words`). What is not here: words whose tokens are in another window or that the
    tokenizer gave no token. Inputs without annotated words have no places.

    count     [example] how many places there are
    of_token  [example, token] place of each token; -1 for padding
    number    [example, place] index into `words`; -1 for a special token and beyond `count`
    place     per example [word] the place of each of its words; -1 where it is not in this input
    """

    count: Ints
    of_token: Ints
    number: Ints
    place: tuple[Ints, ...]

    @classmethod
    def of(cls, examples: Sequence[Example], *, tokens: int) -> Words:
        """The words of examples, padded."""
        count = np.zeros(len(examples), np.int64)
        of_token = np.full((len(examples), tokens), -1, np.int64)
        numbers, places = [], []
        for row, example in enumerate(examples):
            number = np.empty(0, np.int64)
            if example.words is not None and example.word_index is not None:
                index = example.word_index
                starts = np.ones(len(index), bool)
                starts[1:] = (index[1:] != index[:-1]) | (index[1:] < 0)
                of_token[row, : len(index)] = np.cumsum(starts) - 1
                number = index[starts]  # [place]
            place = np.full(len(example.words or ()), -1, np.int64)
            there = np.flatnonzero(number >= 0)
            place[number[there]] = there
            count[row] = len(number)
            numbers.append(number)
            places.append(place)
        most = int(count.max(initial=0))
        number = np.full((len(examples), most), -1, np.int64)
        for row, indices in enumerate(numbers):
            number[row, : len(indices)] = indices
        return cls(count, of_token, number, tuple(places))

    @property
    def most(self) -> int:
        """The largest number of places in the batch."""
        return int(self.number.shape[1])

    @property
    def real(self) -> npt.NDArray[np.bool_]:
        """[example, place] whether a word stands there: no special token, not beyond `count`."""
        return self.number >= 0

    @cached_property
    def pieces(self) -> Ints:
        """[example, place] number of tokens at each place; 0 beyond `count`."""
        return np.stack([np.bincount(row[row >= 0], minlength=self.most) for row in self.of_token])

    def maps(
        self, attention: torch.Tensor, *, pieces: str = "mean", of: Ints | None = None
    ) -> torch.Tensor:
        """Token-level maps as word-level ones.

        attention  [example, head, query, key]  rows of padding are not looked at
        pieces     attention from a word of several tokens: their "mean", that of the "first", or
                   their "max", rescaled to the mean of their row sums
        of         [example, row] the places whose rows are wanted, with -1 behind the last; None:
                   all
        returns    [example, head, place, place], or [example, head, row, place]; 0 beyond `count`
                   and where -1 stands
        """
        compiled = attention.device.type == "cpu" and attention.dtype == torch.float32
        row = np.arange(len(self.count))[:, None]
        if pieces == "max" or not compiled:
            whole = self._torch_maps(attention, pieces)
            if of is None:
                return whole
            there = torch.from_numpy(of >= 0).to(whole)[:, None, :, None]
            return whole[row, :, np.maximum(of, 0)].transpose(1, 2) * there
        end = np.cumsum(self.pieces, 1)
        start = end - self.pieces
        rows = np.stack([start, start + 1 if pieces == "first" else end], -1)  # [example, place, 2]
        count = self.count
        if of is not None:
            rows, count = rows[row, np.maximum(of, 0)], (of >= 0).sum(1)  # [example, row, 2]
        out = np.zeros((*attention.shape[:2], rows.shape[1], self.most), np.float32)
        kernels_of_words.word_maps(attention.contiguous().numpy(), self.of_token, rows, count, out)
        return torch.from_numpy(out)

    def _torch_maps(self, attention: torch.Tensor, pieces: str) -> torch.Tensor:
        device, dtype = attention.device, attention.dtype
        of_token = torch.from_numpy(self.of_token).to(device)
        member = (of_token[..., None] == torch.arange(self.most, device=device)).to(dtype)
        to_words = attention @ member[:, None]  # [example, head, query, place]
        number = torch.from_numpy(self.pieces).to(device, dtype).clamp_min(1)  # [example, place]
        rows = (member / number[:, None]).transpose(1, 2)[:, None]  # [example, 1, place, query]
        mean = rows @ to_words  # [example, head, place, place]
        if pieces == "mean":
            return mean
        first = member * (member.cumsum(1) == 1)  # [example, query, place]
        if pieces == "first":
            return first.transpose(1, 2)[:, None] @ to_words
        there = torch.where(of_token < 0, self.most, of_token)[:, None, :, None]
        out = to_words.new_zeros(*to_words.shape[:2], self.most + 1, self.most)
        most = out.scatter_reduce(2, there.expand_as(to_words), to_words, "amax")[:, :, :-1]
        total = most.sum(-1, keepdim=True)
        scale = mean.sum(-1, keepdim=True) / torch.where(total > 0, total, 1)
        return most * scale  # [example, head, place, place]


def largest(maps: torch.Tensor, words: Words) -> tuple[Ints, Ints]:
    """To and from which other word does each word's largest weight go?

    maps     [example, head, place, place] word-level; special tokens and the word itself are passed
             over, as in Clark et al. (2019), §4.2
    returns  to, from_, both [example, head, place]: the place that the word attends to most, and
             the place that attends to it most; the first of equals; -1 where no weight is above 0,
             and for special tokens
    """
    to = np.full(maps.shape[:3], -1, np.int64)
    from_ = np.full(maps.shape[:3], -1, np.int64)
    if maps.device.type == "cpu" and maps.dtype == torch.float32:
        kernels_of_words.largest(maps.contiguous().numpy(), words.real, words.count, to, from_)
        return to, from_
    real = torch.from_numpy(words.real).to(maps.device)
    usable = real[:, :, None] & real[:, None, :]
    usable &= ~torch.eye(words.most, dtype=torch.bool, device=maps.device)
    left = maps * usable[:, None]
    for out, axis in ((to, 3), (from_, 2)):
        weight = left.amax(axis)
        # torch does not promise the first of equals
        first = (left == weight.unsqueeze(axis)).to(torch.uint8).cpu().numpy().argmax(axis)
        out[...] = np.where(weight.cpu().numpy() > 0, first, -1)
    return to, from_
