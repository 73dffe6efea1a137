"""Which tokens is a language model asked, and what is it shown instead of them?

Masked: 15 % of an example's own tokens (at least one); of these 80 % become [MASK], 10 % another
token, and 10 % stay (Devlin et al. 2019, §3.1). Causal: every token but the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from headscope.core.accumulators import generator
from headscope.corpus.document import Example
from headscope.errors import CorpusError, ModelError
from headscope.experiments.importance.objectives import Ids, OfTokens
from headscope.model.model import Model

SHARE, MASKED, CHANGED = 0.15, 0.8, 0.1


@dataclass(frozen=True)
class Told:
    """Examples as they are shown, and what is asked of them.

    left_out  examples in which nothing can be asked
    """

    examples: list[Example]
    objective: OfTokens
    left_out: int


def masked(model: Model, examples: Sequence[Example], *, seed: int) -> Told:
    """For a masked language model; what is drawn depends on the seed and the example's id alone.

    raises  ModelError for a tokenizer without a mask token; CorpusError where nothing can be asked
    """
    mask = model.tokenizer.mask_token_id
    if mask is None:
        raise ModelError(
            f"the tokenizer of {model.name!r} has no mask token, and the model is a masked "
            "language model; wanted the tokenizer that it was trained with"
        )
    words = np.setdiff1d(np.arange(len(model.tokenizer)), model.tokenizer.all_special_ids)
    shown, asked, right = [], [], []
    for example in examples:
        own = np.flatnonzero(~example.special)
        if not len(own):
            continue
        rng = generator(seed, "masked tokens", example.document, example.id)
        places = np.sort(rng.choice(own, max(1, round(SHARE * len(own))), replace=False))
        how, other = rng.random(len(places)), rng.choice(words, len(places))
        ids = example.input_ids.copy()
        ids[places] = np.where(
            how < MASKED, mask, np.where(how < MASKED + CHANGED, other, ids[places])
        )
        shown.append(replace(example, input_ids=ids))
        asked.append(places)
        right.append(example.input_ids[places])
    return _told("masked-language-model loss", examples, shown, asked, right)


def causal(examples: Sequence[Example]) -> Told:
    """For a causal language model; each token is asked of those before it."""
    shown = [example for example in examples if len(example) > 1]
    asked = [np.arange(len(example) - 1) for example in shown]
    right = [example.input_ids[1:] for example in shown]
    return _told("causal language-model loss", examples, shown, asked, right)


def _told(
    name: str, given: Sequence[Example], shown: list[Example], asked: list[Ids], right: list[Ids]
) -> Told:
    if not shown:
        raise CorpusError(
            f"found {len(given)} inputs, in none of which a token can be asked; wanted text"
        )
    return Told(shown, OfTokens(name, asked, right), len(given) - len(shown))
