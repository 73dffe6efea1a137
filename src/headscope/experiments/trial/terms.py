"""Terms and wording of the trial of labels."""

from headscope.claims.terms import OURS, Term

# What is measured of an output, and what of it says that a label matters.
MEASURES = DISTANCE, LOSS, COPIED = "distance", "loss", "copied"
SCORES = VECTORS, OF_NEXT, OF_MASKED = (
    "output vectors",
    "loss of the next token",
    "loss of masked tokens",
)
_RESTS = "; of labels of rest, how far the output vectors move, in per cent"
MOVES = {
    VECTORS: "how far the output vectors move, in per cent of the distance of two tokens’ vectors",
    OF_NEXT: f"rise of the loss of the next token, in nats{_RESTS}",
    OF_MASKED: "rise of the mean loss of an input’s masked tokens, in nats for each query that is "
    f"moved{_RESTS}",
}
TERMS = {
    "trial": Term(
        "trial of a label",
        "Where its label says that a head looks, the weight is moved to where the head rests, and "
        "the change of the output at these tokens is measured. Confirmed: larger than the same by "
        "other queries, at other tokens and in other heads of the layer, for all labels at once.",
        OURS,
    ),
    "effect": Term(
        "effect of a label",
        "How far the output vectors move where the rule of the label applies, as a share of the "
        "distance of two tokens’ vectors; of masked language models, by how much the loss of "
        "masked tokens rises; of labels that say that a token is copied, by how much its "
        "log-probability falls.",
        OURS,
    ),
}
LABELS = {
    "effect": "effect of the label",
    "share": "share of what the head does there",
    "beyond": "effect beyond {choice}",
    "loss": "rise of the loss",
    "direct": "straight to the output",
    "direct_loss": "rise of the loss, straight",
    "repaired": "repaired by later layers",
    "transfer": "changed by another token, beyond the same",
}
