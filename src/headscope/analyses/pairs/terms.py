"""Words of the analysis of pairs of kinds of words."""

from __future__ import annotations

from headscope.core.terms import KOVALEVA, Term

TERMS = {
    "subject_to_verb": Term(
        "subject to verb",
        "The largest attention from a token of a subject to a token of its verb.",
        f"{KOVALEVA}, §4.5",
    ),
    "verb_to_subject": Term(
        "verb to subject",
        "The largest attention from a token of a verb to a token of its subject.",
        f"{KOVALEVA}, §4.5",
    ),
    "noun_to_pronoun": Term(
        "noun to pronoun",
        "The largest attention from a noun of the sentence to a pronoun of it, whatever the "
        "pronoun refers to.",
        f"{KOVALEVA}, §4.5",
    ),
    "pronoun_to_noun": Term(
        "pronoun to noun",
        "The largest attention from a pronoun of the sentence to a noun of it, whatever the "
        "pronoun refers to.",
        f"{KOVALEVA}, §4.5",
    ),
}
LABELS = {
    "attention": "attention, {choice}",
}
