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

from headscope.core.accumulators import Float64, Ints
from headscope.corpus.document import Example
from headscope.experiments.replay.scored_model import ScoredModel
from headscope.experiments.replay.scores import CAUSAL
from headscope.experiments.trial.moving import Move, Moving
from headscope.experiments.trial.queries import Queries
from headscope.model.batch import Batch, to_float64
from headscope.model.growing import growing
from headscope.model.instrument import Instrument
from headscope.model.key_value_cache import first_tokens, going_on
from headscope.model.layer import LayerView
from headscope.model.linears import equal_but_for_rounding
from headscope.model.model import forward, run_network
from headscope.model.variants import lowest_layer

MEASURES = DISTANCE, LOSS, COPIED = "distance", "loss", "copied"
AT_ONCE = 4  # ours: tokens that are kept for the rows of a pass, for each that a pass may have


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


Moved = tuple[Queries, Move]
Changed = tuple[Float64, Float64]  # [measure, query] by a move, and by what it writes to the output


class Outputs:
    """Runs one input with several moves, and compares outputs with that of the whole model.

    direct    whether it is known what heads write straight to the output: a decoder's heads add to
              a stream that a last norm reads
    grows     whether copies of an input are computed only from the layer that changes them on
    one_by_one  whether a query is moved by itself: of a decoder it alone runs again, after the keys
              and values of the tokens before it
    """

    def __init__(self, scored: ScoredModel, examples: Sequence[Example]) -> None:
        self.model, self.causal = scored.model, scored.kind == CAUSAL
        network, decoder = self.model.network, self.model.shape.stack == "decoder"
        self.head: nn.Module | None = None
        if self.causal:
            self.head = network.get_output_embeddings()  # type: ignore[no-untyped-call]
        short, long = min(examples, key=len), max(examples, key=len)
        self.norm = self._final_norm(self.model.batch([short, short])) if decoder else None
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
            passed = _MovedPass(self, moving, [some[at] for at in chunk])
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
                passed = _MovedPass(self, moving, [moves[row] for row in chunk], query)
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


class _MovedPass:
    """One pass over copies of an input, or of one token of it, a move in each but the first.

    moves   the lowest layers first
    first   the first token that runs
    places  [move] the queries of each among those that run
    lowest  [move] the layer from which on it changes the input
    """

    def __init__(self, of: Outputs, moving: Moving, moves: Sequence[Moved], first: int = 0) -> None:
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
            answer: Any = _run(of, *inputs, **more)
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


def _alike(some: Sequence[Moved], room: int) -> Iterator[list[int]]:
    """Numbers of moves that run together, at most `room`; the lowest layers first."""
    lowest = [lowest_layer(frozenset(move.heads)) for _, move in some]
    order = sorted(range(len(some)), key=lambda at: lowest[at])
    for start in range(0, len(order), room):
        yield order[start : start + room]


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


def _run(of: Outputs, *inputs: Any, **more: Any) -> Any:
    """What the network gives; it keeps keys and values only where `more` says in what."""
    network = of.model.network
    if not more:
        return forward(network, *inputs, keep=False)
    with torch.inference_mode():
        return run_network(network, *inputs, **more)


def _hidden(of: Outputs, *inputs: Any, **more: Any) -> torch.Tensor:
    """[row, token, dim] the output vectors."""
    kept: list[torch.Tensor] = []
    with ExitStack() as stack:
        if of.head is not None:
            hook = of.head.register_forward_pre_hook(lambda _, args: kept.append(args[0]))
            stack.callback(hook.remove)
        answer = _run(of, *inputs, **more)
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
