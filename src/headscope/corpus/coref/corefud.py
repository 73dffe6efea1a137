"""How do the sentences of a CorefUD document become one passage with mentions?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headscope.corpus.coref.entities import read_mentions
from headscope.corpus.coref.kinds import Tag, with_kinds
from headscope.corpus.document import Mention, Passage, Word
from headscope.corpus.sentences import Sentence
from headscope.corpus.tree import SentenceFault


def document_passage(name: str, sentences: Sequence[Sentence]) -> Passage:
    """All words of a document, bare, with its mentions; its first fault if it has any.

    A document with a hole is no document to ask for antecedents in, so one malformed sentence
    leaves it out as a whole.
    """
    words: list[Word] = []
    tags: list[Tag] = []
    mentions: list[Mention] = []
    starts = set[int]()
    for sentence in sentences:
        if sentence.fault is not None:
            return Passage(name, fault=sentence.fault)
        try:
            found = read_mentions(sentence.rows, sentence.words, fields=sentence.entity_fields)
        except SentenceFault as fault:
            return Passage(name, fault=sentence.lines[fault.row] + fault.reason)
        start = len(words)
        starts.add(start)
        mentions += [
            replace(m, first=m.first + start, last=m.last + start, head=m.head + start)
            for m in found
        ]
        words += [Word(word.form, space_after=word.space_after) for word in sentence.words]
        tags += [Tag(word.upos, word.xpos) for word in sentence.words]
    return Passage(
        name, words=tuple(words), mentions=with_kinds(mentions, words, tags, starts=starts)
    )
