"""What a model gives while attention is moved: output vectors, next tokens, and what of both comes
straight from the changed heads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import normalize
from transformers import DynamicCache

from headscope.core.accumulators import Float64
from headscope.corpus.document import Example
from headscope.experiments.replay.scored_model import ScoredModel
from headscope.experiments.replay.scores import CAUSAL, MASKED
from headscope.experiments.trial.moving import Moving
from headscope.experiments.trial.passes import (
    MaskedPass,
    Moved,
    MovedPass,
    PassedModel,
    output_of,
)
from headscope.experiments.trial.terms import MEASURES
from headscope.model.batch import Batch
from headscope.model.growing import growing
from headscope.model.instrument import Instrument
from headscope.model.key_value_cache import first_tokens, going_on
from headscope.model.language_model import TokenLoss
from headscope.model.layer import LayerView
from headscope.model.linears import equal_but_for_rounding
from headscope.model.model import forward
from headscope.model.variants import lowest_layer

AT_ONCE = 4  # ours: tokens that are kept for the rows of a pass, for each that a pass may have


@dataclass(frozen=True)
class MovedOutput:
    """How the output changes at the queries of one move, [measure, query].

    total   MEASURES: distance of the output vector; rise of the loss of the next token, or of the
            masked ones for each query; fall of the log-probability of the tokens at the keys. NaN
            where there is none
    direct  the same of what the changed heads write straight to the output
    scale   mean distance of the output vectors of two tokens of the input
    """

    total: Float64
    direct: Float64
    scale: float


class Outputs(PassedModel):
    """Runs one input with several moves, and compares outputs with that of the whole model.

    direct    whether it is known what heads write straight to the output: a decoder's heads add to
              a stream that a last norm reads
    grows     whether copies of an input are computed only from the layer that changes them on
    objective   of a masked language model, which of its examples' tokens it is to predict
    one_by_one  whether a query is moved by itself: of a decoder it alone runs again, after the keys
              and values of the tokens before it
    """

    def __init__(
        self, scored: ScoredModel, examples: Sequence[Example], objective: TokenLoss | None = None
    ) -> None:
        super().__init__(scored.model)
        network, decoder = self.model.network, self.model.shape.stack == "decoder"
        if scored.kind in (CAUSAL, MASKED):
            self.head = network.get_output_embeddings()  # type: ignore[no-untyped-call]
        if objective is not None:
            every = zip(examples, objective.asked, objective.right, strict=True)
            self.asked = {(one.document, one.id): (at, right) for one, at, right in every}
        short, long = min(examples, key=len), max(examples, key=len)
        self.norm = self._final_norm(self.model.batch([short, short])) if decoder else None
        self.kind_of_pass = MaskedPass if self.asked else MovedPass
        self.grows = self._works(self._grown, short)
        self.one_by_one = decoder and self._works(self._last, long)

    @property
    def direct(self) -> bool:
        """See the class."""
        return self.norm is not None

    def changes(
        self, example: Example, moving: Moving, some: Sequence[Moved], *, batch_tokens: int
    ) -> list[MovedOutput]:
        """The changes at the queries of each move, which `moving` makes."""
        way = self._by_query if self.one_by_one else self._by_copies
        return way(example, moving, some, batch_tokens)

    def _by_copies(
        self, example: Example, moving: Moving, some: Sequence[Moved], batch_tokens: int
    ) -> list[MovedOutput]:
        """By passes over the input and a copy for each move."""
        made = dict[int, MovedOutput]()
        for chunk in _alike(some, max(1, batch_tokens // len(example) - 1)):
            passed = self.kind_of_pass(self, moving, [some[at] for at in chunk])
            with self._growing(passed.lowest) as (first, _):
                changed = passed.run(example, *self.model.batch([example] * first).inputs)
            scale = _apart(passed.vectors[0, : len(example)])
            made |= {at: MovedOutput(*one, scale) for at, one in zip(chunk, changed, strict=True)}
        return [made[at] for at in range(len(some))]

    def _by_query(
        self, example: Example, moving: Moving, some: Sequence[Moved], batch_tokens: int
    ) -> list[MovedOutput]:
        """By passes over one token, as often as it is the query of a move."""
        network, (ids, mask, *_) = self.model.network, self.model.batch([example]).inputs
        kept, whole = self._kept(example)
        scale = _apart(whole[0, : len(example)].double())
        no = [np.full((2, len(MEASURES), len(one)), np.nan) for one, _ in some]
        made = [MovedOutput(total, direct, scale) for total, direct in no]
        for query in np.unique(np.concatenate([one.queries for one, _ in some])).tolist():
            places = [
                (at, number)
                for at, (one, _) in enumerate(some)
                for number in np.flatnonzero(one.queries == query).tolist()
            ]
            moves = [(some[at][0].at(number), some[at][1].at(number)) for at, number in places]
            for chunk in _alike(moves, max(1, AT_ONCE * batch_tokens // (query + 1))):
                passed = MovedPass(self, moving, [moves[row] for row in chunk], query)
                with self._growing(passed.lowest) as (first, rows):
                    before = first_tokens(kept, query, rows)
                    changed = passed.run(
                        example,
                        ids[:, query : query + 1].expand(first, 1),
                        mask[:, : query + 1].expand(first, -1),
                        **going_on(network, before),
                    )
                for row, (total, direct) in zip(chunk, changed, strict=True):
                    at, number = places[row]
                    made[at].total[:, number] = total[:, 0]
                    made[at].direct[:, number] = direct[:, 0]
        return made

    @contextmanager
    def _growing(self, lowest: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
        """Inside the context copies are computed from the layer that changes them on, where that
        works; gives how many rows a pass begins with, and how many run in each layer.

        lowest  [copy] that layer, ascending
        """
        layers = self.model.shape.layers
        if not self.grows:
            yield len(lowest) + 1, [len(lowest) + 1] * layers
            return
        with growing(self.model.network, lowest):
            yield 1, [1 + sum(low <= layer for low in lowest) for layer in range(layers)]

    def _kept(self, example: Example) -> tuple[DynamicCache, torch.Tensor]:
        """Keys and values of an input, and [1, token, dim] its output vectors."""
        kept = DynamicCache()
        more = going_on(self.model.network, kept) | {"use_cache": True}
        return kept, _hidden(self, *self.model.batch([example]).inputs, **more)

    def _works(
        self, way: Callable[[Example], tuple[torch.Tensor, torch.Tensor]], one: Example
    ) -> bool:
        """Whether a way gives what the whole input gives."""
        try:  # whatever a family's own code may do with what it is given
            vectors, wanted = way(one)
        except Exception:
            return False
        return equal_but_for_rounding(vectors, wanted.expand_as(vectors))

    def _grown(self, one: Example) -> tuple[torch.Tensor, torch.Tensor]:
        """Output vectors of copies that begin in later layers, and of the input."""
        inputs, layers = self.model.batch([one]).inputs, self.model.shape.layers
        with growing(self.model.network, [0, layers // 2, layers - 1]):
            rows = _hidden(self, *inputs)
        return rows, _hidden(self, *inputs)

    def _last(self, one: Example) -> tuple[torch.Tensor, torch.Tensor]:
        """[row, 1, dim] the last token's output vector after what was kept, and of the input."""
        (kept, whole), at = self._kept(one), len(one) - 1
        with self._growing([self.model.shape.layers // 2]) as (first, rows):
            ids, mask, _ = self.model.batch([one] * first).inputs
            more = going_on(self.model.network, first_tokens(kept, at, rows))
            last = _hidden(self, ids[:, at : at + 1], mask[:, : at + 1], **more)
        return last, whole[:, at : at + 1]

    def _final_norm(self, probe: Batch) -> nn.Module | None:
        """The last norm, where heads add to the stream that it reads; None otherwise."""
        with _listening_outside(self) as seen:
            plain = _adds_plainly(self, probe)
            hidden = _hidden(self, *probe.inputs)
        last = [m for m, _, output in seen if equal_but_for_rounding(output, hidden)]
        return last[-1] if last and plain else None


def _alike(some: Sequence[Moved], room: int) -> Iterator[list[int]]:
    """Numbers of moves that run together, at most `room`; the lowest layers first."""
    lowest = [lowest_layer(frozenset(move.heads)) for _, move in some]
    order = sorted(range(len(some)), key=lambda at: lowest[at])
    for start in range(0, len(order), room):
        yield order[start : start + room]


def _apart(vectors: torch.Tensor) -> float:
    """Mean distance of two of these vectors' directions."""
    own, n = normalize(vectors, dim=-1), len(vectors)
    return float((2 - 2 * own @ own.T).clamp_min(0).sqrt().sum() / max(n * (n - 1), 1))


def _hidden(of: Outputs, *inputs: Any, **more: Any) -> torch.Tensor:
    """[row, token, dim] the output vectors."""
    kept: list[torch.Tensor] = []
    with ExitStack() as stack:
        if of.head is not None:
            hook = of.head.register_forward_pre_hook(lambda _, args: kept.append(args[0]))
            stack.callback(hook.remove)
        answer = output_of(of, *inputs, **more)
    return kept[-1] if kept else answer[0]


Seen = list[tuple[nn.Module, torch.Tensor, torch.Tensor]]


@contextmanager
def _listening_outside(of: Outputs) -> Iterator[Seen]:
    """Inside the context, modules outside the layers are noted with what they read and gave."""
    network, seen = of.model.network, list[tuple[nn.Module, torch.Tensor, torch.Tensor]]()
    blocks = {site.block for site in Instrument(network).sites if site.block is not None}
    inside = {module for block in blocks for module in block.modules()}

    def note(module: nn.Module, args: Any, output: Any) -> None:
        if args and isinstance(output, torch.Tensor) and args[0].shape == output.shape:
            seen.append((module, args[0], output))

    with ExitStack() as stack:
        for module in network.modules():
            if module not in inside and not any(module.children()):
                stack.callback(module.register_forward_hook(note).remove)
        yield seen


def _adds_plainly(of: Outputs, probe: Batch) -> bool:
    """Whether in every layer some module reads the stream plus the output of the attention: no norm
    stands between the two.
    """
    sums, plain = list[torch.Tensor](), list[bool]()

    def look(view: LayerView) -> None:
        known = {"values", "projection"} <= view.offers
        there = known and view.stream is not None and view.output is not None
        sums.append(view.stream + view.output if there else torch.zeros(0))  # type: ignore[operator]
        plain.append(False)

    def hear(_module: nn.Module, args: Any) -> None:
        if (
            sums
            and args
            and isinstance(args[0], torch.Tensor)
            and equal_but_for_rounding(args[0], sums[-1])
        ):
            plain[-1] = True

    network, stacks = of.model.network, [of.model.shape.stack]
    instrument = Instrument(network, observers=[look], stacks=stacks)
    with ExitStack() as stack:
        for child in {c for s in instrument.sites if s.block for c in s.block.children()}:
            stack.callback(child.register_forward_pre_hook(hear).remove)
        stack.enter_context(instrument)
        forward(network, *probe.inputs, keep=False)
    return bool(plain) and all(plain)
