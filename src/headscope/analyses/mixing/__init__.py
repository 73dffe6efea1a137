"""The question mixing: how much of a token's output comes from other tokens?"""

from typing import Any

from headscope.claims.plan import LayerLines, PicturePlan
from headscope.claims.question import Question
from headscope.claims.terms import KOBAYASHI21, Term

# word of the data → its colour and mark; in the order of the lines
MARKS = {
    "attn_w": ("grey", "o"),
    "attn_n": ("sky", "s"),
    "attnres_w": ("orange", "^"),
    "attnres_n": ("green", "v"),
    "attnresln_n": ("blue", "D"),
}


def finding(run: Any) -> str:
    """How much comes from other tokens, beside what it seems by attention weights."""
    if not all(run.has(f"ratio.{way}") for way in ("attn_w", "attnresln_n")):
        return ""
    words: str = run.words(
        "Of a token’s new vector {ratio.attnresln_n:%} comes from other tokens, mean over layers; "
        "by attention weights alone it seems {ratio.attn_w:%}."
    )
    return words


QUESTION = Question(
    name="mixing",
    package=__name__,
    slow=True,
    place=40,
    measure="measure:Mixing",
    summary="how much of a token's output comes from other tokens",
    source="Kobayashi et al. 2021",
    needs=frozenset({"attention", "values", "projection"}),
    terms={
        "ratio": Term(
            "mixing ratio",
            "How much of a token’s new vector comes from the other tokens "
            "rather than from itself, from 0 to 1.",
            KOBAYASHI21,
        ),
        "taken_share": Term(
            "share of what is taken",
            "Of all that tokens take from others, each counted by its norm ‖Σαf(x)‖ over all "
            "heads, how much comes from a kind of token.",
            f"{KOBAYASHI21}; the split by kinds is ours",
        ),
        "attn_w": Term("Attn-W", "Mixing ratio from attention weights alone.", KOBAYASHI21),
        "attn_n": Term("Attn-N", "Mixing ratio from the norms of weighted vectors.", KOBAYASHI21),
        "attnres_w": Term(
            "AttnRes-W", "Attn-W with the residual connection counted as weight 1.", KOBAYASHI21
        ),
        "attnres_n": Term(
            "AttnRes-N", "Attn-N with the residual connection’s vector added.", KOBAYASHI21
        ),
        "attnresln_n": Term(
            "AttnResLn-N", "AttnRes-N after layer normalisation: the whole block.", KOBAYASHI21
        ),
    },
    labels={"spearman_frequency": "mixing ratio and frequency rank, {choice}"},
    marks=MARKS,
    figures=(
        PicturePlan(
            name="mixing",
            title="How much tokens are mixed",
            panels=(
                LayerLines(
                    title="Share from other tokens",
                    needs="ratio",
                    label="mixing ratio",
                    dashes={way: at for at, way in enumerate(MARKS)},
                    height=0.8,
                ),
                LayerLines(
                    title="Of which tokens",
                    needs="taken_share",
                    label="share of what is taken",
                    height=0.8,
                ),
            ),
            caption="(a) How much of each token’s new vector comes from the other tokens, mean "
            "over tokens: by attention weights (W) or norms (N), of attention alone, with the "
            "residual connection (Res), with layer normalisation (Ln). (b) From which tokens: "
            "shares of the summed norms ‖Σαf(x)‖ of all heads together. Bands are {intervals}; "
            "{over}. After Kobayashi et al. (2021).",
            text="Attention weights alone make it look as if nearly everything came from other "
            "tokens. Counting the residual connection and layer normalisation shows how much of "
            "each token stays itself.",
            finding=finding,
        ),
    ),
)
