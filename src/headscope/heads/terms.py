"""What do the words mean that say what a head is?"""

from __future__ import annotations

from headscope.core.terms import KOBAYASHI20, OURS, Term

HEADS = {
    "label": Term(
        "label",
        "What a head is, by a rule with a threshold: the lower end of the 95 % interval must lie "
        "above it; the strongest label comes first, by effect, and a head that passes no rule is "
        "unlabelled.",
        OURS,
    ),
    "sink": Term(
        "attention sink",
        "A head that rests more than half of its attention on [CLS], on [SEP] or on both, while "
        "what they add has less than half the norm of what the other tokens add.",
        f"{KOBAYASHI20}; the thresholds are ours",
    ),
    "rank": Term(
        "rank",
        "The place of a head among all heads by one number, 1 for the largest; equal heads have "
        "the same.",
        OURS,
    ),
}
