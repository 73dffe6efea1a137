"""The question cls_attention: what does [CLS] attend to in the last layer?"""

from headscope.core.question import Question

QUESTION = Question(
    name="cls_attention",
    package=__name__,
    place=140,
    measure="measure:ClsAttention",
    figures="figure:FIGURES",
)
