"""Importance of heads: how much a loss depends on each, by gradients of attention.

examples ─► gradients (∂loss/∂α of every layer, inside backward) ─► result ─► a run
`attribution` integrates gradients from no attention to all of it; `correlation` compares all of
that with switching heads off.
"""

from headscope.claims.plan import PicturePlan
from headscope.claims.question import Question
from headscope.claims.terms import CLARK, HAO, MICHEL, OURS, Term

TERMS = {
    "magnitude": Term(
        "size of the gradient, |∂loss/∂α|",
        "How much the loss of an example would change if one attention weight α were a little "
        "other, all else being as it is; mean over the edges from any token to such a token.",
        f"{CLARK}, Figure 3",
    ),
    "magnitude_by_query": Term(
        "size of the gradient by query",
        "The sum of |∂loss/∂α| over all such tokens that a query may attend to, mean over queries: "
        "as attention to them is counted.",
        f"{CLARK}, Figure 3",
    ),
    "gradient": Term(
        "gradient importance",
        "The mean |∂loss/∂α| over all edges of a head.",
        f"{CLARK}; to rank heads by it is ours",
    ),
    "michel": Term(
        "Michel importance",
        "Mean over examples of |Σ α ∂loss/∂α|: how fast the loss changes, to first order, when the "
        "head begins to be faded out (the gradient of a mask on the head).",
        f"{MICHEL}, §4.1",
    ),
    "michel_normalised": Term(
        "Michel importance by layer",
        "Michel importance divided by the length of the layer’s (ℓ2), so that each layer counts as "
        "much as another.",
        f"{MICHEL}, §4.1",
    ),
    "slope_zero": Term(
        "slope to nothing",
        "By how much the loss would rise without the head if it rose as steeply throughout as it "
        "begins to: the mean of −Σ α ∂loss/∂α. Its sign tells use from harm, which Michel "
        "importance leaves out.",
        OURS,
    ),
    "slope_uniform": Term(
        "slope to even",
        "The same on the way to even attention, α = 1/n for the n tokens that may be attended to: "
        "the mean of Σ (1/n − α) ∂loss/∂α.",
        OURS,
    ),
    "attattr": Term(
        "AttAttr importance",
        "Mean over examples of the largest attribution of an edge: what it adds to the probability "
        "of the right class as the attention of its layer grows from 0 to what it is (integrated "
        "gradients).",
        HAO,
    ),
    "completeness_error": Term(
        "error of the integral",
        "The attributions of a layer should sum up to what the answer changes when the layer "
        "attends to nothing; this is how far they do not.",
        OURS,
    ),
    "rho": Term(
        "ρ",
        "Spearman’s rank correlation over heads between an importance and what becomes of the task "
        "when the head is switched off; the interval is over heads drawn anew.",
        OURS,
    ),
    "overlap": Term(
        "overlap of the top heads",
        "The share of the tenth of heads that are most important which is also among the tenth "
        "without which the task suffers most.",
        OURS,
    ),
}
GRADIENTS_LABELS = {
    "magnitude": "size of the gradient, {choice}",
    "magnitude_by_query": "size of the gradient by query, {choice}",
    "attention": "attention to {choice}, by query",
}
IMPORTANCE_LABELS = {"head_importance": "{choice}", "effect_of_head": "without the head: {choice}"}
GRADIENTS = Question(
    package=__name__,
    name="gradients",
    place=305,
    figures=(
        PicturePlan(
            name="gradients",
            title="Where gradients go",
            panels="figure:gradient_panels",
            caption="figure:gradient_caption",
            heading="Where do gradients go?",
            text="Attention that is changed a little changes the loss by its gradient. Where much "
            "attention rests on a token and the gradient is small, it matters little that it does: "
            "the token is a place to rest (Clark et al. 2019).",
            columns=3,
        ),
    ),
    opening="section:OPENING",
    terms=TERMS,
    labels=GRADIENTS_LABELS,
    findings=("section:gradient_finding",),
    shown={"first": ("*",)},
)

IMPORTANCE = Question(
    package=__name__,
    name="importance",
    place=304,
    figures=(
        PicturePlan(
            name="importance",
            title="Importance of heads",
            panels="figure:importance_panels",
            caption="figure:importance_caption",
            heading="Which heads does the loss depend on?",
            text="All of these are read off gradients, at the price of a few passes. They say what "
            "a small change would do, which need not be what switching off does.",
            tables=("section:importance_table",),
            columns=3,
        ),
        PicturePlan(
            name="importance_against_ablation",
            title="Importance against switching off",
            panels="figure:against_panels",
            caption="figure:against_caption",
            id="against",
            heading="Is that what happens when heads are switched off?",
            text="If an importance is worth its name, heads to the right lie high.",
            tables=("section:against_table",),
        ),
    ),
    opening="section:OPENING",
    labels=IMPORTANCE_LABELS,
    findings=(
        "section:difference_finding",
        "section:rho_finding",
        "section:overlap_finding",
        "section:integral_note",
    ),
    shown={"first": ("*",)},
)
