"""Words of the analysis of how widely heads look."""

from __future__ import annotations

from headscope.core.terms import CLARK, Term

TERMS = {
    "entropy": Term(
        "entropy",
        "How widely a head spreads its attention, in nats: 0 when all of it goes to one token, "
        "ln n when n tokens get the same.",
        f"{CLARK}, §3.3",
    ),
    "uniform": Term(
        "uniform attention",
        "What a head would show that gave every token of the input the same attention; the "
        "reference for entropy is the mean of ln n over documents.",
        f"{CLARK}, §3.3",
    ),
}
LABELS = {
    ("entropy", "all"): "entropy, all tokens",
    ("entropy", "cls"): "entropy, [CLS] only",
}
