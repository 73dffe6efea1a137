"""One example as a model read it: its tokens, attention maps and vectors, alone or compared."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from headscope.core.accumulators import Bools, Float64, Ints
from headscope.core.head_names import HeadNames
from headscope.core.results import pieces
from headscope.errors import InputError

Floats = npt.NDArray[np.float32]
SINK = 0.25  # ours: of what uniform attention leaves, what a first token gets that is a sink


@dataclass(frozen=True)
class TokenSide:
    """The tokens of one input: of the text, or of what an encoder or a decoder reads.

    tokens       as the vocabulary has them, without the sign for a space before them; where it
                 spells bytes, the characters that they stand for
    special      [token] the tokens that the tokenizer added
    segment      [token] 0 or 1
    word         [token] the word, counted through the side; -1 for special tokens
    cls, sep     [token] opening, and separating or closing tokens
    punctuation  [token] exactly "." or ","
    name         "encoder" or "decoder"; "" where there is one side
    written      [token] what the user wrote for it, with the spaces before it; "" for special
                 tokens; none where that is not known
    """

    tokens: tuple[str, ...]
    special: Bools
    segment: Ints
    word: Ints
    cls: Bools
    sep: Bools
    punctuation: Bools
    name: str = ""
    written: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def boundary(self) -> int | None:
        """The first token of the second segment; None where there is one segment."""
        second = np.flatnonzero(self.segment)
        return int(second[0]) if len(second) and second[0] else None

    @property
    def pieces(self) -> tuple[str, ...]:
        """The tokens as displayed."""
        return pieces(self.tokens, self.special.tolist(), self.written)

    @property
    def text(self) -> str:
        """As written, on one line; else the tokens that are not special, pieces of words joined."""
        if self.written:
            return " ".join("".join(self.written).split())
        ordinary = (t for t, s in zip(self.tokens, self.special, strict=True) if not s)
        return " ".join(ordinary).replace(" ##", "")

    def part(self, window: slice) -> Self:
        """The tokens of a window only."""
        names = ("tokens", "special", "segment", "word", "cls", "sep", "punctuation", "written")
        return replace(self, **{name: getattr(self, name)[window] for name in names})


@dataclass(frozen=True)
class Vectors:
    """Queries and keys; attention is the softmax over keys of cap(scaling · q·k) + bias.

    queries  [layer, head, query, dim]  as used: rotated, if the model rotates
    keys     [layer, head, key, dim]    likewise, repeated to the query heads
    scaling  [layer] factor of q·k
    softcap  cap(s) = softcap · tanh(s / softcap); None: s
    bias     [layer, head, query, key] what is added to the scores (T5's positions), or None
    """

    queries: Floats
    keys: Floats
    scaling: Floats
    softcap: float | None = None
    bias: Floats | None = None


@dataclass(frozen=True)
class NamedMaps:
    """Maps other than attention: rollout, for instance, or the attention of another model.

    maps  [layer, head, query, key] at least 0; [layer, 1, query, key] for maps that belong to a
          layer, which every head of it shows
    unit  "probability" or "1"
    """

    name: str
    label: str
    unit: str
    maps: Floats


@dataclass(frozen=True)
class StackMaps:
    """The attention of one stack of layers.

    name        "self" where there is one; else "encoder", "decoder", "cross"
    queries, keys   places in the example's sides: whose tokens attend, and are attended to
    attention   [layer, head, query, key] probabilities
    value_norm  [layer, head, key] ‖f(x)‖; None where the family does not say what f is
    vectors     None where they cannot be read; `why_none` says why
    measures    further maps
    versus      attention to compare with: shown beside, and as the difference
    importance  [layer, head, neuron] of the vectors' neurons in a corpus
    numbers     [layer] from 0, the model's own, where only some of its layers attend
    untrained   the same of an untrained network of the shape, whose vectors the page shows beside
    """

    name: str
    queries: int
    keys: int
    attention: Floats
    value_norm: Floats | None = None
    vectors: Vectors | None = None
    why_none: str = ""
    measures: tuple[NamedMaps, ...] = ()
    versus: NamedMaps | None = None
    importance: Float64 | None = None
    numbers: tuple[int, ...] = ()
    untrained: Self | None = None

    @property
    def names(self) -> HeadNames:
        """The names of its heads."""
        return HeadNames(self.numbers)

    @property
    def causal(self) -> bool:
        """Whether no token sees a later one."""
        if self.queries != self.keys or self.attention.shape[-1] < 2:
            return False
        return not any(np.triu(layer, 1).any() for layer in self.attention)

    @property
    def rests_on_first(self) -> bool:
        """Whether the first token is a sink: in a decoder, on the mean over heads and later tokens,
        well above uniform attention to what each token sees.
        """
        count = self.attention.shape[-1]
        if count < 3 or not self.causal or (self.attention[:, :, 0, 0] < 0.999).any():
            return False  # its row is 1, or another token stood before the window
        uniform = float(np.mean(1 / np.arange(2, count + 1)))
        return float(self.attention[:, :, 1:, 0].mean()) > uniform + SINK * (1 - uniform)

    @property
    def weighted_norm(self) -> Floats | None:
        """[layer, head, query, key] ‖αf(x)‖ (Kobayashi et al. 2020)."""
        if self.value_norm is None:
            return None
        weighted: Floats = self.attention * self.value_norm[:, :, None, :]
        return weighted


@dataclass(frozen=True)
class ExampleMaps:
    """One example with its maps.

    model     its name, as it was loaded
    sides     one, or encoder and decoder
    stacks    one, or encoder, decoder and cross
    left_out  "", or a sentence on the parts of the example that are missing here
    """

    model: str
    sides: tuple[TokenSide, ...]
    stacks: tuple[StackMaps, ...]
    left_out: str = ""

    @property
    def sinks(self) -> set[int]:
        """The sides whose first token is a sink and not special."""
        return {
            s.keys for s in self.stacks if not self.sides[s.keys].special[0] and s.rests_on_first
        }

    @property
    def sides_for_views(self) -> tuple[TokenSide, ...]:
        """The sides, with the sinks among the special tokens: dimmed or removed if they are."""
        sides = list(self.sides)
        for place in self.sinks:
            first = np.arange(len(sides[place])) == 0
            sides[place] = replace(sides[place], special=sides[place].special | first)
        return tuple(sides)

    @property
    def text(self) -> str:
        """The texts of all sides."""
        return " → ".join(side.text for side in self.sides)


def beside_model(shown: ExampleMaps, other: ExampleMaps) -> ExampleMaps:
    """The example with another model's attention beside its own, head by head.

    raises  InputError if the two cut the text into other tokens, or have other layers or heads
    """
    for mine, theirs in zip(shown.sides, other.sides, strict=False):
        if mine.tokens != theirs.tokens:
            raise InputError(
                f"{other.model!r} cuts the text into {len(theirs)} tokens ({_first(theirs)}), "
                f"{shown.model!r} into {len(mine)} ({_first(mine)}); wanted the same tokens: "
                "compare models with one tokenizer"
            )
    return _with(shown, other, f"attention, {Path(other.model).name}")


def beside_text(shown: ExampleMaps, other: ExampleMaps) -> ExampleMaps:
    """The example with another text's attention beside its own, token by token.

    Tokens that differ are shown as `this/that`.

    raises  InputError if the two have different numbers of tokens
    """
    lengths = [(len(a), len(b)) for a, b in zip(shown.sides, other.sides, strict=True)]
    if any(mine != theirs for mine, theirs in lengths):
        counts = ", ".join(f"{mine} and {theirs}" for mine, theirs in lengths)
        raise InputError(
            f"the two texts have {counts} tokens; wanted the same number, so that each weight has "
            "its counterpart"
        )
    sides = tuple(_joined(a, b) for a, b in zip(shown.sides, other.sides, strict=True))
    return replace(_with(shown, other, "attention, other text"), sides=sides)


def beside_untrained(shown: ExampleMaps, other: ExampleMaps) -> ExampleMaps:
    """The example with what an untrained network of the same shape makes of it."""
    pairs = zip(shown.stacks, other.stacks, strict=True)
    return replace(shown, stacks=tuple(replace(one, untrained=two) for one, two in pairs))


def _with(shown: ExampleMaps, other: ExampleMaps, label: str) -> ExampleMaps:
    mine = [(s.name, s.attention.shape) for s in shown.stacks]
    theirs = [(s.name, s.attention.shape) for s in other.stacks]
    if mine != theirs:
        raise InputError(
            f"{shown.model!r} has maps of {mine}, {other.model!r} of {theirs}; wanted the same "
            "layers and heads"
        )
    stacks = tuple(
        replace(a, versus=NamedMaps("versus", label, "probability", b.attention))
        for a, b in zip(shown.stacks, other.stacks, strict=True)
    )
    return replace(shown, stacks=stacks)


def _joined(side: TokenSide, other: TokenSide) -> TokenSide:
    pairs = zip(side.tokens, other.tokens, strict=True)
    tokens = tuple(a if a == b else f"{a}/{b}" for a, b in pairs)
    both = zip(side.written, other.written, strict=False)
    written = tuple(a if a == b else f"{a}/{b.strip()}" for a, b in both)
    # A word is one of both texts only where it ends at the same token in both.
    same = np.array_equal(side.word, other.word)
    word = side.word if same else np.full_like(side.word, -1)
    return replace(side, tokens=tokens, word=word, written=written)


def _first(side: TokenSide) -> str:
    return " ".join(side.tokens[:6])[:60]
