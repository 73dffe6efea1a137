"""Comparison of two models of one shape: what fine-tuning changes in their heads."""

from headscope.claims.question import Question
from headscope.claims.terms import KOVALEVA, OURS, Term

TERMS = {
    "cosine": Term(
        "cosine of maps",
        "How alike the maps of one head in two models are, taken as vectors: 1 if equal, 0 if no "
        "weight is in the same place; mean over inputs, padding cut off.",
        f"{KOVALEVA}, §4.3",
    ),
    "cosine_padded": Term(
        "cosine of padded maps",
        "The same of inputs that are filled up to one length, with the rows by which padding "
        "attends, as in the authors’ notebook.",
        f"{KOVALEVA}, §4.3",
    ),
    "model_difference": Term(
        "difference of two models",
        "A number in the second model minus the same in the first, on the same documents; its "
        "interval is of the difference over the same documents.",
        OURS,
    ),
    "sure": Term(
        "rose or fell significantly",
        "The difference lies outside its interval, widened for looking at all heads of a number "
        "(Bonferroni).",
        OURS,
    ),
    "gradient_norm": Term(
        "gradient of a layer",
        "The length of the gradient of all parameters of a layer, before it is cut, mean over the "
        "steps of the training.",
        OURS,
    ),
    "relative_change": Term(
        "move of a layer’s weights",
        "The length of the difference between a layer’s parameters after and before training, "
        "divided by their length before.",
        OURS,
    ),
}
SIMILARITY_LABELS = {
    "cosine": "cosine of maps with the first model’s",
    "map_change": "change of maps, 1 − cosine",
    "cosine_padded": "cosine of padded maps with the first model’s",
    "js": "divergence from the first model’s maps",
}
SIMILARITY = Question(
    package=__name__,
    name="similarity",
    place=320,
    figures="figure:SIMILARITY_FIGURES",
    section="section:SECTIONS",
    opening="section:OPENING",
    terms=TERMS,
    labels=SIMILARITY_LABELS,
    tables="change:comparison_tables",
    findings="findings:findings",
    remarks="label_changes:remarks",
    shown={"first": ("map_change",)},
)

CHANGE = Question(package=__name__, name="change", place=330, figures="figure:CHANGE_FIGURES")
