"""Trained probes that read syntax from attention maps and hidden states.

`headscope.experiments.probes.probe` is the way in.
"""

from headscope.claims.question import Question
from headscope.claims.terms import CLARK, HEWITT, OURS, Term

TERMS = {
    "uas": Term(
        "UAS",
        "Unlabelled attachment score: the share of words whose syntactic head is "
        "found, punctuation left out.",
        f"{CLARK}, §5",
    ),
    "uas_with_punctuation": Term(
        "UAS with punctuation", "The same, punctuation counted as well.", OURS
    ),
    "uas_of_tree": Term(
        "UAS of the tree",
        "UAS when the likeliest directed tree of the sentence is taken, and not the likeliest head "
        "of each word.",
        OURS,
    ),
    "uuas": Term(
        "UUAS",
        "Undirected unlabelled attachment score: the share of arcs, whichever end "
        "is the head, in the maximum spanning tree over the words without punctuation.",
        HEWITT,
    ),
    "right_branching": Term(
        "right-branching", "A rule: the head of a word is the next word.", f"{CLARK}, §5"
    ),
    "attention_words": Term(
        "attention + words",
        "A probe that weighs every head by what two words they are: their word vectors give the "
        "weights.",
        f"{CLARK}, §5",
    ),
    "distances_words": Term(
        "distances + words",
        "A probe without attention: word vectors, and how far apart two words stand.",
        f"{CLARK}, §5",
    ),
    "random_words": Term(
        "random model + words",
        "The probe attention + words on a model whose weights are random but for its embeddings.",
        f"{CLARK}, §5",
    ),
    "structural": Term(
        "structural probe",
        "A linear map of hidden states under which squared distances come near the arcs between "
        "words, and squared lengths near their depths.",
        HEWITT,
    ),
    "head_influence": Term(
        "influence on the probe",
        "A head’s weight in the probe on attention, times the spread of its attention between the "
        "candidates of a word; below 0 its attention speaks against a candidate.",
        OURS,
    ),
    "head_weight": Term("weight in the probe", "What the probe learned for a head.", CLARK),
}
LABELS = {
    "head_influence": "influence on the probe, {choice}",
    "head_weight": "weight in the probe, {choice}",
    "head_spread": "spread of attention, {choice}",
}
PROBES = Question(
    package=__name__,
    name="probes",
    place=340,
    figures="figure:FIGURES",
    section="figure:SECTIONS",
    opening="figure:OPENING",
    terms=TERMS,
    labels=LABELS,
    tables="findings:tables",
    findings="findings:probe_findings",
    shown={"first": ("head_influence*",)},
)
