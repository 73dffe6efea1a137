"""The question patterns: of which class are a head's maps?"""

from headscope.core.question import Option, Question, some

QUESTION = Question(
    name="patterns",
    package=__name__,
    title="Classes of maps",
    place=70,
    summary="classes of maps: vertical, diagonal, both, block, heterogeneous",
    source="Kovaleva et al. 2019, §4.1",
    needs=frozenset({"attention"}),
    options={
        "columns": Option("special", ("special", "any")),
        "classifier": Option("", deep=True),
        "least_tokens": Option(10, check_value=some),
    },
    measure="measure:Patterns",
    figures="figure:FIGURES",
    section="figure:SECTIONS",
    terms="classes:TERMS",
    labels="classes:LABELS",
    shown={"change": ("share.heterogeneous",)},
    compared="Classes of maps",
    withheld=("confidence",),  # of the classifier
    claims="classes:CLAIMS",
    marks={
        "vertical": ("sky", "s"),
        "diagonal": ("orange", "D"),
        "vertical_diagonal": ("green", "^"),
        "block": ("purple", "v"),
        "heterogeneous": ("grey", "o"),
    },
    card="typical_maps:CARD",
    common=True,
)
