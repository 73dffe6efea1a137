"""Moves the attention of some heads at some queries from some keys to where they rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from headscope.core.accumulators import Bools, Ints
from headscope.core.head_names import Head
from headscope.model.attention import AttentionCall, visible

TINY = 1e-30


@dataclass(frozen=True)
class Move:
    """One row of a batch: what is moved in it.

    heads    in which heads
    queries  [query] at which places
    keys     [query, key] from which
    to       [query, key] to which it goes, evenly; None: to where the head rests
    whole    all weight of the queries is moved, not that on the keys alone
    drop     it goes nowhere: rows sum to less than 1
    instead  [head][query, dim] what the heads gather instead, whatever their attention
    """

    heads: tuple[Head, ...]
    queries: Ints
    keys: Bools
    to: Bools | None = None
    whole: bool = False
    drop: bool = False
    instead: Sequence[torch.Tensor] = ()

    def at(self, number: int) -> Move:
        """The same at one of its queries."""
        one = slice(number, number + 1)
        return replace(
            self,
            queries=self.queries[one],
            keys=self.keys[one],
            to=None if self.to is None else self.to[one],
            instead=[mixture[one] for mixture in self.instead],
        )


class Moving:
    """An intervention: row n + 1 of a batch of one input has the n-th move; row 0 has none.

    rests  [layer, head] number of the rest of a head
    maps   [rest, query, key] rows of the rests in the input
    """

    def __init__(self, rests: Ints, maps: torch.Tensor) -> None:
        self.rests, self.maps = rests, maps
        self.moves: Sequence[Move] = ()
        self.first = 0
        self.changes: dict[int, dict[tuple[int, int], torch.Tensor]] = {}

    def use(self, moves: Sequence[Move], first: int = 0) -> None:
        """Make these moves from now on, in passes that run the tokens of the input from `first`."""
        self.moves, self.first, self.changes = moves, first, {}

    def __call__(self, call: AttentionCall) -> None:
        """Move what is to be moved in one layer."""
        there = [
            (row, head, move)
            for row, move in enumerate(self.moves, 1)
            for layer, head in move.heads
            if layer == call.layer and not move.instead
        ]
        if there:
            attention, seen = call.attention.clone(), visible(call.mask, call.attention)
            changes = self.changes.setdefault(call.layer, {})
            for row, head, move in there:
                at = move.queries - self.first
                before = attention[row, head, at].double()  # [query, key]
                after = self._moved(call.layer, head, move, before, seen[row % len(seen), 0, at])
                attention[row, head, at] = after.to(attention)
                changes[row, head] = after - before
            call.attention = attention
        self._put(call)

    def _put(self, call: AttentionCall) -> None:
        """Put in what heads gather instead."""
        there = [
            (row, head, move.queries - self.first, mixture)
            for row, move in enumerate(self.moves, 1)
            for (layer, head), mixture in zip(move.heads, move.instead, strict=False)
            if layer == call.layer
        ]
        if there:
            mixed = call.mix()  # [example, head, query, dim]
            for row, head, queries, mixture in there:
                mixed[row, head, queries] = mixture.to(mixed)
            call.mixed = mixed

    def _moved(
        self, layer: int, head: int, move: Move, before: torch.Tensor, seen: torch.Tensor
    ) -> torch.Tensor:
        size, device = before.shape[-1], before.device
        keys = _padded(move.keys, size).to(device)
        left = torch.zeros_like(before) if move.whole else before * ~keys
        if move.drop:
            return left
        free = seen & ~keys  # [query, key]
        if move.to is None:
            rest = self.maps[int(self.rests[layer, head])][move.queries]
        else:
            rest = torch.from_numpy(move.to)
        rest = _padded(rest, size).to(before) * free
        total = rest.sum(-1, keepdim=True)
        rest = torch.where(total > 0, rest / total.clamp_min(TINY), free / free.sum(-1, True))
        moved = left + (before - left).sum(-1, keepdim=True) * rest
        return torch.where(free.any(-1, keepdim=True), moved, before)


def _padded(rows: Any, size: int) -> torch.Tensor:
    """[query, key] rows with as many keys as there are: padding included, or hidden ones cut."""
    rows = torch.as_tensor(rows)
    return nn.functional.pad(rows, (0, size - rows.shape[-1]))
