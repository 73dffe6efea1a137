"""Which word is the head of a mention: by its phrase structure, or by the look of its words?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nltk.tree import Tree

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
LISTED = """
about above across after against along amid amidst among amongst around as at before behind below
beneath beside besides between beyond by down during except for from in inside into like of off on
onto out outside over round since than through throughout till to toward towards under underneath
unlike until unto up upon via with within without
who whom whose which that where when why
myself yourself himself herself itself ourselves yourselves themselves else
, ; : -- – — ( [
"""
AFTER_HEAD = frozenset(LISTED.split())


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
    """Which of the children is the head, given their tags and labels."""
    for end, wanted in NOUN_PHRASE_RULES if noun else ():
        found = [place for place, name in enumerate(names) if name in wanted]
        if found:
            return found[0] if end == "left" else found[-1]
    words = [place for place, name in enumerate(names) if name not in NO_HEAD_TAGS]
    return words[-1] if words else len(names) - 1


def surface_head(forms: Sequence[str]) -> int:
    """The head of a mention of which only the words are known; 0-based within it.

    The last word before the first preposition, relative word, reflexive, comma or the like (of
    which none counts as the first word); possessive 's and punctuation are passed over: "the
    *house* of Elliot", "Mr. *Darcy* 's", "her father 's *bungalow*", "two *girls* , twins". English
    only.
    """
    words = [form.lower() for form in forms]
    end = next((i for i in range(1, len(words)) if words[i] in AFTER_HEAD), len(words))
    kept = [i for i in range(end) if not NO_HEAD.fullmatch(words[i])]
    return kept[-1] if kept else end - 1
