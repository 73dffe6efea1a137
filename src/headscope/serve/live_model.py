"""Reads a text with a model of which heads are switched off or made even, or values set to zero.

This is the worker's side of the live page, and the only one that knows torch. The model stays as it
is: what is changed, the instrument changes in one pass, between the attention weights and the
values that they mix.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from headscope.errors import InputError, ModelError
from headscope.experiments.ablation.variants import StandIn, check
from headscope.experiments.importance.objectives import TokenLoss
from headscope.model.attention import AttentionCall
from headscope.model.instrument import Instrument, Observer
from headscope.model.layer import LayerView
from headscope.run.plan import encoded
from headscope.serve.answers import Outcome, Read, told
from headscope.serve.open_model import CLASSES, MASK, NEXT, OpenedModel
from headscope.serve.requests import Changes, ReadRequest
from headscope.views.capture import SIDES, capture_example
from headscope.views.captured_example import ExampleMaps, NamedMaps

MOST_KEPT = 256e6  # bytes of texts read before, so that a head switched off and on is there at once
OFF, EVEN = StandIn("zero"), StandIn("uniform")
CHANGED = "attention, changed"
Check = Callable[[], None]


@dataclass(frozen=True, eq=False)
class _Pass:
    """One pass of the model: what was seen, the output vectors [token, model] and the logits."""

    shown: ExampleMaps
    vectors: torch.Tensor
    logits: torch.Tensor | None

    @property
    def size(self) -> int:
        """Bytes."""
        arrays = [array for s in self.shown.stacks for array in (s.attention, s.value_norm)]
        arrays += [a for s in self.shown.stacks if (v := s.vectors) for a in (v.queries, v.keys)]
        return sum(array.nbytes for array in arrays if array is not None)


@dataclass
class _Seen:
    """What hooks on a network took down during a pass."""

    vectors: list[torch.Tensor] = field(default_factory=list)
    logits: torch.Tensor | None = None


class LiveModel:
    """A model that is read text by text, by one thread at a time.

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

    @property
    def about(self) -> dict[str, Any]:
        """What a page says of the model before it has read anything."""
        return {
            "name": self.model.name.rstrip("/").rpartition("/")[2], "size": self.model.shape.size,
            "answers": self.opened.answers, "longest": self.longest, "decodes": self._decodes,
            "pairs": self._decodes or self.model.has_segments,
            "changes": not self.model.fallback,
            "mask": self.model.tokenizer.mask_token if self.opened.answers == MASK else None,
        }  # fmt: skip

    def read(self, asked: ReadRequest, stop: Check) -> Read:
        """What the model does with a text, and beside it what the changed model does.

        stop    called between layers; what it raises ends the pass
        raises  InputError for a text that is empty or too long, and for heads or tokens that are
                not there; ModelError for changes to a family that can only be read
        """
        whole = self._pass(asked.text, asked.pair, Changes(), stop)
        if not asked.changes:
            return Read(whole.shown, self._outcome(asked, whole, None))
        self._check(asked.changes, whole.shown)
        changed = self._pass(asked.text, asked.pair, asked.changes, stop)
        stacks = tuple(
            replace(one, versus=NamedMaps("versus", CHANGED, "probability", other.attention))
            for one, other in zip(whole.shown.stacks, changed.shown.stacks, strict=True)
        )
        outcome = self._outcome(asked, whole, changed)
        return Read(replace(whole.shown, stacks=stacks), outcome)

    def _check(self, changes: Changes, shown: ExampleMaps) -> None:
        if self.model.fallback:
            raise ModelError(
                f"{self.model.architecture} computes attention outside transformers' registry: it "
                "can be read, not changed; wanted a model on the registry"
            )
        for stack, layer, head in changes.off | changes.even:
            if not 0 <= stack < len(shown.stacks):
                raise InputError(f"found the stack {stack}; there are {len(shown.stacks)}")
            layers, heads = shown.stacks[stack].attention.shape[:2]
            check([frozenset({(layer, head)})], layers=layers, heads=heads)
        for side, token in changes.zero:
            if not (0 <= side < len(shown.sides) and 0 <= token < len(shown.sides[side])):
                raise InputError(f"found the token {token + 1} of text {side + 1}; it is not there")

    # --- one pass -----------------------------------------------------------------------------

    def _pass(self, text: str, pair: str, changes: Changes, stop: Check) -> _Pass:
        """A pass that was made before, or a new one."""
        key = text, pair, changes
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        example = encoded(self.model, text, None if self._decodes else pair or None)
        if len(example) > self.longest:
            raise InputError(
                f"found {len(example)} tokens; wanted {self.longest} at most: shorten the text, or "
                "start the server with a larger --longest"
            )
        self._changes = changes
        with self._taking(example.input_ids) as seen:
            shown = capture_example(
                self.model, text, pair or None, reading=lambda *_, **how: self._reading(stop, **how)
            )
        made = _Pass(shown, seen.vectors[-1][0].float(), seen.logits)
        self._kept[key] = made
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
        side = SIDES[call.site.stack][1] if self._decodes else 0
        if tokens := sorted(token for at, token in changes.zero if at == side):
            values = call.values.clone()
            values[:, :, tokens] = 0
            call.values = values

    @contextmanager
    def _taking(self, ids: np.ndarray[Any, Any]) -> Iterator[_Seen]:
        """Inside the context, outputs are taken down; a head computes only the rows asked for."""
        network, seen = self.model.network, _Seen()
        towers = [network.get_encoder()] if self._decodes else []

        def base(_module: Any, _args: Any, output: Any) -> None:
            seen.vectors.append(output[0].detach())

        def top(_module: Any, _args: Any, output: Any) -> None:
            seen.logits = getattr(output, "logits", None)

        hooks = [module.register_forward_hook(base) for module in (*towers, network.base_model)]
        hooks.append(network.register_forward_hook(top))
        asking: Any = nullcontext()
        if self.opened.answers in (NEXT, MASK):
            places = np.array(self.asked_places(ids) or [0])
            asking = TokenLoss("told", [places], [places]).asking(network, [0])
        try:
            with asking:
                yield seen
        finally:
            for hook in hooks:
                hook.remove()

    def asked_places(self, ids: np.ndarray[Any, Any]) -> list[int]:
        """Where the model tells a token: at masks, or after the last token."""
        if self.opened.answers == NEXT:
            return [len(ids) - 1]
        return np.flatnonzero(ids == self.model.tokenizer.mask_token_id).tolist()

    # --- what the model answers ---------------------------------------------------------------

    def _outcome(self, asked: ReadRequest, whole: _Pass, changed: _Pass | None) -> Outcome:
        moved = None if changed is None else _moved(whole.vectors, changed.vectors)
        kind, places = self.opened.answers, list[int]()
        if kind in (NEXT, MASK):
            example = encoded(self.model, asked.text, asked.pair or None)
            places = self.asked_places(example.input_ids)
        rows = 1 if kind == CLASSES else len(places)
        before, after = (
            None if one is None or one.logits is None else shares(one.logits, rows)
            for one in (whole, changed)
        )
        names = self.opened.classes.__getitem__ if kind == CLASSES else self._token
        return told(kind, places, before, after, name=names, moved=moved)

    def _token(self, number: int) -> str:
        """A token as it would be written, with the space before it."""
        text = str(self.model.tokenizer.decode([number]))
        return self.model.tokens([number])[0] if "\ufffd" in text else text


def shares(logits: torch.Tensor, rows: int) -> np.ndarray[Any, Any]:
    """[row, output] probabilities of the first rows."""
    flat = logits.float().reshape(-1, logits.shape[-1])[:rows]
    return flat.softmax(-1).cpu().numpy()


def _moved(before: torch.Tensor, after: torch.Tensor) -> list[float]:
    """[token] 1 - cosine of the output vectors."""
    cosine = torch.nn.functional.cosine_similarity(before, after, dim=-1)
    return [round(value, 6) for value in (1 - cosine).clamp_min(0).tolist()]
