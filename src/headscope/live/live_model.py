"""Reads a text with a model of which heads are switched off or made even, or values set to zero.

This is the worker's side of the live page, and the only one that knows torch. The model stays as it
is: what is changed, the instrument changes in one pass, between the attention weights and the
values that they mix.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import nlargest
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cosine_similarity

from headscope.corpus.document import Example
from headscope.errors import InputError, ModelError
from headscope.experiments.circuits.score_parts import writers
from headscope.live.answers import Outcome, Read, told
from headscope.live.open_model import CLASSES, MASK, NEXT, OpenedModel
from headscope.live.requests import AbsentError, Changes, ReadRequest, ScoreRequest
from headscope.model.attention import AttentionCall
from headscope.model.instrument import Instrument, Observer
from headscope.model.language_model import TokenLoss
from headscope.model.layer import LayerView
from headscope.model.variants import StandIn
from headscope.model.vocabulary import bytes_as_text
from headscope.run.control import untrained_model
from headscope.run.plan import encoded
from headscope.views.capture import SIDES, capture_example
from headscope.views.captured_example import ExampleMaps, NamedMaps

MOST_KEPT = 256e6  # bytes of texts read before, so that a head switched off and on is there at once
WRITERS = 5  # parts that are named for a query, and for a key
MOST_NAMED = 3  # heads whose attention moves most
OFF, EVEN = StandIn("zero"), StandIn("uniform")
CHANGED = "attention, changed"
Check = Callable[[], None]


@dataclass(frozen=True, eq=False)
class _Pass:
    """One forward pass of the model.

    vectors  [token, model] its output
    places   of the tokens that it tells
    shares   [place, output] probabilities there, or [1, class]; None without a head
    """

    shown: ExampleMaps
    vectors: torch.Tensor
    places: list[int]
    shares: np.ndarray[Any, Any] | None

    @property
    def size(self) -> int:
        """Size in bytes."""
        arrays = [array for s in self.shown.stacks for array in (s.attention, s.value_norm)]
        arrays += [a for s in self.shown.stacks if (v := s.vectors) for a in (v.queries, v.keys)]
        return sum(array.nbytes for array in arrays if array is not None)


class LiveModel:
    """A model that reads text by text, in one thread at a time.

    longest  tokens of a text at most
    """

    def __init__(self, opened: OpenedModel, *, longest: int) -> None:
        self.opened, self.model = opened, opened.model
        self.longest = min(longest, opened.model.limit)
        self.stacks = list(SIDES) if self._decodes else [self.model.shape.stack]
        changing = [] if self.model.fallback else [self._change]
        self._instrument = Instrument(
            self.model.network, interventions=changing, stacks=self.stacks
        )
        self._changes = Changes()
        self._kept: OrderedDict[tuple[str, str, Changes], _Pass] = OrderedDict()

    @property
    def _decodes(self) -> bool:
        return bool(self.model.network.config.is_encoder_decoder)

    @cached_property
    def untrained(self) -> LiveModel:
        """An untrained network of the same shape, made when it is first wanted."""
        return LiveModel(OpenedModel(untrained_model(self.model)), longest=self.longest)

    @property
    def about(self) -> dict[str, Any]:
        """What a page says of the model before the first text."""
        return {
            "name": Path(self.model.name).name,
            "size": self.model.shape.size,
            "answers": self.opened.answers,
            "longest": self.longest,
            "decodes": self._decodes,
            "pairs": self._decodes or self.model.has_segments,
            "changes": not self.model.fallback,
            "mask": self.model.tokenizer.mask_token if self.opened.answers == MASK else None,
        }

    def read(self, request: ReadRequest, stop: Check) -> Read:
        """What the model does with a text, and beside it what the changed model does.

        stop    called between layers; what it raises ends the pass
        raises  InputError for a text that is empty or too long; AbsentError for changes of what is
                not there; ModelError for changes to a family that can only be read
        """
        changes = request.changes
        if changes and self.model.fallback:
            raise ModelError(
                f"{self.model.architecture} computes attention outside transformers' registry: it "
                "can be read, not changed; wanted a model on the registry"
            )
        whole = self._pass(request.text, request.pair, Changes(), stop)
        self._check(changes, whole.shown)
        if not changes:
            return Read(whole.shown, self._outcome(whole, None))
        changed = self._pass(request.text, request.pair, changes, stop)
        stacks = tuple(
            replace(one, versus=NamedMaps("versus", CHANGED, "probability", other.attention))
            for one, other in zip(whole.shown.stacks, changed.shown.stacks, strict=True)
        )
        outcome = self._outcome(whole, changed) | {"most": _most_moved(whole, changed, changes)}
        return Read(replace(whole.shown, stacks=stacks), outcome)

    def writers(self, request: ScoreRequest, stop: Check) -> list[list[tuple[str, float]]]:
        """The parts of the model that set a score apart from the query's other keys.

        stop     called before the pass; what it raises ends it
        returns  twice, for the query and for the key, names and numbers, the largest size first
        raises   InputError for a text, head or token that is not there; ModelError where the
                 parts of a model's scores are not known
        """
        if self._decodes:
            raise ModelError(
                "what wrote a score is known of models of one stack; this one has an encoder and a "
                "decoder"
            )
        stop()
        example = self._encoded(request.text)
        return writers(self.model, example, request.place[1:], request.pair, count=WRITERS)

    def _encoded(self, text: ReadRequest, written: int = 0) -> Example:
        """The tokens of a text; InputError for more than `longest`, or more written ones."""
        pair = None if self._decodes else text.pair or None
        example = encoded(self.model, text.text, pair)
        if (count := max(len(example), written)) > self.longest:
            raise InputError(
                f"found {count} tokens; wanted {self.longest} at most: shorten the text, or start "
                "the server with a larger --longest"
            )
        return example

    def _check(self, changes: Changes, shown: ExampleMaps) -> None:
        """Raises AbsentError for changes of heads, tokens or layers that are not there."""
        sizes = [one.attention.shape[:2] for one in shown.stacks]
        lengths = [len(side) for side in shown.sides]
        absent: list[list[Any]] = [
            [name, at, layer, head]
            for name, heads in (("off", changes.off), ("even", changes.even))
            for at, layer, head in sorted(heads)
            if at >= len(sizes) or layer >= sizes[at][0] or head >= sizes[at][1]
        ]
        there = {one for one in changes.zero if one[0] < len(lengths) and one[1] < lengths[one[0]]}
        absent += [["zero", *one] for one in sorted(changes.zero - there)]
        sides, stacks = {side for side, _ in there}, zip(sizes, self.stacks, strict=False)
        layers = [size[0] for size, name in stacks if self._mixed(name) in sides]
        if changes.layer is not None and changes.layer >= max(layers, default=math.inf):
            absent.append(["layer", changes.layer])
        if absent:
            heads = " and ".join(f"{layers} × {heads}" for layers, heads in sizes)
            tokens = " and ".join(map(str, lengths))
            raise AbsentError(absent, f"those of {heads} heads and {tokens} tokens")

    def _mixed(self, stack: str) -> int:
        """The side whose values the heads of a stack mix."""
        return SIDES[stack][1] if self._decodes else 0

    # --- one pass -----------------------------------------------------------------------------

    def _pass(self, text: str, pair: str, changes: Changes, stop: Check) -> _Pass:
        """A cached pass, or a new one."""
        key = text, pair, changes
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        written = self.model.tokenizer(text_target=pair, verbose=False) if self._decodes else None
        example = self._encoded(ReadRequest(text, pair), len(written.input_ids) if written else 0)
        # A decoder reads as many tokens as were written: a start token for the last one.
        read = example.input_ids if written is None else np.array(written.input_ids if pair else [])
        self._changes, places = changes, self._places(read)
        with self._outputs(places) as outputs:
            shown = capture_example(
                self.model, text, pair or None, reading=lambda *_, **how: self._reading(stop, **how)
            )
        logits, shares = outputs.pop(None, None), None
        if logits is not None:
            rows = 1 if self.opened.answers == CLASSES else len(places)
            flat = logits.float().reshape(-1, logits.shape[-1])[:rows]
            shares = flat.softmax(-1).cpu().numpy()
        vectors = list(outputs.values())[-1][0].float()
        self._kept[key] = made = _Pass(shown, vectors, places, shares)
        while sum(one.size for one in self._kept.values()) > MOST_KEPT and len(self._kept) > 1:
            self._kept.popitem(last=False)
        return made

    def _reading(
        self, stop: Check, observers: Sequence[Observer], stacks: Sequence[str]
    ) -> Instrument:
        """The one instrument: what is worked out of the weights is worked out once."""

        def look(_: LayerView) -> None:
            stop()

        self._instrument.observers = (look, *observers)
        self._instrument.stacks = frozenset(stacks)
        return self._instrument

    def _change(self, call: AttentionCall) -> None:
        changes = self._changes
        if not changes or call.site.stack not in self.stacks:
            return
        stack = self.stacks.index(call.site.stack)
        for heads, stand_in in ((changes.off, OFF), (changes.even, EVEN)):
            own = frozenset((layer, head) for at, layer, head in heads if at == stack)
            stand_in.switching_off(own)(call)
        if changes.layer not in (None, call.layer):
            return
        side = self._mixed(call.site.stack)
        if tokens := sorted(token for at, token in changes.zero if at == side):
            values = call.values.clone()
            values[:, :, tokens] = 0
            call.values = values

    @contextmanager
    def _outputs(self, places: list[int]) -> Iterator[dict[Any, Any]]:
        """Inside the context, the output vectors of each module and the logits, under None.

        A language-model head computes the rows of these places only.
        """
        network: Any = self.model.network
        outputs = dict[Any, Any]()

        def base(module: Any, _args: Any, output: Any) -> None:
            outputs[module] = output[0].detach()

        def top(_module: Any, _args: Any, output: Any) -> None:
            outputs[None] = getattr(output, "logits", None)

        with ExitStack() as stack:
            last = network.get_decoder() if self._decodes else network.base_model
            for module in (*([network.get_encoder()] if self._decodes else []), last):
                stack.callback(module.register_forward_hook(base).remove)
            stack.callback(network.register_forward_hook(top).remove)
            if self.opened.answers in (NEXT, MASK):
                rows = [np.array(places or [0])]
                stack.enter_context(TokenLoss("told", rows, rows).asking(network, [0]))
            yield outputs

    def _places(self, ids: np.ndarray[Any, Any]) -> list[int]:
        """The positions at which the model predicts a token: after the last one, or at masks."""
        if self.opened.answers == NEXT:
            return [len(ids) - 1] if len(ids) else []
        mask = self.model.tokenizer.mask_token_id if self.opened.answers == MASK else -1
        return np.flatnonzero(ids == mask).tolist()

    # --- what the model answers ---------------------------------------------------------------

    def _outcome(self, whole: _Pass, changed: _Pass | None) -> Outcome:
        classes = self.opened.answers == CLASSES
        moved, after = None, None
        if changed is not None:
            cosine = cosine_similarity(whole.vectors, changed.vectors, dim=-1)
            moved = [round(value, 6) for value in (1 - cosine).clamp_min(0).tolist()]
            after = changed.shares
        name = self.opened.classes.__getitem__ if classes else self._token
        return told(self.opened.answers, whole.places, whole.shares, after, name=name, moved=moved)

    def _token(self, number: int) -> str:
        """A token as it would be written, with the space before it."""
        text = str(self.model.tokenizer.decode([number]))
        if str(self.model.tokenizer.convert_ids_to_tokens(number)).startswith("▁"):
            text = " " + text.lstrip(" ")  # SentencePiece leaves it out at the start of a text
        name = str(self.model.tokenizer.convert_ids_to_tokens(number))
        return bytes_as_text(name) if "\ufffd" in text else text  # a part of a character


def _most_moved(whole: _Pass, changed: _Pass, changes: Changes) -> list[list[float]]:
    """The three heads whose attention moves most, none of them changed itself.

    returns  rows of stack, layer, head and the share of a token's attention that goes to other
             tokens than before, from 0 to 1, mean over tokens
    """
    rows = list[tuple[float, tuple[int, ...]]]()
    for at, (one, other) in enumerate(zip(whole.shown.stacks, changed.shown.stacks, strict=True)):
        shares = np.abs(other.attention - one.attention).sum(-1).mean(-1) / 2  # [layer, head]
        places = [(at, *place) for place in np.ndindex(shares.shape)]
        rows += zip(shares.ravel().tolist(), places, strict=True)
    free = [row for row in rows if row[0] > 0 and row[1] not in changes.off | changes.even]
    return [[*place, round(share, 6)] for share, place in nlargest(MOST_NAMED, free)]
