"""The question sinks: in how many inputs does a token draw attention from everywhere?"""

from headscope.core.question import Option, Question, some, some_left
from headscope.core.terms import GU, SUN

QUESTION = Question(
    name="sinks",
    package=__name__,
    title="Sinks",
    place=32,
    measure="measure:Sinks",
    summary="in how many inputs a token draws attention from everywhere; massive activations",
    source=f"{GU}; massive activations: {SUN}",
    needs=frozenset({"attention"}),
    options={
        "tokens": Option(64, check_value=some),
        "threshold": Option(0.3, check_value=some_left),
        "least": Option(16, check_value=some),
    },
    figures="figure:FIGURES",
    section="figure:SECTIONS",
    terms="claims:TERMS",
    labels="claims:LABELS",
    shown=dict.fromkeys(("card", "change"), ("sink_share",)),
    compared="Sinks",
    claims="claims:claims",
    rules="claims:RULES",
)
