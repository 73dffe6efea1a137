"""Which mentions do the CorefUD `Entity=` brackets of a sentence mark?"""

from __future__ import annotations

import re
from collections.abc import Sequence

from headscope.corpus.document import Mention

BRACKET = re.compile(r"\((?P<opened>[^()]+)(?P<shut>\))?|(?P<closed>[^()]+)\)")
PART = re.compile(r"(?P<entity>.*)\[(?P<part>\d+)/\d+\]")


class EntityFault(ValueError):
    """What is wrong with the brackets, and at which node (0-based)."""

    def __init__(self, reason: str, *, node: int) -> None:
        super().__init__(reason)
        self.node = node


def read_mentions(
    marks: Sequence[str],
    *,
    word_of: Sequence[int | None],
    heads: Sequence[int],
    fields: Sequence[str],
) -> tuple[Mention, ...]:
    """Mentions in order of their first word, an enclosing one before those within it.

    marks    [node] the text after `Entity=`, empty where there is none
    word_of  [node] 0-based word of each node; None for an empty node, which is no word
    heads    [word] 0-based head of each word, -1 for the root
    fields   names of the dash-separated parts of an opening bracket (`# global.Entity`)

    The head is the word that the `head` field counts to; without one, the first word of the
    mention whose own head lies outside it. A mention of empty nodes alone is left out; of a
    discontinuous mention (`e5[1/2]`) only the first part is kept.

    raises  EntityFault for a bracket that is closed but not open, or open at the end
    """
    opened: dict[str, list[tuple[int, str]]] = {}
    found = []
    for node, mark in enumerate(marks):
        for name, content, shut in _brackets(mark, node):
            if content is not None:
                opened.setdefault(name, []).append((node, content))
            if shut:
                if not opened.get(name):
                    raise EntityFault(f"Entity bracket {name!r} is closed but not open", node=node)
                start, begun = opened[name].pop()
                found.append((start, node, begun))
    for name, left in opened.items():
        if left:
            raise EntityFault(
                f"Entity bracket {name!r} is not closed in its sentence", node=left[0][0]
            )
    mentions = [_mention(*span, word_of=word_of, heads=heads, fields=fields) for span in found]
    return tuple(sorted((m for m in mentions if m), key=lambda m: (m.first, -m.last)))


def _brackets(mark: str, node: int) -> list[tuple[str, str | None, bool]]:
    """Name, content (None for a closing bracket) and whether it shuts, for each bracket."""
    brackets = list(BRACKET.finditer(mark))
    if "".join(bracket[0] for bracket in brackets) != mark:
        raise EntityFault(f"Entity={mark} is not a row of brackets like (e1-person-1-", node=node)
    return [
        (b["opened"].split("-")[0], b["opened"], bool(b["shut"]))
        if b["opened"]
        else (b["closed"].split("-")[0], None, True)
        for b in brackets
    ]


def _mention(
    start: int,
    end: int,
    content: str,
    *,
    word_of: Sequence[int | None],
    heads: Sequence[int],
    fields: Sequence[str],
) -> Mention | None:
    values = content.split("-")
    entity, part = values[0], PART.fullmatch(values[0])
    if part:
        if int(part["part"]) > 1:
            return None
        entity = part["entity"]
    span = word_of[start : end + 1]
    words = [word for word in span if word is not None]
    if not words:
        return None
    head = _stated_head(dict(zip(fields, values, strict=False)), span)
    if head is None:
        inside = set(words)
        head = next((word for word in words if heads[word] not in inside), words[0])
    return Mention(entity=entity, first=words[0], last=words[-1], head=head)


def _stated_head(named: dict[str, str], span: Sequence[int | None]) -> int | None:
    stated = named.get("head", "")
    count = int(stated) if stated.isdecimal() else 0
    return span[count - 1] if 1 <= count <= len(span) else None
