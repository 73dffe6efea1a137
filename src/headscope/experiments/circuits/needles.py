"""Needles in haystacks: random tokens in a text, and the question that asks for them.

[BOS, text, “The secret code of Lisbon is” w_1 … w_k “.”, text, “The secret code of Lisbon is”
w_1 … w_k], the w random tokens, each once, that stand nowhere else; or a sentence of others.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headscope.core.accumulators import Float64, Ints, generator
from headscope.corpus import Corpus
from headscope.corpus.document import Example
from headscope.errors import InputError
from headscope.experiments.circuits.made_inputs import example_of, opening_token, plain_tokens
from headscope.experiments.circuits.settings import FEWEST
from headscope.model.model import Model
from headscope.run.plan import encoder_for
from headscope.run.settings import Settings

PLACES = ["Lisbon", "Cairo", "Oslo", "Lima", "Kyoto", "Accra", "Quito", "Riga", "Hanoi", "Sofia"]
SAID = " The secret code of {place} is"
STEPS = 8  # tokens of a needle
EACH = 10  # ours: needles that share a haystack; what stands before them is read once


@dataclass(frozen=True)
class Wording:
    """A needle and its question.

    said      the needle's sentence up to the answer
    question  what asks for it at the end
    answer    "": random tokens
    """

    said: str
    question: str
    answer: str = ""


MADE = tuple(Wording(said, said) for said in (SAID.format(place=place) for place in PLACES))


@dataclass(frozen=True)
class Needles:
    """Haystacks with a needle each, its question and its answer at the end.

    examples  what the model reads, the answer but for its last token
    right     [run] each [step] the needle's tokens
    places    [run] each [step] where they stand in the haystack
    sentence  [run] tokens of the needle's sentence before them; behind them a full stop
    question  [run] tokens of the question
    depth     [run] share of the haystack before the needle
    haystack  [run] which one, counted from 0
    """

    examples: list[Example]
    right: list[Ints]
    places: list[Ints]
    sentence: list[int]
    question: list[int]
    depth: Float64
    haystack: Ints

    def some(self, count: int) -> "Needles":
        """Some of the runs, spread evenly from the first depth to the last."""
        runs = np.linspace(0, len(self.examples) - 1, count).astype(int)
        lists = self.examples, self.right, self.places, self.sentence, self.question
        some: list[Any] = [[part[run] for run in runs] for part in lists]
        some += [self.depth[runs], self.haystack[runs]]
        return Needles(*some)

    def asked(self, run: int) -> Ints:
        """The input of a run up to the end of its question."""
        ids: Ints = self.examples[run].input_ids
        return ids[: len(ids) - len(self.right[run]) + 1]


def needles(
    model: Model,
    corpus: Corpus,
    *,
    runs: int,
    haystack: int,
    seed: int,
    room: int = 0,
    wordings: Sequence[Wording] = MADE,
) -> Needles:
    """Needles at even depths of haystacks, which are pieces of the corpus's first documents.

    room      tokens that are left for an answer of the model's own
    wordings  of the runs in turn
    raises    InputError for fewer than FEWEST runs, a text that is shorter than the haystack, or
              inputs that are longer than the model takes
    """
    if runs < FEWEST:
        raise InputError(f"found {runs} needles; wanted {FEWEST} or more, or --haystack 0")
    text, first = _tokens(model, corpus, haystack * 2), opening_token(model)
    if len(text) < haystack:
        raise InputError(
            f"the text has {len(text)} tokens, and the haystack {haystack}; wanted a longer text, "
            f"or --haystack {len(text)} or less"
        )
    words = _words(model, text, wordings)
    start = [] if first is None else [first]
    every, many = np.arange(runs), math.ceil(runs / EACH)
    begins = generator(seed, "haystack").integers(len(text) - haystack + 1, size=many)
    made = Needles([], [], [], [], [], every / max(runs - 1, 1), every % many)
    for run in range(runs):
        draw, wording = generator(seed, "needle", str(run)), wordings[run % len(wordings)]
        code = draw.choice(words, STEPS, replace=False)
        if wording.answer:
            code = np.array(ids_of(model, wording.answer), np.int64)
        said, question = ids_of(model, wording.said), ids_of(model, wording.question)
        begin = int(begins[made.haystack[run]])
        hay = text[begin : begin + haystack]
        cut = round(float(made.depth[run]) * haystack)
        before = [*start, *hay[:cut], *said]
        ids = [*before, *code, *ids_of(model, "."), *hay[cut:], *question, *code[:-1]]
        made.right.append(code)
        made.places.append(len(before) + np.arange(len(code)))
        made.sentence.append(len(said))
        made.question.append(len(question))
        made.examples.append(
            example_of(np.array(ids, np.int64), f"needle {run}", "haystack", special=len(start))
        )
    longest = max(map(len, made.examples)) + room
    if longest > model.limit:
        raise InputError(
            f"a haystack of {haystack} tokens makes inputs of {longest}, and {model.name!r} takes "
            f"{model.limit}: give --haystack {max(model.limit - longest + haystack, 0)} or less"
        )
    return made


def ids_of(model: Model, text: str) -> list[int]:
    """The ids of a text, without those that open or close an input."""
    return list(model.tokenizer(text, add_special_tokens=False)["input_ids"])


def _words(model: Model, text: Ints, wordings: Sequence[Wording]) -> Ints:
    """Tokens that needles may have, so that each stands nowhere else."""
    asking = [one for wording in wordings for one in ids_of(model, wording.question)]
    words = np.setdiff1d(plain_tokens(model), [*text, *asking, *ids_of(model, ".")])
    if len(words) < STEPS:
        raise InputError(
            f"of the tokens of {model.name!r} {len(words)} are not in the text, and a needle "
            f"needs {STEPS}; give a shorter text, or --haystack 0"
        )
    return words


def _tokens(model: Model, corpus: Corpus, wanted: int) -> Ints:
    """The first tokens of a corpus, document after document, without special tokens."""
    encoder = encoder_for(model, Settings())

    def parts() -> Iterator[Ints]:
        count = 0
        for document in corpus:
            for example in encoder.encode(document):
                yield example.input_ids[~example.special]
                count += len(example)
            if count > wanted:
                return

    return np.concatenate([np.zeros(0, np.int64), *parts()])
