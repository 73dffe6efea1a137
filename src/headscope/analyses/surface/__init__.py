"""The question surface: how much attention goes to neighbours and special tokens?"""

from headscope.core.question import Question

QUESTION = Question(
    name="surface",
    package=__name__,
    title="Attention",
    place=10,
    measure="measure:Surface",
    figures="figure:FIGURES",
    section="section:SECTIONS",
    terms="terms:TERMS",
    labels="terms:LABELS",
    columns=(
        "attention.previous",
        "attention.next",
        "attention.self",
        "attention.cls|attention.first",
        "attention.sep",
        "attention.punctuation",
    ),
    overview=(
        "attention.previous",
        "attention.next",
        "attention.cls|attention.first",
        "attention.sep",
        "attention.punctuation",
    ),
    compared="Where heads attend",
    claims="claims:claims",
    rules="claims:RULES",
    roles="claims:roles",
)
