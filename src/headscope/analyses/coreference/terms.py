"""Words of the analysis of coreference."""

from __future__ import annotations

from headscope.core.terms import CLARK, OURS, Term

TERMS = {
    "coreference": Term(
        "coreference",
        "Which mentions speak of the same person or thing; a head finds the antecedent of a "
        "mention if the mention’s head word attends, of all head words of mentions before it, most "
        "to one of the same entity.",
        f"{CLARK}, §4.3; candidates as headscope chose them",
    ),
    "accuracy_strict": Term(
        "accuracy, strict",
        "Share of mentions whose head word attends, of all other words of the input, most to the "
        "head word of an antecedent.",
        f"{CLARK}, §4.3",
    ),
    "proper": Term("names", "Mentions whose head word is a proper noun.", f"{CLARK}, §4.3"),
    "nominal": Term(
        "noun phrases",
        "Mentions whose head word is neither a pronoun nor a proper noun.",
        f"{CLARK}, §4.3",
    ),
    "nearest": Term(
        "nearest mention",
        "The rule that the nearest mention before is the antecedent.",
        f"{CLARK}, §4.3",
    ),
    "head_match": Term(
        "head match",
        "The rule that the nearest mention before with the same head word is the antecedent; "
        "without one it has no answer.",
        f"{CLARK}, §4.3",
    ),
    "rule_based": Term(
        "rules",
        "The nearest mention before with the same words; else with the same head word; else that "
        "agrees in person, number and gender as far as English pronouns show them; else any.",
        f"{CLARK}, §4.3",
    ),
    "crosses_window": Term(
        "cut by the end of an input",
        "Mentions of which a part is in another window; they are not asked about.",
        OURS,
    ),
    "no_antecedent": Term(
        "of what was not mentioned before",
        "Mentions of an entity that no earlier mention in the same input speaks of.",
        OURS,
    ),
    "same_head_word": Term(
        "with the head word of a longer one",
        "Mentions within a longer mention that has the same head word.",
        OURS,
    ),
}
LABELS = {
    "accuracy": "antecedent found, {choice}",
    "accuracy_strict": "antecedent found among all words, {choice}",
}
