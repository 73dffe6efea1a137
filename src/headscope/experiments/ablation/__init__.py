"""Ablation: switch heads off, alone or together, and score the task without them.

variants ─► variant_answers (see `shared_prefix`, or the naive way) ─► effects ─► a run
`prune` removes heads one after another; `pruned_checkpoint` writes a model without them.
"""

from headscope.claims.plan import PicturePlan
from headscope.claims.question import Question

ABLATION = Question(
    package=__name__,
    name="ablation",
    title="Without the head",
    place=300,
    figures=(
        PicturePlan(
            name="ablation",
            title="Scores without heads",
            panels="figure:panels",
            caption="figure:caption",
            id="heads-off",
            heading="Which heads does the task need?",
            text="A head is switched off in place, all others stay. If the score falls the head "
            "was of use; if it rises the head was in the way. Marks stand where that is more than "
            "chance.",
            tables=("section:heads_table", "section:layers_table", "section:groups_table"),
        ),
        PicturePlan(
            name="ablation_loss",
            title="Losses without heads",
            panels="figure:loss_panels",
            caption="figure:loss_caption",
            id="losses-off",
            heading="What does the loss say?",
            text="A score moves only where an answer flips. The loss moves with the certainty of "
            "every answer, so it tells small effects from none.",
        ),
        PicturePlan(
            title="Which answers hang on single heads?",
            id="answers",
            text="Where an answer changes with many heads off it stood on the edge; where with one "
            "alone, that head may have seen what it turns on.",
            tables=("section:answers_table",),
        ),
    ),
    opening="section:OPENING",
    terms="terms:TERMS",
    labels="terms:ABLATION_LABELS",
    tables="result:tables",
    findings=("findings:ablation_findings",),
    remarks="terms:remarks",
    shown={"first": ("difference", "loss_difference", "q", "loss_q", "lost", "gained")},
)

PRUNING = Question(
    package=__name__,
    name="pruning",
    title="Order of removal",
    place=310,
    figures=(
        PicturePlan(
            name="pruning",
            title="Scores as heads go",
            panels="figure:pruning_panels",
            caption="figure:pruning_caption",
            heading="How many heads can go?",
            text="Heads are removed one after another. A curve that stays up says that the task "
            "does not need what is gone; an order is worth something as far as it lies above "
            "random ones.",
            tables=("section:orders_table",),
        ),
    ),
    opening="section:OPENING",
    labels="terms:PRUNING_LABELS",
    findings=("findings:pruning_findings",),
    shown={"first": ("*",)},
)
