"""The question surface: how much attention goes to neighbours and special tokens?"""

from headscope.core.question import Option, Question

QUESTION = Question(
    name="surface",
    package=__name__,
    title="Attention",
    place=10,
    measure="measure:Surface",
    summary="attention to self, neighbours, special tokens and punctuation",
    source="Clark et al. 2019, §3.1-3.2",
    needs=frozenset({"attention"}),
    options={"edge_tokens": Option("count", ("count", "leave_out"))},
    figures="figure:FIGURES",
    section="figure:SECTIONS",
    terms="claims:TERMS",
    labels="claims:LABELS",
    shown="claims:SHOWN",
    compared="Where heads attend",
    marks={
        "no_token": ("grey", "o"),
        "sep_from_sep": ("vermillion", "^"),
        "sep_from_other": ("grey", "o"),
    },
    claims="claims:claims",
    rules="claims:RULES",
    card="query_bands:CARD",
    common=True,
)
