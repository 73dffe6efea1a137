"""Which claims were made of BERT, by whom, and when do they hold for another model?

A claim compares one number of a model with a bound. It holds if the 95 % interval of the number
lies wholly on the claimed side, does not hold if it lies wholly on the other, and is unclear if the
bound lies within; without an interval the number alone decides. How the number is computed stands
in `measures`, under the same name.

Depth runs from 0, the first layer, to 1, the last. The middle layers are those at the depth of
layers 6 to 10 of BERT-base, of which Clark et al. (2019) speak.
"""

from __future__ import annotations

from dataclasses import dataclass

from headscope.analyses.divergence.layer_claim import CLEAR
from headscope.core.terms import CLARK, KOBAYASHI20, KOBAYASHI21, OURS, SOURCES, Source

MIDDLE = (5 / 11, 9 / 11)  # Clark et al. 2019, §3.2: layers 6 to 10 of 12
NEGLIGIBLE = 0.1  # Cohen 1988: a correlation below is less than small
MODERATE = 0.3  # Cohen 1988: a medium correlation

COHEN, XIAO = "Cohen 1988", "Xiao et al. 2024"
REFERENCES = {
    **{name: SOURCES[name] for name in (CLARK, KOBAYASHI20, KOBAYASHI21)},
    XIAO: Source(
        "Guangxuan Xiao, Yuandong Tian, Beidi Chen, Song Han, Mike Lewis. 2024. Efficient "
        "Streaming Language Models with Attention Sinks. ICLR.",
        "https://arxiv.org/abs/2309.17453",
    ),
    COHEN: Source(
        "Jacob Cohen. 1988. Statistical Power Analysis for the Behavioral Sciences, second "
        "edition. Lawrence Erlbaum.",
        "https://doi.org/10.4324/9780203771587",
    ),
}

GROUPS = {
    "rest": "Where attention rests",
    "position": "Position",
    "breadth": "Breadth",
    "norms": "Weight against norm",
    "language": "Language: best heads beside the best fixed offset",
    "layers": "Layers",
}
TESTS = {"above": ">", "below": "<", "near": "within ±"}


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim.

    name       of its measure
    group      a key of GROUPS
    text       what is claimed, short
    number     what the number is
    unit       "share", "points" (a difference of shares), "heads", "nats" or "1"
    test       a key of TESTS: on which side of the bound the number must lie; near: |number| below
    bound      in the unit of the number, shares as such
    source     who claimed it, and of what
    bound_by   whose bound it is
    published  for BERT-base, as printed; "" where there is no number
    headline   how a sentence goes on after "In 4 of 5 models"; "" for none
    """

    name: str
    group: str
    text: str
    number: str
    unit: str
    test: str
    bound: float
    source: str
    bound_by: str
    published: str = ""
    headline: str = ""


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of which the best head is asked.

    name       in plain words
    labels     of it in Universal and in Stanford Dependencies; the first that a treebank has counts
    published  accuracy of the best head and of the best offset, BERT-base on the Penn Treebank
    """

    name: str
    labels: tuple[str, ...]
    published: str


RELATIONS = (
    Relation("determiner", ("det",), "94.3 | 51.7 %"),
    Relation("direct object", ("obj", "dobj"), "86.8 | 40.0 %"),
    Relation("subject", ("nsubj",), "58.5 | 45.5 %"),
    Relation("adjective", ("amod",), "75.6 | 68.3 %"),
    Relation("preposition", ("case", "pobj"), "pobj: 76.3 | 34.6 %"),
    Relation("possessive", ("nmod:poss", "poss"), "80.5 | 47.7 %"),
    Relation("auxiliary", ("aux",), "81.1 | 71.5 %"),
    Relation("clause marker", ("mark",), "50.7 | 14.5 %"),
    Relation("adverb", ("advmod",), "48.8 | 40.2 %"),
)


def relation_claim(relation: Relation) -> Claim:
    """The claim that some head finds the relation."""
    return Claim(
        f"relation_{relation.labels[0]}", "language", f"{relation.name} ({relation.labels[0]})",
        "held-out accuracy of the best head less that of the best fixed offset", "points",
        "above", 0.0, f"{CLARK}, Table 1", f"{OURS}: any advantage", relation.published,
    )  # fmt: skip


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "separator_middle", "rest",
        "the middle layers rest on the separator",
        "attention to the separator, mean over the heads of the middle layers", "share",
        "above", 0.5, f"{CLARK}, §3.2", f"{CLARK}, §3.2", "> 50 %",
        "more than half of the attention of the middle layers rests on the separator",
    ),
    Claim(
        "first_middle", "rest",
        "the middle layers rest on the first token",
        "attention to the first token, mean over the heads of the middle layers", "share",
        "above", 0.5, f"{XIAO}, of decoders", f"{OURS}, as for the separator", "≈ 0 %",
        "more than half of the attention of the middle layers rests on the first token",
    ),
    Claim(
        "both_middle", "rest",
        "the middle layers rest on the first token or the separator",
        "attention to the first token and the separator together, mean over the heads of the "
        "middle layers", "share",
        "above", 0.5, f"{CLARK}, §3.2, of [SEP] alone", f"{OURS}, as for the separator", "> 50 %",
        "more than half of the attention of the middle layers rests on the first token and the "
        "separator together",
    ),
    Claim(
        "separator_itself", "rest",
        "the separator attends to separators",
        "attention of separators to separators, mean over the heads of the middle layers", "share",
        "above", 0.9, f"{CLARK}, §3.2", f"{CLARK}, §3.2", "> 90 %",
    ),
    Claim(
        "previous_heads", "position",
        "some heads look at the previous token",
        "heads with more than half of their attention on the previous token", "heads",
        "above", 0.0, f"{CLARK}, §3.1", f"{CLARK}, §3.1: more than 50 %", "4 of 144",
        "some head gives more than half of its attention to the previous token",
    ),
    Claim(
        "next_heads", "position",
        "some heads look at the next token",
        "heads with more than half of their attention on the next token", "heads",
        "above", 0.0, f"{CLARK}, §3.1", f"{CLARK}, §3.1: more than 50 %", "5 of 144",
        "some head gives more than half of its attention to the next token",
    ),
    Claim(
        "position_early", "position",
        "neighbours matter most in early layers",
        "attention to both neighbours, mean over the first half of the layers less the second",
        "points", "above", 0.0, f"{CLARK}, §3.1", f"{OURS}: any difference",
    ),
    Claim(
        "broad_early", "breadth",
        "early layers attend more broadly",
        "mean entropy as a share of uniform attention’s, first half of the layers less the second",
        "points", "above", 0.0, f"{CLARK}, §3.3", f"{OURS}: any difference",
        headline="the first half of the layers attends more broadly than the second",
    ),
    Claim(
        "opening_last", "breadth",
        "in the last layer [CLS] attends broadly",
        "entropy of [CLS] less that of all tokens, last layer", "nats",
        "above", 0.0, f"{CLARK}, §3.3", f"{OURS}: any difference", "[CLS]: 3.89 nats",
        "[CLS], or what stands for it, attends more broadly in the last layer than other tokens do",
    ),
    Claim(
        "separator_empty", "norms",
        "what comes from the separator is small for its weight",
        "the separator’s share of the norm ‖αf(x)‖ divided by its share of the weight α, middle "
        "layers", "1",
        "below", 0.5, KOBAYASHI20, f"{OURS}: less than half of its weight",
        headline="the separator counts for less than half of its weight once norms are taken",
    ),
    Claim(
        "cancel_separator", "norms",
        "separator: large weights meet small vectors",
        "ρ of weight α and norm ‖f(x)‖ (Spearman) over pairs whose second token is a separator",
        "1",
        "below", -NEGLIGIBLE, f"{KOBAYASHI20}, Table 2", COHEN, "−0.69",
        "large weights of the separator meet small vectors, ρ < −0.1",
    ),
    Claim(
        "cancel_opening", "norms",
        "[CLS]: large weights meet small vectors",
        "ρ of weight α and norm ‖f(x)‖ (Spearman) over pairs whose second token is the opening one",
        "1",
        "below", -NEGLIGIBLE, f"{KOBAYASHI20}, Table 2", COHEN, "−0.34",
    ),
    Claim(
        "cancel_punctuation", "norms",
        "punctuation: large weights meet small vectors",
        "ρ of weight α and norm ‖f(x)‖ (Spearman) over pairs whose second token is a full stop or "
        "comma", "1",
        "below", -NEGLIGIBLE, f"{KOBAYASHI20}, Table 2", COHEN, "−0.25",
    ),
    Claim(
        "cancel_other", "norms",
        "other tokens: no such relation",
        "ρ of weight α and norm ‖f(x)‖ (Spearman) over pairs whose second token is any other", "1",
        "near", NEGLIGIBLE, f"{KOBAYASHI20}, Table 2", COHEN, "−0.06",
    ),
    Claim(
        "frequency_norm", "norms",
        "frequent tokens have small vectors",
        "ρ of a token’s frequency rank and its mean norm ‖f(x)‖ (Spearman)", "1",
        "above", MODERATE, KOBAYASHI20, COHEN, "0.75",
        "frequent tokens have smaller vectors, ρ > 0.3 with the frequency rank",
    ),
    Claim(
        "frequency_weight", "norms",
        "but get as much attention as others",
        "ρ of a token’s frequency rank and the attention that it receives (Spearman)", "1",
        "near", NEGLIGIBLE, KOBAYASHI20, COHEN, "0.06",
    ),
    Claim(
        "mixing", "norms",
        "a token’s output is mostly itself",
        "mixing ratio with residual and LayerNorm (AttnResLn-N), mean over layers; where a model "
        "normalises first, without (AttnRes-N)", "share",
        "below", 0.5, KOBAYASHI21, f"{OURS}: less than half", "18.8 %",
        "most of what leaves a layer’s attention block is the token itself",
    ),
    *map(relation_claim, RELATIONS),
    Claim(
        "overall_syntax", "language",
        "no head does syntax as a whole",
        "held-out accuracy of the best single head over all words", "share",
        "below", 0.5, f"{CLARK}, §4.2", f"{OURS}: less than half", "34.5 %",
        "no single head finds half of all syntactic heads",
    ),
    Claim(
        "layers_alike", "layers",
        "heads of one layer are alike",
        "by how much heads of a layer differ less (Jensen-Shannon divergence) than heads of "
        "different layers; with p against layers dealt out anew", "share",
        "above", 0.0, f"{CLARK}, §6", f"{OURS}: any difference, p ≤ {CLEAR:g}",
        headline="heads of one layer are more alike than heads of different layers",
    ),
)  # fmt: skip
