"""From which number layers and heads are counted in print, and how a head's name is read.

Papers that print `L8·H10` or 8-10 count from 1, and so do we. TransformerLens and papers on
circuits count from 0: `L7H9` or 7.9. So a name with a dot counts from 0 always, and with
`options.zero_based` every name does: those that are read, and those on pages, in tables, figures
and messages. Code and the numbers in files count from 0 in any case.

In a model of which only some layers attend, code knows a layer by its *place* among those, and
prints its own *number*. `HeadNames` has both, and is handed on to whatever writes or reads a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headscope.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

Head = tuple[int, int]
_FROM_FIRST = re.compile(r"[Ll]([0-9]{1,4})\W?[Hh]([0-9]{1,4})|([0-9]{1,4})-([0-9]{1,4})")
_FROM_0 = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")
_WRITTEN = re.compile(r"\bL([0-9]+)(·H([0-9]+))?")


@dataclass(slots=True)  # so that a misspelt option is an error
class NamingOptions:
    """Options of all names: `headscope.options`.

    zero_based  layers and heads are counted from 0 in print, as in the data; else from 1
    """

    zero_based: bool = False


options = NamingOptions()


@contextmanager
def counting_from(number: int) -> Iterator[None]:
    """Inside the context new `HeadNames` count from this number, 0 or 1."""
    before, options.zero_based = options.zero_based, number == 0
    try:
        yield
    finally:
        options.zero_based = before


def _first() -> int:
    return 0 if options.zero_based else 1


@dataclass(frozen=True, slots=True)
class HeadNames:
    """How the layers and heads of a model are written, and how their names are read.

    numbers  own number, from 0, of each layer that attends; (): every layer attends
    first    number in print of the first layer and of the first head: 1, or 0
    """

    numbers: tuple[int, ...]
    first: int = field(default_factory=_first)

    def number(self, place: int) -> int:
        """The model's own number of a layer, from 0, by its place among those that attend."""
        return self.numbers[place] if 0 <= place < len(self.numbers) else place

    def place(self, number: int) -> int:
        """The place among the layers that attend of the layer with this number, both from 0.

        raises  InputError for a layer that is not among them
        """
        if self.numbers and number not in self.numbers:
            raise InputError(
                f"layer {number + self.first} has no attention; wanted one of the layers "
                f"{', '.join(str(one + self.first) for one in self.numbers)}"
            )
        return self.numbers.index(number) if self.numbers else number

    def layer(self, place: int) -> str:
        """The printed number of a layer, from its place."""
        return str(self.number(place) + self.first)

    def within(self, head: int) -> str:
        """The printed number of a head within its layer, from its place counted from 0."""
        return str(head + self.first)

    def head(self, layer: int, head: int) -> str:
        """The name of a head, `L8·H10`, from the place of its layer and its own in it."""
        return self.own(self.number(layer), head)

    def unit(self, unit: int, heads: int) -> str:
        """The name of a head from layer · heads + head."""
        return self.head(*divmod(unit, heads))

    def own(self, number: int, head: int) -> str:
        """The name of a head from the model's own layer number, from 0, as in data and tables."""
        return f"L{number + self.first}·H{head + self.first}"

    def from_0(self, layer: int, head: int) -> str:
        """The name of a head, `7.9`, counted from 0 whatever the options: a coordinate of data."""
        return f"{self.number(layer)}.{head}"

    def both(self, layer: int, head: int) -> str:
        """`L3·H9 (2.8 from 0)`: a head in both ways of counting, from the place of its layer.

        Where names count from 0 it is `L2·H8 from 0 (L3·H9 from 1)`.
        """
        number = self.number(layer)
        one = f"L{number + 1}·H{head + 1}"
        if self.first:
            return f"{one} ({number}.{head} from 0)"
        return f"L{number}·H{head} from 0 ({one} from 1)"

    def read(self, name: str | Head) -> Head:
        """The place of a layer and the head in it, from 0, for a head's name or such a pair.

        The pair has the model's own number of the layer.

        raises  InputError where it is no name, or of a layer without attention
        """
        layer, head = head_named(name)
        return self.place(layer), head

    @property
    def counted(self) -> str:
        """How layers and heads are counted in print, for a caption or a message."""
        return "from 1, as papers do" if self.first else "from 0, as TransformerLens does"


def names_of(tree: xr.DataTree) -> HeadNames:
    """The names of the heads of a run."""
    numbers = str(tree.attrs.get("layer_numbers", "")).split()
    return HeadNames(tuple(map(int, numbers)))


def head_named(name: str | Head) -> Head:
    """(layer, head) from 0 for a head's name; the layer by the model's own number.

    name    `L8H10`, `L8·H10` or `8-10`, from 1 unless `options.zero_based` holds; `7.9` from 0; or
            a pair from 0, which is given back
    raises  InputError for anything else
    """
    if not isinstance(name, str):
        return name
    first = _first()
    for form, start in ((_FROM_FIRST, first), (_FROM_0, 0)):
        if match := form.fullmatch(name.strip()):
            layer, head = (int(part) - start for part in match.groups() if part is not None)
            if layer >= 0 and head >= 0:
                return layer, head
    example, circuits = f"L{7 + first}H{9 + first}", "7.9"
    how = (
        f"from 0, as TransformerLens counts: {example}, L7·H9, 7-9 or {circuits}\n"
        "without --zero-based (headscope.options.zero_based), L8H10 and 8-10 count from 1"
        if not first
        else f"from 1, as papers count: {example}, L8·H10 or 8-10; or from 0 with a dot: {circuits}"
        "\n--zero-based (headscope.options.zero_based) makes every name count from 0"
    )
    raise InputError(f"found the head {name!r}; wanted layer and head {how}")


def renamed(text: str) -> str:
    """A text from a file, whose names count from 1, with names as they are printed now."""

    more = _first() - 1

    def now(match: re.Match[str]) -> str:
        layer, _, head = match.groups()
        return f"L{int(layer) + more}" + (f"·H{int(head) + more}" if head else "")

    return _WRITTEN.sub(now, text)
