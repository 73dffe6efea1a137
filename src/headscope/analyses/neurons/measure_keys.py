"""The keys that each query sees, and the mean key of those of one kind.

Every family here lets a query see keys that stand together: all of the input, those up to itself,
or a window around itself. Sums over them are differences of running sums, at a cost that grows
with the length of the input and not with its square.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import torch

from headscope.errors import ModelError
from headscope.model.batch import Batch
from headscope.model.layer import LayerView

OWN = "own_segment"  # words of the own sentence, told from those of another
CONTRASTS = ("sep", "same_segment", "next", OWN)


@dataclass(frozen=True)
class KeysSeen:
    """A query sees keys first … after - 1 [example, query or 1]; one column: all see the same."""

    first: torch.Tensor
    after: torch.Tensor
    batch: Batch

    @classmethod
    def of(cls, layer: LayerView, batch: Batch) -> Self:
        """The keys of one layer; raises ModelError where the keys that a query sees have gaps."""
        lengths = batch.mask.sum(-1, keepdim=True)  # [example, 1]
        whole = cls(torch.zeros_like(lengths), lengths, batch)
        if layer.seen is None:
            return whole
        name = type(layer.site.attention).__name__
        if layer.seen.shape[1] > 1:
            raise ModelError(
                f"in {name} heads of a layer see different keys; means over the keys seen are not "
                "available for this family"
            )
        seen = layer.seen[:, 0] & batch.mask[:, None]  # [example, query, key]
        count = seen.sum(-1)  # [example, query]
        if bool(((count == lengths) | ~batch.mask).all()):
            return whole
        first = seen.int().argmax(-1)  # [example, query]
        last = seen.shape[-1] - 1 - seen.flip(-1).int().argmax(-1)
        if bool(((last - first + 1 != count) & (count > 0) & batch.mask).any()):
            raise ModelError(
                f"{name} lets a query see keys with gaps between them; means over the keys seen "
                "are not available for this family"
            )
        return cls(first, first + count, batch)

    @property
    def count(self) -> torch.Tensor:
        """[example, query or 1] how many keys a query sees."""
        return self.after - self.first

    def total(self, values: torch.Tensor) -> torch.Tensor:
        """[example, query or 1, …] the sum over the keys seen; values [example, key, …]."""
        if self.first.shape[1] == 1:
            return torch.einsum("bk,bk...->b...", self.batch.mask.to(values), values)[:, None]
        running = values.cumsum(1)
        running = torch.cat([torch.zeros_like(running[:, :1]), running], 1)
        row = torch.arange(len(values), device=values.device)[:, None]
        return running[row, self.after] - running[row, self.first]

    def less_mean(self, keys: torch.Tensor) -> torch.Tensor:
        """[example, key, …] the keys less the mean of all real ones; 0 at padding.

        Nothing here changes with what all keys share, and small sums have more digits.
        """
        weights = self.batch.mask.to(keys)
        mean = torch.einsum("bk,bk...->b...", weights, keys) / _like(weights.sum(1), keys[:, 0])
        return (keys - mean[:, None]) * _like(weights, keys)

    def mean(self, values: torch.Tensor) -> torch.Tensor:
        """[example, query or 1, …] the mean over the keys seen; values [example, key, …]."""
        return _ratio(self.total(values), self.count)

    def contrasts(self, keys: torch.Tensor) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
        """For each of CONTRASTS that the batch has: its number, the difference, and for whom.

        keys        [example, key, …] from `less_mean`
        difference  [example, query or 1, …] mean key of the kind less mean key of the rest; for OWN
                    the rest are the words of other sentences
        there       [example, query] bool: real queries that see keys of the kind, and others
        """
        for at, (of_kind, count, total, seen) in enumerate(self._kinds(keys)):
            rest = seen - count
            there = (count > 0) & (rest > 0) & self.batch.mask  # [example, query]
            if bool(there.any()):
                yield at, _ratio(of_kind, count) - _ratio(total - of_kind, rest), there

    def _kinds(self, keys: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
        """For each of CONTRASTS: sum and number of its keys that a query sees, and of all to choose
        from.
        """
        batch = self.batch
        every = self.total(keys), self.count
        yield (*self._of(keys, batch.is_sep), *every)
        yield (*self._own(keys, batch.segment_ids.masked_fill(~batch.mask, -1)), *every)
        follows = torch.arange(1, keys.shape[1] + 1, device=keys.device)  # [query]
        seen = (follows >= self.first) & (follows < self.after)
        yield (keys.roll(-1, 1) * _like(seen, keys), seen.long(), *every)
        runs = batch.word_runs.long()
        yield (*self._own(keys, runs - 1), *self._of(keys, runs > 0))

    def _own(self, keys: torch.Tensor, group: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Sum and number of the keys seen of the query's own group; none where there is but one.

        group  [example, token] its number; -1 for none
        """
        sums, counts = torch.zeros_like(keys[:, :1]), torch.zeros_like(group)
        present = torch.unique(group[group >= 0])
        for one in present if len(present) > 1 else ():
            mine = group == one  # [example, token]
            some, count = self._of(keys, mine)
            sums, counts = sums + some * _like(mine, some), counts + count * mine
        return sums, counts

    def _of(self, keys: torch.Tensor, kind: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Sum and number of the keys seen that are of a kind; kind [example, key] bool."""
        if not bool(kind.any()):
            return torch.zeros_like(keys[:, :1]), torch.zeros_like(self.count)
        return self.total(keys * _like(kind, keys)), self.total(kind.float()).round().long()


def _ratio(total: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
    """total / count, 0 where nothing was counted (those are not used)."""
    return total / _like(count.clamp_min(1), total)


def _like(flags: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Numbers per example and token, ready to be multiplied with values that have more axes."""
    return flags.to(values).reshape(*flags.shape, *[1] * (values.ndim - flags.ndim))
