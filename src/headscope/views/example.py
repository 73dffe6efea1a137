"""What is there to look at in one example: whose tokens, which attention, which vectors?"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Side:
    """The tokens of one side: of the text, or of what an encoder and a decoder read.

    tokens       as the vocabulary has them, without the sign for a space before them
    special      [token] the tokens that the tokenizer added
    segment      [token] 0 or 1
    word         [token] the word, counted through the side; -1 for special tokens
    cls, sep     [token] opening, and separating or closing tokens
    punctuation  [token] exactly "." or ","
    name         "encoder" or "decoder"; "" where there is one side
    """

    tokens: tuple[str, ...]
    special: Bools
    segment: Ints
    word: Ints
    cls: Bools
    sep: Bools
    punctuation: Bools
    name: str = ""

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def boundary(self) -> int | None:
        """The first token of the second segment; None where there is one segment."""
        second = np.flatnonzero(self.segment)
        return int(second[0]) if len(second) and second[0] else None

    @property
    def text(self) -> str:
        """The tokens that are not special, with spaces between them."""
        return " ".join(t for t, s in zip(self.tokens, self.special, strict=True) if not s)

    def part(self, window: slice) -> Side:
        """The tokens of the window."""
        kept = {
            name: getattr(self, name)[window]
            for name in ("tokens", "special", "segment", "word", "cls", "sep", "punctuation")
        }
        return replace(self, **kept)


@dataclass(frozen=True)
class Vectors:
    """Where the weights come from: softmax over keys of cap(scaling · q·k) + bias.

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
class Measure:
    """Maps beside attention: such as rollout, or the attention of another model.

    maps  [layer, head, query, key] at least 0; [layer, 1, query, key] for maps that belong to a
          layer, which every head of it shows
    unit  "probability" or "1"
    """

    name: str
    label: str
    unit: str
    maps: Floats


@dataclass(frozen=True)
class Stack:
    """The attention of one stack of layers.

    name        "self" where there is one; else "encoder", "decoder", "cross"
    queries, keys   which of the example's sides look, and are looked at
    attention   [layer, head, query, key] probabilities
    value_norm  [layer, head, key] ‖f(x)‖; None where the family does not say what f is
    vectors     None where they cannot be read; `why_none` says why
    measures    further maps
    versus      what attention is compared with: shown beside it, and as the difference from it
    importance  [layer, head, neuron] of the vectors' neurons in a corpus
    """

    name: str
    queries: int
    keys: int
    attention: Floats
    value_norm: Floats | None = None
    vectors: Vectors | None = None
    why_none: str = ""
    measures: tuple[Measure, ...] = ()
    versus: Measure | None = None
    importance: npt.NDArray[np.float64] | None = None

    @property
    def causal(self) -> bool:
        """Whether no token sees a later one."""
        if self.queries != self.keys or self.attention.shape[-1] < 2:
            return False
        return not any(np.triu(layer, 1).any() for layer in self.attention)

    @property
    def weighted_norm(self) -> Floats | None:
        """[layer, head, query, key] ‖αf(x)‖ (Kobayashi et al. 2020)."""
        if self.value_norm is None:
            return None
        weighted: Floats = self.attention * self.value_norm[:, :, None, :]
        return weighted


@dataclass(frozen=True)
class Shown:
    """One example with its maps.

    model     its name, as it was loaded
    sides     one, or encoder and decoder
    stacks    one, or encoder, decoder and cross
    left_out  "", or a sentence on what of the example is not here
    """

    model: str
    sides: tuple[Side, ...]
    stacks: tuple[Stack, ...]
    left_out: str = field(default="")

    @property
    def text(self) -> str:
        """What was read: the sides' ordinary tokens."""
        return " → ".join(side.text for side in self.sides)
