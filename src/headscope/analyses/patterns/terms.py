"""Words of the results on classes of maps."""

from __future__ import annotations

from headscope.analyses.patterns.classes import CLASSES
from headscope.core.terms import KOVALEVA, OURS, Term

TERMS = {
    **{one.name: Term(f"{one.title.lower()} maps", one.seen, KOVALEVA) for one in CLASSES},
    "layer_share": Term(
        "share of maps of a layer",
        "How many maps of a layer’s heads, one for each head and input, are of the class.", KOVALEVA
    ),
    "model_share": Term(
        "share of maps of a model",
        "The same over all layers: a bar of Kovaleva et al.’s Figure 2.",
        KOVALEVA,
    ),
    "confidence": Term(
        "confidence of the classifier",
        "Mean probability that it gives to the class it tells; how far to trust it is on its card.",
        OURS,
    ),
    "typical": Term(
        "typical map",
        "The map of a head that the classifier is surest to be of the head’s class.",
        OURS,
    ),
    "typical_score": Term(
        "score of a typical map", "The classifier’s probability of the map’s class.", OURS
    ),
}  # fmt: skip
LABELS = {
    "share": "{choice}",
}
