"""Pair the brackets that mark mentions, and find the head word and the kind of each mention."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from headscope.corpus.document import Mention, Word
from headscope.corpus.files import Fault

if TYPE_CHECKING:
    from nltk.tree import Tree


class BracketFault(Fault):
    """What is wrong with a bracket, and at which place (as in its mark)."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One bracket, or a pair of them around a single place."""

    place: int
    name: str
    opens: bool
    shuts: bool
    content: str = ""  # all that an opening bracket contains


@dataclass(frozen=True, slots=True)
class BracketSpan:
    """A pair of brackets: places first..last, inclusive."""

    first: int
    last: int
    name: str
    content: str


def paired(marks: Iterable[Mark]) -> list[BracketSpan]:
    """The spans in order of their first place, an enclosing one before those within it.

    Spans of different names may cross. Of one name, a closing bracket belongs to the last one that
    is open, so a span may lie within another of its name.

    raises  BracketFault for a bracket that is closed but not open, or open at the end
    """
    opened: dict[str, list[Mark]] = {}
    spans = []
    for mark in marks:
        if mark.opens:
            opened.setdefault(mark.name, []).append(mark)
        if mark.shuts:
            if not opened.get(mark.name):
                raise BracketFault(
                    f"bracket {mark.name[:60]!r} is closed but not open; wanted "
                    f"({mark.name[:60]} before it in the sentence",
                    at=mark.place,
                )
            begun = opened[mark.name].pop()
            spans.append(BracketSpan(begun.place, mark.place, mark.name, begun.content))
    left = [mark for stack in opened.values() for mark in stack]
    if left:
        first = min(left, key=lambda mark: mark.place)
        raise BracketFault(
            f"bracket {first.name[:60]!r} is not closed in its sentence; wanted "
            f"{first.name[:60]}) behind it",
            at=first.place,
        )
    return sorted(spans, key=lambda span: (span.first, -span.last))


NOUN_PHRASES = ("NP", "NML", "NX")
# Collins (1999), appendix A, for NP: which children to look for, from which end, in turn. NML, the
# newer treebanks' noun phrase within a noun phrase, is treated as NX.
NOUN_PHRASE_RULES = (
    ("right", ("NN", "NNP", "NNPS", "NNS", "NX", "NML", "JJR")),
    ("left", ("NP",)),
    ("right", ("$", "ADJP", "PRN")),
    ("right", ("CD",)),
    ("right", ("JJ", "JJS", "RB", "QP")),
)
NO_HEAD_TAGS = ("POS", ".", ",", ":", "``", "''", "-LRB-", "-RRB-", "HYPH", "NFP")
NO_HEAD = re.compile(r"['’]s|(?:[^\w$%&]|_)+")  # possessive endings and punctuation
# What ends the part of a noun phrase that its head closes: prepositions, relative words, what may
# stand behind the head in apposition, marks. Words that are as often something else are left out
# (next, near, but, past).
AFTER_HEAD_WORDS = """
about above across after against along amid amidst among amongst around as at before behind below
beneath beside besides between beyond by down during except for from in inside into like of off on
onto out outside over round since than through throughout till to toward towards under underneath
unlike until unto up upon via with within without
who whom whose which that where when why
myself yourself himself herself itself ourselves yourselves themselves else
, ; : -- – — ( [
"""
AFTER_HEAD = frozenset(AFTER_HEAD_WORDS.split())


def tree_head(tree: Tree, tags: Sequence[str], first: int, last: int) -> int:
    """The head of words first..last of a sentence by its phrase structure.

    tree  whose leaves are the words' numbers, 0-based
    tags  [word] Penn tags

    From the smallest phrase that covers the mention down to a word, looking only at what lies
    within the mention. The first step and noun phrases go by the table of Collins (1999), appendix
    A; a possessive 's is passed over, where Collins takes it: the possessor is what refers. Other
    phrases, and those without any of the children in the table, are headed by their last child
    that is no punctuation.
    """
    node: Tree | int = tree[tree.treeposition_spanning_leaves(first, last + 1)]
    noun = True
    while not isinstance(node, int):
        inside = [child for child in node if _overlaps(child, first, last)]
        names = [tags[c] if isinstance(c, int) else _bare(c.label()) for c in inside]
        node = inside[_head_child(names, noun=noun)]
        noun = not isinstance(node, int) and _bare(node.label()) in NOUN_PHRASES
    return node


def _bare(label: str) -> str:
    """A label without its function tags: NP-SBJ, NP=2."""
    return re.split("[-=]", label)[0]


def _overlaps(child: Tree | int, first: int, last: int) -> bool:
    leaves = [child] if isinstance(child, int) else child.leaves()
    return bool(leaves) and leaves[0] <= last and leaves[-1] >= first


def _head_child(names: Sequence[str], *, noun: bool) -> int:
    for end, wanted in NOUN_PHRASE_RULES if noun else ():
        places = [place for place, name in enumerate(names) if name in wanted]
        if places:
            return places[0] if end == "left" else places[-1]
    words = [place for place, name in enumerate(names) if name not in NO_HEAD_TAGS]
    return words[-1] if words else len(names) - 1


def surface_head(forms: Sequence[str]) -> int:
    """The head of a mention without annotation; 0-based within it.

    The last word before the first preposition, relative word, reflexive, comma or the like (of
    which none counts as the first word); possessive 's and punctuation are passed over: "the
    *house* of Elliot", "Mr. *Darcy* 's", "her father 's *bungalow*", "two *girls* , twins". English
    only.
    """
    words = [form.lower() for form in forms]
    end = next((i for i in range(1, len(words)) if words[i] in AFTER_HEAD), len(words))
    kept = [i for i in range(end) if not NO_HEAD.fullmatch(words[i])]
    return kept[-1] if kept else end - 1


PRONOUN, PROPER, NOMINAL = "pronoun", "proper", "nominal"
# Personal, possessive and reflexive pronouns of English, older ones and contractions included.
PRONOUN_WORDS = """
i me my mine myself we us our ours ourselves ourself
you your yours yourself yourselves ye thou thee thy thine thyself
he him his himself she her hers herself it its itself 't 'em ’em
they them their theirs themselves themself oneself
"""
PRONOUNS = frozenset(PRONOUN_WORDS.split())


class Tag(NamedTuple):
    """Part of speech of a word: the universal tag and the treebank's own; None where unknown."""

    upos: str | None = None
    xpos: str | None = None


def with_kinds(
    mentions: Sequence[Mention],
    words: Sequence[Word],
    tags: Sequence[Tag],
    *,
    starts: Collection[int],
) -> tuple[Mention, ...]:
    """The mentions with their kind, taken from the head word.

    words, tags  [word] of the whole document
    starts       0-based first words of its sentences

    By universal tag where there is one (PRON, PROPN), else by Penn tag (PRP, PRP$; NNP, NNPS) as
    Clark et al. (2019), section 4.3. Without either: an English personal, possessive or reflexive
    pronoun is a pronoun ("US" is none); a word with a capital is proper, unless it begins a
    sentence (quotation marks before it do not count); all else is nominal. A capital at the
    beginning counts if the document has the same form with a capital within a sentence too.
    """
    forms = [word.form for word in words]
    opening = _opening(forms, starts)
    names = {form for i, form in enumerate(forms) if i not in opening and form[:1].isupper()}
    return tuple(replace(m, kind=_kind(tags[m.head], forms[m.head], names)) for m in mentions)


def _kind(tag: Tag, form: str, names: Collection[str]) -> str:
    pos = tag.upos or tag.xpos
    if pos:
        if pos in ("PRON", "PRP", "PRP$"):
            return PRONOUN
        return PROPER if pos in ("PROPN", "NNP", "NNPS") else NOMINAL
    if form.lower() in PRONOUNS and (form == "I" or not form.isupper()):
        return PRONOUN
    return PROPER if form in names else NOMINAL


def _opening(forms: Sequence[str], starts: Collection[int]) -> set[int]:
    opening = set()
    for start in starts:
        for index in range(start, len(forms)):
            opening.add(index)
            if any(map(str.isalnum, forms[index])):
                break
    return opening
