"""What one pass over the inputs that choose says of every head, beside its rules: where it looks by
position, and how far its rules are off in what it adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from headscope.analyses.explained.prediction import TINY
from headscope.core.accumulators import Float64, ratio
from headscope.core.progress import Advance
from headscope.corpus.document import Example
from headscope.corpus.packing import batches
from headscope.experiments.replay.replacements import BatchStandIns, StandIns
from headscope.experiments.replay.settings import RULES
from headscope.model.attention import visible
from headscope.model.batch import Batch, to_float64
from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView
from headscope.model.model import forward
from headscope.run.sampled_analyses import BATCH_TOKENS


class LookedAt:
    """What one pass over the inputs says of every head, beside its rules.

    made    the rules of every head
    tokens  of the longest input
    """

    def __init__(self, made: StandIns, tokens: int) -> None:
        shape = made.model.shape
        self.made, self.tokens = made, tokens
        self.sums = np.zeros((shape.layers, shape.heads, 2 * tokens - 1))
        self.pairs = np.zeros(2 * tokens - 1)
        self.off = np.zeros((shape.layers, shape.heads))
        self.queries = 0

    @property
    def profile(self) -> Float64:
        """[layer, head, key − query + n − 1] mean attention by relative position, over pairs."""
        return ratio(self.sums, self.pairs, absent=0.0)

    @property
    def error(self) -> Float64:
        """[layer, head] how far what the head adds is off by its rules, see `Added.error`; NaN
        where it cannot be read.
        """
        return self.off / self.queries

    def read(self, examples: Sequence[Example], advance: Advance) -> None:
        """Add these inputs."""
        model, lag = self.made.model, np.arange(1 - self.tokens, self.tokens)
        there = lag <= 0 if model.shape.stack == "decoder" else np.ones(len(lag), bool)
        for rows in batches(examples, budget=BATCH_TOKENS):
            batch = model.batch([examples[row] for row in rows])
            self._read(batch)
            for one in batch.examples:
                self.pairs += np.maximum(len(one) - np.abs(lag), 0) * there
                self.queries += len(one)
            advance(len(rows))

    def _read(self, batch: Batch) -> None:
        network, own, added = self.made.model.network, self.made.of(batch), list[Added]()

        def look(view: LayerView) -> None:
            self._positions(batch, view)
            added.append(Added.of(view, own))

        instrument = Instrument(network, observers=[look], stacks=[self.made.model.shape.stack])
        with ExitStack() as stack:
            for child in {
                c for site in instrument.sites if site.block for c in site.block.children()
            }:
                hear = partial(_hear, added)
                stack.callback(child.register_forward_hook(hear).remove)
            stack.enter_context(instrument)
            forward(network, *batch.inputs)
        for layer, one in enumerate(added):
            self.off[layer] += one.error(batch)

    def _positions(self, batch: Batch, view: LayerView) -> None:
        own = to_float64(view.lags(batch).by_lag.sum((0, 1)))  # [head, lag]
        more = (own.shape[-1] + 1) // 2 - self.tokens  # padding, and what shorter inputs lack
        beyond, lacking = max(more, 0), max(-more, 0)
        own = own[:, beyond : own.shape[-1] - beyond]
        self.sums[view.index, :, lacking : self.sums.shape[-1] - lacking] += own


@dataclass
class Added:
    """What the heads of a layer add to the stream of a batch, and how far rules are off.

    apart   [example, head, token] ‖Σ (P − A) f(x)‖²; None where it cannot be read
    output  [example, token, model] of the attention, all heads together
    stream  [example, token, model] to which it is added
    added   what a norm in between makes of the output; None without one
    """

    apart: torch.Tensor | None
    output: torch.Tensor
    stream: torch.Tensor
    added: torch.Tensor | None = None

    @classmethod
    def of(cls, view: LayerView, own: BatchStandIns) -> Added:
        """Those of one layer."""
        stream = view.stream
        if stream is None or not {"values", "projection"} <= view.offers:
            nothing = view.attention.new_zeros(0)
            return cls(None, nothing, nothing)
        assert view.values is not None
        assert view.output is not None
        rows = own.of_layer(RULES, view.index, visible(view.mask, view.attention))
        apart = (rows.to(view.attention) - view.attention) @ view.values
        added = apart @ view.projection.factor  # as long as what is added
        return cls(added.double().square().sum(-1), view.output, stream)

    def error(self, batch: Batch) -> Float64:
        """[head] sum over tokens of ‖Σ (P − A) f(x)‖² / ‖stream‖²; where a norm follows, of the
        same share of what it makes of the output.
        """
        if self.apart is None:
            return np.full(1, np.nan)
        share = self.apart / _square(self.stream)[:, None]
        if self.added is not None:
            share = share * (_square(self.added) / _square(self.output))[:, None]
        return to_float64((share * batch.mask[:, None]).sum((0, 2)))


def _square(vectors: torch.Tensor) -> torch.Tensor:
    return vectors.double().square().sum(-1).clamp_min(TINY)


def _hear(added: list[Added], _module: nn.Module, args: Any, output: Any) -> None:
    """Keep what a norm makes of the output of the attention, where one follows."""
    last = added[-1] if added else None
    if last is None or last.apart is None or last.added is not None or not args:
        return
    place, first = last.output.data_ptr(), args[0]
    if not (isinstance(first, torch.Tensor) and isinstance(output, torch.Tensor)):
        return
    changed = first.data_ptr() == place != output.data_ptr()  # dropout changes nothing here
    if changed and output.shape == last.output.shape:
        last.added = output
