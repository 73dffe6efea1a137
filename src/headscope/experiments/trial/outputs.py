"""What a model gives while attention is moved: output vectors, next tokens, and what of both comes
straight from the changed heads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import normalize

from headscope.core.accumulators import Float64, Ints
from headscope.experiments.replay.scored_model import ScoredModel
from headscope.experiments.replay.scores import CAUSAL
from headscope.experiments.trial.moving import Moving
from headscope.experiments.trial.queries import Queries
from headscope.model.batch import Batch, to_float64
from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView
from headscope.model.linears import equal_but_for_rounding
from headscope.model.model import forward

MEASURES = DISTANCE, LOSS, COPIED = "distance", "loss", "copied"


@dataclass(frozen=True)
class MovedOutput:
    """How the output changes at the queries of one move, [measure, query].

    total   MEASURES: distance of the output vector; rise of the loss of the next token; fall of
            the log-probability of the tokens at the keys. NaN where there is none
    direct  the same of what the changed heads write straight to the output
    scale   mean distance of the output vectors of two tokens of the input
    """

    total: Float64
    direct: Float64
    scale: float


class Outputs:
    """Runs one input with several moves, and compares outputs with that of the whole model.

    direct  whether it is known what heads write straight to the output: a decoder's heads add to a
            stream that a last norm reads
    """

    def __init__(self, scored: ScoredModel, probe: Batch) -> None:
        self.model, self.causal = scored.model, scored.kind == CAUSAL
        network = self.model.network
        self.head: nn.Module | None = None
        if self.causal:
            self.head = network.get_output_embeddings()  # type: ignore[no-untyped-call]
        self.norm = self._final_norm(probe) if self.model.shape.stack == "decoder" else None

    @property
    def direct(self) -> bool:
        """See the class."""
        return self.norm is not None

    def changes(self, batch: Batch, moving: Moving, some: Sequence[Queries]) -> list[MovedOutput]:
        """The changes by each move that `moving` makes; `some` has the queries and keys of each.

        batch  the input, once as it is and once for each move
        """
        passed = _MovedPass(self, moving, [one.queries for one in some])
        ids, logits = batch.examples[0].input_ids, passed.run(batch)
        vectors, whole = passed.vectors, passed.vectors[0]
        scale = _apart(whole[: len(ids)])
        sizes = [size for one in some for size in [len(one)] * 3]
        of_rows = iter(() if logits is None else torch.split(logits, sizes))
        made = list[MovedOutput]()
        for row, one in enumerate(some, 1):
            outputs = [vectors[row, one.queries], passed.direct.get(row)]
            base, *after = (next(of_rows, None) for _ in range(3))
            total, direct = (
                np.stack(
                    [
                        _distance(whole[one.queries], output),
                        *_predicted(base, None if output is None else now, one, ids),
                    ]
                )
                for output, now in zip(outputs, after, strict=True)
            )
            made.append(MovedOutput(total, direct, scale))
        return made

    def _final_norm(self, probe: Batch) -> nn.Module | None:
        """The last norm, where heads add to the stream that it reads; None otherwise."""
        with _listening_outside(self) as seen:
            plain = _adds_plainly(self, probe)
            hidden = _hidden(self, probe)
        last = [m for m, _, output in seen if equal_but_for_rounding(output, hidden)]
        return last[-1] if last and plain else None


class _MovedPass:
    """One pass over copies of an input, a move in each but the first.

    places  [move] the queries of each
    """

    def __init__(self, of: Outputs, moving: Moving, places: Sequence[Ints]) -> None:
        self.of, self.moving, self.places = of, moving, places
        self.written = dict[int, torch.Tensor]()  # row -> [query, model] by changed heads
        self.direct = dict[int, torch.Tensor]()  # row -> [query, dim] output vectors
        self.vectors = torch.zeros(0)  # [row, token, dim]
        self._stream = torch.zeros(0)  # what the last norm reads

    def run(self, batch: Batch) -> torch.Tensor | None:
        """Fill `vectors` and `direct`; of next tokens [place, vocabulary] logits: of each move
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
            answer: Any = forward(network, *batch.inputs, keep=False)
        if of.head is None:
            with torch.inference_mode():
                self._keep(answer[0])
            return None
        logits: torch.Tensor = answer.logits
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

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


def _distance(one: torch.Tensor, other: torch.Tensor | None) -> Float64:
    """[query] distance of two vectors' directions, 0 to 2; NaN where one is not known."""
    if other is None:
        return np.full(len(one), np.nan)
    apart = normalize(one.double(), dim=-1) - normalize(other.double(), dim=-1)
    return to_float64(apart.norm(dim=-1))


def _apart(vectors: torch.Tensor) -> float:
    """Mean distance of two of these vectors' directions."""
    own, n = normalize(vectors, dim=-1), len(vectors)
    return float((2 - 2 * own @ own.T).clamp_min(0).sqrt().sum() / max(n * (n - 1), 1))


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


def _hidden(of: Outputs, batch: Batch) -> torch.Tensor:
    """[example, token, dim] the output vectors."""
    kept: list[torch.Tensor] = []
    with ExitStack() as stack:
        if of.head is not None:
            hook = of.head.register_forward_pre_hook(lambda _, args: kept.append(args[0]))
            stack.callback(hook.remove)
        answer: Any = forward(of.model.network, *batch.inputs, keep=False)
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
