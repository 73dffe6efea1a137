"""Read the CorefUD `Entity=` brackets of CoNLL-U sentences as mentions of one passage."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from headscope.corpus.conllu import ConlluRow, ConlluSentence, misc
from headscope.corpus.coref.mentions import BracketFault, BracketSpan, Mark, Tag, paired, with_kinds
from headscope.corpus.document import Mention, Passage, Word
from headscope.corpus.files import Fault


def document_passage(name: str, sentences: Sequence[ConlluSentence]) -> Passage:
    """All words of a document as one passage, with its mentions; its first fault if it has any.

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
            local = read_mentions(sentence.rows, sentence.words, fields=sentence.entity_fields)
        except Fault as fault:
            return Passage(name, fault=sentence.lines[fault.at] + fault.reason)
        start = len(words)
        starts.add(start)
        mentions += [
            replace(m, first=m.first + start, last=m.last + start, head=m.head + start)
            for m in local
        ]
        words += [Word(word.form, space_after=word.space_after) for word in sentence.words]
        tags += [Tag(word.upos, word.xpos) for word in sentence.words]
    return Passage(
        name, words=tuple(words), mentions=with_kinds(mentions, words, tags, starts=starts)
    )


PIECE = re.compile(r"[()]|[^()]+")
PART = re.compile(r"(?P<entity>.*)\[(?P<part>\d+)/\d+\]")


def read_mentions(
    rows: Sequence[ConlluRow], words: Sequence[Word], *, fields: Sequence[str]
) -> tuple[Mention, ...]:
    """Mentions of one sentence in order of their first word, an enclosing one before those in it.

    rows    as the conllu package parses them, with `misc` left as text
    words   what the rows say (`read_words`)
    fields  names of the dash-separated parts of an opening bracket (`# global.Entity`)

    The head is the word that the `head` field counts to; without one, the first word of the
    mention whose own head lies outside it. Empty nodes count for the `head` field but are no words:
    a mention of them alone (a zero mention) is left out. Of a discontinuous mention (`e5[1/2]`)
    only the first part is kept. `kind` is left open.

    raises  Fault for brackets that cannot be read or do not match within the sentence
    """
    # Empty nodes (8.1) carry marks too; multiword ranges do not.
    nodes = [
        index
        for index, row in enumerate(rows)
        if isinstance(row["id"], int) or (isinstance(row["id"], tuple) and row["id"][1] == ".")
    ]
    numbers = [rows[index]["id"] for index in nodes]
    word_of = [number - 1 if isinstance(number, int) else None for number in numbers]
    try:
        marks = [
            mark
            for node, index in enumerate(nodes)
            for mark in _marks(misc(rows[index], "Entity") or "", node)
        ]
        spans = paired(marks)
    except BracketFault as fault:
        raise Fault(f"Entity {fault.reason}", at=nodes[fault.at]) from fault
    mentions = (_mention(span, word_of=word_of, words=words, fields=fields) for span in spans)
    # Leaving out empty nodes can shorten a mention, hence the order once more.
    return tuple(sorted(filter(None, mentions), key=lambda m: (m.first, -m.last)))


def _marks(entity: str, node: int) -> Iterator[Mark]:
    """The marks `(e1-person-1)`, `(e1-person-1-` and `e1)`, one after the other."""
    pieces = [*PIECE.findall(entity), "", ""]
    at = 0
    while at < len(pieces) - 2:
        opens = pieces[at] == "("
        text, after = pieces[at + opens], pieces[at + opens + 1]
        shuts = after == ")"
        if text in ("(", ")", "") or not (opens or shuts):
            fault = f"{entity[:60]} is not a row of brackets like (e1-person-1-"
            raise BracketFault(fault, at=node)
        yield Mark(node, text.split("-")[0], opens, shuts, text if opens else "")
        at += opens + 1 + shuts


def _mention(
    span: BracketSpan,
    *,
    word_of: Sequence[int | None],
    words: Sequence[Word],
    fields: Sequence[str],
) -> Mention | None:
    entity, part = span.name, PART.fullmatch(span.name)
    if part:
        if part["part"] != "1":
            return None
        entity = part["entity"]
    nodes = word_of[span.first : span.last + 1]
    inside = [word for word in nodes if word is not None]
    if not inside:
        return None
    first, last = inside[0], inside[-1]
    stated = dict(zip(fields, span.content.split("-"), strict=False)).get("head")
    head = next((word for count, word in enumerate(nodes, 1) if str(count) == stated), None)
    if head is None:
        outward = (word for word in inside if not first <= words[word].head <= last)
        head = next(outward, first)
    return Mention(entity, first, last, head)
