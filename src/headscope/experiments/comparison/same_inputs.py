"""Checks that two models have the same shape and read the same tokens."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from headscope.corpus import Corpus, Document, Passage
from headscope.errors import InputError
from headscope.model.model import Model
from headscope.tasks.predict import encode
from headscope.tasks.task_data import TaskData
from headscope.tasks.task_model import TaskModel

AT_ONCE = 256  # texts that a tokenizer gets in one call


def check_comparable(base: Model, tuned: Model) -> None:
    """Raises InputError unless both have as many layers and heads, and one vocabulary."""
    shapes = [(m.shape.stack, m.shape.layers, m.shape.heads) for m in (base, tuned)]
    if shapes[0] != shapes[1]:
        told = " and ".join(
            f"{model.name!r} {layers} layers × {heads} heads ({stack})"
            for model, (stack, layers, heads) in zip((base, tuned), shapes, strict=True)
        )
        raise InputError(
            f"found {told}; wanted models of one shape, where each head of one stands for a head "
            "of the other: a checkpoint and what was trained from it"
        )
    mine, theirs = (model.tokenizer.get_vocab() for model in (base, tuned))
    if mine != theirs:
        odd = min(set(mine.items()) ^ set(theirs.items()), key=lambda pair: (pair[1], pair[0]))
        raise InputError(
            f"the tokenizers differ: {base.name!r} has {len(mine)} tokens, {tuned.name!r} "
            f"{len(theirs)} (first difference: {odd[0]!r}, id {odd[1]}); wanted one vocabulary, so "
            "that both models see the same inputs"
        )
    for words, of in (("special tokens", "special_tokens"), ("categories", "vocabulary")):
        if getattr(base, of) != getattr(tuned, of):
            raise InputError(
                f"the tokenizers have other {words}: {base.name!r} {getattr(base, of)}, "
                f"{tuned.name!r} {getattr(tuned, of)}; wanted the tokenizer that {base.name!r} has"
            )


def check_same_tokens(base: Model, tuned: Model, corpus: Corpus, *, limit: int | None) -> None:
    """Raises InputError where the tokenizers cut a text of the corpus differently.

    Two of one vocabulary may: one keeps capitals or accents that the other drops.
    """
    texts = (text for document in islice(corpus, limit) for text in _texts(document))
    while some := list(islice(texts, AT_ONCE)):
        cuts = [_ids(model, some) for model in (base, tuned)]
        for text, mine, theirs in zip(some, *cuts, strict=True):
            if mine != theirs:
                told = " and ".join(
                    " ".join(model.tokens(ids)[:8])
                    for model, ids in ((base, mine), (tuned, theirs))
                )
                raise InputError(
                    f"the tokenizers have one vocabulary, but cut {text[:40]!r} differently: "
                    f"{told[:160]}; wanted the same tokens: copy the tokenizer of {base.name!r} "
                    f"into {tuned.name!r}"
                )


class TaskCorpus:
    """The examples of a task as both models read them, each a document of its own.

    Ready tokens: longer examples are cut as they are when a model is trained for the task.

    cut   how many were shortened
    """

    def __init__(self, base: Model, tuned: Model, data: TaskData, *, max_length: int) -> None:
        """Raises InputError for models that do not fit, or that cut an example differently."""
        check_comparable(base, tuned)
        self.data, self.max_length = data, max_length
        length = min(max_length, base.limit, tuned.limit)
        mine, theirs = (
            encode(TaskModel(model, data.task), data, max_length=length) for model in (base, tuned)
        )
        self.cut, self.note = mine.cut, mine.note
        for one, other in zip(mine.examples, theirs.examples, strict=True):
            if one.input_ids.tolist() != other.input_ids.tolist():
                raise InputError(
                    f"the tokenizers cut example {one.id} of {data.source} differently; wanted the "
                    f"same tokens: copy the tokenizer of {base.name!r} into {tuned.name!r}"
                )
        self.examples, self._names = mine.examples, base.tokenizer.convert_ids_to_tokens

    def __iter__(self) -> Iterator[Document]:
        """Yields the examples in the order of the rows."""
        for example in self.examples:
            tokens = tuple(self._names(example.input_ids.tolist()))
            yield Document(example.document, (Passage(example.id, tokens=tokens),))

    def describe(self) -> dict[str, Any]:
        """What was read: the task, its file, its labels, and what is to be told of them."""
        from headscope.run.experiment import of_task

        return {**of_task(self.data), "cut": self.cut, "max_length": self.max_length}


def _texts(document: Document) -> Iterator[str]:
    """All that a tokenizer gets of a document to cut; of annotated words, the words."""
    for passage in document.passages:
        whole = " ".join(word.form for word in passage.words or ())
        for text in (passage.text, passage.text_pair, whole):
            if text and _is_text(text):
                yield text


def _is_text(text: str) -> bool:
    """Whether it has no halves of surrogate pairs, which tokenizers refuse."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _ids(model: Model, texts: list[str]) -> list[list[int]]:
    tokenizer: Any = model.tokenizer
    found: list[list[int]] = tokenizer(
        texts, add_special_tokens=True, truncation=False, padding=False, verbose=False
    )["input_ids"]
    return found
