"""How do tests hold a page whose names count from 0 against the same page, counted from 1?"""

from __future__ import annotations

import re
from collections.abc import Callable

from headscope.core.head_names import counting_from

NAME = re.compile(r"\bL(\d+)·?H(\d+)\b")
REMARK = re.compile(r"^\s*//.*$", re.MULTILINE)  # of a script
LAYER = re.compile(r"\b[Ll]ayer(?: |\xa0)(\d+)(?!\.?\d)")


def names_in(text: str) -> list[tuple[int, int]]:
    """The heads that a text names, in order, by the numbers that stand there."""
    return [(int(layer), int(head)) for layer, head in NAME.findall(text)]


def counts_from_0(make: Callable[[], str], *, layers: bool = True) -> str:
    """Asserts that every name on a page follows the option; returns the page that counts from 0.

    The page that counts from 1 is made after it: nothing of the option may be left.

    make    writes the page anew
    layers  whether `layer 3` is a name too
    """
    with counting_from(0):
        from_0 = make()
    text, from_0 = (REMARK.sub("", page) for page in (make(), from_0))
    before = names_in(text)
    assert before, "the page names no head"
    assert names_in(from_0) == [(layer - 1, head - 1) for layer, head in before]
    if layers:
        pairs = zip(LAYER.finditer(text), LAYER.finditer(from_0), strict=True)
        stayed = [
            text[max(0, a.start() - 40) : a.end() + 20]
            for a, b in pairs
            if int(b[1]) != int(a[1]) - 1
        ]
        assert not stayed, stayed
    return from_0
