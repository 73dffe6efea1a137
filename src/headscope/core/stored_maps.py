"""Reads the inputs that a run stores with all their maps, from the group `examples`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from headscope.core.accumulators import Bools, Ints
from headscope.core.display import printable
from headscope.core.results import Floats, group

PUNCTUATION = (".", ",")


@dataclass(frozen=True)
class StoredInput:
    """One input of the group `examples`; a place is a token, or several folded ones.

    text        what was read, without special tokens
    tokens      [place] as the vocabulary has them
    special     [place] whether the tokenizer added it
    segment     [place] 0 or 1
    word        [place] number of the word; -1: none
    count       [place] tokens that stand there
    attention   [layer, head, place, place]
    value_norm  [layer, head, place]; None where it is not known at every place
    entity      [place] of whom a mention speaks whose head word stands there, a number; -1: none
    gold        (dependent, head, relation) of its words, where it has a tree; no root
    versus      [layer, head, place, place] maps of another model to compare these with, or None
    versus_name what they are called
    """

    text: str
    tokens: tuple[str, ...]
    special: Bools
    segment: Ints
    word: Ints
    count: Ints
    attention: Floats
    value_norm: Floats | None
    gold: tuple[tuple[int, int, str], ...]
    entity: Ints
    versus: Floats | None = None
    versus_name: str = ""

    @property
    def cls(self) -> Bools:
        """[place] whether it is the opening token."""
        return np.asarray(self.special & (np.arange(len(self.tokens)) == 0))

    @property
    def sep(self) -> Bools:
        """[place] whether it is a separating or closing token."""
        return self.special & ~self.cls

    @property
    def punctuation(self) -> Bools:
        """[place] whether it is exactly a full stop or a comma."""
        return np.isin(self.tokens, PUNCTUATION)

    @property
    def ordinary(self) -> Bools:
        """[place] whether it is a single token that is not special."""
        return np.asarray(~self.special & (self.count == 1))


def stored_inputs(tree: xr.DataTree) -> list[StoredInput]:
    """All inputs with stored maps, in order; empty for runs of older versions."""
    dataset = group(tree, "examples")
    if dataset is None or "token_attention" not in dataset:
        return []
    maps = dataset["token_attention"].transpose("input", "layer", "head", "token", "token_other")
    norms = dataset["value_norm"].transpose("input", "layer", "head", "token")
    others = dataset.get("versus_attention")
    if others is not None:
        others = others.transpose(*maps.dims)
    columns = {
        name: dataset[name].transpose("input", "token").values
        for name in (
            "token_text",
            "word_text",
            "special",
            "segment",
            "token_word",
            "token_count",
        )
    }
    inputs = []
    for at in range(maps.sizes["input"]):
        n = int((columns["token_count"][at] > 0).sum())
        attention = maps.values[at, :, :, :n, :n]
        if n == 0 or not np.isfinite(attention).all():
            continue
        value_norm = norms.values[at, :, :, :n]
        entity = (
            dataset["token_entity"].values[at, :n] if "token_entity" in dataset else np.full(n, -1)
        )
        token, form, special, segment, word, count = (c[at, :n] for c in columns.values())
        tokens = tuple(map(str, token))
        known = bool(np.isfinite(value_norm).all())
        inputs.append(
            StoredInput(
                text=_text(tokens, form.tolist(), special > 0, word),
                tokens=tokens,
                special=special > 0,
                segment=segment.astype(np.int64),
                word=word.astype(np.int64),
                count=count.astype(np.int64),
                attention=attention,
                value_norm=value_norm if known else None,
                gold=_gold(dataset, at),
                entity=entity.astype(np.int64),
                versus=None if others is None else others.values[at, :, :, :n, :n],
                versus_name="" if others is None else printable(others.attrs["versus"]),
            )
        )
    return inputs


def _text(tokens: Sequence[str], forms: Sequence[str], special: Bools, word: Ints) -> str:
    """The words as written, if known; else the tokens, with spaces."""
    pieces, last = list[str](), -1
    for token, form, added, number in zip(tokens, forms, special, word.tolist(), strict=True):
        if number < 0 and not added:
            pieces.append(f"{token} ")
        elif number >= 0 and number != last:
            pieces.append(form)
        last = number
    # WordPiece marks the continuation of a word with ##.
    return "".join(pieces).replace(" ##", "").strip()


def _gold(dataset: xr.Dataset, at: int) -> tuple[tuple[int, int, str], ...]:
    if at >= dataset.sizes["example"]:
        return ()
    heads = dataset["head_word"].transpose("example", "word").values[at]
    names = dataset["relation"].transpose("example", "word").values[at]
    return tuple(
        (word, int(head), str(name))
        for word, (head, name) in enumerate(zip(heads, names, strict=True))
        if head >= 0
    )
