"""The question entropy: how widely does a head spread its attention?"""

from headscope.core.question import Question

QUESTION = Question(
    name="entropy", package=__name__, title="Entropy", place=20, measure="measure:Entropy",
    figures="figure:FIGURES", section="figure:SECTIONS", terms="claims:TERMS",
    labels="claims:LABELS",
    shown={
        "table": ("entropy.all", "entropy.cls"),
        "overview": ("entropy.all",),
        "card": ("entropy.all",),
        "change": ("entropy.all",),
    },
    compared="How widely they attend", claims="claims:claims", rules="claims:RULES",
    roles="claims:roles",
)  # fmt: skip
