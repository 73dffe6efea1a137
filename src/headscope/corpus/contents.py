"""Count the inputs of a corpus that were read or skipped, and list its annotations."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import islice
from typing import Any, Self

from headscope.corpus.document import Document, Example, Passage
from headscope.errors import InputError, did_you_mean

FEW = 0.05  # of the tokens: this share of unknown ones is no sign of a wrong text
NAMED = 20  # ids kept for each reason; beyond that only the total grows


@dataclass
class Reason:
    """The number of passages skipped for one reason, and the ids of the first of them."""

    total: int = 0
    first: list[str] = field(default_factory=list)


@dataclass
class EncodeCounts:
    """Counts of what an encoder has read.

    documents   documents read, those that gave nothing included
    examples    model inputs made
    tokens      tokens in them, special ones included
    skipped     passages left out, each under one of `reasons`
    windowed    passages longer than an input, read in consecutive windows
    content     tokens that are no special ones
    unknown     of these, tokens that the vocabulary has no name for: [UNK]
    without_token  annotated words in which no token begins: they are not measured
    """

    documents: int = 0
    examples: int = 0
    tokens: int = 0
    skipped: int = 0
    windowed: int = 0
    without_token: int = 0
    content: int = 0
    unknown: int = 0
    reasons: dict[str, Reason] = field(default_factory=dict)

    def skip(self, passage: str, *, reason: str) -> None:
        """Counts one passage as left out."""
        self.skipped += 1
        entry = self.reasons.setdefault(reason, Reason())
        entry.total += 1
        if len(entry.first) < NAMED:
            entry.first.append(passage)

    def add(self, other: Self) -> None:
        """Adds later counts to these."""
        for total in (one.name for one in fields(self) if one.name != "reasons"):
            setattr(self, total, getattr(self, total) + getattr(other, total))
        for reason, more in other.reasons.items():
            entry = self.reasons.setdefault(reason, Reason())
            entry.total += more.total
            entry.first = (entry.first + more.first)[:NAMED]

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers, texts and lists, for a manifest."""
        return asdict(self)


def unknown_words(counts: Mapping[str, Any]) -> str:
    """How many tokens the tokenizer does not know, of a manifest's counts; "" for few."""
    unknown, content = counts.get("unknown"), counts.get("content")
    if not (isinstance(unknown, int) and isinstance(content, int) and unknown > FEW * content):
        return ""
    return (
        f"{unknown:,} of {content:,} tokens ({unknown / content:.0%}) are unknown to the "
        "tokenizer; is this the language and the encoding that the model was trained on?"
    )


# Kinds of inputs, and what each is called. No mean mixes two of them.
SENTENCES, WINDOWS, TEXTS, DOCUMENTS = "sentences", "windows", "texts", "documents"
READINGS = {
    SENTENCES: "annotated sentences",
    WINDOWS: "windows of running text",
    TEXTS: "texts and pairs as they are",
    DOCUMENTS: "whole documents",
}
ANNOTATIONS = ("words", "tags", "trees", "mentions", "frames")
ROOT = "root"
UNLABELLED = "_"


@dataclass
class Annotations:
    """The annotations that occur, and the frequency of each relation.

    documents  how many documents have each of ANNOTATIONS; those of none are not there
    relations  words per label, in inputs where the word itself is
    """

    documents: Counter[str] = field(default_factory=Counter)
    relations: Counter[str] = field(default_factory=Counter)
    _last: dict[str, str] = field(default_factory=dict)  # the document last counted for each

    @classmethod
    def of(cls, examples: Iterable[Example]) -> Self:
        """The annotations of these examples."""
        annotations = cls()
        for example in examples:
            annotations.add(example)
        return annotations

    def add(self, example: Example) -> None:
        """Add one example; the examples of a document are added consecutively."""
        if example.words is None or example.word_index is None:
            return
        for kind in dict.fromkeys(["words", *annotations_of(example)]):
            if self._last.get(kind) != example.document:
                self._last[kind] = example.document
                self.documents[kind] += 1
        if has_tree(example):
            here = {int(index) for index in example.word_index if index >= 0}
            self.relations.update(label(example, index) for index in here)

    def merge(self, other: Self) -> None:
        """Add the counts of other documents."""
        self.documents.update(other.documents)
        self.relations.update(other.relations)

    @property
    def labels(self) -> tuple[str, ...]:
        """The relations, the most frequent first."""
        return tuple(sorted(self.relations, key=lambda name: (-self.relations[name], name)))


def annotations_of(text: Example | Passage) -> list[str]:
    """Which of ANNOTATIONS an example or passage has."""
    there = {
        "words": bool(text.words),
        "tags": has_tags(text),
        "trees": has_tree(text),
        "mentions": bool(text.mentions),
        "frames": bool(text.frames),
    }
    return [kind for kind, is_there in there.items() if is_there]


def reading_of(passage: Passage) -> str:
    """The kind of inputs that a passage gives alone.

    Annotated words are a sentence; bare ones, or with mentions alone, are those of a document.
    """
    if passage.words is None:
        return TEXTS
    return SENTENCES if set(annotations_of(passage)) - {"words", "mentions"} else DOCUMENTS


def has_tags(text: Example | Passage) -> bool:
    """Whether the words have tags."""
    return any(word.upos or word.xpos for word in text.words or ())


def has_tree(text: Example | Passage) -> bool:
    """Whether the words have heads and relations."""
    return any(word.relation for word in text.words or ())


def check_relations(
    corpus: Iterable[Document], wanted: str, *, fold: bool, limit: int | None = None
) -> None:
    """Raises InputError if a wanted relation is in none of the trees; stops once all are seen.

    wanted  labels with commas between them
    fold    whether nsubj:pass counts as nsubj
    """
    missing, there = set(relation_names(wanted)), dict[str, None]()
    for document in islice(corpus, limit):
        for passage in filter(has_tree, document.passages):
            names = (label(passage, index) for index in range(len(passage.words or ())))
            there |= dict.fromkeys(name.partition(":")[0] if fold else name for name in names)
        if missing <= there.keys():
            return
    if there:
        refuse_unknown(relation_names(wanted), list(there))


def relation_names(wanted: str) -> list[str]:
    """`nsubj, obj` as ["nsubj", "obj"]."""
    return [name for name in map(str.strip, str(wanted).split(",")) if name]


def refuse_unknown(names: Iterable[str], there: Sequence[str]) -> None:
    """Raises InputError for the first name that does not exist."""
    for name in names:
        if name not in there:
            meant = did_you_mean(name, there) or ";"
            raise InputError(
                f"no relation {name!r} in this corpus{meant} there are {', '.join(there)}"
            )


def label(example: Example | Passage, index: int) -> str:
    """The relation of one word to its head; ROOT for a word without head, whatever its label."""
    assert example.words is not None
    word = example.words[index]
    return ROOT if word.head < 0 else word.relation or UNLABELLED
