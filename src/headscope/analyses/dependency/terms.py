"""Words of the analysis of dependency relations, and of what all linguistic analyses share."""

from __future__ import annotations

from headscope.core.terms import CLARK, OURS, Term

TERMS = {
    "dependency": Term(
        "syntactic head",
        "The word that another one depends on, as the treebank has it; an attention head finds it "
        "if it is the word that it attends to most, or that attends to it most.",
        f"{CLARK}, §4.2",
    ),
    "dependent_to_head": Term(
        "from dependent to head",
        "Of all other words, the one that the dependent attends to most is taken for its "
        "syntactic head.",
        f"{CLARK}, §4.2",
    ),
    "head_to_dependent": Term(
        "from head to dependent",
        "Of all other words, the one that attends to the dependent most is taken for its "
        "syntactic head.",
        f"{CLARK}, §4.2",
    ),
    "accuracy": Term(
        "accuracy",
        "The share of words whose syntactic head is found, or of mentions whose antecedent is.",
        f"{CLARK}, §4.2",
    ),
    "all_but_root_and_punctuation": Term(
        "all but root and punctuation",
        "All words with a syntactic head but punctuation; “all” has both, as in the paper, though "
        "no attention head can find the head of a root.",
        f"{CLARK}, §4.2, whose “All” has both",
    ),
    "offset_accuracy": Term(
        "fixed offset",
        "The rule that every word has its syntactic head so many words to its right (+) or left "
        "(−).",
        f"{CLARK}, §4.2; offsets from −5 to 5 are ours",
    ),
    "baseline": Term(
        "baseline",
        "What a rule without a model finds: the best fixed offset for syntax, rule systems for "
        "coreference.",
        f"{CLARK}, §4.2",
    ),
    "held_out": Term(
        "held out",
        "A head is chosen on one half of the documents and scored on the other, both ways; the "
        "best of many heads looks better on the data that it was chosen on.",
        OURS,
    ),
    "advantage": Term(
        "advantage",
        "Held-out accuracy of heads less that of the baseline on the same documents; a head beats "
        "the baseline if the interval of this difference lies above 0.",
        OURS,
    ),
    "head_in_another_input": Term(
        "with their syntactic head in another input",
        "Words of a sentence that was read in several windows; they are not asked about.",
        OURS,
    ),
    "no_token": Term(
        "without a token",
        "Words (or mentions by their head word) of which the tokenizer left nothing.",
        OURS,
    ),
}
