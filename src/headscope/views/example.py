"""What does every head do in one example?

The maps of one input, a text or a pair of texts, as the model computed them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from headscope.batch import Batch
from headscope.corpus.document import Document, Passage
from headscope.corpus.encode import Encoder
from headscope.errors import CorpusError, InputError
from headscope.instrument import Instrument
from headscope.layer import LayerView
from headscope.model import Model, evaluating, forward

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]
MARKERS = "Ġ▁"  # of a word that follows a space, in byte-level and SentencePiece vocabularies


@dataclass(frozen=True)
class Shown:
    """One example with its maps.

    model        its name, as it was loaded
    tokens       as the vocabulary has them, without the sign for a space before them
    special      [token] the tokens that the tokenizer added
    segment      [token] 0 or 1
    word         [token] the word, counted through the example; -1 for special tokens
    cls, sep     [token] opening, and separating or closing tokens
    punctuation  [token] exactly "." or ","
    attention    [layer, head, query, key] probabilities
    value_norm   [layer, head, key] ‖f(x)‖; None where the family does not say what f is
    """

    model: str
    tokens: tuple[str, ...]
    special: Bools
    segment: npt.NDArray[np.int64]
    word: npt.NDArray[np.int64]
    cls: Bools
    sep: Bools
    punctuation: Bools
    attention: Floats
    value_norm: Floats | None

    @property
    def causal(self) -> bool:
        """Whether no token sees a later one."""
        return len(self.tokens) > 1 and not np.triu(self.attention, 1).any()

    @property
    def boundary(self) -> int | None:
        """The first token of the second segment; None where there is one segment."""
        second = np.flatnonzero(self.segment)
        return int(second[0]) if len(second) else None

    @property
    def weighted_norm(self) -> Floats | None:
        """[layer, head, query, key] ‖αf(x)‖ (Kobayashi et al. 2020)."""
        if self.value_norm is None:
            return None
        weighted: Floats = self.attention * self.value_norm[:, :, None, :]
        return weighted


def show(model: Model, text: str, text_pair: str | None = None) -> Shown:
    """Run one example through a model and keep its maps.

    Encoder-decoders show their encoder.

    raises  InputError for empty text or more tokens than the model takes
    """
    if not text.strip():
        raise InputError("found an empty text; wanted something to read")
    encoder = Encoder(
        model.tokenizer, model_limit=model.limit, has_segments=model.has_segments, long="error"
    )
    document = Document("text", (Passage("the text", text=text, text_pair=text_pair),))
    try:
        found = encoder.encode(document)
    except CorpusError as error:
        raise InputError(str(error)) from error
    if not found:
        raise InputError(
            f"the tokenizer gives no tokens for {text[:40]!r}; wanted text it can read"
        )
    batch = Batch.of(found, model.vocabulary, replicates=0, device=model.device)
    length = len(found[0])
    attention, norms = _maps(model, batch, length)
    flags = (batch.is_cls, batch.is_sep, batch.is_punctuation)
    cls, sep, punctuation = (flag[0, :length].cpu().numpy() for flag in flags)
    ids = found[0].input_ids.tolist()
    return Shown(
        model.name, tuple(_shown(t) for t in model.tokenizer.convert_ids_to_tokens(ids)),
        found[0].special, found[0].segment_ids, _words(model, text, text_pair, ids),
        cls, sep, punctuation, attention, norms,
    )  # fmt: skip


def _maps(model: Model, batch: Batch, length: int) -> tuple[Floats, Floats | None]:
    attention: list[Floats] = []
    norms: list[Floats] = []
    known = {"values", "projection"} <= model.allows

    def look(layer: LayerView) -> None:
        attention.append(layer.attention[0, :, :length, :length].float().cpu().numpy())
        if known:
            norms.append(layer.value_norm[0, :, :length].float().cpu().numpy())

    stacks = [model.shape.stack]
    with (
        evaluating(model.network),
        torch.inference_mode(),
        Instrument(model.network, observers=[look], stacks=stacks),
    ):
        forward(model.network, batch.input_ids, batch.mask, batch.segment_ids)
    return np.stack(attention), np.stack(norms) if known else None  # [layer, head, …]


def _words(
    model: Model, text: str, text_pair: str | None, ids: Sequence[int]
) -> npt.NDArray[np.int64]:
    """[token] the word of each token by the tokenizer's own account, counted through both texts."""
    texts = (text,) if not text_pair else (text, text_pair)
    encoded = model.tokenizer(*texts, verbose=False)
    word = np.full(len(ids), -1, np.int64)
    if list(encoded.input_ids) != list(ids):
        return word
    last, count = None, -1
    pairs = zip(encoded.sequence_ids(0), encoded.word_ids(0), strict=True)
    for token, place in enumerate(pairs):
        if None in place:
            last = None
            continue
        count += place != last
        word[token], last = count, place
    return word


def _shown(token: str) -> str:
    return token.lstrip(MARKERS).removesuffix("</w>") or token
