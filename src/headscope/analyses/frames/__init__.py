"""The question frames: which head links a frame element to the word that evokes the frame?"""

from headscope.core.question import Question

QUESTION = Question(
    name="frames",
    package=__name__,
    title="Frames",
    place=120,
    measure="measure:Frames",
    figures="figure:FIGURES",
    terms="terms:TERMS",
    labels="terms:LABELS",
    claims="claims:claims",
    rules="claims:RULES",
    metrics="claims:metrics",
    section="section:SECTIONS",
    tables="tables:tables",
)
