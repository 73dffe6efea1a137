"""What does each word mean that results, figures and reports use?

TERMS    the word in the data → its plain name, one sentence of meaning, and where it comes from
SOURCES  the short citation used in TERMS → the full reference
`label` and `unit_label` give the words that stand on axes and in table heads.
"""

from __future__ import annotations

from headscope.analyses.divergence.terms import CLUSTERS
from headscope.analyses.flow.terms import FLOW
from headscope.analyses.language.terms import LANGUAGE
from headscope.analyses.neurons.terms import NEURONS
from headscope.analyses.patterns.terms import PATTERNS
from headscope.core.terms import CLARK, KOBAYASHI20, KOBAYASHI21, OURS, SOURCES, Source, Term
from headscope.experiments.ablation.terms import ABLATION
from headscope.experiments.alignment.terms import ALIGNMENT
from headscope.experiments.comparison.terms import COMPARISON
from headscope.experiments.importance.terms import IMPORTANCE
from headscope.experiments.probes.terms import PROBES
from headscope.heads.terms import HEADS

__all__ = [
    "LABELS",
    "OURS",
    "SOURCES",
    "TERMS",
    "UNITS",
    "Source",
    "Term",
    "label",
    "name",
    "unit_label",
]

TERMS = {
    "head": Term(
        "head",
        "One of the parallel attention units of a layer; L8·H10 is head 10 of layer 8, both "
        "counted from 1 as papers do (data files count from 0).",
        CLARK,
    ),
    "attention": Term(
        "attention",
        "The share of a token’s attention that goes to another token: the weight α after the "
        "softmax, so that every row sums to 1.",
        CLARK,
    ),
    "self": Term("itself", "Attention of a token to itself.", f"{CLARK}, §3.1"),
    "previous": Term(
        "previous token",
        "Attention of a token to the one before it; the first token has none and counts as 0.",
        f"{CLARK}, §3.1",
    ),
    "next": Term(
        "next token",
        "Attention of a token to the one after it; the last token has none and counts as 0.",
        f"{CLARK}, §3.1",
    ),
    "first": Term(
        "first token",
        "Attention to the token at the first position; decoders without a [CLS] token often "
        "rest their attention there.",
        OURS,
    ),
    "cls": Term(
        "[CLS]",
        "Attention to the classification token that opens the input, whatever the tokenizer "
        "calls it.",
        f"{CLARK}, §3.2",
    ),
    "sep": Term(
        "[SEP]",
        "Attention to the separator tokens that end each segment, whatever the tokenizer calls "
        "them, summed over all of them.",
        f"{CLARK}, §3.2",
    ),
    "punctuation": Term(
        "punctuation", "Attention to full stops and commas, summed.", f"{CLARK}, §3.2"
    ),
    "sep_from_sep": Term(
        "[SEP] from [SEP]",
        "The attention that separator tokens themselves give to separators.",
        f"{CLARK}, §3.2",
    ),
    "sep_from_other": Term(
        "[SEP] from other tokens",
        "The attention that all tokens but the separators give to separators.",
        f"{CLARK}, §3.2",
    ),
    "other": Term(
        "other tokens",
        "Every token that is none of [CLS], [SEP], full stop and comma.",
        KOBAYASHI20,
    ),
    "entropy": Term(
        "entropy",
        "How widely a head spreads its attention, in nats: 0 when all of it goes to one token, "
        "ln n when n tokens get the same.",
        f"{CLARK}, §3.3",
    ),
    "uniform": Term(
        "uniform attention",
        "What a head would show that gave every token of the input the same attention; the "
        "reference for entropy is the mean of ln n over documents.",
        f"{CLARK}, §3.3",
    ),
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
    "ratio": Term(
        "mixing ratio",
        "How much of a token’s new vector comes from the other tokens rather than from itself, "
        "from 0 to 1.",
        KOBAYASHI21,
    ),
    "attn_w": Term("Attn-W", "Mixing ratio from attention weights alone.", KOBAYASHI21),
    "attn_n": Term("Attn-N", "Mixing ratio from the norms of weighted vectors.", KOBAYASHI21),
    "attnres_w": Term(
        "AttnRes-W", "Attn-W with the residual connection counted as weight 1.", KOBAYASHI21
    ),
    "attnres_n": Term(
        "AttnRes-N", "Attn-N with the residual connection’s vector added.", KOBAYASHI21
    ),
    "attnresln_n": Term(
        "AttnResLn-N", "AttnRes-N after layer normalisation: the whole block.", KOBAYASHI21
    ),
    "js": Term(
        "Jensen–Shannon divergence",
        "How differently two heads distribute attention, in nats: 0 when equal, ln 2 = 0.69 when "
        "they never attend to the same token; mean over tokens and documents.",
        f"{CLARK}, §6",
    ),
    "mds": Term(
        "map of heads",
        "Heads placed on a plane (multidimensional scaling) so that distances come as near as "
        "they can to the divergences; the axes themselves mean nothing.",
        f"{CLARK}, §6",
    ),
    "mds_stress": Term(
        "stress",
        "How far the map’s distances miss the divergences; 0 would be exact.",
        f"{CLARK}, §6",
    ),
    **CLUSTERS,
    **LANGUAGE,
    **NEURONS,
    **FLOW,
    **PATTERNS,
    **HEADS,
    **ABLATION,
    **IMPORTANCE,
    **COMPARISON,
    **PROBES,
    **ALIGNMENT,
    "interval": Term(
        "[low, high]",
        "The 95 % interval of an estimate: the run is repeated on documents drawn anew from the "
        "corpus (bootstrap), and the middle 95 % of the answers is kept.",
        OURS,
    ),
    "role": Term(
        "what a head does",
        "What a colour and a sign stand for, by the lower end of the interval: next or previous "
        "token above 0.5; broad when entropy is above 0.9 of uniform; [CLS], [SEP] or punctuation "
        "above 0.6; else other. Labels say more.",
        f"{CLARK}, §6; the relative entropy threshold is ours (theirs: 3.8 nats)",
    ),
    "effect": Term(
        "effect",
        "How far a head stands above what is ordinary, of the way it could go: (lower end of its "
        "interval − reference) / (ceiling − reference), where the reference is the larger of "
        "uniform attention and the mean head; for what a head knows of language, the baseline, or "
        "what chance gives.",
        OURS,
    ),
}

LABELS = {
    ("patterns", "share"): "{choice}",
    ("similarity", "cosine"): "cosine of maps with the first model’s",
    ("similarity", "cosine_padded"): "cosine of padded maps with the first model’s",
    ("similarity", "js"): "divergence from the first model’s maps",
    ("surface", "attention"): "attention to {choice}",
    ("frames", "score"): "frame element to target",
    ("frames", "score_reversed"): "target to frame element",
    ("frames", "chance"): "chance, frame element to target",
    ("frames", "chance_reversed"): "chance, target to frame element",
    ("frames", "p_value"): "p, frame element to target",
    ("frames", "p_value_reversed"): "p, target to frame element",
    ("frames", "distribution"): "sentences, frame element to target",
    ("frames", "score_quantile"): "quantile of sentences, frame element to target",
    ("coreference", "accuracy"): "antecedent found, {choice}",
    ("coreference", "accuracy_strict"): "antecedent found among all words, {choice}",
    ("features", "attention"): "attention to {choice}",
    ("pairs", "attention"): "attention, {choice}",
    ("entropy", "entropy", "all"): "entropy, all tokens",
    ("entropy", "entropy", "cls"): "entropy, [CLS] only",
    ("norms", "attention"): "summed attention to {choice}",
    ("norms", "value_norm"): "value norm of {choice}",
    ("norms", "weighted_norm"): "weighted norm of {choice}",
    ("norms", "value_norm_mean"): "value norm, mean",
    ("norms", "value_norm_sd"): "value norm, SD",
    ("norms", "value_norm_cv"): "value norm, CV",
    ("norms", "value_norm_max"): "value norm, largest",
    ("norms", "value_norm_min"): "value norm, smallest",
    ("mixing", "spearman_frequency"): "mixing ratio and frequency rank, {choice}",
    ("flow", "share"): "share from {choice}",
    ("flow", "cls_share"): "share of [CLS] from {choice}",
    ("neurons", "effective"): "effective number of neurons",
    ("neurons", "top_share"): "share of the {choice} largest neurons",
    ("neurons", "position_overlap"): "overlap of neurons between positions",
    ("neurons", "relative_score"): "score of the attended key above the mean key",
    ("neurons", "separation_score"): "score above other keys, {choice}",
    ("ablation", "score"): "score without the head",
    ("ablation", "difference"): "change of the score without the head",
    ("ablation", "q"): "q of the change of the score",
    ("ablation", "loss_q"): "q of the change of the loss",
    ("probes", "head_influence"): "influence on the probe, {choice}",
    ("probes", "head_weight"): "weight in the probe, {choice}",
    ("probes", "head_spread"): "spread of attention, {choice}",
    ("gradients", "magnitude"): "size of the gradient, {choice}",
    ("gradients", "magnitude_by_query"): "size of the gradient by query, {choice}",
    ("gradients", "attention"): "attention to {choice}, by query",
    ("importance", "head_importance"): "{choice}",
    ("importance", "effect_of_head"): "without the head: {choice}",
    ("pruning", "turn"): "heads removed before this one, {choice}",
    ("neurons", "separation_effective"): "neurons that tell from other keys, {choice}",
}

UNITS = {"probability": "share", "nats": "nats", "tokens": "tokens", "1": ""}


def name(word: str) -> str:
    """The plain name of a word of the data; the word itself, spaced, where it has no entry."""
    return TERMS[word].name if word in TERMS else word.replace("_", " ")


def label(group: str, variable: str, choice: str = "", *, long_name: str = "") -> str:
    """What stands on an axis or in a table head for `variable` of `group` at `choice`."""
    for key in ((group, variable, choice), (group, variable)):
        if key in LABELS:
            return LABELS[key].format(choice=name(choice))
    start = long_name or name(variable)
    return f"{start}, {name(choice)}" if choice else start


def unit_label(unit: str) -> str:
    """How a unit of the data is written for readers; empty for pure numbers."""
    return UNITS.get(unit, unit)
