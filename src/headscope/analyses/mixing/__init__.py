"""The question mixing: how much of a token's output comes from other tokens?"""

from headscope.core.question import Question

QUESTION = Question(
    name="mixing",
    package=__name__,
    slow=True,
    place=40,
    measure="measure:Mixing",
    figures="figure:FIGURES",
    section="section:SECTIONS",
    terms="terms:TERMS",
    labels="terms:LABELS",
)
