"""What do the words of the linguistic results mean: relations, mentions, frames, kinds of words?"""

from __future__ import annotations

from headscope.core.terms import CLARK, KOVALEVA, OURS, Term

LANGUAGE = {
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
    "frames": Term(
        "frames",
        "A word that evokes a frame (the target: “pitied”) and its frame elements, the words that "
        "fill the frame’s roles (who, whom); a head’s score is its largest attention from a core "
        "frame element to the target, or back, mean over sentences.",
        f"{KOVALEVA}, §4.2",
    ),
    "score": Term(
        "score of a frame head",
        "The largest attention from a frame element to the word that evokes the frame, over the "
        "links of a sentence, mean over sentences; reversed: from that word to the element.",
        f"{KOVALEVA}, §4.2",
    ),
    "chance": Term(
        "chance",
        "What a head’s score is when frame element and target are moved, at their distance, to "
        "random words of the sentence.",
        OURS,
    ),
    "p_value": Term(
        "p",
        "Share of random moves of all frame elements and targets after which any head stands as "
        "far above its own chance, in standard deviations, as this head does on the true ones.",
        OURS,
    ),
}
