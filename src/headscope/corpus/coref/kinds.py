"""Is a mention a pronoun, a name or a common noun phrase?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from headscope.corpus.document import Mention, Word

PRONOUN, PROPER, NOMINAL = "pronoun", "proper", "nominal"
# Personal, possessive and reflexive pronouns of English, older ones and contractions included.
LISTED = """
i me my mine myself we us our ours ourselves ourself
you your yours yourself yourselves ye thou thee thy thine thyself
he him his himself she her hers herself it its itself 't 'em ’em
they them their theirs themselves themself oneself
"""
PRONOUNS = frozenset(LISTED.split())


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
    """The mentions with their kind, which is that of the head word.

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
    given = tag.upos or tag.xpos
    if given:
        if given in ("PRON", "PRP", "PRP$"):
            return PRONOUN
        return PROPER if given in ("PROPN", "NNP", "NNPS") else NOMINAL
    if form.lower() in PRONOUNS and (form == "I" or not form.isupper()):
        return PRONOUN
    return PROPER if form in names else NOMINAL


def _opening(forms: Sequence[str], starts: Collection[int]) -> set[int]:
    """The first words of the sentences that hold a letter or digit, and what stands before."""
    opening = set()
    for start in starts:
        for index in range(start, len(forms)):
            opening.add(index)
            if any(map(str.isalnum, forms[index])):
                break
    return opening
