"""The question entropy: how widely does a head spread its attention?"""

from headscope.core.question import Option, Question, some_left

QUESTION = Question(
    name="entropy",
    package=__name__,
    title="Entropy",
    place=20,
    measure="measure:Entropy",
    summary="how widely each head spreads its attention",
    source="Clark et al. 2019, §3.3",
    needs=frozenset({"attention"}),
    options={"smoothing": Option(0.0, check_value=some_left)},
    figures="figure:FIGURES",
    section="figure:SECTIONS",
    terms="claims:TERMS",
    labels="claims:LABELS",
    shown={
        "table": ("entropy.all", "entropy.cls"),
        "overview": ("entropy.all",),
        "card": ("entropy.all",),
        "change": ("entropy.all",),
    },
    compared="How widely they attend",
    claims="claims:claims",
    rules="claims:RULES",
    common=True,
)
