"""The words of the results on word alignment, explained."""

from __future__ import annotations

from headscope.core.terms import KOBAYASHI20, Term

TERMS = {
    "aer": Term(
        "alignment error rate",
        "How far links A between the words of a sentence and its translation are from those that "
        "people drew, sure ones S and possible ones P: 1 − (|A∩P| + |A∩S|) / (|A| + |S|), from 0 "
        "to 1, all sentences taken together.",
        f"{KOBAYASHI20}, §5",
    ),
    "AWO": Term(
        "AWO",
        "Alignment with output: a word of the translation is linked to the source word that "
        "cross-attention looks at most while the word is generated.",
        f"{KOBAYASHI20}, §5",
    ),
    "AWI": Term(
        "AWI",
        "Alignment with input: the same while the decoder reads the word, one step later.",
        f"{KOBAYASHI20}, §5",
    ),
    "mean_norm": Term(
        "mean weighted norm",
        "The length of what a head adds for a token, ‖αf(x)‖, mean over all tokens that look "
        "and all that are looked at.",
        f"{KOBAYASHI20}, §5",
    ),
}
