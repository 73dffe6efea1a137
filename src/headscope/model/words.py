"""Sum attention between tokens up to attention between words.

Attention to a word is the sum over its tokens; attention from a word is the mean over its tokens
(Clark et al. 2019, §4.1). Special tokens are words of their own, so every row still sums to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from headscope.corpus.document import Example
from headscope.model import kernels

PIECES = ("mean", "first", "max")
Ints = npt.NDArray[np.int64]


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
        """The words of examples padded to so many tokens."""
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
        kernels.word_maps(attention.contiguous().numpy(), self.of_token, rows, count, out)
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
        kernels.largest(maps.contiguous().numpy(), words.real, words.count, to, from_)
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
