"""Reads an encoder-decoder by its decoder: the decoder reads a text, and its encoder the same one.

As in training (teacher forcing): before the text stands the sign with which the decoder starts, so
that at each place it has the tokens before the next one. The encoder reads the whole text, without
that sign, and with the one that closes a text.
"""

from __future__ import annotations

import copy
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import torch

from headscope.corpus.tokenizer import TokenizerReader
from headscope.errors import ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

DECODER = "decoder"
READS = "the same text"  # the encoder


class ReadsByDecoder:
    """What such a network is beside its own class: called with ids alone, it is a decoder.

    start    id before a text that the decoder reads
    closing  id behind a text that the encoder reads
    """

    start: int
    closing: int

    def __call__(self, input_ids: Any = None, attention_mask: Any = None, **more: Any) -> Any:
        """What the network gives for what its decoder reads, [example, token]; both sides as its
        own class takes them where `decoder_input_ids` are among the arguments.
        """
        if "decoder_input_ids" not in more:
            more |= {"decoder_input_ids": input_ids, "decoder_attention_mask": attention_mask}
            input_ids = read_by_encoder(input_ids, attention_mask, self.closing)
        whole: Any = super()
        return whole.__call__(input_ids=input_ids, attention_mask=attention_mask, **more)


def read_by_encoder(ids: torch.Tensor, mask: torch.Tensor, closing: int) -> torch.Tensor:
    """[example, token] what the encoder reads: each token a place earlier, and `closing` last."""
    last = mask.long().sum(-1, keepdim=True) - 1
    return ids.roll(-1, 1).scatter(1, last, closing)


def by_decoder(network: PreTrainedModel, tokenizer: Any, name: str) -> PreTrainedModel:
    """The same network, weights and all, read by its decoder.

    name    of the model, for messages
    raises  ModelError for what is no encoder-decoder, or where it is not known what its decoder
            starts with, and what closes a text
    """
    config: Any = network.config
    if not config.is_encoder_decoder:
        raise ModelError(
            f"{name!r} ({config.model_type}) is no encoder-decoder, so it has one stack; wanted a "
            "model such as T5 or BART, or no --stack"
        )
    start = getattr(config, "decoder_start_token_id", None)
    closing = TokenizerReader(tokenizer).frame.single[1]
    if start is None or len(closing) != 1:
        lacks = "with which token its decoder starts" if start is None else "what closes a text"
        raise ModelError(
            f"{name!r} ({config.model_type}) does not say {lacks}, so its decoder cannot read a "
            "text as in training; wanted decoder_start_token_id in its configuration, and a "
            "tokenizer that ends each text with one special token, as T5 and BART have"
        )
    return _as(network, int(start), int(closing[0]))


def alike(part: PreTrainedModel, network: PreTrainedModel) -> PreTrainedModel:
    """A part of a network with its encoder and decoder, read as the network is."""
    if not isinstance(network, ReadsByDecoder) or isinstance(part, ReadsByDecoder):
        return part
    return _as(part, network.start, network.closing)


def _as(network: PreTrainedModel, start: int, closing: int) -> PreTrainedModel:
    same = copy.copy(network)  # another object with the same modules
    own: Any = type(network)
    same.__class__ = _class_of(own, start, closing)
    return same


@cache
def _class_of(own: Any, start: int, closing: int) -> type[PreTrainedModel]:
    """The class of a network and ReadsByDecoder; it has the name and place of the former, by which
    transformers and tables of families know it.
    """
    more = {"start": start, "closing": closing, "__module__": own.__module__}
    return cast("type[PreTrainedModel]", type(own.__name__, (ReadsByDecoder, own), more))
