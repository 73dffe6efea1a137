"""Evolution: what every head does over the steps of a training, and when its labels are born.

checkpoints (folders, hub) ─► measuring (atlas, circuits: a run a step) ─► collected ─► a run
trainer_callback (a Trainer's model as it learns) ─┘                           └► spells, section
"""

from headscope.claims.plan import PicturePlan
from headscope.claims.question import Question

EVOLUTION = Question(
    package=__name__,
    name="evolution",
    title="Over training",
    place=15,
    figures=(
        PicturePlan(
            name="evolution",
            title="Heads over training",
            panels="figure:panels",
            caption="figure:caption",
            heading="What do heads do over training?",
            text="Each line is one head. Coloured ones carry the label of the panel at some step; "
            "the dashed line is as far as a head without training comes. Where a line rises, the "
            "head learns.",
            columns=3,
        ),
        PicturePlan(
            name="label_lives",
            title="Lives of labels",
            panels="figure:life_panels",
            caption="figure:life_caption",
            id="label-lives",
            heading="When are labels born, and when do they go?",
            text="A label that is not there at one measured step and there at the next was born "
            "between the two.",
            tables=("section:table",),
            columns=1,
        ),
    ),
    opening="section:OPENING",
    terms="terms:TERMS",
    labels="terms:LABELS",
    findings=("section:findings",),
    tables="section:tables",
)
