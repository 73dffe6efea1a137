"""A study: a model trained on several tasks from several seeds, and what holds in all of them.

trainings ─► studying (teach, compare, ablate: a part of the run each) ─► result ─► page
"""

from headscope.claims.plan import PicturePlan
from headscope.claims.question import Question

STUDY = Question(
    package=__name__,
    name="study",
    title="Over seeds and tasks",
    place=290,
    figures=(
        PicturePlan(
            name="study_scores",
            title="Scores of every training",
            panels="figure:score_panels",
            caption="figure:score_caption",
            id="scores",
            heading="Was the task learned?",
            text="What a checkpoint at chance does with its heads says nothing of the task.",
            finding="findings:learned_finding",
            columns=3,
        ),
        PicturePlan(
            name="study_heads",
            title="Heads that seeds agree on",
            panels="figure:head_panels",
            caption="figure:head_caption",
            id="heads-over-seeds",
            heading="Which heads are needed, whatever the seed?",
            text="A head is switched off in every checkpoint. What one seed needs another may do "
            "elsewhere: how often is a head needed?",
            finding="findings:agreement_finding",
            tables=("section:heads_table",),
            absent="No training learned its task: nothing is said of heads.",
            columns=2,
        ),
        PicturePlan(
            title="Do other trainings need as many heads?",
            id="heads-by-training",
            text="Heads are switched off in every checkpoint that learned its task. Other "
            "numbers than in plain trainings say what rates, frozen layers and the start do.",
            tables=("section:variants_table",),
            absent="All trainings are plain; --variants puts others beside them.",
        ),
        PicturePlan(
            name="study_change",
            title="Change of maps with training",
            panels="figure:change_panels",
            caption="figure:change_caption",
            id="change-of-maps",
            heading="Which heads change?",
            text="Each checkpoint and its start read the same examples.",
            tables=("section:features_table",),
            columns=3,
        ),
        PicturePlan(
            name="study_classes",
            title="Classes of maps before and after training",
            panels="map_classes:class_panels",
            caption="map_classes:class_caption",
            id="classes-of-maps",
            heading="Do heads turn to other kinds of maps?",
            text="A map with a few columns says where a head rests, one along the diagonal that it "
            "looks nearby, blocks that it keeps to a sentence.",
            tables=("map_classes:classes_table",),
            absent="No example is long enough for a class of maps.",
            columns=1,
            wide=True,
        ),
        PicturePlan(
            name="study_layers",
            title="Layers: maps, gradients, weights",
            panels="figure:layer_panels",
            caption="figure:layer_caption",
            id="layers-over-seeds",
            heading="Do the last layers change most, because gradients are larger there?",
            text="If so, change and gradients go together over layers, in every seed.",
            tables=("section:layers_table", "section:together_table"),
            columns=3,
        ),
        PicturePlan(
            title="Why does disabling a head help?",
            id="gains",
            text="The best of many heads gains on the examples that chose it, whatever it does. A "
            "gain that is more than choice is there in other seeds, on the other half of the "
            "examples, and with other replacements.",
            finding="findings:held_out_finding",
            tables=("section:gains_table",),
            absent="No training learned its task: there is no gain to explain.",
        ),
    ),
    opening="section:OPENING",
    terms="terms:TERMS",
    labels="terms:LABELS",
    marks="terms:MARKS",
    findings=("findings:study_findings",),
    tables="features:tables",
    shown={"first": ("mean_effect", "loss_needed_share", "mean_map_change")},
)
