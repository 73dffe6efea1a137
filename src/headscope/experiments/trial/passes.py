"""One pass of a model with attention moved: output vectors, next or masked tokens, and what of both
comes straight from the changed heads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize

from headscope.core.accumulators import Float64, Ints
from headscope.corpus.document import Example
from headscope.experiments.trial.moving import Move, Moving
from headscope.experiments.trial.queries import Queries
from headscope.experiments.trial.terms import DISTANCE, LOSS, MEASURES
from headscope.model.batch import to_float64
from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView
from headscope.model.model import Model, forward, run_network
from headscope.model.variants import lowest_layer

Moved = tuple[Queries, Move]
Changed = tuple[Float64, Float64]  # [measure, query] by a move, and by what it writes to the output


@dataclass
class PassedModel:
    """A model, and where in it what a pass looks at is seen.

    head    its language-model head; None without one
    norm    the last norm, where it is known what heads write straight to the output
    asked   of a masked language model, by document and id of an input, the masked places and the
            ids of the right tokens
    """

    model: Model
    head: nn.Module | None = None
    norm: nn.Module | None = None
    asked: Mapping[tuple[str, str], tuple[Ints, Ints]] = field(default_factory=dict)


class MovedPass:
    """One pass over copies of an input, or of one token of it, a move in each but the first.

    moves   the lowest layers first
    first   the first token that runs
    places  [move] the queries of each among those that run
    lowest  [move] the layer from which on it changes the input
    """

    def __init__(
        self, of: PassedModel, moving: Moving, moves: Sequence[Moved], first: int = 0
    ) -> None:
        self.of, self.moving, self.queries = of, moving, [queries for queries, _ in moves]
        self.places = [queries.queries - first for queries in self.queries]
        self.lowest = [lowest_layer(frozenset(move.heads)) for _, move in moves]
        self.written = dict[int, torch.Tensor]()  # row -> [query, model] by changed heads
        self.direct = dict[int, torch.Tensor]()  # row -> [query, dim] output vectors
        self.vectors = torch.zeros(0)  # [row, token, dim]
        self._stream = torch.zeros(0)  # what the last norm reads
        moving.use([move for _, move in moves], first)

    def run(self, example: Example, *inputs: Any, **more: Any) -> list[Changed]:
        """The changes by each move."""
        made = list[Changed]()
        rows = iter(() if (logits := self._logits(inputs, more)) is None else logits)
        for row, (one, places) in enumerate(zip(self.queries, self.places, strict=True), 1):
            outputs = [self.vectors[row, places], self.direct.get(row)]
            base, *after = (next(rows, None) for _ in range(3))
            total, direct = (
                np.stack(
                    [
                        _distance(self.vectors[0, places], output),
                        *_predicted(base, None if output is None else now, one, example.input_ids),
                    ]
                )
                for output, now in zip(outputs, after, strict=True)
            )
            made.append((total, direct))
        return made

    def _logits(self, inputs: Any, more: Any) -> Sequence[torch.Tensor] | None:
        """Fill `vectors` and `direct`; of next tokens [query, vocabulary] logits: of each move
        those of the whole model, with the move, and with what is written straight to the output.
        """
        of, network = self.of, self.of.model.network
        with ExitStack() as stack:
            if of.norm is not None:
                stack.callback(of.norm.register_forward_pre_hook(self._hear).remove)
            if of.head is not None:
                stack.callback(of.head.register_forward_pre_hook(self._choose).remove)
            observers = [] if of.norm is None else [self._observe]
            stacks = None if of.norm is None else [of.model.shape.stack]
            stack.enter_context(
                Instrument(network, interventions=[self.moving], observers=observers, stacks=stacks)
            )
            answer: Any = output_of(of, *inputs, **more)
        if of.head is None:
            with torch.inference_mode():
                self._keep(answer[0])
            return None
        logits: torch.Tensor = answer.logits
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return torch.split(wide, [len(one) for one in self.queries for _ in range(3)])

    def _hear(self, _module: nn.Module, args: tuple[Any, ...]) -> None:
        self._stream = args[0]

    def _choose(self, _module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Have the language-model head compute the wanted places alone."""
        hidden, parts = args[0], list[torch.Tensor]()
        self._keep(hidden)
        for row, queries in enumerate(self.places, 1):
            after = hidden[row, queries]
            parts += [hidden[0, queries], after, self.direct.get(row, after).to(after)]
        return (torch.cat(parts), *args[1:])

    def _keep(self, vectors: torch.Tensor) -> None:
        """Keep the output vectors, and those if nothing later reads what changed heads write."""
        self.vectors = vectors.double()
        for row, own in self.written.items():
            assert self.of.norm is not None
            stream = self._stream[0, self.places[row - 1]].double() + own
            self.direct[row] = self.of.norm.forward(stream.to(self._stream)).double()

    def _observe(self, view: LayerView) -> None:
        for (row, head), change in self.moving.changes.get(view.index, {}).items():
            assert view.values is not None
            mixed = change.to(view.values) @ view.values[row, head]  # [query, dim]
            own = (mixed @ view.projection.weight[head].to(mixed)).double()
            self.written[row] = self.written[row] + own if row in self.written else own


class MaskedPass(MovedPass):
    """The same of a masked language model, whose masked tokens are predicted: by how much the mean
    loss of those of the input rises, for each query that is moved.
    """

    def run(self, example: Example, *inputs: Any, **more: Any) -> list[Changed]:
        """The changes by each move."""
        of, network = self.of, self.of.model.network
        places, right = of.asked[example.document, example.id]
        assert of.head is not None

        def choose(_module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
            return (args[0][:, places].flatten(0, 1), *args[1:])  # [row · place, model]

        with ExitStack() as stack:
            stack.callback(of.head.register_forward_pre_hook(choose).remove)
            keep = network.base_model.register_forward_hook
            stack.callback(keep(lambda _, args, output: self._keep(output[0])).remove)
            stack.enter_context(Instrument(network, interventions=[self.moving]))
            logits = output_of(of, *inputs, **more).logits
        answers = torch.from_numpy(right).to(logits.device).repeat(len(self.vectors))
        losses = cross_entropy(logits.double(), answers, reduction="none")
        rise = losses.view(len(self.vectors), -1).mean(1)  # [row]
        rises = to_float64(rise - rise[0])
        made = list[Changed]()
        for row, moved in enumerate(self.places, 1):
            total = np.full((2, len(MEASURES), len(moved)), np.nan)
            total[0, MEASURES.index(DISTANCE)] = _distance(
                self.vectors[0, moved], self.vectors[row, moved]
            )
            total[0, MEASURES.index(LOSS)] = rises[row] / len(moved)
            made.append((total[0], total[1]))
        return made


def _distance(one: torch.Tensor, other: torch.Tensor | None) -> Float64:
    """[query] distance of two vectors' directions, 0 to 2; NaN where one is not known."""
    if other is None:
        return np.full(len(one), np.nan)
    apart = normalize(one.double(), dim=-1) - normalize(other.double(), dim=-1)
    return to_float64(apart.norm(dim=-1))


def _predicted(
    base: torch.Tensor | None, after: torch.Tensor | None, one: Queries, ids: Ints
) -> list[Float64]:
    """[query] rise of the loss of the next token, and fall of the log-probability of the keys';
    NaN without logits, or a next token.
    """
    rise, fall = np.full(len(one), np.nan), np.full(len(one), np.nan)
    if base is None or after is None:
        return [rise, fall]
    before, now = (torch.log_softmax(side.double(), -1) for side in (base, after))
    for at, query in enumerate(one.queries.tolist()):
        if query + 1 < len(ids):
            right = int(ids[query + 1])
            rise[at] = float(before[at, right] - now[at, right])
        own = torch.from_numpy(np.unique(ids[one.keys[at]])).to(before.device)
        fall[at] = float(before[at, own].logsumexp(0) - now[at, own].logsumexp(0))
    return [rise, fall]


def output_of(of: PassedModel, *inputs: Any, **more: Any) -> Any:
    """What the network gives; it keeps keys and values only where `more` says in what."""
    network = of.model.network
    if not more:
        return forward(network, *inputs, keep=False)
    with torch.inference_mode():
        return run_network(network, *inputs, **more)
