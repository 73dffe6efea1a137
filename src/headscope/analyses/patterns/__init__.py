"""The question patterns: of which class are a head's maps?"""

from headscope.core.question import Question

QUESTION = Question(
    name="patterns",
    package=__name__,
    title="Classes of maps",
    place=70,
    measure="measure:Patterns",
    figures="figure:FIGURES",
    section="section:SECTIONS",
    terms="terms:TERMS",
    labels="terms:LABELS",
    shown={"change": ("share.heterogeneous",)},
    compared="Classes of maps",
    withheld=("confidence",),  # of the classifier
    claims="claims:claims",
    rules="claims:RULES",
)
