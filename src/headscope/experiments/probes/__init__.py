"""Trained probes that read syntax from attention maps and hidden states.

`headscope.experiments.probes.probe` is the way in.
"""

from headscope.claims.plan import PicturePlan
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
    figures=(
        PicturePlan(
            name="probes",
            title="What probes find",
            panels="figure:panels",
            caption="figure:caption",
            id="part-probes",
            heading="Is the tree in the attention?",
            text="A probe that may only weigh the heads finds as much syntax as their attention "
            "shows. What it gains over the rule and over words with distances is the model’s own; "
            "what a random model gives is the probe’s.",
            tables=("figure:scores_table", "figure:differences_table", "figure:relations_table"),
        ),
        PicturePlan(
            name="probe_heads",
            title="Heads that the probe leans on",
            panels="figure:head_panels",
            caption="How far each head moves the scores of the probe on attention alone: its "
            "weight times the spread of its attention between the candidates of a word. Blue: what "
            "it attends to is taken for the head; vermillion: it speaks against it. (a) Attention "
            "from a word to the candidate, (b) from the candidate to the word; "
            "n = {test_sentences:,} test sentences, {test_words:,} words. Heads that attend alike "
            "share their weight, so a pale head may still know syntax.",
            id="part-probe_heads",
            heading="Which heads does the probe lean on?",
            text="Few strong cells mean that syntax sits in few heads; heads that do the same "
            "share it.",
            tables=("figure:heads_table",),
        ),
        PicturePlan(
            name="structural",
            title="Trees in hidden states",
            panels="figure:layer_panels",
            caption="The structural probe on the output of each layer. (a) UUAS: the share of "
            "arcs, whichever end is the head, in the minimum spanning tree of the predicted "
            "distances, without punctuation; root: the share of sentences whose least deep word is "
            "the root. (b) Spearman’s ρ of predicted and true distances, and depths, as means over "
            "lengths from 5 to 50 words; bands are 95 % intervals over test sentences; "
            "n = {test_sentences:,} test sentences, {test_words:,} words. After Hewitt and Manning "
            "(2019).",
            id="part-structural",
            heading="Is the tree in the hidden states?",
            text="The reference: a linear map of hidden states, which see more than attention "
            "shows.",
            tables=("figure:layers_table",),
        ),
    ),
    opening="figure:OPENING",
    terms=TERMS,
    labels=LABELS,
    tables="findings:tables",
    findings=("findings:probe_findings",),
    shown={"first": ("head_influence*",)},
)
