"""Words of the analysis of weights and vector norms."""

from __future__ import annotations

from headscope.core.terms import KOBAYASHI20, Term

TERMS = {
    "value_norm": Term(
        "value norm ‖f(x)‖",
        "The length of the vector that a head would add for a token if it attended to that "
        "token alone, before any attention weight.",
        KOBAYASHI20,
    ),
    "weighted_norm": Term(
        "weighted norm ‖αf(x)‖",
        "Attention times value norm: the length of what a token really contributes through a "
        "head; for a category, the sum over its tokens.",
        KOBAYASHI20,
    ),
    "layer_weighted_norm": Term(
        "layer norm of the sum ‖Σαf(x)‖",
        "The length of what a token contributes through all heads of a layer together; heads "
        "can reinforce or cancel each other.",
        KOBAYASHI20,
    ),
    "value_norm_cv": Term(
        "dispersion of value norms",
        "Standard deviation over mean of a head’s value norms: how differently it treats tokens "
        "before any attention weight.",
        f"{KOBAYASHI20}, Table 1",
    ),
    "value_norm_max": Term(
        "largest value norm",
        "The length of the longest vector that a head would add for any token of the corpus; no "
        "interval, as no resample of it holds a longer one.",
        f"{KOBAYASHI20}, Table 1",
    ),
    "value_norm_min": Term(
        "smallest value norm",
        "The length of the shortest vector that a head would add for any token of the corpus; no "
        "interval, as no resample of it holds a shorter one.",
        f"{KOBAYASHI20}, Table 1",
    ),
    "spearman_attention_value_norm": Term(
        "cancellation",
        "Attention and value norm pull against each other: large weights fall on tokens whose "
        "vectors are short, seen as a negative rank correlation between the two.",
        f"{KOBAYASHI20}, Table 2",
    ),
    "spearman_frequency": Term(
        "frequency effect",
        "Rank correlation with a token’s frequency rank (1 = most frequent): positive when rarer "
        "tokens get more, or mix more.",
        KOBAYASHI20,
    ),
    "sink": Term(
        "attention sink",
        "A head that rests more than half of its attention on [CLS], on [SEP] or on both, while "
        "what they add has less than half the norm of what the other tokens add.",
        f"{KOBAYASHI20}; the thresholds are ours",
    ),
}
LABELS = {
    "attention": "summed attention to {choice}",
    "value_norm": "value norm of {choice}",
    "weighted_norm": "weighted norm of {choice}",
    "value_norm_mean": "value norm, mean",
    "value_norm_sd": "value norm, SD",
    "value_norm_cv": "value norm, CV",
    "value_norm_max": "value norm, largest",
    "value_norm_min": "value norm, smallest",
}
