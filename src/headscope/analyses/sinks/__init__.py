"""The question sinks: in how many inputs does a token draw attention from everywhere?"""

from headscope.claims.plan import PicturePlan
from headscope.claims.question import Option, Question, some, some_left
from headscope.claims.terms import GU, SUN, terms_of

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
    shown=dict.fromkeys(("card", "change"), ("sink_share",)),
    compared="Sinks",
    terms=terms_of(
        GU,
        {
            "sink_share": (
                "sink by threshold",
                "The share of inputs in which some token gets more than 0.3 of the attention, mean "
                "over all tokens that see it.",
            ),
            "sink_share_of": ("sink on a kind of token", "The same of the tokens of a kind."),
            "sink_rate": (
                "heads with a sink",
                "The share of heads, and of inputs, in which the token at a position is a sink by "
                "threshold.",
            ),
        },
    )
    | terms_of(
        SUN,
        {
            "largest": (
                "largest activation",
                "The largest |x| of the residual stream that a layer’s attention reads, over the "
                "tokens and dimensions of an input.",
            ),
            "massive": (
                "massive activation",
                "A number of the residual stream above 100 and above 1,000 times the median of an "
                "input’s numbers, in size.",
            ),
        },
    ),
    labels={
        "sink_share": "inputs with a sink",
        "sink_share_of": "inputs with a sink on {choice}",
    },
    figures=(
        PicturePlan(
            name="sinks",
            title="Sinks and massive activations",
            columns=3,
            panels="figure:panels",
            caption="figure:caption",
            finding="figure:finding",
            tables=("figure:massive_table",),
            text="A sink is a token that nearly all others attend to. It lets a head do nothing: "
            "where its share of the norms is far below its attention, hardly anything is gathered "
            "there. In decoders sinks come with massive activations of the same tokens.",
        ),
    ),
    claims="claims:CLAIMS",
)
