"""From which number layers and heads are counted in print, and how a head's name is read.

Papers that print `L8·H10` or 8-10 count from 1, and so do we. TransformerLens and papers on
circuits count from 0: `L7H9` or 7.9. So a name with a dot counts from 0 always, and with
`options.zero_based` every name does: those that are read, and those on pages, in tables, figures
and messages. Code and the numbers in files count from 0 in any case. `results.head_name` and the
like write names.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from headscope.errors import InputError

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
    """Inside the context names count from this number, 0 or 1."""
    before, options.zero_based = options.zero_based, number == 0
    try:
        yield
    finally:
        options.zero_based = before


def first() -> int:
    """The number in print of the first layer and of the first head: 1, or 0."""
    return 0 if options.zero_based else 1


def head_number(head: int) -> str:
    """The printed number of a head within its layer, from its place counted from 0."""
    return str(head + first())


def counted_words() -> str:
    """How layers and heads are counted in print, for a caption or a message."""
    return "from 0, as TransformerLens does" if options.zero_based else "from 1, as papers do"


def counting_note() -> str:
    """A sentence for a page that would not say how it counts, where it counts from 0; else ''."""
    return f"Layers and heads count {counted_words()}." if options.zero_based else ""


def head_named(name: str | Head) -> Head:
    """(layer, head) from 0 for a head's name; the layer by the model's own number.

    name    `L8H10`, `L8·H10` or `8-10`, from 1 unless `options.zero_based` holds; `7.9` from 0; or
            a pair from 0, which is given back
    raises  InputError for anything else
    """
    if not isinstance(name, str):
        return name
    for form, start in ((_FROM_FIRST, first()), (_FROM_0, 0)):
        if match := form.fullmatch(name.strip()):
            layer, head = (int(part) - start for part in match.groups() if part is not None)
            if layer >= 0 and head >= 0:
                return layer, head
    example, circuits = f"L{7 + first()}H{9 + first()}", "7.9"
    how = (
        f"from 0, as TransformerLens counts: {example}, L7·H9, 7-9 or {circuits}\n"
        "without --zero-based (headscope.options.zero_based), L8H10 and 8-10 count from 1"
        if options.zero_based
        else f"from 1, as papers count: {example}, L8·H10 or 8-10; or from 0 with a dot: {circuits}"
        "\n--zero-based (headscope.options.zero_based) makes every name count from 0"
    )
    raise InputError(f"found the head {name!r}; wanted layer and head {how}")


def in_both(layer: int, head: int) -> str:
    """`L3·H9 (2.8 from 0)`: a head in both ways of counting.

    Where names count from 0 it is `L2·H8 from 0 (L3·H9 from 1)`.
    """
    one = f"L{layer + 1}·H{head + 1}"
    return (
        f"L{layer}·H{head} from 0 ({one} from 1)"
        if options.zero_based
        else (f"{one} ({layer}.{head} from 0)")
    )


def renamed(text: str) -> str:
    """A text from a file, whose names count from 1, with names as they are printed now."""

    def now(match: re.Match[str]) -> str:
        layer, _, head = match.groups()
        return f"L{int(layer) - 1 + first()}" + (f"·H{int(head) - 1 + first()}" if head else "")

    return _WRITTEN.sub(now, text)
