"""What do the rows of one parsed sentence say: which words, and which tree?

Pure: rows in, words out. A fault carries the row it was found in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headscope.corpus.document import Word

Row = dict[str, Any]


class SentenceFault(ValueError):
    """What is wrong with a sentence, and in which of its rows (0-based)."""

    def __init__(self, reason: str, *, row: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.row = row


def read_words(rows: Sequence[Row]) -> tuple[Word, ...]:
    """The words of one sentence; multiword ranges and empty nodes are none.

    rows  as the conllu package parses them, with `misc` left as text

    raises  SentenceFault for ids out of order, a head that is missing or out of range, or a graph
            that is no tree (several roots are allowed, as older treebanks have them)
    """
    numbered = [index for index, row in enumerate(rows) if isinstance(row["id"], int)]
    heads = _heads(rows, numbered)
    glued = _glued(rows)
    return tuple(
        Word(
            form=rows[index]["form"],
            upos=_given(rows[index], "upos"),
            xpos=_given(rows[index], "xpos"),
            head=head,
            relation=_given(rows[index], "deprel"),
            space_after=place not in glued,
        )
        for place, (index, head) in enumerate(zip(numbered, heads, strict=True))
    )


def misc(row: Row, key: str) -> str | None:
    """The value of one `key=value` part of the last column."""
    for part in (row.get("misc") or "").split("|"):
        name, _, value = part.partition("=")
        if name == key:
            return value
    return None


def _given(row: Row, column: str) -> str | None:
    value = row.get(column)
    return None if value in ("", "_") else value


def _heads(rows: Sequence[Row], numbered: Sequence[int]) -> list[int]:
    """0-based head of each word, -1 for a root, after checking that they make a tree."""
    if not numbered:
        raise SentenceFault("found no numbered word", row=0)
    heads = []
    for place, index in enumerate(numbered):
        number, head = rows[index]["id"], rows[index]["head"]
        if number != place + 1:
            raise SentenceFault(f"found word id {number}; wanted {place + 1}", row=index)
        if head is None:
            raise SentenceFault(
                "the head (column 7) is '_'; wanted a number: a treebank needs heads", row=index
            )
        if not 0 <= head <= len(numbered):
            raise SentenceFault(
                f"head {head} is outside 0..{len(numbered)}; wanted 0 or a word's number", row=index
            )
        heads.append(head - 1)
    _check_tree(heads, numbered)
    return heads


def _check_tree(heads: Sequence[int], numbered: Sequence[int]) -> None:
    """Every word must reach a root; what has been seen to reach one is not walked again."""
    if -1 not in heads:
        raise SentenceFault(
            "no word has head 0: the sentence has no root; wanted at least one", row=numbered[0]
        )
    reaches = [False] * len(heads)
    for start in range(len(heads)):
        path: dict[int, None] = {}
        word = start
        while word >= 0 and not reaches[word]:
            if word in path:
                raise SentenceFault(
                    f"the heads of word {word + 1} run in a cycle; wanted a path to a root",
                    row=numbered[word],
                )
            path[word] = None
            word = heads[word]
        for seen in path:
            reaches[seen] = True


def _glued(rows: Sequence[Row]) -> set[int]:
    """0-based words without a space after them.

    Words of a multiword range have no space between them where their forms spell the range
    ("do" + "n't"); where they do not ("du" = "de" + "le") they are read as separate words.
    """
    glued = set()
    forms = {row["id"]: row["form"] for row in rows if isinstance(row["id"], int)}
    for row in rows:
        number, no_space = row["id"], misc(row, "SpaceAfter") == "No"
        if isinstance(number, int) and no_space:
            glued.add(number - 1)
        elif isinstance(number, tuple) and number[1] == "-":
            first, last = number[0], number[2]
            if "".join(forms.get(n, "") for n in range(first, last + 1)) == row["form"]:
                glued.update(range(first - 1, last - 1))
            if no_space:
                glued.add(last - 1)
    return glued
