"""The question divergence: which heads behave alike?"""

from headscope.core.question import Question

QUESTION = Question(
    name="divergence",
    package=__name__,
    slow=True,
    place=80,
    measure="measure:Divergence",
    figures="figure:FIGURES",
    section="section:SECTIONS",
    terms="terms:TERMS",
    tables="clusters:tables",
    places="figure:places",
)
