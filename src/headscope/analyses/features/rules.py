"""The rules behind the labels of these questions: kinds of words, near and everywhere; and pairs of
them.
"""

from functools import partial

import numpy as np

from headscope.analyses.features.word_types import (
    NEGATION,
    NOUN,
    OBJECT,
    PRONOUN,
    SUBJECT,
    VERB,
    negation_words,
    subjects_of_verbs,
    word_types,
)
from headscope.claims.attention_rule import LANGUAGE, AttentionRule, Bools, Rows, RuleInput

KINDS = {"noun": NOUN, "verb": VERB, "pronoun": PRONOUN}
TAGS = {"adjective": "ADJ", "preposition": "ADP", "determiner": "DET"}
ROLES = {"subject": SUBJECT, "object": OBJECT, "negation": NEGATION}
FEATURES = {kind: f"all {kind}s" for kind in (*KINDS, *ROLES)}  # by what a label is about
PAIR_NAMES = {
    "subject_to_verb": "the verb of a subject",
    "verb_to_subject": "the subjects of a verb",
    "noun_to_pronoun": "all pronouns, by nouns",
    "pronoun_to_noun": "all nouns, by pronouns",
}
NEGATES = negation_words("en")


def _types(read: RuleInput) -> Bools:
    """[word, type]."""
    return word_types(read.words, NEGATES)


def _of_kind(kind: int | str, read: RuleInput) -> Bools:
    """[token] whether it belongs to a word of a type, or of a tag."""
    if isinstance(kind, str):
        return read.tokens_of(np.array([word.upos == kind for word in read.words], bool))
    return read.tokens_of(read.once(_types)[:, kind])


def _every(kind: int | str, read: RuleInput) -> Rows:
    return read.even(_of_kind(kind, read))


def _nearest(kind: int | str, before: bool, read: RuleInput) -> Rows:
    return read.nearest(_of_kind(kind, read), before=before)


def _from(query: int, key: int, read: RuleInput) -> Rows:
    return read.even(_of_kind(query, read)[:, None] & _of_kind(key, read))


def _subjects(back: bool, read: RuleInput) -> Rows:
    pairs = subjects_of_verbs(read.words, read.once(_types))
    return read.links([(verb, subject) if back else (subject, verb) for subject, verb in pairs])


def _rules() -> list[AttentionRule]:
    made = list[AttentionRule]()
    for name, kind in (KINDS | TAGS).items():
        made.append(AttentionRule(f"all {name}s", LANGUAGE, partial(_every, kind)))
        for before, words in ((True, "latest"), (False, "next")):
            rows = partial(_nearest, kind, before)
            made.append(AttentionRule(f"the {words} {name}", LANGUAGE, rows))
    return made + [
        AttentionRule(FEATURES[name], LANGUAGE, partial(_every, kind))
        for name, kind in ROLES.items()
    ]


RULES = tuple(_rules())
PAIR_RULES = (
    AttentionRule(PAIR_NAMES["subject_to_verb"], LANGUAGE, partial(_subjects, False)),
    AttentionRule(PAIR_NAMES["verb_to_subject"], LANGUAGE, partial(_subjects, True)),
    AttentionRule(PAIR_NAMES["noun_to_pronoun"], LANGUAGE, partial(_from, NOUN, PRONOUN)),
    AttentionRule(PAIR_NAMES["pronoun_to_noun"], LANGUAGE, partial(_from, PRONOUN, NOUN)),
)
