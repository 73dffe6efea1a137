"""The question surface: how much attention goes to neighbours and special tokens?"""

from headscope.core.question import Question

SHOWN = (
    "attention.previous",
    "attention.next",
    "attention.self",
    "attention.cls|attention.first",
    "attention.sep",
    "attention.punctuation",
)
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
    shown={
        "table": SHOWN,
        "overview": tuple(key for key in SHOWN if key != "attention.self"),
        "card": SHOWN,
        "change": SHOWN,
    },
    compared="Where heads attend",
    claims="claims:claims",
    rules="claims:RULES",
    roles="claims:roles",
)
