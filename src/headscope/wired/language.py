"""Generates sentences of a made language, in which every word form tells its own annotation.

A form is spelled from what is known of it: `obj5-1m` is an object in slot 5 whose head stands in
slot 1, and which is mentioned elsewhere. So the embedding of a form can hold its tag, its relation,
and where in the sentence its head is to be found, and a head can be wired to look there. The order
of the parts of a clause is free, so that no fixed offset finds a relation; only prepositions stand
right before their nouns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from string import ascii_letters

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from headscope.core.accumulators import generator
from headscope.corpus.document import (
    Document,
    Frame,
    FrameElement,
    MemoryCorpus,
    Mention,
    Passage,
    Word,
)

VERBS, NOUNS, ENTITIES = 3, 9, 3
SLOTS = VERBS + NOUNS  # a verb's slot is 0 to 2, a noun's 3 to 11
ROLES = ("nsubj", "obj", "obl")
UNKNOWN, OPENS, CLOSES, PAD, MASK = "[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"
SPECIAL = (PAD, UNKNOWN, OPENS, CLOSES)
BEGIN, END = "<s>", "</s>"


@dataclass(frozen=True, slots=True)
class Form:
    """One word form and all that is known of it.

    slot       its own slot in the sentence, of verbs and nouns; else −1
    head_slot  that of its head; −1 of a root, and where the form does not tell
    entity     of a mention: which entity it speaks of; else −1
    framed     whether it evokes a frame, or is an element of one
    """

    text: str
    tag: str
    relation: str
    slot: int = -1
    head_slot: int = -1
    entity: int = -1
    framed: bool = False


@cache
def forms() -> dict[str, Form]:
    """All word forms of the language, by their text."""
    made = [
        Form(".", "PUNCT", "punct"),
        Form(",", "PUNCT", "punct"),
        Form("not", "PART", "advmod"),
        *_verbs(),
        *_nouns(),
        *_others(),
    ]
    return {form.text: form for form in made}


def _verbs() -> Iterator[Form]:
    for slot, head, framed in product(range(VERBS), range(-1, VERBS), (False, True)):
        if slot != head:
            relation = "root" if head < 0 else "conj"
            text = f"{relation}{slot}{head if head >= 0 else ''}{'f' * framed}"
            yield Form(text, "VERB", relation, slot, head, framed=framed)


def _nouns() -> Iterator[Form]:
    for relation, head, framed in product(ROLES, range(VERBS), (False, True)):
        if relation == "obl" and framed:
            continue
        for slot, spoken in product(range(VERBS, SLOTS), (False, True)):
            text = f"{relation}{slot}-{head}{'m' * spoken}{'f' * framed}"
            entity = slot % ENTITIES if spoken else -1
            yield Form(text, "NOUN", relation, slot, head, entity, framed)
        for entity in range(ENTITIES if relation != "obl" else 0):
            text = f"{relation}-pron{entity}-{head}{'f' * framed}"
            yield Form(text, "PRON", relation, -1, head, entity, framed)


def _others() -> Iterator[Form]:
    of_nouns, of_verbs = range(VERBS, SLOTS), range(VERBS)
    for relation, tag, heads, kinds in (
        ("det", "DET", of_nouns, "ab"),
        ("amod", "ADJ", of_nouns, "abc"),
        ("case", "ADP", of_nouns, "ab"),
        ("advmod", "ADV", of_verbs, "abc"),
        ("aux", "AUX", of_verbs, "ab"),
        ("cc", "CCONJ", of_verbs, "a"),
    ):
        for head, kind in product(heads, kinds):
            yield Form(f"{relation}-{kind}{head}", tag, relation, -1, head)


class Sentence:
    """One sentence as it is made: forms in order, and where the head of each stands."""

    def __init__(self, rng: np.random.Generator, clauses: int) -> None:
        self.rng = rng
        self.forms: list[Form] = []
        self.heads: list[int] = []  # the slot of the head; −1 of the root
        self.verbs = rng.permutation(VERBS).tolist()
        self.nouns = rng.permutation(np.arange(VERBS, SLOTS)).tolist()
        for place in range(clauses):
            self._clause(place)
        self._add(".", self.verbs[0])

    def _add(self, text: str, head: int | None = None) -> None:
        form = forms()[text]
        self.forms.append(form)
        self.heads.append(form.head_slot if head is None else head)

    def _clause(self, place: int) -> None:
        verb, draw = self.verbs[place], self.rng.random
        if place:
            self._add(",", verb)
            self._add(f"cc-a{verb}")
        framed = bool(draw() < 0.5)
        start = f"conj{verb}{self.verbs[0]}" if place else f"root{verb}"
        parts: list[list[str]] = [[start + "f" * framed]]
        parts += [self._noun("nsubj", verb, framed=framed)]
        parts += [self._noun("obj", verb, framed=framed)] * bool(draw() < 0.8)
        parts += [self._noun("obl", verb, framed=False)] * bool(draw() < 0.5)
        adverbs = [f"advmod-{kind}{verb}" for kind in self.rng.choice([*"abc"], 2)]
        parts += [[one] for one in adverbs if draw() < 0.6]
        parts += [[f"aux-{self.rng.choice([*'ab'])}{verb}"]] * bool(draw() < 0.5)
        parts += [["not"]] * bool(draw() < 0.3)
        for at in self.rng.permutation(len(parts)):
            for text in parts[at]:
                self._add(text, verb if text == "not" else None)

    def _noun(self, relation: str, verb: int, *, framed: bool) -> list[str]:
        draw = self.rng.random
        mark = "f" * (framed and relation != "obl")
        if relation != "obl" and draw() < 0.5:
            return [f"{relation}-pron{self.rng.integers(ENTITIES)}-{verb}{mark}"]
        slot, spoken = self.nouns.pop(), "m" * bool(draw() < 0.9)
        noun = [f"{relation}{slot}-{verb}{spoken}{mark}"]
        if relation == "obl":
            noun = [f"case-{self.rng.choice([*'ab'])}{slot}", *noun]
        around = [f"det-{self.rng.choice([*'ab'])}{slot}"] * bool(draw() < 0.7)
        around += [f"amod-{kind}{slot}" for kind in self.rng.choice([*"abc"], 2) if draw() < 0.4]
        for text in around:
            noun = [text, *noun] if draw() < 0.5 else [*noun, text]
        return noun

    @property
    def text(self) -> str:
        """Its forms with spaces between them."""
        return " ".join(form.text for form in self.forms)

    def passage(self, name: str) -> Passage:
        """With its tree, mentions and frames."""
        place = {form.slot: at for at, form in enumerate(self.forms) if form.slot >= 0}
        heads = [place.get(head, -1) for head in self.heads]
        words = tuple(
            Word(form.text, form.tag, None, head, form.relation)
            for form, head in zip(self.forms, heads, strict=True)
        )
        mentions = tuple(
            Mention(str(form.entity), at, at, at, "pronoun" if form.tag == "PRON" else "nominal")
            for at, form in enumerate(self.forms)
            if form.entity >= 0
        )
        frames = tuple(
            Frame(form.text, at, at, elements)
            for at, form in enumerate(self.forms)
            if form.framed and form.tag == "VERB" and (elements := self._elements(heads, at))
        )
        return Passage(name, words=words, mentions=mentions, frames=frames)

    def _elements(self, heads: Sequence[int], verb: int) -> tuple[FrameElement, ...]:
        return tuple(
            FrameElement(form.relation, at, at)
            for at, form in enumerate(self.forms)
            if heads[at] == verb and form.framed and form.tag != "VERB"
        )


def sentences(count: int, *, seed: int = 0, clauses: Sequence[int] = (1, 2, 3)) -> list[Sentence]:
    """Sentences of 3 to about 40 words.

    clauses  how many clauses a sentence may have, drawn evenly
    """
    rng = generator(seed, "wired", "sentences")
    return [Sentence(rng, int(rng.choice(clauses))) for _ in range(count)]


def annotated_corpus(documents: int = 40, *, each: int = 3, seed: int = 0) -> MemoryCorpus:
    """Documents of a few sentences with tags, trees, mentions and frames."""
    made = sentences(documents * each, seed=seed)
    return MemoryCorpus(
        Document(
            f"document {at}",
            tuple(
                one.passage(f"document {at}, {number}")
                for number, one in enumerate(made[at * each : (at + 1) * each])
            ),
        )
        for at in range(documents)
    )


def pair_corpus(documents: int = 60, *, seed: int = 0) -> MemoryCorpus:
    """Pairs of sentences, each pair one input of two segments."""
    made = sentences(2 * documents, seed=seed, clauses=(1, 2))
    return MemoryCorpus(
        (one.text, other.text) for one, other in zip(made[::2], made[1::2], strict=True)
    )


def long_corpus(documents: int = 20, *, length: int = 160, seed: int = 0) -> MemoryCorpus:
    """Running texts of the same length."""
    rng = generator(seed, "wired", "long")
    made = []
    for _ in range(documents):
        words = list[str]()
        while len(words) < length:
            words += Sentence(rng, int(rng.integers(1, VERBS + 1))).text.split()
        made.append(" ".join(words[:length]))
    return MemoryCorpus(made)


@cache
def tokenizer(family: str, *, masks: bool = False) -> PreTrainedTokenizerFast:
    """One token for each form, letters for other words; special tokens as the family has them.

    family  "bert": [CLS] and [SEP]; "t5": a closing </s>; "llama": an opening <s>; "gpt2": none
            is added
    masks   whether it has a mask token, as a masked language model needs it
    """
    opens = {"bert": OPENS, "llama": BEGIN}.get(family)
    closes = {"bert": CLOSES, "t5": END}.get(family)
    added = SPECIAL if family == "bert" else (PAD, UNKNOWN, BEGIN, END)
    letters = [sign + letter for letter in ascii_letters for sign in ("", "##")]
    ids = {text: at for at, text in enumerate([*added, *forms(), *letters, *[MASK] * masks])}
    made = Tokenizer(models.WordPiece(ids, unk_token=UNKNOWN))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    first = [opens] if opens else []
    last = [closes] if closes else []
    single = " ".join([*first, "$A", *last])
    pair = " ".join([*first, "$A", *last, "$B:1", *(f"{one}:1" for one in last)])
    if first or last:
        made.post_processor = processors.TemplateProcessing(
            single=single, pair=pair, special_tokens=[(one, ids[one]) for one in (*first, *last)]
        )
    names = (
        {"cls_token": OPENS, "sep_token": CLOSES}
        if family == "bert"
        else {"bos_token": BEGIN, "eos_token": END}
    ) | ({"mask_token": MASK} if masks else {})
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=made, unk_token=UNKNOWN, pad_token=PAD, model_max_length=512, **names
    )
