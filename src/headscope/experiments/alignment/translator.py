"""Loads a translation model and encodes pairs of sentences, with the word of each token.

As `headscope.load`, but an encoder-decoder with its own way from a target to what the decoder
reads.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForSeq2SeqLM

from headscope.core.accumulators import Ints
from headscope.corpus.tokenizer import TokenizerReader
from headscope.errors import ModelError
from headscope.experiments.alignment.gold_alignments import SentencePair
from headscope.model import checkpoint, weights
from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView
from headscope.model.model import Model, Shape
from headscope.model.placement import DeviceMap, Placement

CODES = {"de": "deu", "en": "eng", "fr": "fra", "ro": "ron"}  # ISO 639-3 of what has gold links


@dataclass(frozen=True)
class PairSide:
    """One sentence as a model reads it.

    ids   [token]
    word  [token] the word that each token is of; -1 for special tokens, and a task's prefix
    """

    ids: Ints
    word: Ints

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class EncodedPair:
    """A pair as a model reads it.

    target       the tokens that are to be generated, in order
    decoder_ids  [token] what the decoder reads: at place i it generates target[i], and what it
                 reads at place i + 1 is target[i]
    """

    pair: SentencePair
    source: PairSide
    target: PairSide
    decoder_ids: Ints

    def __len__(self) -> int:
        return max(len(self.source), len(self.target))


class Translator(Model):
    """An encoder-decoder; the stack that is looked at is cross-attention."""

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """Cross-attention, found by running the network once on two tokens."""
        seen: list[LayerView] = []
        with Instrument(self.network, observers=[seen.append], stacks=["cross"]):
            ids = torch.zeros((1, 2), dtype=torch.long, device=self.device)
            self.run(ids, torch.ones_like(ids), ids)
        allows = frozenset.intersection(*(view.offers for view in seen))
        return {"cross": Shape("cross", len(seen), seen[0].attention.shape[1], allows)}

    @property
    def shape(self) -> Shape:
        """The decoder's cross-attention."""
        return self.shapes["cross"]

    @cached_property
    def readers(self) -> tuple[TokenizerReader, TokenizerReader]:
        """Readers of sources and of targets, in languages that the tokenizer knows."""
        return TokenizerReader(self.tokenizer), TokenizerReader(self.tokenizer, target=True)

    def run(self, ids: torch.Tensor, mask: torch.Tensor, decoder_ids: torch.Tensor) -> None:
        """One forward pass; all [example, token]. The words' scores are left out where they can."""
        with torch.inference_mode():
            self.network.base_model(
                input_ids=ids,
                attention_mask=mask.long(),
                decoder_input_ids=decoder_ids,
                use_cache=False,
            )


def load_translator(
    name: str | Path,
    *,
    languages: tuple[str, str] | None = None,
    device: str = "cpu",
    device_map: DeviceMap = None,
    dtype: str = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
) -> Translator:
    """An encoder-decoder checkpoint, in evaluation mode.

    languages  of source and target, for multilingual models: "de" and "en"
    raises     ModelError as `headscope.load`; for a model that is no encoder-decoder, whose
               values cannot be read, or that does not know the languages
    """
    path, where = str(name), Placement(device, device_map)
    source = checkpoint.Checkpoint(path, revision=revision, trust_remote_code=trust_remote_code)
    with checkpoint.quietly():
        if not source.config.is_encoder_decoder:
            raise ModelError(
                f"{path!r} ({source.config.model_type}) is no encoder-decoder, so it has no "
                "attention from a translation to its source; wanted a translation model such as "
                "Helsinki-NLP/opus-mt-de-en"
            )
        tokenizer = source.tokenizer
        network, missing = source.network(AutoModelForSeq2SeqLM, dtype, where)
    weights.refuse_incomplete(path, missing)
    _tell_languages(tokenizer, languages, path)
    digest = source.weights_sha256(network)
    translator = Translator(network, tokenizer, source.name, source.commit, digest)
    if not {"values", "projection"} <= translator.allows:
        raise ModelError(
            f"{path!r}: the vectors of {translator.architecture}’s cross-attention "
            "cannot be read, so there are no norms; wanted a Marian, BART, mBART or T5"
        )
    return translator


def encode(
    translator: Translator, pair: SentencePair, languages: tuple[str, str] | None = None
) -> EncodedPair:
    """A pair as the model reads it, its target as in training.

    raises  ModelError where the decoder does not read its target one place later
    """
    prefix = _prefix(translator.network.config, languages)
    reads, writes = translator.readers
    source, target = _side(reads, pair.source, prefix=prefix), _side(writes, pair.target)
    decoder = _decoder_ids(translator.network, target.ids)
    written = np.flatnonzero(target.word >= 0) + 1
    if (written >= len(decoder)).any() or (decoder[written] != target.ids[written - 1]).any():
        raise ModelError(
            f"{translator.name!r}: the decoder of {translator.architecture} does not read each "
            "target token one place after it generates it; wanted a target that ends in a special "
            "token, as in Marian, BART and T5"
        )
    return EncodedPair(pair, source, target, decoder)


def _decoder_ids(network: Any, target: Ints) -> Ints:
    """What the decoder reads, by the network's own shift; else its start sign, then the target."""
    if hasattr(network, "prepare_decoder_input_ids_from_labels"):
        shifted = network.prepare_decoder_input_ids_from_labels(torch.from_numpy(target)[None])
        return np.asarray(shifted[0].cpu().numpy())
    return np.array([network.config.decoder_start_token_id, *target[:-1]], np.int64)


# --- tokens and words -----------------------------------------------------------------------


def _side(
    reader: TokenizerReader, words: tuple[str, ...], *, prefix: tuple[str, ...] = ()
) -> PairSide:
    """The sentence as it is read, words with one space between them; `prefix` is of no word."""
    content, of = reader.running_words((*prefix, *words))
    ids, special, _ = reader.frame.wrap(content, None)
    word = np.full(len(ids), -1, np.int64)
    word[~special] = np.maximum(of - len(prefix), -1)
    return PairSide(ids, word)


# --- languages ------------------------------------------------------------------------------


def _prefix(config: Any, languages: tuple[str, str] | None) -> tuple[str, ...]:
    """What T5 was taught to read before a text that is to be translated."""
    tasks = getattr(config, "task_specific_params", None) or {}
    task = tasks.get("translation_{}_to_{}".format(*languages)) if languages else None
    return tuple((task or {}).get("prefix", "").split())


def _tell_languages(tokenizer: Any, languages: tuple[str, str] | None, name: str) -> None:
    """Sets source and target of a tokenizer of many languages (mBART, M2M100, NLLB)."""
    if not hasattr(tokenizer, "src_lang"):
        return
    codes = list(getattr(tokenizer, "lang_code_to_id", None) or tokenizer.all_special_tokens)
    matching = []
    for language in languages or ():
        meant = {language, CODES.get(language, language)}
        matching.append([code for code in codes if code.split("_")[0] in meant])
    if [len(some) for some in matching] != [1, 1]:
        raise ModelError(
            f"{name!r} reads many languages and needs the names of two (found "
            f"{languages or 'no names of languages in the names of the files'}); wanted files that "
            "are named for languages it knows, as de, en and alignmentDeEn.talp"
        )
    tokenizer.src_lang, tokenizer.tgt_lang = matching[0][0], matching[1][0]
