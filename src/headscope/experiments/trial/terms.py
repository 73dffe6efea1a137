"""Terms and wording of the trial of labels."""

from headscope.claims.terms import OURS, Term

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
        "distance of two tokens’ vectors; of labels that say that a token is copied, by how much "
        "its log-probability falls.",
        OURS,
    ),
}
LABELS = {
    "effect": "effect of the label",
    "share": "share of what the head does there",
    "beyond": "effect beyond {choice}",
    "loss": "rise of the next token’s loss",
    "direct": "straight to the output",
    "direct_loss": "rise of the loss, straight",
    "repaired": "repaired by later layers",
    "transfer": "changed by another token, beyond the same",
}
