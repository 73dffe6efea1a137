"""The question features: how much attention do nouns, verbs, negation … get?"""

from headscope.core.question import Question

QUESTION = Question(
    name="features",
    package=__name__,
    title="To kinds of words",
    place=130,
    measure="measure:Features",
    figures="figure:FIGURES",
    terms="terms:TERMS",
    labels="terms:LABELS",
    compared="Attention to kinds of words",
    claims="claims:claims",
    rules="claims:RULES",
    section="section:SECTIONS",
)
CLS_QUESTION = Question(
    name="cls_attention",
    package=__name__,
    place=140,
    measure="measure:ClsAttention",
    figures="figure:CLS_FIGURES",
)
