"""The size of a model, and what can be read of it."""

from __future__ import annotations

from dataclasses import dataclass

from headscope.core.head_names import HeadNames
from headscope.core.wording import grid_size


@dataclass(frozen=True)
class Shape:
    """Size of the attention stack that is looked at.

    neurons  numbers in a head's query vector; 0 where queries cannot be seen
    numbers  where only some layers attend (Jamba): the model's own numbers of these, from 0
    others   (number, what it mixes tokens by) of the layers that do not attend
    sinks    rows leave a weight for no token (gpt-oss)
    reads    of the decoder of an encoder-decoder, what its encoder reads; else ""
    """

    stack: str
    layers: int
    heads: int
    allows: frozenset[str] = frozenset()
    neurons: int = 0
    numbers: tuple[int, ...] = ()
    others: tuple[tuple[int, str], ...] = ()
    sinks: bool = False
    reads: str = ""

    @property
    def depth(self) -> int:
        """How many layers there are, with those that do not attend."""
        return self.layers + len(self.others)

    @property
    def names(self) -> HeadNames:
        """The names of its heads."""
        return HeadNames(self.numbers)

    @property
    def size(self) -> str:
        """Layers and heads in words, and which layers are left out."""
        size = grid_size(self.layers, self.heads)
        size += f" of the decoder, whose encoder reads {self.reads}" * bool(self.reads)
        if not self.others:
            return size
        own = ", ".join(str(number + 1) for number in self.numbers)
        named = ", ".join(dict.fromkeys(what for _, what in self.others))
        return f"{size}, layers {own}; the other layers are {named}, without attention maps"
