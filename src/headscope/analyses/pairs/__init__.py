"""The question pairs: do subjects and verbs, nouns and pronouns attend to each other?"""

from headscope.core.question import Question

QUESTION = Question(
    name="pairs",
    package=__name__,
    title="Between words",
    place=150,
    measure="measure:Pairs",
    figures="figure:FIGURES",
    terms="terms:TERMS",
    labels="terms:LABELS",
    claims="claims:claims",
    rules="claims:RULES",
)
