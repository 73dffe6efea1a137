"""The question norms: what is gathered once vector norms count, and does frequency matter?"""

from headscope.core.question import Question

QUESTION = Question(
    name="norms",
    package=__name__,
    title="Norms",
    place=30,
    measure="measure:Norms",
    figures="figure:FIGURES",
    section="section:SECTIONS",
    terms="terms:TERMS",
    labels="terms:LABELS",
    columns=("value_norm_mean", "value_norm_cv", "weighted_norm.other"),
    overview=("value_norm_mean", "value_norm_cv"),
    compared="Norms",
    claims="claims:claims",
    rules="claims:RULES",
)
