"""The question patterns: of which class are a head's maps?"""

from headscope.core.question import Question

QUESTION = Question(
    name="patterns", package=__name__, title="Classes of maps", place=70,
    measure="measure:Patterns", figures="figure:FIGURES", section="figure:SECTIONS",
    terms="classes:TERMS", labels="classes:LABELS", shown={"change": ("share.heterogeneous",)},
    compared="Classes of maps",
    withheld=("confidence",),  # of the classifier
    claims="classes:claims", rules="classes:RULES", card="typical_maps:CARD",
)  # fmt: skip
