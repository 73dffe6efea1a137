"""The question coreference: which head finds an antecedent?"""

from headscope.core.question import Question

QUESTION = Question(
    name="coreference",
    package=__name__,
    title="Coreference",
    place=110,
    measure="measure:Coreference",
    figures="figure:FIGURES",
    terms="terms:TERMS",
    labels="terms:LABELS",
    claims="claims:claims",
    rules="claims:RULES",
    section="section:SECTIONS",
    tables="tables:tables",
)
