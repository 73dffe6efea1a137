"""Which heads find syntactic heads and antecedents, and what words of a kind get, as docs/ define.

Attention to a word is the sum over its tokens, attention from it the mean over them; tokens that
the tokenizer added are passed over.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from tests.reference import coreference

from .corpus import Input, Word
from .network import Array, Network
from .totals import Totals

OFFSETS = [*range(-5, 0), *range(1, 6)]
DIRECTIONS = ("dependent_to_head", "head_to_dependent")
NOUNS, VERBS = ("NN", "NNS", "NNP", "NNPS"), ("VB", "VBD", "VBG", "VBN", "VBP", "VBZ")
PRONOUNS = ("PRP", "PRP$")
SUBJECTS = ("nsubj", "nsubjpass", "csubj", "csubjpass", "agent", "expl")
OBJECTS = ("obj", "dobj", "iobj", "dative", "attr", "oprd")
NOT = (
    "neither nor not never none nothing nowhere n't cannot ain't aren't can't couldn't didn't "
    "doesn't don't hadn't hasn't haven't isn't mightn't mustn't needn't shan't shouldn't wasn't "
    "weren't won't wouldn't"
)
NEGATION = frozenset(re.split(" ", NOT))


@dataclass(frozen=True)
class Finder:
    """Of a relation, or a kind of mention: who was right how often, by document.

    right   document -> [layer, head, way]
    asked   document -> words, or mentions
    rival   document -> [rule] how often each rule was right
    """

    right: dict[str, Array]
    asked: dict[str, int]
    rival: dict[str, Array]

    @property
    def count(self) -> int:
        return sum(self.asked.values())

    @property
    def accuracy(self) -> Array:
        """[layer, head, way] on all data"""
        return sum(self.right.values()) / self.count

    @property
    def baselines(self) -> Array:
        """[rule] on all data"""
        return sum(self.rival.values()) / self.count

    def held_out(self, seed: int = 0) -> float:
        """The best on one half of the documents, scored on the other, both ways."""
        halves = [[d for d in self.right if half_of(d, seed) == half] for half in (0, 1)]
        right, shape = 0.0, next(iter(self.right.values())).shape
        for own, other in (halves, halves[::-1]):
            sums = sum((self.right[d] for d in own), np.zeros(shape))
            best = np.unravel_index(sums.argmax(), shape)
            right += sum(float(self.right[d][best]) for d in other)
        return right / self.count


def half_of(document: str, seed: int) -> int:
    """0 or 1: drawn by the seed and the document's name alone."""
    digest = hashlib.blake2b(f"{seed}\x1fhalf\x1f{document}".encode(), digest_size=16).digest()
    return int(np.random.default_rng(int.from_bytes(digest, "big")).integers(2))


def word_maps(one: Input, maps: Array) -> tuple[list[int], Array]:
    """The words that have a token, and the maps between them, [layer, head, word, word]."""
    words = sorted({int(word) for word in one.word if word >= 0})
    of = np.array([[token == word for token in one.word] for word in words], float)  # [word, token]
    means = of / of.sum(-1, keepdims=True)
    return words, np.einsum("wq,lhqk,vk->lhwv", means, maps, of, optimize=True)


def relations(inputs: Iterable[Input], network: Network) -> dict[str, Finder]:
    """Relation -> who finds the head of its words; two of them are totals."""
    right: dict[str, dict[str, Array]] = defaultdict(dict)
    asked: dict[str, dict[str, int]] = defaultdict(dict)
    rival: dict[str, dict[str, Array]] = defaultdict(dict)
    for one in inputs:
        present, maps = word_maps(one, network.look(one.ids, one.segments).maps)
        self_less = maps * (1 - np.eye(len(present)))
        answers = np.stack([self_less.argmax(-1), self_less.argmax(-2)], -1)  # [l, h, word, way]
        some = np.stack([self_less.max(-1), self_less.max(-2)], -1) > 0  # causal: nobody sees it
        place = {word: at for at, word in enumerate(present)}
        for at, word in enumerate(present):
            row = one.words[word]
            if row.head >= 0 and row.head not in place:
                continue
            goal = place.get(row.head, -1)
            hits = ((answers[:, :, at] == goal) & some[:, :, at]).astype(
                float
            )  # [layer, head, way]
            offsets = np.array([row.head >= 0 and word + by == row.head for by in OFFSETS], float)
            for name in _columns(row):
                by = one.document
                right[name][by] = right[name].get(by, 0) + hits
                rival[name][by] = rival[name].get(by, 0) + offsets
                asked[name][by] = asked[name].get(by, 0) + 1
    return {name: Finder(right[name], asked[name], rival[name]) for name in right}


def _columns(row: Word) -> list[str]:
    plain = row.head >= 0 and row.relation.partition(":")[0] not in ("root", "punct")
    return [row.relation, "all", *["all but root and punctuation"] * plain]


def antecedents(inputs: Iterable[Input], network: Network) -> dict[str, Finder]:
    """Kind of mention -> who finds an antecedent: heads, and nearest, head match, rules."""
    right: dict[str, dict[str, Array]] = defaultdict(dict)
    asked: dict[str, dict[str, int]] = defaultdict(dict)
    rival: dict[str, dict[str, Array]] = defaultdict(dict)
    for one in inputs:
        present, maps = word_maps(one, network.look(one.ids, one.segments).maps)
        mentions = [(m.entity, m.first, m.last, m.head, m.kind) for m in one.mentions]
        forms = [word.form for word in one.words]
        for answer in coreference.asked(maps, present, mentions, forms):
            hits = np.stack([answer["primary"], answer["strict"]], -1).astype(float)
            rules = np.array(list(answer["systems"].values()), float)
            for name in ("all", str(answer["kind"])):
                by = one.document
                right[name][by] = right[name].get(by, 0) + hits[..., :1]
                right[f"{name}, any word"][by] = (
                    right[f"{name}, any word"].get(by, 0) + hits[..., 1:]
                )
                for key in (name, f"{name}, any word"):
                    rival[key][by] = rival[key].get(by, 0) + rules
                    asked[key][by] = asked[key].get(by, 0) + 1
    return {name: Finder(right[name], asked[name], rival[name]) for name in right}


def kinds_of_words(words: Sequence[Word]) -> dict[str, list[int]]:
    """Kind -> words."""

    def role(word: Word) -> str:
        return "" if word.head < 0 else word.relation.partition(":")[0]

    agent = [at for at, word in enumerate(words) if word.relation == "obl:agent"]
    return {
        "nouns": [at for at, word in enumerate(words) if word.xpos in NOUNS],
        "verbs": [at for at, word in enumerate(words) if word.xpos in VERBS],
        "pronouns": [at for at, word in enumerate(words) if word.xpos in PRONOUNS],
        "subjects": [at for at, word in enumerate(words) if role(word) in SUBJECTS] + agent,
        "objects": [at for at, word in enumerate(words) if role(word) in OBJECTS],
        "negation": [
            at
            for at, word in enumerate(words)
            if word.form.casefold().replace("’", "'") in NEGATION
        ],
    }


def add_kinds(totals: Totals, inputs: Iterable[Input], network: Network) -> None:
    """The most attended token of each kind, and all of them together; pairs of words likewise.

    "largest to": the largest of an input; "to all": what all of them get. "largest, A to B": the
    largest weight of a pair; "mean, A to B": the mean over the tokens A of what B's get.
    """
    for one in inputs:
        maps = network.look(one.ids, one.segments).maps
        columns = maps.mean(-2)  # [layer, head, key]
        kinds = kinds_of_words(one.words)
        for kind, words in kinds.items():
            tokens = [token for word in words for token in one.tokens_of(word)]
            if tokens:
                totals.add(f"largest to {kind}", one.document, columns[..., tokens].max(-1))
                totals.add(f"to all {kind}", one.document, columns[..., tokens].sum(-1))
                totals.add(f"inputs with {kind}", one.document, 1)
                totals.add(f"cls to {kind}", one.document, maps[-1, :, 0, tokens].max(0))
        verbs = set(kinds["verbs"])
        subjects = [
            (at, word.head)
            for at, word in enumerate(one.words)
            if word.head in verbs and word.relation.partition(":")[0] in ("nsubj", "nsubjpass")
        ]
        nouns = [(a, b) for a in kinds["nouns"] for b in kinds["pronouns"]]
        _pairs(totals, one, maps, "subject to verb", subjects)
        _pairs(totals, one, maps, "verb to subject", [(b, a) for a, b in subjects])
        _pairs(totals, one, maps, "noun to pronoun", nouns)
        _pairs(totals, one, maps, "pronoun to noun", [(b, a) for a, b in nouns])


def _pairs(
    totals: Totals, one: Input, maps: Array, name: str, pairs: Sequence[tuple[int, int]]
) -> None:
    tokens = [(i, j) for a, b in pairs for i in one.tokens_of(a) for j in one.tokens_of(b)]
    if not tokens:
        return
    weights = np.stack([maps[..., i, j] for i, j in tokens])
    totals.add(f"largest, {name}", one.document, weights.max(0))
    goals = {a: {j for first, b in pairs if first == a for j in one.tokens_of(b)} for a, _ in pairs}
    given = [
        maps[:, :, i][..., sorted(to)].sum(-1) for a, to in goals.items() for i in one.tokens_of(a)
    ]
    totals.add(f"mean, {name}", one.document, np.sum(given, axis=0), len(given))
