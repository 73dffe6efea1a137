"""The question norms: what is gathered once vector norms count, and does frequency matter?"""

from typing import Any

from headscope.claims.plan import LayerLines, PicturePlan
from headscope.claims.question import Option, Question, some
from headscope.claims.terms import KOBAYASHI20, Term

CATEGORIES = ("cls", "first", "sep", "punctuation", "other")


def pairs_caption(run: Any) -> str:
    """How to read the pairs of tokens."""
    rho = run.data["spearman_attention_value_norm"].attrs.get("long_name", "")
    pairs = float(run.data["attention_value_norm_histogram"].sum())
    words: str = run.words(
        "Pairs of tokens over heads and layers: attention α across, value norm ‖f(x)‖ of the token "
        "attended to upwards, farther from the page’s colour where more pairs fall (square-root "
        "scale, each panel to its own maximum); the line is the median norm at each weight. A "
        "falling line and a negative ρ mean that the norm cancels the weight. ρ: {rho}; "
        "{intervals}; {pairs:,.0f} pairs, {over}. After Kobayashi et al. (2020), Table 2.",
        rho=rho or "Spearman correlation",
        pairs=pairs,
    )
    return words


QUESTION = Question(
    name="norms",
    package=__name__,
    title="Norms",
    place=30,
    measure="measure:Norms",
    shares=("weighted_norm",),
    summary="vector norms ‖αf(x)‖ beside attention weights",
    source="Kobayashi et al. 2020",
    needs=frozenset({"attention", "values", "projection"}),
    options={
        "layer_norms": Option(True),
        "cancellation": Option("sampled", ("sampled", "all")),
        "every": Option(8, check_value=some),
    },
    shown={
        "table": ("value_norm_mean", "value_norm_cv", "weighted_norm.other"),
        "overview": ("value_norm_mean", "value_norm_cv"),
        "card": (
            "weighted_norm.cls|weighted_norm.first",
            "weighted_norm.sep",
            "weighted_norm.other",
            "value_norm_cv",
        ),
        "change": ("value_norm_mean",),
    },
    compared="Norms",
    withheld=("attention.",),  # said by the shares of attention
    terms={
        "value_norm": Term(
            "value norm ‖f(x)‖",
            "The length of the vector that a head would add for a token if it attended to that "
            "token alone, before any attention weight.",
            KOBAYASHI20,
        ),
        "weighted_norm": Term(
            "weighted norm ‖αf(x)‖",
            "Attention times value norm: the length of what a token really contributes through a "
            "head; for a category, the sum over its tokens.",
            KOBAYASHI20,
        ),
        "layer_weighted_norm": Term(
            "layer norm of the sum ‖Σαf(x)‖",
            "The length of what a token contributes through all heads of a layer together; heads "
            "can reinforce or cancel each other.",
            KOBAYASHI20,
        ),
        "value_norm_cv": Term(
            "dispersion of value norms",
            "Standard deviation over mean of a head’s value norms: how differently it treats "
            "tokens before any attention weight.",
            f"{KOBAYASHI20}, Table 1",
        ),
        "value_norm_max": Term(
            "largest value norm",
            "The length of the longest vector that a head would add for any token of the corpus; "
            "no interval, as no part of the corpus holds a longer one.",
            f"{KOBAYASHI20}, Table 1",
        ),
        "value_norm_min": Term(
            "smallest value norm",
            "The length of the shortest vector that a head would add for any token of the corpus; "
            "no interval, as no part of the corpus holds a shorter one.",
            f"{KOBAYASHI20}, Table 1",
        ),
        "spearman_attention_value_norm": Term(
            "cancellation",
            "Attention and value norm pull against each other: large weights fall on tokens whose "
            "vectors are short, seen as a negative rank correlation between the two.",
            f"{KOBAYASHI20}, Table 2",
        ),
        "spearman_frequency": Term(
            "frequency effect",
            "Rank correlation with a token’s frequency rank (1 = most frequent): positive when "
            "rarer tokens get more, or mix more.",
            KOBAYASHI20,
        ),
        "sink": Term(
            "attention sink",
            "A head that rests more than half of its attention on [CLS], on "
            "[SEP], on both, or on the first token where no special one opens the input, while "
            "what they add has less than half the norm of what the other tokens add, or their "
            "vectors are less than a tenth as long as those of other tokens.",
            f"{KOBAYASHI20}; the thresholds are ours",
        ),
    },
    labels={
        "attention": "summed attention to {choice}",
        "value_norm": "value norm of {choice}",
        "weighted_norm": "weighted norm of {choice}",
        "value_norm_mean": "value norm, mean",
        "value_norm_sd": "value norm, SD",
        "value_norm_cv": "value norm, CV",
        "value_norm_max": "value norm, largest",
        "value_norm_min": "value norm, smallest",
    },
    figures=(
        PicturePlan(
            name="weight_against_norm",
            title="Weight against norm",
            columns=3,
            panels=tuple(
                LayerLines(
                    title=title,
                    needs=variable,
                    label="attention" if share else "norm",
                    order=CATEGORIES,
                    percent=bool(share),
                    top=share,
                )
                for variable, title, share in (
                    ("attention", "Weight α", 1.0),
                    ("weighted_norm", "Weighted norm ‖αf(x)‖", None),
                    ("layer_weighted_norm", "All heads together ‖Σαf(x)‖", None),
                )
            ),
            caption="(a) Attention to each category of token, (b) the norm of what it adds, both "
            "summed over the category’s tokens, mean over inputs and heads, (c) the norm of the "
            "sum over heads: much weight on a token need not mean that it contributes. Norms are "
            "in the model’s own unit; bands: {intervals}, in (a) and (b) the mean of the heads’ "
            "limits, which is at least as wide as the mean’s own; {over:weighted_norm}. "
            "After Kobayashi et al. (2020), Figure 3.",
            text="Attention is only a weight: what a token contributes is the weight times the "
            "vector that it multiplies. Where a category draws much attention in (a) but stays low "
            "in (b), the head looks there in order to do little.",
            finding="figure:weight_finding",
        ),
        PicturePlan(
            id="cancellation",
            name="cancellation",
            title="Does the norm cancel the weight?",
            columns=4,
            panels="figure:pair_panels",
            caption=pairs_caption,
            text="If heads use some tokens as a place to rest, their largest weights should fall "
            "on the shortest vectors.",
            finding="figure:pairs_finding",
        ),
        PicturePlan(
            id="frequency",
            name="frequency",
            title="Does frequency matter?",
            panels="figure:rank_panels",
            caption="Tokens grouped by frequency rank (1 = most frequent, doubling bins): mean "
            "over token occurrences, heads and layers of the value norm (model’s own unit) and of "
            "the attention received per query (share); ρ: Spearman with rank over all occurrences; "
            "bands and brackets: {intervals}; {over}. After Kobayashi et al. (2020).",
            text="Frequent words carry little news. A model that knows this gives them short "
            "vectors, whatever attention they draw.",
            finding="figure:ranks_finding",
        ),
    ),
    claims="claims:claims",
    rules="claims:RULES",
)
