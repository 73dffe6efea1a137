"""The rules behind the labels of this question: nouns, verbs, pronouns, near and everywhere."""

from functools import partial

import numpy as np

from headscope.claims.attention_rule import LANGUAGE, AttentionRule, Bools, Rows, RuleInput

KINDS = {
    "noun": ("NOUN", "PROPN"),
    "verb": ("VERB", "AUX"),
    "pronoun": ("PRON",),
    "adjective": ("ADJ",),
    "preposition": ("ADP",),
    "determiner": ("DET",),
}


def _of_kind(tags: tuple[str, ...], read: RuleInput) -> Bools:
    return read.tokens_of(np.array([word.upos in tags for word in read.words], bool))


def _every(tags: tuple[str, ...], read: RuleInput) -> Rows:
    return read.even(_of_kind(tags, read))


def _nearest(tags: tuple[str, ...], before: bool, read: RuleInput) -> Rows:
    return read.nearest(_of_kind(tags, read), before=before)


def _rules() -> list[AttentionRule]:
    made = list[AttentionRule]()
    for name, tags in KINDS.items():
        made.append(AttentionRule(f"all {name}s", LANGUAGE, partial(_every, tags)))
        for before, words in ((True, "latest"), (False, "next")):
            rows = partial(_nearest, tags, before)
            made.append(AttentionRule(f"the {words} {name}", LANGUAGE, rows))
    return made


RULES = tuple(_rules())
