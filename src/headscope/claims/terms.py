"""Terms: what a word of the data means; those of attention at large, and short citations.

The papers that these cite stand in `bibliography`.
"""

from dataclasses import dataclass

from headscope.core.head_names import HeadNames


@dataclass(frozen=True, slots=True)
class Term:
    """One entry of the dictionary: `name` in running text, `meaning` in one sentence, `source`."""

    name: str
    meaning: str
    source: str = ""


def terms_of(source: str, words: dict[str, tuple[str, str]]) -> dict[str, Term]:
    """Entries of one source, from each word's name and meaning."""
    return {word: Term(*entry, source) for word, entry in words.items()}


CLARK = "Clark et al. 2019"
KOBAYASHI20 = "Kobayashi et al. 2020"
KOBAYASHI21 = "Kobayashi et al. 2021"
KOVALEVA = "Kovaleva et al. 2019"
VIG = "Vig 2019"
ROUSSEEUW = "Rousseeuw 1987"
KAUFMAN = "Kaufman and Rousseeuw 1990"
HENNIG07 = "Hennig 2007"
HENNIG15 = "Hennig and Lin 2015"
HAYES = "Hayes et al. 2026"
HUBERT = "Hubert and Arabie 1985"
KRUSKAL = "Kruskal 1964"
ABNAR = "Abnar & Zuidema 2020"
MODARRESSI = "Modarressi et al. 2022"
FERRANDO = "Ferrando et al. 2022"
MOHEBBI = "Mohebbi et al. 2023"
MICHEL = "Michel et al. 2019"
HAO = "Hao et al. 2021"
MCNEMAR = "McNemar 1947"
HEWITT = "Hewitt and Manning 2019"
BENJAMINI = "Benjamini and Hochberg 1995"
XIAO = "Xiao et al. 2024"
XIAO25 = "Xiao et al. 2025"
GU = "Gu et al. 2025"
SUN = "Sun et al. 2024"
ELHAGE = "Elhage et al. 2021"
OLSSON = "Olsson et al. 2022"
WANG = "Wang et al. 2023"
NANDA = "Nanda 2023"
HANNA = "Hanna et al. 2024"
MUELLER = "Mueller et al. 2025"
GOULD = "Gould et al. 2024"
ELHELO = "Elhelo and Geva 2025"
WU = "Wu et al. 2024"
ZHANG = "Zhang et al. 2025"
GEMA = "Gema et al. 2026"
TODD = "Todd et al. 2024"
YAMAGIWA = "Yamagiwa et al. 2026"
COHEN = "Cohen 1988"
OURS = "headscope"


def head_term() -> Term:
    """The entry of the word head, whose example is counted as names are."""
    names = HeadNames(())
    layer, head = 7 + names.first, 9 + names.first
    return Term(
        "head",
        f"One of the parallel attention units of a layer; L{layer}·H{head} is head {head} "
        f"of layer {layer}, both counted {names.counted} (data files count from 0).",
        CLARK,
    )


# What every result speaks of; each question explains its own words beside itself.
TERMS = {
    "attention": Term(
        "attention",
        "The share of a token’s attention that goes to another token: the weight α after the "
        "softmax, so that every row sums to 1.",
        CLARK,
    ),
    "first": Term(
        "first token",
        "Attention to the token at the first position; decoders without a "
        "[CLS] token often rest their attention there.",
        OURS,
    ),
    "cls": Term(
        "[CLS]",
        "Attention to the classification token that opens the input, whatever the "
        "tokenizer calls it.",
        f"{CLARK}, §3.2",
    ),
    "sep": Term(
        "[SEP]",
        "Attention to the separator tokens that end each segment, whatever the "
        "tokenizer calls them, summed over all of them.",
        f"{CLARK}, §3.2",
    ),
    "punctuation": Term(
        "punctuation", "Attention to full stops and commas, summed.", f"{CLARK}, §3.2"
    ),
    "other": Term(
        "other tokens",
        "Every token that is none of [CLS], [SEP], full stop and comma.",
        KOBAYASHI20,
    ),
    "interval": Term(
        "[low, high]",
        "The 95 % interval of an estimate: of 100 corpora like this one, 95 give an interval that "
        "holds the true value. It comes from leaving out one document after another, or one head "
        "where what is said is of heads in general. In a label of what a head knows of words it is "
        "longer, so as to hold for all heads at once. None is shown where fewer than 5 documents, "
        "or heads, have a part in the number.",
        OURS,
    ),
    "role": Term(
        "what a head looks at",
        "What a colour and a sign stand for, by the lower end of the interval: next or previous "
        "token above 0.5; broad when entropy is above 0.9 of uniform; [CLS], [SEP] or punctuation "
        "above 0.6; else other. Labels say more.",
        f"{CLARK}, §6; the relative entropy threshold is ours (theirs: 3.8 nats)",
    ),
    "effect": Term(
        "effect",
        "How far a head stands above what is ordinary, of the way it could "
        "go: (lower end of its interval − reference) / (ceiling − reference), where the reference "
        "is the larger of uniform attention and the mean head; for what a head knows of language, "
        "the baseline, or what chance gives.",
        OURS,
    ),
    "surprise": Term(
        "surprise",
        "How telling a label is, in bits: log2 of all heads over those "
        "with a label of its kind, plus the relative entropy of the lower end of its interval and "
        "its reference, or the highest head without training where that is higher.",
        OURS,
    ),
    "label": Term(
        "label",
        "What a head is, by a rule with a threshold: the lower end of the 95 % "
        "interval must lie above it; the strongest label comes first, by effect, and a head that "
        "passes no rule is unlabelled.",
        OURS,
    ),
    "rank": Term(
        "rank",
        "The place of a head among all heads by one number, 1 for the largest; "
        "equal heads have the same.",
        OURS,
    ),
}
