"""The question dependency: which head finds the syntactic head, relation by relation?"""

from headscope.core.question import Question

QUESTION = Question(
    name="dependency",
    package=__name__,
    title="Words whose syntactic head is found",
    place=100,
    measure="measure:Dependency",
    figures="figure:FIGURES",
    terms="terms:TERMS",
    claims="claims:claims",
    rules="claims:RULES",
    metrics="claims:metrics",
    section="section:SECTIONS",
    tables="tables:tables",
)
