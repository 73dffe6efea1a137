"""The question mixing: how much of a token's output comes from other tokens?"""

from headscope.core.question import Question
from headscope.core.terms import KOBAYASHI21, Term

TERMS = {
    "ratio": Term(
        "mixing ratio",
        "How much of a token’s new vector comes from the other tokens "
        "rather than from itself, from 0 to 1.",
        KOBAYASHI21,
    ),
    "taken_share": Term(
        "share of what is taken",
        "Of all that tokens take from others, each counted by its norm ‖Σαf(x)‖ over all heads, "
        "how much comes from a kind of token.",
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
}
LABELS = {"spearman_frequency": "mixing ratio and frequency rank, {choice}"}
QUESTION = Question(
    name="mixing",
    package=__name__,
    slow=True,
    place=40,
    measure="measure:Mixing",
    summary="how much of a token's output comes from other tokens",
    source="Kobayashi et al. 2021",
    needs=frozenset({"attention", "values", "projection"}),
    figures="figure:FIGURES",
    section="figure:SECTIONS",
    terms=TERMS,
    labels=LABELS,
)
