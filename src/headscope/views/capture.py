"""Run a model on one example and keep the attention maps and vectors of every stack."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from headscope.analyses.flow import LABELS, check_methods
from headscope.analyses.flow.measure_one_text import LayerMatrices, check_stack
from headscope.core.accumulators import Ints
from headscope.corpus.document import Example
from headscope.corpus.tokenizer import TokenizerReader
from headscope.errors import InputError
from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView
from headscope.model.model import Model, evaluating, forward
from headscope.run.plan import encoded
from headscope.views import captured_example
from headscope.views.captured_example import Floats, NamedMaps, StackMaps, TokenSide

MAX_FLOW = "max_flow"
FLOW_OF = "rollout"  # its layer matrices carry the maximum flow (Abnar & Zuidema 2020)
MOST_TOKENS = 512  # that are shown at once
AGREED = 1e-2  # largest difference between a weight and the softmax of its scores
# What byte-level and SentencePiece vocabularies write for characters that are seen as space.
SPACES = str.maketrans({"Ġ": " ", "▁": " ", "Ċ": "\n", "ĉ": "\t"})
REST = "⋯"  # a token of further bytes of a character that stands in the token before
SIDES = {"encoder": (0, 0), "decoder": (1, 1), "cross": (1, 0)}  # queries, keys


def capture_example(
    model: Model,
    text: str,
    text_pair: str | None = None,
    *,
    window: tuple[int, int] | None = None,
    flow: Sequence[str] = (),
    reading: Callable[..., Instrument] = Instrument,
) -> captured_example.ExampleMaps:
    """Run a model on one example and keep its maps.

    text_pair  the second segment; for encoder-decoders what the decoder reads (without it only the
               encoder is shown)
    window     tokens from (inclusive, from 0) and to (exclusive) that are shown; None: the first
               MOST_TOKENS. The model reads all of them
    flow       names of flow methods, and "max_flow": which tokens each layer's output comes from,
               as further maps of the first stack
    reading    makes the instrument, of the network, observers and stacks; it may change attention
    raises     InputError for empty text, more tokens than the model takes, a window outside it, an
               unknown flow; ModelError for a flow that has no meaning for the model
    """
    flows = check_methods(flow, also=[MAX_FLOW]) if flow else ()
    decodes = model.network.config.is_encoder_decoder and model.start is None
    example = encoded(model, text, None if decodes else text_pair)
    texts = [text, text_pair] if text_pair and not decodes else [text]
    sides = [_side(model, example, *_words(model, texts, example.input_ids))]
    decoder_ids: Ints | None = None
    if decodes:
        if text_pair:
            decoder_ids, decoder = _decoder_side(model, text_pair)
            sides.append(decoder)
        sides[0] = replace(sides[0], name="encoder")
    if flows:
        check_stack(model)
    windows = [_window(window if place == 0 else None, len(s)) for place, s in enumerate(sides)]
    left_out = [_left_out(side, cut) for side, cut in zip(sides, windows, strict=True)]
    if decodes and not text_pair:
        left_out.append("The decoder is not shown: give what it reads as the second text.")
    if model.shape.sinks:
        left_out.append("What a row lacks of 1 goes to no token: to a learned sink.")
    stacks = _stacks(model, example, decoder_ids, windows, flows, reading=reading)
    shown = tuple(side.part(cut) for side, cut in zip(sides, windows, strict=True))
    return captured_example.ExampleMaps(model.name, shown, stacks, " ".join(filter(None, left_out)))


def _side(model: Model, example: Example, word: Ints, written: Sequence[str]) -> TokenSide:
    batch = model.batch([example])
    flags = (batch.is_cls, batch.is_sep, batch.is_punctuation)
    cls, sep, punctuation = (flag[0, : len(example)].cpu().numpy() for flag in flags)
    tokens, special = model.tokens(example.input_ids), example.special
    if written:
        named = zip(tokens, written, special, strict=True)
        tokens = tuple(name if own else _readable(name, piece) for name, piece, own in named)
    return TokenSide(
        tokens, special, example.segment_ids, word, cls, sep, punctuation, written=tuple(written)
    )


def _readable(name: str, written: str) -> str:
    """A token with the characters that its bytes or space markers stand for."""
    if name.isascii() or name.startswith("##"):
        return name
    blank = name.translate(SPACES)
    return written.strip() or written or (REST if blank.strip() else blank)


def _decoder_side(model: Model, text: str) -> tuple[Ints, TokenSide]:
    """The ids that the decoder reads, as in training: the start token, then all but the last."""
    config = model.network.config
    start = getattr(config, "decoder_start_token_id", None)
    start = config.pad_token_id if start is None else start  # T5's way, where none is named
    reader = TokenizerReader(model.tokenizer, target=True)
    labels, special, _ = reader.frame.wrap(reader.text(text), None)
    if start is None or len(labels) < 2:
        raise InputError(
            f"{model.name!r} does not say how its decoder starts, or reads nothing in "
            f"{text[:40]!r}; wanted a decoder_start_token_id and a text"
        )
    ids = np.array([start, *labels[:-1]], np.int64)
    example = Example("decoder", "text", ids, np.zeros_like(ids), np.append(True, special[:-1]))
    word, written = _words(model, [text], labels, target=True)
    side = _side(model, example, np.append(-1, word[:-1]), ["", *written[:-1]] if written else [])
    return ids, replace(side, name="decoder")


def _words(
    model: Model, texts: Sequence[str], ids: Ints, *, target: bool = False
) -> tuple[Ints, list[str]]:
    """[token] the word of each token, as the tokenizer cut them, counted through all texts; and
    what was written for it, see `TokenSide`.

    ids     [token] of the texts in their frame
    target  as a decoder reads them
    """
    if not model.tokenizer.is_fast:
        return _words_by_spaces(TokenizerReader(model.tokenizer, target=target), texts, ids), []
    kinds = ("text_target",) if target else ("text", "text_pair")
    texts_by_kind = dict(zip(kinds, texts, strict=False))
    encoded = model.tokenizer(**texts_by_kind, return_offsets_mapping=True, verbose=False)
    if list(encoded.input_ids) != ids.tolist():
        return np.full(len(ids), -1, np.int64), []
    pairs = zip(encoded.sequence_ids(0), encoded.word_ids(0), strict=True)
    return _counted([None if None in pair else pair for pair in pairs]), _written(texts, encoded)


def _words_by_spaces(reader: TokenizerReader, texts: Sequence[str], ids: Ints) -> Ints:
    """As `_words`, for a tokenizer that returns no offsets."""
    read = [reader.running_words(text.split()) for text in texts]
    whole, special, _ = reader.frame.wrap(read[0][0], read[1][0] if len(read) > 1 else None)
    if not np.array_equal(whole, ids):
        return np.full(len(ids), -1, np.int64)
    places = iter([(text, word) for text, (_, of) in enumerate(read) for word in of.tolist()])
    return _counted([None if added else next(places) for added in special])


def _written(texts: Sequence[str], encoded: Any) -> list[str]:
    """[token] the characters from the end of the token before to its own end; '' if special."""
    ends, written = [0] * len(texts), []
    for place, (_, end) in zip(encoded.sequence_ids(0), encoded.offset_mapping, strict=True):
        before = 0 if place is None else ends[place]
        space = " " if place and not before else ""  # between two texts
        written.append("" if place is None else space + texts[place][before:end])
        if place is not None:
            ends[place] = max(before, end)
    return written


def _counted(places: Sequence[Any]) -> Ints:
    """[token] 0, 1, 2, … for runs of equal places; -1 for None."""
    word, last, count = np.full(len(places), -1, np.int64), None, -1
    for token, place in enumerate(places):
        if place is not None:
            count += place != last
            word[token] = count
        last = place
    return word


def _window(window: tuple[int, int] | None, tokens: int) -> slice:
    start, stop = window or (0, min(tokens, MOST_TOKENS))
    if not 0 <= start < stop <= tokens or stop - start > MOST_TOKENS:
        raise InputError(
            f"found a window from token {start + 1} to {stop}; wanted at most {MOST_TOKENS} "
            f"of the {tokens} tokens of the text"
        )
    return slice(start, stop)


def _left_out(side: TokenSide, window: slice) -> str:
    shown, tokens = window.stop - window.start, len(side)
    if shown == tokens:
        return ""
    whose = f" of the {side.name}" if side.name else ""
    return (
        f"Tokens {window.start + 1} to {window.stop} of {tokens}{whose} are shown; weights to the "
        "others are left out, and rows are not renormalised."
    )


class _StackRecorder:
    def __init__(self) -> None:
        self.kept: dict[str, list[Floats]] = defaultdict(list)  # of each layer
        self.scaling: list[float] = []
        self.softcap: float | None = None
        self.largest_error = 0.0

    def keep(self, layer: LayerView, rows: slice, columns: slice) -> None:
        kept = {"attention": layer.attention[0][:, rows, columns]}
        if {"values", "projection"} <= layer.offers:
            kept["norms"] = layer.value_norm[0, :, columns]
        if layer.queries is not None and layer.keys is not None:
            kept |= {"queries": layer.queries[0, :, rows], "keys": layer.keys[0, :, columns]}
            if layer.position_bias is not None:
                kept["bias"] = layer.position_bias[0][:, rows, columns]
            self.scaling.append(layer.scaling)
            self.softcap = layer.softcap
            self.largest_error = max(self.largest_error, _disagreement(layer))
        for name, tensor in kept.items():
            self.kept[name].append(tensor.float().cpu().numpy())

    def stack(self, name: str, queries: int, keys: int) -> StackMaps:
        layers = len(self.kept["attention"])
        whole = {n: np.stack(one) for n, one in self.kept.items() if len(one) == layers}
        vectors, why = None, "This family does not show its queries and keys."
        if "queries" in whole:
            why = "What this family does between q·k and its weights is not known."
            if self.largest_error < AGREED:
                why, scaling = "", np.array(self.scaling, np.float32)
                vectors = captured_example.Vectors(
                    whole["queries"], whole["keys"], scaling, self.softcap, whole.get("bias")
                )
        maps = whole["attention"]  # [layer, head, query, key]
        return StackMaps(name, queries, keys, maps, whole.get("norms"), vectors, why)


def _stacks(
    model: Model,
    example: Example,
    decoder_ids: Ints | None,
    windows: Sequence[slice],
    flows: Sequence[str],
    *,
    reading: Callable[..., Instrument],
) -> tuple[StackMaps, ...]:
    batch = model.batch([example])
    n = len(example)  # a batch may be padded
    ids, segments = batch.input_ids[:, :n], batch.segment_ids[:, :n]
    mask = torch.ones_like(ids)
    wanted = {model.shape.stack: (0, 0)} if decoder_ids is None else SIDES
    kept = {name: _StackRecorder() for name in wanted}
    cut = replace(batch, input_ids=ids, segment_ids=segments, mask=batch.mask[:, :n])
    methods = dict.fromkeys(FLOW_OF if name == MAX_FLOW else name for name in flows)
    watch, first = LayerMatrices(tuple(methods), cut), next(iter(wanted))

    def look(layer: LayerView) -> None:
        queries, keys = wanted[layer.stack]
        kept[layer.stack].keep(layer, windows[queries], windows[keys])
        if layer.stack == first:
            watch.look(layer)

    with (
        evaluating(model.network),
        torch.inference_mode(),
        reading(model.network, observers=[look], stacks=list(wanted)),
    ):
        if decoder_ids is None:
            forward(model.network, ids, mask, segments)
        else:
            target = torch.from_numpy(decoder_ids)[None].to(model.device)
            model.network(input_ids=ids, attention_mask=mask, decoder_input_ids=target)
    alone = len(wanted) == 1
    stacks = {n: k.stack("self" if alone else n, *wanted[n]) for n, k in kept.items()}
    flowing = _flow_maps(flows, watch, windows[0])
    stacks[first] = replace(stacks[first], measures=flowing, numbers=model.shape.numbers)
    return tuple(stacks.values())


def _flow_maps(names: Sequence[str], watch: LayerMatrices, window: slice) -> tuple[NamedMaps, ...]:
    """Maps [layer, 1, query, key] of the tokens in the window, from all layers up to each."""
    measures = []
    for name in names:
        if name == MAX_FLOW:
            maps = watch.max_flow(FLOW_OF, range(len(watch.matrices(FLOW_OF))))
            label, unit = "maximum flow", "1"
        else:
            maps, label, unit = watch.rollout(name), LABELS[name], "probability"
        cut = maps[:, None, window, window].astype(np.float32)  # [layer, 1, query, key]
        measures.append(NamedMaps(name, label, unit, cut))
    return tuple(measures)


def _disagreement(layer: LayerView) -> float:
    """Largest difference between the weights and the softmax of the scores over the keys seen."""
    assert layer.queries is not None
    assert layer.keys is not None
    scores = layer.queries[0].double() @ layer.keys[0].double().transpose(1, 2)
    scores = scores * layer.scaling  # [head, query, key]
    if layer.softcap is not None:
        scores = torch.tanh(scores / layer.softcap) * layer.softcap
    if layer.position_bias is not None:
        scores = scores + layer.position_bias[0]
    if layer.seen is not None:
        scores = scores.masked_fill(~layer.seen[0], -torch.inf)
    return float((scores.softmax(-1) - layer.attention[0]).abs().max().nan_to_num(1.0))
