"""Comparison of two models of one shape: what fine-tuning changes in their heads."""

from headscope.claims.plan import PicturePlan
from headscope.claims.question import Question
from headscope.claims.terms import KOVALEVA, OURS, Term, terms_of

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
    figures=(
        PicturePlan(
            name="similarity",
            title="How alike the heads of both models are",
            panels="section:panels",
            caption="section:caption",
            heading="Which heads changed?",
            text="A map is a vector of weights: the cosine says how much of its direction is left. "
            "What changes is the model, as both see the same inputs.",
            finding="findings:depth_finding",
            columns=3,
        ),
        PicturePlan(
            name="training",
            title="Did the layers change that learned most?",
            panels="section:training_panels",
            caption="section:training_caption",
            id="training",
            heading="Did those layers change that learned most?",
            text="If the last layers changed most only because they got larger gradients, "
            "gradients and change should rise together.",
            finding="findings:training_finding",
            absent="How the second model was trained is not known: it has no finetuned.json, which "
            "headscope finetune writes.",
            columns=3,
        ),
        PicturePlan(
            name="change",
            title="What heads do otherwise",
            panels="section:change_panels",
            caption="section:change_caption",
            id="change",
            heading="What do heads do otherwise?",
            text="The numbers of an atlas, for both models on the same documents.",
            tables=("section:numbers_table",),
            columns=3,
        ),
        PicturePlan(
            name="words_change",
            title="Do heads look at other words?",
            panels="section:words_panels",
            caption="section:words_caption",
            id="words-change",
            text="Fine-tuning for a task that asks about language might make heads look at what "
            "matters for it: at nouns, verbs, subjects, negation.",
            finding="findings:words_finding",
            absent="This needs tags: --treebank, or --annotate with --text.",
            columns=3,
        ),
        PicturePlan(
            title="Inputs whose maps changed most",
            id="changed-examples",
            tables=("section:examples_table",),
            absent="",
        ),
    ),
    opening="section:OPENING",
    terms=TERMS,
    labels=SIMILARITY_LABELS,
    tables="change:comparison_tables",
    findings=("findings:findings",),
    remarks="findings:remarks",
    shown={"first": ("map_change",)},
)

SAME_ROLES = Question(
    package=__name__,
    name="same_roles",
    title="Same roles",
    place=325,
    figures=(
        PicturePlan(
            name="same_roles",
            title="Heads of two models with the same role",
            panels="same_roles_section:panels",
            caption="same_roles_section:caption",
            heading="Which heads do the same elsewhere?",
            text="The nearest head of another model is always there. It has the same role only if "
            "both are surely less than half as far apart as from any head without training, and "
            "surely have a tenth more in common.",
            tables=("same_roles_section:table",),
        ),
    ),
    opening="same_roles_section:OPENING",
    findings=("same_roles_section:findings",),
    tables="same_roles_section:tables",
    terms=terms_of(
        OURS,
        {
            "distance": (
                "distance of heads",
                "Total variation between the shares of what both heads gather that each rule "
                "explains, plus the differences of their scores on made inputs less their null. "
                "Rules that predict nearly the same in one of both networks count as one.",
            ),
            "untrained": (
                "distance to untrained heads",
                "That of a head and the nearest one of the networks without training of both runs.",
            ),
            "common": (
                "in common",
                "The share of what both heads gather that the same rules explain, plus the scores "
                "that both have.",
            ),
            "margin": (
                "margin of one role",
                "By how much two heads are less than half as far apart, or have more than a tenth "
                "more in common, than with heads without training: the smaller of both.",
            ),
            "alike": (
                "heads with the same role",
                "How many heads of the other model surely are nearer in this sense.",
            ),
        },
    ),
    labels={
        "distance": "distance to the nearest head of the other model",
        "untrained": "distance to the nearest head without training",
        "common": "in common with the nearest head of the other model",
        "margin": "margin of one role with it",
        "alike": "heads of the other model with the same role",
    },
    shown={"first": ("alike", "margin"), "table": ("distance", "common", "margin", "alike")},
)

CHANGE = Question(package=__name__, name="change", place=330)
