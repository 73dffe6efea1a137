"""Words of the results on information flow."""

from __future__ import annotations

from headscope.core.terms import (
    ABNAR,
    FERRANDO,
    KOBAYASHI21,
    MODARRESSI,
    MOHEBBI,
    OURS,
    Term,
)

TERMS = {
    "flow": Term(
        "information flow",
        "How much of a token’s vector at a layer’s output comes from a kind of input token, over "
        "all paths through the layers below; each input token counts as one kind, the first of "
        "itself, previous, next and so on, so that the shares add up to 1.",
        ABNAR,
    ),
    "rollout": Term(
        "attention rollout",
        "Layers multiplied, each half mean attention over heads and half the token itself, for the "
        "residual connection.",
        ABNAR,
    ),
    "weighted_norm_residual": Term(
        "weighted-norm rollout",
        "Layers multiplied, each with the norm of what a token gives through all heads together, "
        "and of the residual connection’s vector too where it gives to itself.",
        f"{KOBAYASHI21}; {ABNAR}",
    ),
    "globenc": Term(
        "GlobEnc",
        "The weighted-norm rollout with each vector taken through both normalisations of a layer, "
        "the feed-forward left out.",
        MODARRESSI,
    ),
    "alti": Term(
        "ALTI",
        "Layers multiplied, each with how much nearer to 0 (in the L1 norm) a token’s vector after "
        "attention would be without what another token gives.",
        FERRANDO,
    ),
    "value_zeroing": Term(
        "value zeroing",
        "Layers multiplied, each with how far the direction of a token’s vector at the layer’s "
        "output turns when another token’s values are set to 0.",
        MOHEBBI,
    ),
    "max_flow": Term(
        "maximum flow",
        "How much could run from a token to a token of the input at once, if every weight of every "
        "layer were a pipe of that width.",
        ABNAR,
    ),
    "effective_tokens": Term(
        "effective number of tokens",
        "From how many input tokens a representation comes: 1 / Σ share², 1 where all comes from "
        "one, n where n give the same.",
        OURS,
    ),
}
LABELS = {
    "share": "share from {choice}",
    "cls_share": "share of [CLS] from {choice}",
}
