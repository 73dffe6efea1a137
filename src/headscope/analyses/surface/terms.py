"""Words of the analysis of what heads look at."""

from __future__ import annotations

from headscope.core.terms import CLARK, Term

TERMS = {
    "self": Term("itself", "Attention of a token to itself.", f"{CLARK}, §3.1"),
    "previous": Term(
        "previous token",
        "Attention of a token to the one before it; the first token has none and counts as 0.",
        f"{CLARK}, §3.1",
    ),
    "next": Term(
        "next token",
        "Attention of a token to the one after it; the last token has none and counts as 0.",
        f"{CLARK}, §3.1",
    ),
    "sep_from_sep": Term(
        "[SEP] from [SEP]",
        "The attention that separator tokens themselves give to separators.",
        f"{CLARK}, §3.2",
    ),
    "sep_from_other": Term(
        "[SEP] from other tokens",
        "The attention that all tokens but the separators give to separators.",
        f"{CLARK}, §3.2",
    ),
}
LABELS = {
    "attention": "attention to {choice}",
}
