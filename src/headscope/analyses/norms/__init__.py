"""The question norms: what is gathered once vector norms count, and does frequency matter?"""

from headscope.core.question import Option, Question, some

QUESTION = Question(
    name="norms", package=__name__, title="Norms", place=30, measure="measure:Norms",
    summary="vector norms ‖αf(x)‖ beside attention weights", source="Kobayashi et al. 2020",
    needs=frozenset({"attention", "values", "projection"}),
    options={
        "layer_norms": Option(True), "cancellation": Option("sampled", ("sampled", "all")),
        "every": Option(8, check_value=some),
    },
    figures="figure:FIGURES", section="figure:SECTIONS", terms="claims:TERMS",
    labels="claims:LABELS",
    shown={
        "table": ("value_norm_mean", "value_norm_cv", "weighted_norm.other"),
        "overview": ("value_norm_mean", "value_norm_cv"),
        "card": (
            "weighted_norm.cls|weighted_norm.first", "weighted_norm.sep", "weighted_norm.other",
            "value_norm_cv",
        ),
        "change": ("value_norm_mean",),
    },
    compared="Norms",
    withheld=("attention.",),  # said by the shares of attention
    claims="claims:claims",
    rules="claims:RULES",
)  # fmt: skip
