"""The words of the results on heads that are switched off, explained."""

from __future__ import annotations

from headscope.core.terms import BENJAMINI, KOVALEVA, MCNEMAR, MICHEL, OURS, Term

TERMS = {
    "ablation": Term(
        "ablation",
        "Switching a head or layer off to see what becomes of a task: its attention becomes even "
        "(1/L on the L real tokens), or what it gives 0, or its mean over the data. Told is "
        "the score without it less that of the whole model, in points where it is a share.",
        f"{KOVALEVA}, §4.6",
    ),
    "loss_difference": Term(
        "change of the loss",
        "The mean cross-entropy (of a regression, squared error) with the head off less that of "
        "the whole model; above 0 the model has become worse.",
        OURS,
    ),
    "helpful": Term(
        "helpful", "The score falls without the head, by more than chance.", f"{KOVALEVA}, §4.6"
    ),
    "harmful": Term(
        "harmful", "The score rises without the head, by more than chance.", f"{KOVALEVA}, §4.6"
    ),
    "indifferent": Term(
        "indifferent",
        "What becomes of the score without the head cannot be told from chance on so many "
        "examples; that is no proof that nothing happens.",
        OURS,
    ),
    "q": Term(
        "q",
        "The p of a difference, corrected for looking at many heads: of those with q < 0.05, 5 % "
        "are expected to be false alarms.",
        f"{BENJAMINI}; of single accuracies, {MCNEMAR}",
    ),
    "lost": Term("lost", "Right answers that become wrong without the head.", OURS),
    "gained": Term("gained", "Wrong answers that become right without the head.", OURS),
    "group_interaction": Term(
        "interaction",
        "The change of the score with several heads off less the sum of what each changes alone: "
        "below 0 they stand in for each other.",
        OURS,
    ),
    "can_go": Term(
        "heads that can go",
        "The most heads that are gone, the least needed first, at a point of the curve where the "
        "score has fallen by no more than is allowed; before it the curve may dip below.",
        f"{MICHEL}; the measure is ours",
    ),
}
ABLATION_LABELS = {
    "score": "score without the head",
    "difference": "change of the score without the head",
    "q": "q of the change of the score",
    "loss_q": "q of the change of the loss",
}
PRUNING_LABELS = {
    "turn": "heads removed before this one, {choice}",
}
