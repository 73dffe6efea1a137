"""The question neurons: which neurons of query and key make a head's scores?"""

from headscope.core.question import Question

QUESTION = Question(
    name="neurons",
    package=__name__,
    slow=True,
    title="Neurons",
    place=60,
    measure="measure:Neurons",
    figures="figure:FIGURES",
    section="section:SECTIONS",
    terms="terms:TERMS",
    labels="terms:LABELS",
)
