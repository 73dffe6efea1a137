"""Synthetic inputs: sequences of random tokens, repeated or not, and ordinals.

[BOS r_1 … r_n r_k … r_n r_1 … r_{k-1}], the r drawn from the vocabulary without special tokens,
each once (Olsson et al. 2022, with k = 1). The second half begins with another of them in every
input: so a token stands at many distances from where it stood before, and a head that looks back by
one distance alone is found out. Ids are fed as they are: text made of them might be cut into other
tokens. Beside each such input stands one whose second half is new: what a head gives to the same
places there, it gives for where they are, and not for what stands there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from string import ascii_uppercase
from typing import Any

import numpy as np

from headscope.core.accumulators import Ints, generator
from headscope.corpus.document import Example
from headscope.errors import InputError
from headscope.experiments.circuits.settings import FEWEST, LEAST_LENGTH
from headscope.model.model import Model


@dataclass(frozen=True)
class Repeats:
    """Inputs whose second half repeats the first, and as many whose second half is new.

    repeated, fresh  one of each for every sequence, of the same first half
    opening          tokens before the first half: 1 where the tokenizer has a first token, else 0
    length           tokens of a half
    turns            by document, how many tokens of the first half the second leaves to its end
    """

    repeated: list[Example]
    fresh: list[Example]
    opening: int
    length: int
    turns: Mapping[str, int] = field(default_factory=dict)

    @property
    def ids(self) -> Ints:
        """[sequence, token] the repeated inputs."""
        return np.stack([example.input_ids for example in self.repeated])

    def before(self, examples: Sequence[Example]) -> Ints:
        """[example, position in the second half] position of the same token in the first half."""
        turns = [[self.turns.get(example.document, 0)] for example in examples]
        return (np.arange(self.length) + turns) % self.length

    def known(self, example: Example) -> Ints:
        """Positions of the second half whose next token is determined: all but the last token's."""
        (before,) = self.before([example])
        return np.flatnonzero(before[:-1] + 1 == before[1:])


def repeats(
    model: Model, *, sequences: int, length: int, seed: int, held_out: bool = False
) -> Repeats:
    """Inputs of two halves of random tokens.

    held_out  others than without, by the same seed, whose second half begins as the first does
    raises  InputError for fewer than FEWEST sequences, a half shorter than LEAST_LENGTH, inputs
            that are longer than the model takes, or a vocabulary of fewer tokens
    """
    if sequences < FEWEST or length < LEAST_LENGTH:
        raise InputError(
            f"found {sequences} sequences with halves of {length} tokens; wanted {FEWEST} or more, "
            f"of {LEAST_LENGTH} or more"
        )
    first, words = opening_token(model), plain_tokens(model)
    opening = 0 if first is None else 1
    if opening + 2 * length > model.limit:
        raise InputError(
            f"halves of {length} tokens make inputs of {opening + 2 * length}, and "
            f"{model.name!r} takes {model.limit}: give a smaller --length"
        )
    if 2 * length > len(words):
        raise InputError(
            f"halves of {length} tokens need {2 * length} different ones, and {model.name!r} has "
            f"{len(words)} that are not special: give --length {len(words) // 2} or less"
        )
    start = np.array([] if first is None else [first], np.int64)
    repeated, fresh, turns = list[Example](), list[Example](), dict[str, int]()
    of, called = ("held out",) * 2 if held_out else ("repeats", "sequence")
    for number in range(sequences):
        draw, name = generator(seed, of, str(number)), f"{called} {number}"
        drawn = draw.choice(words, 2 * length, replace=False)
        half, other = drawn[:length], drawn[length:]
        # So few that what came after the last token of the first half is not the previous token.
        turns[name] = 0 if held_out else int(draw.integers(length - 2))
        again = np.roll(half, -turns[name])
        for kind, second, into in (("repeated", again, repeated), ("fresh", other, fresh)):
            into.append(
                example_of(np.concatenate([start, half, second]), name, kind, special=opening)
            )
    return Repeats(repeated, fresh, opening, length, turns)


def example_of(ids: Ints, document: str, kind: str, *, special: int = 0) -> Example:
    """Token ids as a model's input, the first `special` of them added by the tokenizer."""
    nothing = np.zeros(len(ids), np.int64)
    return Example(f"{document} {kind}", document, ids, nothing, np.arange(len(ids)) < special)


def opening_token(model: Model) -> int | None:
    """The id of the token that opens an input, added by the tokenizer or not."""
    tokenizer = model.tokenizer
    ids = (tokenizer.bos_token_id, tokenizer.cls_token_id, tokenizer.eos_token_id)
    return next((int(one) for one in ids if one is not None), None)


def plain_tokens(model: Model) -> Ints:
    """Ids that tokenizer and network share, without special and added tokens."""
    tokenizer = model.tokenizer
    embeddings: Any = model.network.get_input_embeddings()
    added = [*tokenizer.all_special_ids, *getattr(tokenizer, "added_tokens_decoder", {})]
    return np.setdiff1d(np.arange(min(len(tokenizer), embeddings.num_embeddings)), added)


# --- ordinals ---------------------------------------------------------------------------------

ORDINALS = {
    "days": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "months": "January February March April May June July August September October November "
    "December",
    "letters": " ".join(ascii_uppercase),
    "digits": " ".join(map(str, range(1, 21))),
    "numbers": "one two three four five six seven eight nine ten eleven twelve",
    "places": "first second third fourth fifth sixth seventh eighth ninth tenth",
}


@dataclass(frozen=True)
class WordPairs:
    """Words that are single tokens, each with one that it leads to: an ordinal and its successor.

    ids     [pair] of the word
    right   [pair] ids that count as the other, as it is written with and without a space
    words   [pair] `Monday → Tuesday`
    """

    ids: list[int]
    right: list[tuple[int, ...]]
    words: list[str]

    def forms(self, width: int) -> Ints:
        """[pair, width] `right` as one array; a pair with fewer forms has some of them again."""
        return np.array([(one * width)[:width] for one in self.right], np.int64)


def ordinals(model: Model) -> WordPairs:
    """The pairs of ORDINALS that the tokenizer has as single tokens, with a leading space."""
    pairs = WordPairs([], [], [])
    for names in ORDINALS.values():
        for one, other in pairwise(names.split()):
            ids, right = single_ids(model, one), single_ids(model, other)
            if ids and right:
                pairs.ids.append(ids[0])
                pairs.right.append(right)
                pairs.words.append(f"{one} → {other}")
    return pairs


def single_ids(model: Model, word: str) -> tuple[int, ...]:
    """The ids of a word as one token, with a leading space first; empty if it has several."""
    tokenizer, ids_of_word = model.tokenizer, list[int]()
    for text in (f" {word}", word):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        if len(ids) == 1 and tokenizer.decode(ids).strip().casefold() == word.casefold():
            ids_of_word += ids
    return tuple(dict.fromkeys(ids_of_word))
