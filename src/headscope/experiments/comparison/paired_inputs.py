"""Checks that two models read the same inputs, and keeps those whose maps change most."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from headscope.core.accumulators import Float64, TopRecords
from headscope.core.display import Displayed, printable
from headscope.core.results import Variable, labelled
from headscope.core.wording import grid_size
from headscope.corpus import Corpus, Document, Example, Passage
from headscope.errors import InputError
from headscope.model.model import Model
from headscope.run.analysis import AnalysisPart
from headscope.run.compute import Reader
from headscope.run.experiment import of_task
from headscope.run.plan import Plan
from headscope.run.settings import Settings
from headscope.tasks.predict import encode
from headscope.tasks.task_data import TaskData
from headscope.tasks.task_model import TaskModel

AT_ONCE = 256  # texts that a tokenizer gets in one call
KEPT = 20  # inputs whose maps change most
LEAST_TOKENS = 8  # ours: a shorter input has little to look at
ROUND = 1e-6  # what a batch of another shape changes decides nothing
TASK_LENGTH = 128  # tokens, as in BERT's own scripts for GLUE
LONGEST = 400  # characters of an input where it is named
RECORD = np.dtype([("score", "f8"), ("key", "u8"), ("shard", "i4"), ("row", "i4")])


def check_comparable(base: Model, tuned: Model) -> None:
    """Raises InputError unless both have as many layers and heads, and one vocabulary."""
    shapes = [(m.shape.stack, m.shape.layers, m.shape.heads) for m in (base, tuned)]
    if shapes[0] != shapes[1]:
        sizes = " and ".join(
            f"{model.name!r} {grid_size(layers, heads)} ({stack})"
            for model, (stack, layers, heads) in zip((base, tuned), shapes, strict=True)
        )
        raise InputError(
            f"found {sizes}; wanted models of one shape, so that each head has its counterpart: a "
            "checkpoint and one trained from it; or two finished runs of atlas with --analyses "
            "explained, which say which heads have the same role"
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
                f"the tokenizers have different {words}: {base.name!r} {getattr(base, of)}, "
                f"{tuned.name!r} {getattr(tuned, of)}; wanted the tokenizer of {base.name!r}"
            )


def check_same_tokens(base: Model, tuned: Model, corpus: Corpus, *, limit: int | None) -> None:
    """Raises InputError if the two tokenizers split a text of the corpus differently.

    Two of one vocabulary may: one keeps capitals or accents that the other drops.
    """
    texts = (text for document in islice(corpus, limit) for text in _texts(document))
    options = {"truncation": False, "padding": False, "verbose": False}
    while some := list(islice(texts, AT_ONCE)):
        cuts = [model.tokenizer(some, **options)["input_ids"] for model in (base, tuned)]
        for text, mine, theirs in zip(some, *cuts, strict=True):
            if mine != theirs:
                pieces = " and ".join(
                    " ".join(model.tokens(ids)[:8])
                    for model, ids in ((base, mine), (tuned, theirs))
                )
                raise InputError(
                    f"the tokenizers have one vocabulary, but cut {text[:40]!r} differently: "
                    f"{pieces[:160]}; wanted the same tokens: copy the tokenizer of {base.name!r} "
                    f"into {tuned.name!r}"
                )


class TaskCorpus(Displayed):
    """The examples of a task as both models read them, each a document of its own.

    Ready tokens: longer examples are cut as they are when a model is trained for the task.

    cut   how many were shortened
    """

    def __init__(self, base: Model, tuned: Model, data: TaskData, *, max_length: int) -> None:
        """Raises InputError for models that do not fit, or that tokenize an example differently."""
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
        for example in self.examples:
            tokens = tuple(self._names(example.input_ids.tolist()))
            yield Document(example.document, (Passage(example.id, tokens=tokens),))

    def facts(self) -> dict[str, object]:
        """The task, and how many examples."""
        return {"task": self.data.task.name, "examples": f"{len(self.data)} examples"}

    def describe(self) -> dict[str, Any]:
        """What was read: the task, its file, its labels, and notes."""
        return {**of_task(self.data), "cut": self.cut, "max_length": self.max_length}


def task_corpus(
    base: Model, tuned: Model, data: TaskData, settings: Settings
) -> tuple[TaskCorpus, Settings]:
    """The examples of a task for both models, and the settings for reading them."""
    length = min(settings.max_length or TASK_LENGTH, base.limit, tuned.limit)
    corpus = TaskCorpus(base, tuned, data, max_length=length)
    return corpus, replace(settings, max_length=length, limit=None)


def _texts(document: Document) -> Iterator[str]:
    """The strings of a document that a tokenizer splits; of annotated words, the words."""
    for passage in document.passages:
        whole = " ".join(word.form for word in passage.words or ())
        for text in (passage.text, passage.text_pair, whole):
            # Tokenizers refuse halves of surrogate pairs.
            if text and text == text.encode("utf-8", "ignore").decode("utf-8"):
                yield text


class MostChanged(AnalysisPart):
    """The examples with the largest change, and their places in the corpus."""

    def __init__(self) -> None:
        self.best = TopRecords.zeros(KEPT, record=RECORD)

    def add(
        self, examples: Sequence[Example], change: Float64, *, shard: int, rows: Sequence[int]
    ) -> None:
        """Consider a batch: [example] change from 0, and places in the shard."""
        for example, score, row in zip(examples, change, rows, strict=True):
            if len(example) < LEAST_TOKENS:
                continue
            name = f"{example.document}\0{example.id}".encode("utf-8", "surrogatepass")
            key = int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big")
            rounded = np.round(score / ROUND) * ROUND
            if len(self.best.wanted(np.array(rounded), key)):
                self.best.put((), np.array((rounded, key, shard, row), RECORD))

    @property
    def records(self) -> npt.NDArray[np.void]:
        """[rank] RECORDs of the stored examples, the largest change first."""
        records: npt.NDArray[np.void] = self.best.records
        return records[records["score"] > 0]


def find_changed(
    records: npt.NDArray[np.void], model: Model, corpus: Corpus, settings: Settings, plan: Plan
) -> list[Example]:
    """The inputs of `MostChanged`, read again from the corpus."""
    reader, places = Reader(model, corpus, settings), dict[tuple[int, int], Example]()
    for shard in sorted(set(records["shard"].tolist())):
        examples = reader.examples(plan.shards[shard])
        rows = records["row"][records["shard"] == shard].tolist()
        places |= {(shard, row): examples[row] for row in rows}
    return [places[shard, row] for shard, row in records[["shard", "row"]].tolist()]


def listed(examples: Sequence[Example], change: Float64, model: Model) -> xr.Dataset:
    """example_change[rank], with the id and the text of each as coordinates.

    change  [rank] mean of 1 - cosine over all heads
    """
    words = "1 - cosine of the maps, mean over all heads"
    variables = {"example_change": Variable(change, ("rank",), words, "1", "ours")}
    names = {
        "example_id": [printable(example.id) for example in examples],
        "example_document": [printable(example.document) for example in examples],
        "example_text": [input_text(example, model) for example in examples],
        "example_tokens": [len(example) for example in examples],
    }
    dataset = labelled(variables).assign_coords({k: ("rank", few) for k, few in names.items()})
    dataset["example_change"].attrs["tidy"] = 0
    return dataset


def input_text(example: Example, model: Model) -> str:
    """The text of an input without special tokens; / stands between two texts."""
    parts: list[list[str]] = [[]]
    for token, special in zip(model.tokens(example.input_ids), example.special, strict=True):
        if not special:
            parts[-1].append(token)
        elif parts[-1]:
            parts.append([])
    # WordPiece marks the continuation of a word with ##.
    whole = " / ".join(" ".join(part).replace(" ##", "") for part in parts if part)
    return printable(whole)[:LONGEST]
