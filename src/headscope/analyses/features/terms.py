"""Words of the analysis of kinds of words."""

from __future__ import annotations

from headscope.core.terms import KOVALEVA, Term

TERMS = {
    "noun": Term(
        "nouns",
        "Common and proper nouns, by tag: Penn’s NN, NNS, NNP, NNPS, or NOUN and PROPN of "
        "Universal Dependencies.",
        f"{KOVALEVA}, §4.4",
    ),
    "verb": Term(
        "verbs",
        "Verbs by tag: Penn’s VB and its forms, or VERB and AUX of Universal Dependencies; be, "
        "have and do are among them.",
        f"{KOVALEVA}, §4.4",
    ),
    "pronoun": Term(
        "pronouns",
        "Pronouns by tag: Penn’s PRP and PRP$, or PRON of Universal Dependencies.",
        f"{KOVALEVA}, §4.4",
    ),
    "subject": Term(
        "subjects",
        "Words whose relation to their head is that of a subject, an expletive or the agent of a "
        "passive.",
        f"{KOVALEVA}, §4.4",
    ),
    "object": Term(
        "objects",
        "Words whose relation to their head is that of a direct or indirect object (or, in older "
        "English labels, of a predicate complement).",
        f"{KOVALEVA}, §4.4",
    ),
    "negation": Term(
        "negation",
        "Words that negate, such as “not”, “never” and “nothing”, by a list for each language.",
        f"{KOVALEVA}, §4.4",
    ),
}
LABELS = {
    "attention": "attention to {choice}",
}
